// A box for a value that is typed as a person writes it, with how it is understood.
import { understood } from "./literal.ts";

/** How it was understood, beside the box. */
export function Understanding({ typed }: { typed: string }) {
  const found = understood(typed);
  return "error" in found ? <small class="understood bad">{found.error}</small> : <small class="understood">{found.said}</small>;
}

/** A box for a value with how it is understood. */
export function ValueBox({ label, typed, onTyped, placeholder }: { label: string; typed: string; onTyped: (typed: string) => void; placeholder?: string }) {
  return (
    <span class="value-box">
      <input class="mono" aria-label={label} value={typed} placeholder={placeholder} autocomplete="off" spellcheck={false} onInput={(event) => onTyped(event.currentTarget.value)} />
      <Understanding typed={typed} />
    </span>
  );
}
