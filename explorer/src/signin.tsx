// Signing in: by the one-time link that the server prints, by a key, which is posted once and kept nowhere, or by one click where the
// server's key is the well-known one and this browser is on its machine.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { currentSession, endSession, needsNoKey, session, signIn } from "./api.ts";
import { forget, hasMemory } from "./state.ts";
import { Button, Field, Problem, tellError } from "./ui.tsx";

const problem = signal("");

export async function signInByLink(link: string): Promise<void> {
  try {
    session.value = await signIn({ link });
  } catch (error) {
    await findSession();
    if (!session.value) problem.value = `${(error as Error).message} A sign-in link works once; restart the server for another, or use a key.`;
  }
}

/** Whoever is signed in already. */
export async function findSession(): Promise<void> {
  try {
    session.value = await currentSession();
  } catch (error) {
    session.value = null;
    problem.value = (error as Error).message;
  }
}

/** Who is not told that the session has ended is still signed in, and has to know. */
export async function signOut(): Promise<void> {
  try {
    await endSession();
    session.value = null;
  } catch (error) {
    tellError(error);
  }
}

export function SignIn() {
  const [key, setKey] = useState("");
  const [readOnly, setReadOnly] = useState(false);
  const [busy, setBusy] = useState(false);
  const [keyless, setKeyless] = useState(false);
  // Without an answer there is still the key.
  useEffect(() => void needsNoKey().then(setKeyless, () => {}), []);
  const click = useRef<HTMLDivElement>(null);
  useEffect(() => { if (keyless && !key) click.current?.querySelector("button")?.focus(); }, [keyless]);
  const begin = async (proof: Parameters<typeof signIn>[0]) => {
    setBusy(true);
    try {
      session.value = await signIn(proof);
      problem.value = "";
    } catch (error) {
      problem.value = (error as Error).message;
    }
    setBusy(false);
  };
  const readOnlyCheck = (
    <label class="check">
      <input type="checkbox" checked={readOnly} onChange={(event) => setReadOnly(event.currentTarget.checked)} />
      <span>Read-only session: nothing can be changed by mistake</span>
    </label>
  );
  return (
    <main class="sign-in">
      <form onSubmit={(event) => { event.preventDefault(); void begin({ key: key.trim(), readOnly }); }}>
        <Brand />
        <h1>Sign in</h1>
        {keyless ? <>
          <p>This server listens on this machine only and has the emulator's well-known key, so no key is needed.</p>
          {readOnlyCheck}
          <div class="one-click" ref={click}><Button look="primary" disabled={busy} onClick={() => void begin({ wellKnownKey: true, readOnly })}>Continue with the well-known key</Button></div>
        </> : <p>Open the link that the server printed at its start, or use one of the account's keys.</p>}
        <Field label={keyless ? "Or another account key" : "Account key"}>
          <input type="password" autocomplete="off" spellcheck={false} required value={key} onInput={(event) => setKey(event.currentTarget.value)} autofocus />
        </Field>
        {!keyless && readOnlyCheck}
        <Problem error={problem.value} />
        <Button type="submit" look={keyless ? undefined : "primary"} disabled={busy || !key.trim()}>Sign in</Button>
        {hasMemory.value && <Button look="quiet" onClick={forget}>Forget the tabs and queries of this browser</Button>}
      </form>
    </main>
  );
}

export function Brand() {
  return (
    <span class="brand">
      <svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
        <rect width="32" height="32" rx="8" class="brand-ground" />
        <g fill="none" stroke="#fff" stroke-width="2">
          <ellipse cx="16" cy="16" rx="10" ry="4.2" transform="rotate(-28 16 16)" />
          <circle cx="16" cy="16" r="10" opacity=".45" />
        </g>
        <circle cx="16" cy="16" r="3" fill="#fff" />
        <circle cx="24.2" cy="10.6" r="2" fill="#ffd166" />
      </svg>
      Astrarium
    </span>
  );
}
