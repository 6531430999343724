// Warnings about names in a query that are in no sampled document, and parameters without a value, with the nearest known name.
//
// In: the text, the paths of the sampled documents, the parameters that have values. Out: warnings with places, never errors.
// Invariants
// - Only certain cases are reported: an alias is followed from the container through FROM and JOIN; aliases of subqueries, aliases
//   with two meanings, and steps after a computed index are skipped.
// - If the sample is not the whole container, the message says so.
import type { SchemaPath } from "./sql.ts";

export interface Known {
  paths: Pick<SchemaPath, "path">[];
  sampled: number;
  /** All items; nothing where that is not known. */
  documents: number | null;
  /** Names that queries may use as if they were stored. */
  computed: string[];
  /** Names of parameters that have a value. */
  parameters: string[];
}
export interface Warning {
  start: number;
  end: number;
  message: string;
}

interface Token {
  kind: "word" | "parameter" | "text" | "number" | "sign";
  text: string;
  start: number;
  end: number;
}
const TOKEN = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|@\w+|[A-Za-z_]\w*|\d[\w.]*|\S/g;
function tokensOf(text: string): Token[] {
  const found: Token[] = [];
  for (const match of text.matchAll(TOKEN)) {
    const [word] = match;
    if (/^(?:--|\/\*)/.test(word)) continue;
    const kind = /^["']/.test(word) ? "text" : /^@\w/.test(word) ? "parameter" : /^[A-Za-z_]/.test(word) ? "word" : /^\d/.test(word) ? "number" : "sign";
    found.push({ kind, text: word, start: match.index, end: match.index + word.length });
  }
  return found;
}

interface Step {
  name: string;
  start: number;
  end: number;
}
/** The steps that follow the word at `at`, up to the first one that is computed. */
function stepsAfter(tokens: Token[], at: number): { steps: Step[]; next: number } {
  const steps: Step[] = [];
  for (let next = at + 1; ; ) {
    const [sign, name, close] = [tokens[next], tokens[next + 1], tokens[next + 2]];
    if (sign?.text === "." && name?.kind === "word") {
      // A method call is not a property.
      if (close?.text === "(") return { steps, next };
      steps.push({ name: name.text, start: name.start, end: name.end });
      next += 2;
    } else if (sign?.text === "[" && close?.text === "]" && (name?.kind === "text" || name?.kind === "number")) {
      steps.push({ name: name.kind === "number" ? "[]" : name.text.slice(1, -1), start: name.start, end: name.end });
      next += 3;
    } else return { steps, next };
  }
}

const CLAUSES = new Set(["WHERE", "JOIN", "ORDER", "GROUP", "OFFSET", "LIMIT", "IN", "AS", "SELECT", "FROM", "ON"]);
const upper = (token: Token | undefined) => (token?.kind === "word" ? token.text.toUpperCase() : "");
/** What each name of the query stands for: steps from the item; nothing where that is not certain. */
function meanings(tokens: Token[], known: ReadonlyMap<string, string[] | null>): Map<string, string[] | null> {
  const found = new Map<string, string[] | null>();
  const aliases = new Set<number>();
  // What is selected stands before what it is selected from.
  const meaning = (name: string) => (found.has(name) ? found.get(name) : known.get(name));
  const bind = (name: string, steps: string[] | null) => {
    const before = found.get(name);
    const isSame = before === undefined || (before !== null && steps !== null && before.join("\u0000") === steps.join("\u0000"));
    found.set(name, isSame ? steps : null);
  };
  tokens.forEach((token, at) => {
    const [word, name, after] = [upper(token), tokens[at + 1], tokens[at + 2]];
    if (word === "AS" && name?.kind === "word" && !aliases.has(at + 1)) bind(name.text, null);
    if ((word !== "FROM" && word !== "JOIN") || name?.kind !== "word") return;
    if (upper(after) === "IN") {
      const source = tokens[at + 3];
      const root = source?.kind === "word" ? meaning(source.text) : undefined;
      const { steps, next } = source?.kind === "word" ? stepsAfter(tokens, at + 3) : { steps: [], next: 0 };
      const isWhole = tokens[next]?.text !== "[" && tokens[next]?.text !== "(";
      bind(name.text, root && isWhole ? [...root, ...steps.map((step) => step.name), "[]"] : null);
    } else if (word === "FROM") {
      const { steps, next } = stepsAfter(tokens, at + 1);
      const place = upper(tokens[next]) === "AS" ? next + 1 : next;
      const alias = tokens[place];
      // The container goes by any name; within a subquery the name may be one of the query around it.
      const root = meaning(name.text) === undefined ? [] : meaning(name.text)!;
      const whole = root && [...root, ...steps.map((step) => step.name)];
      if (alias?.kind === "word" && !CLAUSES.has(alias.text.toUpperCase())) {
        aliases.add(place);
        bind(alias.text, whole);
      } else bind(steps.at(-1)?.name ?? name.text, whole);
    }
  });
  return found;
}

/** What the server's sample leaves out: paths beyond so many, steps below so many. */
const PATHS_MAX = 1_000;
const DEPTH_MAX = 12;
const SYSTEM = ["id", "_rid", "_self", "_etag", "_attachments", "_ts", "_lsn", "ttl"];
/** How many letters have to be changed, left out, put in or swapped with the next one to make one of the other. */
function distance(left: string, right: string): number {
  let before: number[] = [];
  let row = Array.from({ length: right.length + 1 }, (_, i) => i);
  for (let i = 1; i <= left.length; i++) {
    const next = [i];
    for (let j = 1; j <= right.length; j++) {
      const isSwap = i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      next[j] = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (left[i - 1] === right[j - 1] ? 0 : 1), isSwap ? before[j - 2]! + 1 : Infinity);
    }
    [before, row] = [row, next];
  }
  return row[right.length]!;
}
const NAME_LENGTH_MAX = 60;
/** The name that was perhaps meant. */
export function nearest(name: string, names: Iterable<string>): string | undefined {
  let [best, least] = [undefined as string | undefined, Math.max(1, Math.floor(name.length / 3)) + 0.5];
  for (const other of names) {
    if (other === "[]" || other === name || other.length > NAME_LENGTH_MAX || name.length > NAME_LENGTH_MAX) continue;
    const far = distance(name.toLowerCase(), other.toLowerCase());
    if (far < least) [best, least] = [other, far];
  }
  return best;
}

function unknownStep(root: string[], steps: Step[], known: Known): { step: Step; meant: string | undefined } | null {
  let place = known.paths.map(({ path }) => path).filter((path) => path.length > root.length && root.every((name, i) => path[i] === name));
  for (const [at, step] of steps.entries()) {
    const depth = root.length + at;
    if (depth >= DEPTH_MAX) return null;
    if (depth === 0 && (SYSTEM.includes(step.name) || known.computed.includes(step.name))) return null;
    const names = new Set(place.map((path) => path[depth]!));
    place = place.filter((path) => path[depth] === step.name);
    if (!names.has(step.name)) return { step, meant: nearest(step.name, depth === 0 ? [...names, ...SYSTEM, ...known.computed] : names) };
    place = place.filter((path) => path.length > depth + 1);
  }
  return null;
}

export function warningsOf(text: string, known: Known): Warning[] {
  const tokens = tokensOf(text);
  const names = meanings(tokens, meanings(tokens, new Map()));
  const warnings: Warning[] = [];
  const add = ({ start, end }: Step | Token, said: string, meant: string | undefined) =>
    warnings.push({ start, end, message: `${said}${meant ? `; did you mean \`${meant}\`?` : "."}` });
  const isAll = known.documents !== null && known.sampled >= known.documents;
  const isComplete = known.sampled > 0 && known.paths.length < PATHS_MAX;
  // Of a long array only the first elements were looked at.
  const none = (path: string[]) => (isAll && !path.includes("[]") ? "No item has" : `None of the ${known.sampled.toLocaleString("en-US")} sampled items has`);
  tokens.forEach((token, at) => {
    if (token.kind === "parameter" && !known.parameters.includes(token.text)) {
      const meant = nearest(token.text, known.parameters);
      add(token, `The parameter \`${token.text}\` has no value`, meant);
    }
    if (token.kind !== "word" || tokens[at - 1]?.text === "." || !isComplete) return;
    const root = names.get(token.text);
    // The name of a member of an object that is made: {title: c.title}.
    if (!root || tokens[at + 1]?.text === ":") return;
    const { steps } = stepsAfter(tokens, at);
    const unknown = unknownStep(root, steps, known);
    if (!unknown) return;
    const before = [...root, ...steps.slice(0, steps.indexOf(unknown.step)).map((step) => step.name)];
    const path = [...before, unknown.step.name];
    add(unknown.step, `${none(path)} \`${written(path)}\``, unknown.meant && written([...before, unknown.meant]));
  });
  return warnings;
}
const written = (path: string[]) => path.reduce((text, step) => (step === "[]" ? `${text}[]` : text ? `${text}.${step}` : step), "");

/** The parameters that a text names. */
export const parametersIn = (text: string): Set<string> => new Set(tokensOf(text).filter((token) => token.kind === "parameter").map((token) => token.text));

const isPlain = (name: string) => /^[A-Za-z_]\w*$/.test(name);
/** The composite index that the order of a query needs, as it is written in a policy's advice: `/n ASC`; nothing where that is not certain. */
export function orderedPaths(text: string): string[] | null {
  const tokens = tokensOf(text);
  const names = meanings(tokens, meanings(tokens, new Map()));
  let [depth, start] = [0, -1];
  tokens.forEach((token, at) => {
    if (/^[([{]$/.test(token.text)) depth++;
    else if (/^[)\]}]$/.test(token.text)) depth--;
    else if (depth === 0 && upper(token) === "ORDER" && upper(tokens[at + 1]) === "BY") start = at + 2;
  });
  const found: string[] = [];
  for (let at = start; start >= 0; at++) {
    const root = tokens[at]?.kind === "word" ? names.get(tokens[at].text) : undefined;
    const { steps, next } = stepsAfter(tokens, at);
    if (!root || !steps.length || steps.some((step) => step.name === "[]") || root.includes("[]")) return null;
    const order = upper(tokens[next]);
    const path = [...root, ...steps.map((step) => step.name)].map((name) => `/${isPlain(name) ? name : JSON.stringify(name)}`).join("");
    found.push(`${path} ${order === "DESC" ? "DESC" : "ASC"}`);
    at = order === "ASC" || order === "DESC" ? next + 1 : next;
    if (tokens[at]?.text === ",") continue;
    return !tokens[at] || upper(tokens[at]) === "OFFSET" ? found : null;
  }
  return null;
}
