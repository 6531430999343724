// JSON as text: what a document says is kept as it was written, so that no number loses a digit and no key moves.
//
// In: JSON texts. Out: slices of them, the same text indented, or values in which a number that JavaScript cannot hold
// exactly stays its text (`RawNumber`) and an object is a Map (any key, in its own order).
// Invariant: `write(parse(text))` has the digits of every number of `text`.

export class RawNumber {
  constructor(readonly raw: string) {}
  toString(): string {
    return this.raw;
  }
}
export type Fields = Map<string, Value>;
export type Value = null | boolean | number | string | RawNumber | Value[] | Fields;

export class JsonError extends Error {
  constructor(message: string, readonly at: number) {
    super(message);
  }
}

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const DEPTH_MAX = 512;

function skipSpace(text: string, at: number): number {
  SPACE.lastIndex = at;
  SPACE.test(text);
  return SPACE.lastIndex;
}

function stringEnd(text: string, at: number): number {
  for (let end = at + 1; ; end++) {
    end = text.indexOf('"', end);
    if (end < 0) throw new JsonError("This text has no closing quote", at);
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === 92) slashes++;
    if (slashes % 2 === 0) return end + 1;
  }
}

function numberEnd(text: string, at: number): number {
  NUMBER.lastIndex = at;
  return NUMBER.test(text) ? NUMBER.lastIndex : at;
}

/** Where the value that begins at `at` ends; brackets are matched, not checked. */
function valueEnd(text: string, at: number): number {
  const first = text[at];
  if (first === '"') return stringEnd(text, at);
  if (first !== "{" && first !== "[") {
    let end = at;
    while (end < text.length && !",]} \t\n\r".includes(text[end]!)) end++;
    return end;
  }
  let depth = 0;
  for (let i = at; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 34:
        i = stringEnd(text, i) - 1;
        break;
      case 123:
      case 91:
        depth++;
        break;
      case 125:
      case 93:
        if (--depth === 0) return i + 1;
    }
  }
  throw new JsonError("A bracket is not closed", at);
}

/** The texts of the elements of the array that begins at `at`. */
export function elements(text: string, at = 0): string[] {
  const found: string[] = [];
  at = skipSpace(text, skipSpace(text, at) + 1);
  while (at < text.length && text[at] !== "]") {
    const end = valueEnd(text, at);
    found.push(text.slice(at, end));
    at = skipSpace(text, end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return found;
}

/** Where each field of an object is: its name and the bounds of its value. */
export function* fieldsOf(text: string): Generator<{ name: string; start: number; end: number }> {
  let at = skipSpace(text, skipSpace(text, 0) + 1);
  while (at < text.length && text[at] !== "}") {
    const nameEnd = stringEnd(text, at);
    const name = unescape(text, at, nameEnd);
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const end = valueEnd(text, start);
    yield { name, start, end };
    at = skipSpace(text, end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
}

/** The texts of the rows of a feed, e.g. of `{"_rid":"","Documents":[...],"_count":2}`. */
export function feedRows(text: string): string[] {
  for (const { start } of fieldsOf(text)) if (text[start] === "[") return elements(text, start);
  return [];
}

/** The document without what the server adds to it. */
export function withoutSystemFields(text: string, alsoWithout: string[] = []): string {
  const system = new Set(["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn", ...alsoWithout]);
  const kept: string[] = [];
  for (const { name, start, end } of fieldsOf(text))
    if (!system.has(name)) kept.push(`${JSON.stringify(name)}:${text.slice(start, end)}`);
  return `{${kept.join(",")}}`;
}

function unescape(text: string, start: number, end: number): string {
  const inside = text.slice(start + 1, end - 1);
  if (!inside.includes("\\") && !/[\u0000-\u001f]/.test(inside)) return inside;
  try {
    return JSON.parse(text.slice(start, end)) as string;
  } catch {
    throw new JsonError("This text has a bad escape or a line break in it", start);
  }
}

export function parse(text: string): Value {
  const [value, end] = parseValue(text, skipSpace(text, 0), 0);
  const rest = skipSpace(text, end);
  if (rest < text.length) throw new JsonError("Something follows the value", rest);
  return value;
}

function parseValue(text: string, at: number, depth: number): [Value, number] {
  if (depth > DEPTH_MAX) throw new JsonError("Nested too deeply", at);
  switch (text[at]) {
    case "{":
      return parseObject(text, at, depth);
    case "[":
      return parseArray(text, at, depth);
    case '"': {
      const end = stringEnd(text, at);
      return [unescape(text, at, end), end];
    }
    case "t":
      if (text.startsWith("true", at)) return [true, at + 4];
      break;
    case "f":
      if (text.startsWith("false", at)) return [false, at + 5];
      break;
    case "n":
      if (text.startsWith("null", at)) return [null, at + 4];
  }
  const end = numberEnd(text, at);
  if (end === at) throw new JsonError(at < text.length ? "A value is expected here" : "The text ends too early", at);
  const raw = text.slice(at, end);
  const number = Number(raw);
  return [String(number) === raw ? number : new RawNumber(raw), end];
}

function parseObject(text: string, start: number, depth: number): [Fields, number] {
  const fields: Fields = new Map();
  let at = skipSpace(text, start + 1);
  if (text[at] === "}") return [fields, at + 1];
  for (;;) {
    if (text[at] !== '"') throw new JsonError("A name in double quotes is expected here", at);
    const end = stringEnd(text, at);
    const name = unescape(text, at, end);
    at = skipSpace(text, end);
    if (text[at] !== ":") throw new JsonError("A colon is expected here", at);
    const [value, after] = parseValue(text, skipSpace(text, at + 1), depth + 1);
    fields.set(name, value);
    at = skipSpace(text, after);
    if (text[at] === "}") return [fields, at + 1];
    if (text[at] !== ",") throw new JsonError("A comma or } is expected here", at);
    at = skipSpace(text, at + 1);
  }
}

function parseArray(text: string, start: number, depth: number): [Value[], number] {
  const items: Value[] = [];
  let at = skipSpace(text, start + 1);
  if (text[at] === "]") return [items, at + 1];
  for (;;) {
    const [value, after] = parseValue(text, at, depth + 1);
    items.push(value);
    at = skipSpace(text, after);
    if (text[at] === "]") return [items, at + 1];
    if (text[at] !== ",") throw new JsonError("A comma or ] is expected here", at);
    at = skipSpace(text, at + 1);
  }
}

export function write(value: Value, indent = 0, margin = ""): string {
  if (value instanceof RawNumber) return value.raw;
  const inner = margin + " ".repeat(indent);
  const [open, between, close] = indent ? [`\n${inner}`, `,\n${inner}`, `\n${margin}`] : ["", ",", ""];
  if (Array.isArray(value)) {
    if (!value.length) return "[]";
    return `[${open}${value.map((item) => write(item, indent, inner)).join(between)}${close}]`;
  }
  if (value instanceof Map) {
    if (!value.size) return "{}";
    const colon = indent ? ": " : ":";
    const fields = [...value].map(([name, field]) => JSON.stringify(name) + colon + write(field, indent, inner));
    return `{${open}${fields.join(between)}${close}}`;
  }
  return JSON.stringify(value);
}

/** The same text, indented: token by token, so nothing is read and written again. */
export function format(text: string, indent = 2): string {
  const out: string[] = [];
  let depth = 0;
  const line = () => out.push("\n", " ".repeat(indent * depth));
  for (let i = skipSpace(text, 0); i < text.length; i = skipSpace(text, i)) {
    const char = text[i]!;
    if (char === "{" || char === "[") {
      const next = skipSpace(text, i + 1);
      if (text[next] === (char === "{" ? "}" : "]")) {
        out.push(char, text[next]!);
        i = next + 1;
        continue;
      }
      out.push(char);
      depth++;
      line();
      i++;
    } else if (char === "}" || char === "]") {
      depth--;
      line();
      out.push(char);
      i++;
    } else if (char === ",") {
      out.push(char);
      line();
      i++;
    } else if (char === ":") {
      out.push(": ");
      i++;
    } else {
      let end = char === '"' ? stringEnd(text, i) : i;
      while (char !== '"' && end < text.length && !',:]}[{" \t\n\r'.includes(text[end]!)) end++;
      out.push(text.slice(i, end));
      i = end;
    }
  }
  return out.join("");
}

/** Plain data, for what is only looked at (settings, plans): large numbers may lose digits. */
export function plain(value: Value): unknown {
  if (value instanceof RawNumber) return Number(value.raw);
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, field]) => [name, plain(field)]));
  return value;
}

export function at(value: Value | undefined, path: readonly string[]): Value | undefined {
  for (const step of path) {
    if (value instanceof Map) value = value.get(step);
    else if (Array.isArray(value)) value = value[Number(step)];
    else return undefined;
  }
  return value;
}

/** What a table cell shows. */
export function show(value: Value | undefined): string {
  if (value === undefined) return "";
  if (typeof value === "string") return value;
  const text = write(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

export function typeOf(value: Value | undefined): string {
  if (value === undefined) return "undefined";
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (value instanceof Map) return "object";
  return value instanceof RawNumber ? "number" : typeof value;
}

/** The order of values in a sorted column: by type, then by value. */
export function compare(left: Value | undefined, right: Value | undefined): number {
  const order = ["undefined", "null", "boolean", "number", "string", "array", "object"];
  const [a, b] = [typeOf(left), typeOf(right)];
  if (a !== b) return order.indexOf(a) - order.indexOf(b);
  if (a === "number") return Number(String(left)) - Number(String(right));
  if (a === "string") return (left as string) < (right as string) ? -1 : left === right ? 0 : 1;
  const [x, y] = [show(left), show(right)];
  return x < y ? -1 : x === y ? 0 : 1;
}
