// Everything that goes to the server: the explorer's own calls, and the Cosmos REST API under `wire/`.
//
// In: paths and bodies. Out: texts, headers and charges, or an `ApiError` in words for people.
// Nothing here knows a key: the session is a cookie that scripts cannot read, and a token of the page that counts with it only.
import { signal } from "@preact/signals";
import { at, feedRows, parse, plain, write, type Value } from "./json.ts";
import { literal } from "./literal.ts";

export interface Session {
  role: "read-write" | "read-only";
  expires: number;
  account: { name?: string; endpoint?: string; version?: string };
}
/** `undefined` until the server has said whether somebody is signed in. */
export const session = signal<Session | null | undefined>(undefined);
export const canWrite = () => session.value?.role === "read-write";

/**
 * The half of the session that the page keeps. Cookies go to every port of a machine, what is stored here belongs to one: so a
 * program on another port that is sent the cookie has nothing. Read for each request, since another tab may have signed in.
 */
const PAGE_TOKEN = "astrarium.pageToken";
let unstored = "";
function pageToken(): string {
  try {
    return localStorage.getItem(PAGE_TOKEN) || unstored || "none";
  } catch {
    return unstored || "none";
  }
}
function keepPageToken(token: string): void {
  unstored = token;
  try {
    if (token) localStorage.setItem(PAGE_TOKEN, token);
    else localStorage.removeItem(PAGE_TOKEN);
  } catch {
    // Then it is known to this tab, until that is left.
  }
}

type Proof = { key: string; readOnly: boolean } | { wellKnownKey: true; readOnly: boolean } | { link: string };
export async function signIn(proof: Proof): Promise<Session> {
  const { pageToken: token, ...begun } = await call<Session & { pageToken: string }>("POST", "session", proof);
  keepPageToken(token);
  return begun;
}
/** Whether the server needs no key typed: it has the one that everybody knows, and this browser is on its machine. */
export const needsNoKey = async (): Promise<boolean> => (await call<{ wellKnownKey: boolean }>("GET", "sign-in")).wellKnownKey;
/** Nobody, if the server says so; what else goes wrong is thrown. */
export const currentSession = (): Promise<Session | null> => call<Session>("GET", "session").catch(unlessSignedOut);
/** Only the server knows whether a session has ended. */
export async function endSession(): Promise<void> {
  await call("DELETE", "session").catch(unlessSignedOut);
  keepPageToken("");
}
function unlessSignedOut(error: unknown): null {
  if (error instanceof ApiError && error.status === 401) return null;
  throw error;
}

export interface Fault {
  message: string;
  start: number;
  end: number;
}
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly substatus = 0,
    /** The mistakes of a query, by places in its text. */
    readonly faults: Fault[] = [],
    /** When to try again, if the server says so. */
    readonly retryAfterMilliseconds = 1000,
  ) {
    super(message);
  }
}

export interface Answer {
  status: number;
  text: string;
  headers: Headers;
  charge: number;
  milliseconds: number;
}
export interface Options {
  body?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Charge of everything this page has asked for since it was opened. */
export const spent = signal(0);

async function send(method: string, url: string, options: Options): Promise<Answer> {
  const started = performance.now();
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      method,
      headers: { "x-astrarium-explorer": pageToken(), ...options.headers },
      body: options.body ?? null,
      signal: options.signal ?? null,
      cache: "no-store",
    });
    text = await response.text();
  } catch (error) {
    if (options.signal?.aborted) throw new ApiError("Cancelled.", 0, "Cancelled");
    throw new ApiError(`The server does not answer (${String(error)}). Is it still running?`, 0, "Unreachable");
  }
  const charge = Number(response.headers.get("x-ms-request-charge") ?? 0);
  if (charge) spent.value += charge;
  if (!response.ok && response.status !== 304) throw errorOf(response, text);
  return {
    status: response.status,
    text,
    headers: response.headers,
    charge,
    milliseconds: performance.now() - started,
  };
}

function errorOf(response: Response, text: string): ApiError {
  let [code, message, faults] = [String(response.status), text.slice(0, 500) || response.statusText, [] as Fault[]];
  try {
    const value = parse(text);
    code = String(at(value, ["code"]) ?? code);
    ({ message, faults } = readable(String(at(value, ["message"]) ?? message)));
  } catch {
    // Not JSON: the text itself is shown.
  }
  if (response.status === 401 && code === "SignInNeeded") session.value = null;
  const waiting = Number(response.headers.get("x-ms-retry-after-ms") ?? 1000);
  return new ApiError(message, response.status, code, Number(response.headers.get("x-ms-substatus") ?? 0), faults, waiting);
}

/** `Message: {"Errors":["text"]}\r\nActivityId: ..., line 1, column 5: ...` as people want to read it. */
export function readable(message: string): { message: string; faults: Fault[] } {
  const [body, id = ""] = message.split("\r\nActivityId: ", 2) as [string, string?];
  const start = body.indexOf("{");
  if (!body.startsWith("Message:") || start < 0) return { message: body.replace(/^Message:\s*/, ""), faults: [] };
  try {
    const value = parse(body.slice(start, body.lastIndexOf("}") + 1));
    const errors = at(value, ["Errors"]) ?? at(value, ["errors"]);
    if (!Array.isArray(errors)) return { message: body.slice("Message:".length).trim(), faults: [] };
    const faults = errors.map((error) => ({ message: typeof error === "string" ? error : String(at(error, ["message"]) ?? write(error)), start: Number(at(error, ["location", "start"])), end: Number(at(error, ["location", "end"])) }));
    // What the server says for people comes after the id: the place, and what was expected there.
    const remark = /^[0-9a-fA-F-]*, (\S[\s\S]*)$/.exec(id)?.[1];
    const sentences = [...faults.map((fault) => fault.message), ...(remark ? [remark[0]!.toUpperCase() + remark.slice(1)] : [])];
    return { message: sentences.join("\n"), faults: faults.filter((fault) => Number.isInteger(fault.start) && Number.isInteger(fault.end)) };
  } catch {
    return { message: body.slice("Message:".length).trim(), faults: [] };
  }
}

/** A call of the explorer's own, as plain data. */
export async function call<T>(method: string, path: string, body?: unknown, abort?: AbortSignal): Promise<T> {
  const text = await callText(method, path, body, abort);
  return (text ? JSON.parse(text) : null) as T;
}
/** The same as text, for answers in which digits matter. */
export async function callText(method: string, path: string, body?: unknown, abort?: AbortSignal): Promise<string> {
  const options: Options = { headers: { "content-type": "application/json" } };
  if (body !== undefined) options.body = typeof body === "string" ? body : JSON.stringify(body);
  if (abort) options.signal = abort;
  return (await send(method, `/_explorer/api/${path}`, options)).text;
}
/** A call with bytes of any kind. */
export async function callBytes(path: string, parts: BlobPart[], abort: AbortSignal): Promise<string> {
  return (await send("POST", `/_explorer/api/${path}`, { body: new Blob(parts), headers: { "content-type": "application/octet-stream" }, signal: abort })).text;
}
export const scope = (database: string, container: string) =>
  `database=${encodeURIComponent(database)}&container=${encodeURIComponent(container)}`;

/** A call of the Cosmos REST API, with the session in place of a signature. */
export async function wire(method: string, path: string, options: Options = {}): Promise<Answer> {
  // What is deleted is what somebody has seen, and not what has its name by now.
  if (method === "DELETE" && !options.headers?.["if-match"]) throw new Error(`Nothing is deleted without its etag: ${path}.`);
  return send(method, `/_explorer/api/wire/${path}`, {
    ...options,
    headers: { "x-ms-version": "2020-07-15", "content-type": "application/json", ...options.headers },
  });
}

/** An id in a path. Browsers take `.` and `..` for steps, however they are escaped, and would ask for something else. */
export function segment(id: string): string {
  if (id === "." || id === "..") throw new Error(`A browser cannot address what is called “${id}”. Use an SDK or the shell for it.`);
  return encodeURIComponent(id);
}
export const databasePath = (database: string) => `dbs/${segment(database)}`;
export const containerPath = (database: string, container: string) => `${databasePath(database)}/colls/${segment(container)}`;
export const documentsPath = (database: string, container: string) => `${containerPath(database, container)}/docs`;
export const documentPath = (database: string, container: string, id: string) => `${documentsPath(database, container)}/${segment(id)}`;

/** A container as its settings are read: plain data, since nothing in it is a large number. */
export interface ContainerDefinition {
  id: string;
  _self: string;
  _etag: string;
  partitionKey: { paths: string[]; kind: string; version?: number };
  indexingPolicy: IndexingPolicy;
  defaultTtl?: number;
  uniqueKeyPolicy?: { uniqueKeys: { paths: string[] }[] };
  computedProperties?: unknown[];
  vectorEmbeddingPolicy?: unknown;
  fullTextPolicy?: unknown;
  changeFeedPolicy?: { retentionDuration?: number };
  [name: string]: unknown;
}
export interface IndexingPolicy {
  indexingMode: string;
  automatic?: boolean;
  includedPaths?: { path: string }[];
  excludedPaths?: { path: string }[];
  compositeIndexes?: { path: string; order: string }[][];
  [name: string]: unknown;
}

export async function readContainer(database: string, container: string): Promise<ContainerDefinition> {
  const answer = await wire("GET", containerPath(database, container));
  return JSON.parse(answer.text) as ContainerDefinition;
}

export async function replaceContainer(database: string, definition: ContainerDefinition): Promise<ContainerDefinition> {
  const answer = await wire("PUT", containerPath(database, definition.id), {
    body: JSON.stringify(definition),
    headers: { "if-match": definition._etag },
  });
  return JSON.parse(answer.text) as ContainerDefinition;
}

/** All rows of a small feed (scripts, users, ranges), as plain data. */
export async function list<T>(path: string): Promise<T[]> {
  const rows: T[] = [];
  let continuation = "";
  do {
    const answer = await wire("GET", path, continuation ? { headers: { "x-ms-continuation": continuation } } : {});
    rows.push(...feedRows(answer.text).map((row) => plain(parse(row)) as T));
    continuation = answer.headers.get("x-ms-continuation") ?? "";
  } while (continuation);
  return rows;
}

export interface Parameter {
  name: string;
  /** As it was typed: JSON text, or a word that stands for itself. */
  value: string;
}
export interface QueryRequest {
  database: string;
  container: string;
  sql: string;
  parameters?: Parameter[];
  pageSize?: number;
  continuation?: string;
  metrics?: boolean;
  signal?: AbortSignal;
}

export interface QueryAnswer extends Answer {
  rows: string[];
  continuation: string;
  /** The metrics of each answer that the page is made of. */
  metrics: string[];
}
const PAGE_LENGTH_MAX = 4_000_000;

/**
 * A page of rows. A single answer may have fewer than were asked for, or none at all though there are more: the server goes
 * from range to range. So it is asked on until the page is full.
 */
export async function query(request: QueryRequest): Promise<QueryAnswer> {
  const pageSize = request.pageSize ?? 100;
  const page: QueryAnswer = { ...(await queryOnce(request)) };
  let length = page.text.length;
  while (page.continuation && page.rows.length < pageSize && length < PAGE_LENGTH_MAX) {
    const more = await queryOnce({ ...request, continuation: page.continuation, pageSize: pageSize - page.rows.length });
    page.rows = page.rows.concat(more.rows);
    page.metrics.push(...more.metrics);
    page.charge += more.charge;
    page.milliseconds += more.milliseconds;
    page.continuation = more.continuation;
    length += more.text.length;
  }
  return page;
}

async function queryOnce(request: QueryRequest): Promise<QueryAnswer> {
  const headers: Record<string, string> = {
    "content-type": "application/query+json",
    "x-ms-documentdb-isquery": "true",
    "x-ms-documentdb-query-enablecrosspartition": "true",
    "x-ms-max-item-count": String(request.pageSize ?? 100),
  };
  if (request.continuation) headers["x-ms-continuation"] = request.continuation;
  if (request.metrics) {
    headers["x-ms-documentdb-populatequerymetrics"] = "true";
    headers["x-ms-cosmos-populateindexmetrics"] = "true";
  }
  const body = queryBody(request.sql, request.parameters ?? []);
  const options: Options = { headers, body };
  if (request.signal) options.signal = request.signal;
  const answer = await wire("POST", documentsPath(request.database, request.container), options);
  return { ...answer, rows: feedRows(answer.text), continuation: answer.headers.get("x-ms-continuation") ?? "", metrics: [answer.headers.get("x-ms-documentdb-query-metrics") ?? ""] };
}

/** Written by hand, because the values of parameters are texts whose digits must stay. */
export function queryBody(sql: string, parameters: Parameter[]): string {
  return `{"query":${JSON.stringify(sql)},"parameters":${parametersText(parameters)}}`;
}
export function parametersText(parameters: Parameter[]): string {
  const written = parameters.filter((p) => p.name).map((p) => `{"name":${JSON.stringify(p.name)},"value":${literal(p.value, `The value of ${p.name}`)}}`);
  return `[${written.join(",")}]`;
}

/** The header that says which partition a document is in: an array with the value at each path. */
export function partitionKeyHeader(document: Value, paths: string[]): string {
  const values = paths.map((path) => {
    const value = at(document, pathSteps(path));
    // No value is an empty object on the wire, which differs from null.
    return value === undefined ? "{}" : write(value);
  });
  // Headers are Latin-1: what is beyond is escaped.
  return `[${values.join(",")}]`.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** `/a/"b c"` as steps. */
export function pathSteps(path: string): string[] {
  const steps = path.match(/"(?:[^"\\]|\\.)*"|[^/]+/g) ?? [];
  return steps.map((step) => (step.startsWith('"') ? step.slice(1, -1).replace(/\\(.)/g, "$1") : step));
}

/** Steps as an expression of SQL: `c.a["b c"]`. */
export function expression(steps: readonly string[], alias = "c"): string {
  return alias + steps.map((step) => (step === "[]" ? "[0]" : /^[A-Za-z_]\w*$/.test(step) && !RESERVED.has(step.toUpperCase()) ? `.${step}` : `[${JSON.stringify(step)}]`)).join("");
}
const RESERVED = new Set("AND ARRAY AS ASC BETWEEN BY CASE CAST CONVERT CROSS DESC DISTINCT ELSE END ESCAPE EXISTS FALSE FOR FROM GROUP HAVING IN INNER INSERT INTO IS JOIN LEFT LIKE LIMIT NOT NULL OFFSET ON OR ORDER OUTER OVER RIGHT SELECT SET THEN TOP TRUE UDF UNDEFINED UPDATE VALUE WHEN WHERE WITH ALL RANK".split(" "));
