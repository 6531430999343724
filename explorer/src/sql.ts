// The SQL of the editor: its colours, its completion from the function table and the container's own data, its errors.
import { pickedCompletion, snippetCompletion, type Completion, type CompletionContext, type CompletionResult, type CompletionSource } from "@codemirror/autocomplete";
import { LanguageSupport, StreamLanguage, type StringStream } from "@codemirror/language";
import type { Diagnostic } from "@codemirror/lint";
import { call, callText, readContainer, scope } from "./api.ts";
import { at, parse, plain, write, type Value } from "./json.ts";
import { warningsOf, type Warning } from "./names.ts";
import { containerSummary } from "./state.ts";

export interface Words {
  keywords: string[];
  functions: { name: string; signature: string; help: string }[];
}
export interface SchemaPath {
  path: string[];
  types: Record<string, number>;
  values: Value[];
}
export interface Schema {
  sampled: number;
  paths: SchemaPath[];
}

const words: Words = { keywords: [], functions: [] };
const keywordSet = new Set<string>();
const functionSet = new Set<string>();
let wordsAsked: Promise<void> | undefined;
export function loadWords(): Promise<void> {
  return (wordsAsked ??= call<Words>("GET", "words").then((answer) => {
    Object.assign(words, answer);
    for (const keyword of answer.keywords) keywordSet.add(keyword.toUpperCase());
    for (const entry of answer.functions) functionSet.add(entry.name.toUpperCase());
  }, () => { wordsAsked = undefined; }));
}

const schemas = new Map<string, { asked: number; schema: Promise<Schema> }>();
/** What the container's documents look like; asked again after a while. */
export function schemaOf(database: string, container: string, fresh = false): Promise<Schema> {
  const key = scope(database, container);
  const known = schemas.get(key);
  if (known && !fresh && Date.now() - known.asked < 15_000) return known.schema;
  const schema = callText("GET", `schema?${key}`).then(readSchema);
  schemas.set(key, { asked: Date.now(), schema });
  schema.catch(() => schemas.delete(key));
  return schema;
}

/** Values keep their digits. */
function readSchema(text: string): Schema {
  const value = parse(text);
  const schema = plain(value) as Schema;
  const paths = at(value, ["paths"]);
  if (Array.isArray(paths)) paths.forEach((path, i) => { const values = at(path, ["values"]); schema.paths[i]!.values = Array.isArray(values) ? values : []; });
  return schema;
}

interface State {
  comment: boolean;
}
function token(stream: StringStream, state: State): string | null {
  if (state.comment) {
    state.comment = !stream.match(/^.*?\*\//);
    if (state.comment) stream.skipToEnd();
    return "comment";
  }
  if (stream.eatSpace()) return null;
  if (stream.match("--")) { stream.skipToEnd(); return "comment"; }
  if (stream.match("/*")) { state.comment = true; return "comment"; }
  if (stream.match(/^"(?:[^"\\]|\\.)*("|$)/) || stream.match(/^'(?:[^'\\]|\\.)*('|$)/)) return "string";
  if (stream.match(/^(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)/i)) return "number";
  if (stream.match(/^@\w+/)) return "variableName.special";
  const before = stream.string.slice(0, stream.pos).trimEnd().slice(-1);
  const word = stream.match(/^[A-Za-z_]\w*/) as RegExpMatchArray | null;
  if (!word) { stream.next(); return null; }
  if (before === ".") return "propertyName";
  const upper = word[0].toUpperCase();
  if (["TRUE", "FALSE", "NULL", "UNDEFINED"].includes(upper)) return "atom";
  if (functionSet.has(upper) && stream.match(/^\s*\(/, false)) return "variableName.function";
  return keywordSet.has(upper) || FIRST_KEYWORDS.has(upper) ? "keyword" : "variableName";
}
/** Until the server has told all of them. */
const FIRST_KEYWORDS = new Set("SELECT FROM WHERE ORDER GROUP BY JOIN IN AS VALUE TOP DISTINCT AND OR NOT ASC DESC OFFSET LIMIT".split(" "));
export const sqlLanguage = new LanguageSupport(StreamLanguage.define<State>({
  name: "sql", startState: () => ({ comment: false }), copyState: (s) => ({ ...s }), token,
  languageData: { commentTokens: { line: "--" }, closeBrackets: { brackets: ["(", "[", "{", '"', "'"] } },
}));

/** What the names of the query stand for: steps from the document's root. */
function aliases(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const from = /\bFROM\s+([A-Za-z_]\w*)(?:\s+(?:AS\s+)?(?!JOIN\b|WHERE\b|ORDER\b|GROUP\b|OFFSET\b)([A-Za-z_]\w*))?/i.exec(text);
  found.set(from?.[2] ?? from?.[1] ?? "c", []);
  for (const join of text.matchAll(/\bJOIN\s+([A-Za-z_]\w*)\s+IN\s+([A-Za-z_][\w.[\]"]*)/gi)) {
    const steps = resolve(join[2]!, found);
    if (steps) found.set(join[1]!, [...steps, "[]"]);
  }
  return found;
}

/** `c.address["city"]` as steps from the root. */
function resolve(text: string, known: Map<string, string[]>): string[] | null {
  const parts = text.match(/[A-Za-z_]\w*|\["(?:[^"\\]|\\.)*"\]|\[\d+\]/g) ?? [];
  const start = known.get(parts[0] ?? "");
  if (!start) return null;
  return [...start, ...parts.slice(1).map((part) => (part.startsWith('["') ? (JSON.parse(part.slice(1, -1)) as string) : part.startsWith("[") ? "[]" : part))];
}

const literal = (value: Value) => write(value);
const begins = (path: string[], start: string[]) => start.every((step, i) => path[i] === step);

/** What the cursor is in: code, a text that begins with a quote, or a comment. */
interface Place {
  kind: "code" | "text" | "comment";
  /** Of a text: where its quote is. */
  from: number;
}
export function placeOf(before: string): Place {
  for (let at = 0; at < before.length; at++) {
    const char = before[at];
    let end = at;
    if (char === '"' || char === "'") {
      for (end = at + 1; end < before.length && before[end] !== char; end++) if (before[end] === "\\") end++;
      if (end >= before.length) return { kind: "text", from: at };
    } else if (before.startsWith("--", at) || before.startsWith("/*", at)) {
      const close = char === "-" ? "\n" : "*/";
      end = before.indexOf(close, at + 2);
      if (end < 0) return { kind: "comment", from: at };
      end += close.length - 1;
    }
    at = end;
  }
  return { kind: "code", from: before.length };
}

/** A value of the data in the quotes that were typed; nothing where it cannot stand in them as it is. */
function inQuotes(value: Value, quote: string): string | null {
  if (typeof value !== "string") return null;
  const text = literal(value);
  if (quote === '"') return text;
  return /["'\\]/.test(text.slice(1, -1)) ? null : `'${text.slice(1, -1)}'`;
}

const takeQuote = (quote: string): Completion["apply"] => (view, completion, from, to) => {
  // The editor has closed the quote already, when it was opened.
  const end = view.state.sliceDoc(to, to + 1) === quote ? to + 1 : to;
  view.dispatch({ changes: { from, to: end, insert: completion.label }, selection: { anchor: from + completion.label.length }, userEvent: "input.complete", annotations: pickedCompletion.of(completion) });
};

/**
 * The values of the path that is compared just before the cursor: all of them where nothing is typed yet, those that begin as
 * the text that is typed. A number is never made into another one, nor a text into one that begins otherwise. The list holds
 * for what is typed now, and is asked for again after the next key.
 */
function valueResult(text: string, pos: number, place: Place, known: Map<string, string[]>, schema: Schema): CompletionResult | null {
  const from = place.kind === "text" ? place.from : pos - /\w*$/.exec(text.slice(0, pos))![0].length;
  const compared = /([A-Za-z_][\w.]*(?:\["[^"]*"\][\w.]*)*)\s*(?:=|!=|<>|<=|>=|<|>|\bLIKE|\bIN\s*\((?:[^()]*,)?)\s*$/i.exec(text.slice(0, from));
  const steps = compared && resolve(compared[1]!, known);
  const values = (steps && schema.paths.find((p) => p.path.length === steps.length && begins(p.path, steps))?.values) ?? [];
  const [typed, quote] = [text.slice(from, pos), place.kind === "text" ? text[from]! : ""];
  // Inside of a text that goes on behind the cursor nothing is put.
  if (quote && text.slice(pos).split("\n", 1)[0]!.indexOf(quote) > 0) return null;
  const options: Completion[] = [];
  for (const value of values) {
    const label = quote ? inQuotes(value, quote) : literal(value);
    if (label?.startsWith(typed) && label !== typed) options.push({ label, type: "constant", detail: "value in this container", ...(quote ? { apply: takeQuote(quote) } : {}) });
  }
  return options.length ? { from, options, filter: false } : null;
}

function pathResult(before: string, from: number, known: Map<string, string[]>, schema: Schema): CompletionResult | null {
  const match = /([A-Za-z_][\w.]*(?:\["[^"]*"\]|\[\d+\])*(?:\.[\w]+)*)\.(\w*)$/.exec(before);
  const steps = match && resolve(match[1]!, known);
  if (!steps) return null;
  const options: Completion[] = [];
  for (const { path, types } of schema.paths) {
    if (path.length !== steps.length + 1 || !begins(path, steps)) continue;
    const name = path.at(-1)!;
    const detail = Object.keys(types).join(" | ");
    const word = /^[A-Za-z_]\w*$/.test(name);
    if (name !== "[]") options.push({ label: name, type: "property", detail, ...(word ? {} : { apply: (view, _c, start, end) => view.dispatch({ changes: { from: start - 1, to: end, insert: `[${literal(name)}]` } }) }) });
  }
  return options.length ? { from: from - match![2]!.length, options, validFor: /^\w*$/ } : null;
}

function functionHelp(entry: Words["functions"][number]): () => Node {
  return () => {
    const box = document.createElement("div");
    const code = document.createElement("code");
    code.textContent = entry.name + entry.signature;
    box.append(code, entry.help);
    return box;
  };
}

function wordResult(before: string, from: number, known: Map<string, string[]>, schema: Schema): CompletionResult {
  const start = /\w*$/.exec(before)![0];
  const options: Completion[] = [...known.keys()].map((name) => ({ label: name, type: "variable", boost: 50 }));
  const root = [...known.keys()][0] ?? "c";
  for (const { path } of schema.paths)
    if (path.length === 1 && /^[A-Za-z_]\w*$/.test(path[0]!)) options.push({ label: `${root}.${path[0]}`, type: "property", detail: "path in this container", boost: 20 });
  for (const keyword of words.keywords) options.push({ label: keyword, type: "keyword" });
  for (const entry of words.functions)
    options.push(snippetCompletion(`${entry.name}(\${})`, { label: entry.name, type: "function", detail: entry.signature, info: functionHelp(entry) }));
  return { from: from - start.length, options, validFor: /^\w*$/ };
}

export function completionOf(database: string, container: string): CompletionSource {
  return async (context: CompletionContext) => {
    await loadWords();
    const schema = await schemaOf(database, container).catch((): Schema => ({ sampled: 0, paths: [] }));
    const text = context.state.doc.toString();
    const before = text.slice(0, context.pos);
    const known = aliases(text);
    const place = placeOf(before);
    if (place.kind === "comment" || (place.kind === "code" && (NUMBER.test(before) || PARAMETER.test(before)))) return null;
    const values = valueResult(text, context.pos, place, known, schema);
    if (values || place.kind === "text") return values;
    return pathResult(before, context.pos, known, schema) ?? (context.explicit || /\w$/.test(before) ? wordResult(before, context.pos, known, schema) : null);
  };
}
/** The cursor is behind a parameter or a number: there is nothing to complete. */
const PARAMETER = /@\w*$/;
const NUMBER = /(?:^|\W)\.?\d[\w.]*$/;

/** A text that is checked: `before` and `after` make a whole query of a part of one. */
interface Checked {
  database: string;
  container: string;
  before?: string;
  parameters?: string[];
}
const computedOf = new Map<string, { asked: number; names: Promise<string[]> }>();
/** Names that queries of a container may use as if they were stored; asked for again after a while. */
function computedNames(database: string, container: string): Promise<string[]> {
  const key = scope(database, container);
  const known = computedOf.get(key);
  if (known && Date.now() - known.asked < 15_000) return known.names;
  const names = readContainer(database, container).then((definition) => (definition.computedProperties ?? []).map((property) => String((property as { name?: unknown }).name)));
  computedOf.set(key, { asked: Date.now(), names });
  names.catch(() => computedOf.delete(key));
  return names;
}
/** Names that neither the data nor the parameters have; nothing where the data cannot be asked. */
export async function nameWarnings(sql: string, { database, container, parameters = [] }: Checked): Promise<Warning[]> {
  try {
    const [schema, computed] = await Promise.all([schemaOf(database, container), computedNames(database, container)]);
    return warningsOf(sql, { paths: schema.paths, sampled: schema.sampled, documents: containerSummary(database, container)?.documents ?? null, computed, parameters });
  } catch {
    return [];
  }
}

/** What the server's own parser says about the text, and names that are perhaps misspelt. */
export async function sqlProblems(text: string, checked: Checked): Promise<Diagnostic[]> {
  if (!text.trim()) return [];
  const { database, container, before = "" } = checked;
  const sql = before + text;
  const [answer, warnings] = await Promise.all([
    call<{ errors: (Warning & { detail: string })[] }>("POST", "check", { sql, database, container }).catch(() => ({ errors: [] })),
    nameWarnings(sql, checked),
  ]);
  // Line and column are where the mark is; what was met and expected there is worth saying.
  const errors = answer.errors.map((error) => ({ ...error, message: [error.message, error.detail.replace(/^line \d+, column \d+:? ?/, "")].filter(Boolean).join("\n") }));
  const shown = (severity: Diagnostic["severity"]) => ({ message, start, end }: Warning): Diagnostic => {
    const from = Math.max(0, Math.min(start - before.length, text.length));
    return { from, to: Math.min(Math.max(end - before.length, from + 1), text.length), severity, message };
  };
  return [...errors.map(shown("error")), ...(errors.length ? [] : warnings.map(shown("warning")))];
}
