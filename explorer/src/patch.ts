// What a bulk edit does to each item: which changes there are, what one of them makes of a value, and how it is asked for.
import { RawNumber, parse, write, type Value } from "./json.ts";

export type Action = "set" | "remove" | "incr" | "delete";
export const ACTIONS: readonly (readonly [Action, string])[] = [["set", "Set a property"], ["remove", "Remove a property"], ["incr", "Add to a number"], ["delete", "Delete the items"]];

/** The action that a tab names. Tabs come from addresses, which may name anything. */
export const actionOf = (name: string | undefined): Action => ACTIONS.find(([action]) => action === name)?.[0] ?? "set";

/** What the property would be. */
export function changed(action: Action, before: Value | undefined, value: Value): Value | undefined | "impossible" {
  if (action === "set") return value;
  if (action === "remove") return undefined;
  const number = (v: Value | undefined) => (typeof v === "number" ? v : v instanceof RawNumber ? Number(v.raw) : NaN);
  if (before === undefined) return value;
  const sum = number(before) + number(value);
  return Number.isNaN(sum) ? "impossible" : sum;
}

/** The body of the patch. Written by hand, because the digits of the value must stay. */
export function patchBody(action: Exclude<Action, "delete">, steps: readonly string[], text: string): string {
  const pointer = `/${steps.map((step) => step.replaceAll("~", "~0").replaceAll("/", "~1")).join("/")}`;
  const value = action === "remove" ? "" : `,"value":${write(parse(text))}`;
  return `{"operations":[{"op":${JSON.stringify(action)},"path":${JSON.stringify(pointer)}${value}}]}`;
}
