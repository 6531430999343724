// The page's entry: asks who is signed in, then shows the sign-in or the shell.
import { render } from "preact";
import { session } from "./api.ts";
import { Shell } from "./shell.tsx";
import { SignIn, findSession, signInByLink } from "./signin.tsx";
import { keepState, openAddress, showTheme } from "./state.ts";
import { Questions, Toasts } from "./ui.tsx";
import { guardUnload } from "./unsaved.ts";

function App() {
  const current = session.value;
  return (
    <>
      {current === undefined ? <div class="waiting" role="status">Connecting…</div> : current ? <Shell /> : <SignIn />}
      <Questions />
      <Toasts />
    </>
  );
}

async function start(): Promise<void> {
  const link = /^#link=([^&]+)/.exec(location.hash)?.[1];
  if (link) {
    // The token is used up at once and never stays in the address or the history.
    history.replaceState(null, "", location.pathname);
    await signInByLink(decodeURIComponent(link));
  } else {
    await findSession();
  }
  if (!link) openAddress(location.hash);
  keepState();
  guardUnload();
  // Not from `location`: the active tab may have written its own address there meanwhile.
  addEventListener("hashchange", (event) => openAddress(new URL(event.newURL).hash));
}

showTheme();
render(<App />, document.getElementById("app")!);
void start();
