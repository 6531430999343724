// Signing in: by the one-time link that the server prints, or by a key, which is posted once and kept nowhere.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { currentSession, endSession, session, signIn } from "./api.ts";
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
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      session.value = await signIn({ key: key.trim(), readOnly });
      problem.value = "";
    } catch (error) {
      problem.value = (error as Error).message;
    }
    setBusy(false);
  };
  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <Brand />
        <h1>Sign in</h1>
        <p>Open the link that the server printed at its start, or use one of the account's keys.</p>
        <Field label="Account key">
          <input type="password" autocomplete="off" spellcheck={false} required value={key} onInput={(event) => setKey(event.currentTarget.value)} autofocus />
        </Field>
        <label class="check">
          <input type="checkbox" checked={readOnly} onChange={(event) => setReadOnly(event.currentTarget.checked)} />
          <span>Read-only session: nothing can be changed by mistake</span>
        </label>
        <Problem error={problem.value} />
        <Button type="submit" look="primary" disabled={busy || !key.trim()}>Sign in</Button>
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
