// How text typed into a value box is understood: valid JSON is that value, any other word or date is a string.
//
// In: the typed text. Out: the value as JSON text with its own digits, and a short description of it.
import { JsonError, parse, show, typeOf, write, type Value } from "./json.ts";

export type Understood = { json: string; value: Value; said: string } | { error: string };

/** Text that begins so is JSON or a mistake; a string that begins so has to be quoted. */
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
/** The JSON text of a typed value; throws an error that names the box. */
export function literal(typed: string, name: string): string {
  const found = understood(typed);
  if ("error" in found) throw new Error(`${name}: ${found.error}`);
  return found.json;
}
