// What somebody means by what is typed into a box for a value: a word or a date is a text, JSON is the value that it says.
//
// In: what is typed. Out: the value as JSON text with its own digits, and words for how it was understood.
import { JsonError, parse, show, typeOf, write, type Value } from "./json.ts";

export type Understood = { json: string; value: Value; said: string } | { error: string };

/** What begins so is JSON or a mistake; a text that begins so has to be in quotes. */
const JSON_BEGINS = /^["[{]/;

export function understood(typed: string): Understood {
  const text = typed.trim();
  try {
    const value = parse(text);
    return { json: write(value), value, said: saidOf(value) };
  } catch (error) {
    if (JSON_BEGINS.test(text)) return { error: `${(error as JsonError).message}. Put a text that begins with ${text[0]} into quotes.` };
    return { json: JSON.stringify(text), value: text, said: saidOf(text) };
  }
}
function saidOf(value: Value): string {
  const type = typeOf(value);
  if (type === "string") return `text ${JSON.stringify(value)}`;
  if (type === "null") return "null";
  return `${type === "boolean" ? "" : `${type} `}${show(value)}`;
}
/** The JSON text of what is typed, or an error that names the box. */
export function literal(typed: string, name: string): string {
  const found = understood(typed);
  if ("error" in found) throw new Error(`${name}: ${found.error}`);
  return found.json;
}
