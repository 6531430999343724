// An upload: a file is read in pieces by the server, as `astrarium import` reads it, and its documents are sent one by one as requests of
// the protocol.
//
// In: a file, how to read it, what to do with items that exist. Out: what is in it, then what became of each row.
// Invariants
// - Nothing is written before the whole file was read once, and nothing that exists is changed unless that was chosen.
// - What is in memory is a piece of the file and its documents, whatever its size; failures are counted, and the first of them kept.
import { ApiError, callBytes, documentPath, documentsPath, partitionKeyHeader, wire } from "./api.ts";
import { at, parse, type Value } from "./json.ts";

export type FileFormat = "json-lines" | "json" | "csv" | "tsv";
export type CellKind = "string" | "number" | "boolean" | "json";
export type Mode = "insert" | "skip" | "upsert";

/** How a file is read. Empty texts are what the file says by itself. */
export interface Reading {
  format: FileFormat | "";
  /** Kinds that somebody chose, by column. */
  kinds: Record<string, CellKind>;
  emptyAsNull: boolean;
  id: string;
  partitionKey: string[];
}
export interface Failure {
  row: number;
  line: number;
  reason: string;
  text?: string;
}
export interface UploadDocument {
  row: number;
  line: number;
  text: string;
}
/** What is in a file. */
export interface Contents {
  format: FileFormat;
  columns: [string, CellKind][];
  good: number;
  bad: number;
  failures: Failure[];
  documents: UploadDocument[];
}
export interface Sent {
  written: number;
  skipped: number;
  failed: number;
  charge: number;
  failures: Failure[];
}

/** More are a matter for the command line, which can go on after an interruption. */
export const FILE_BYTES_MAX = 512 * 1024 * 1024;
export const FAILURES_KEPT = 1000;
const PIECE = { bytes: 1 << 20, bytesMax: 8 << 20 };
const PREVIEW_ROWS = 50;
const WORKERS = 6;
/** A piece takes a moment; what takes longer than this never ends. */
const PIECE_SECONDS_MAX = 120;
/** How long an item that is refused because of too many requests is tried again. */
const THROTTLED_SECONDS_MAX = 60;
/** What is no text: gzip, zstd, Parquet, ZIP (also of spreadsheets). */
const PACKED: [string, number[]][] = [["packed with gzip", [0x1f, 0x8b]], ["packed with zstd", [0x28, 0xb5, 0x2f, 0xfd]], ["Parquet", [0x50, 0x41, 0x52, 0x31]], ["a ZIP archive or a spreadsheet", [0x50, 0x4b, 0x03, 0x04]]];

interface PieceAnswer {
  format: FileFormat;
  taken: number;
  state: { offset: number; rows: number };
  columns: [string, CellKind][];
  good: number;
  bad: number;
  failures: Failure[];
  documents: UploadDocument[];
}
export interface Target {
  database: string;
  container: string;
}

/** Why a file is not looked at. */
export async function refusalOf(file: File): Promise<string> {
  if (file.size > FILE_BYTES_MAX) return `${file.name} is larger than 512 MB: import it with the command line (astrarium import), which can go on after an interruption.`;
  const head = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  const packed = PACKED.find(([, magic]) => magic.every((byte, index) => head[index] === byte));
  return packed ? `${file.name} is ${packed[0]}. Unpack it or save it as CSV or JSON; astrarium import reads gzip, zstd and Parquet.` : "";
}

/** Reads a file to its end, piece by piece; the answers one after another. */
async function* pieces(file: File, target: Target, pass: "columns" | "check" | "documents", reading: Reading, columns: [string, CellKind][], uploadId: string, abort: AbortSignal): AsyncGenerator<PieceAnswer> {
  let state: PieceAnswer["state"] | null = null;
  let length = PIECE.bytes;
  let shown = PREVIEW_ROWS;
  for (;;) {
    const offset = state?.offset ?? 0;
    const last = offset + length >= file.size;
    const options = JSON.stringify({
      database: target.database, container: target.container, name: file.name, format: reading.format || null, pass, last, state, show: shown,
      columns, emptyAsNull: reading.emptyAsNull, id: reading.id || null, partitionKey: reading.partitionKey.every(Boolean) ? reading.partitionKey : [], uploadId,
    });
    const bytes = await file.slice(offset, offset + length).arrayBuffer();
    const signal = AbortSignal.any([abort, AbortSignal.timeout(PIECE_SECONDS_MAX * 1000)]);
    const answer = JSON.parse(await callBytes("read-rows", [options, "\n", bytes], signal)) as PieceAnswer;
    const before = state?.rows ?? 0;
    state = answer.state;
    shown = Math.max(0, shown - answer.documents.length);
    yield answer;
    if (last && (answer.taken === bytes.byteLength || answer.state.rows === before)) return;
    if (answer.taken > 0) length = PIECE.bytes;
    else if (length >= PIECE.bytesMax) throw new Error(`A row after row ${before} is longer than an item may be, or a quote is missing.`);
    else length *= 2;
  }
}

/** Reads the whole file, and writes nothing: what its columns are, which rows are wrong, what the first documents will be. */
export async function readContents(file: File, target: Target, reading: Reading, uploadId: string, abort: AbortSignal, progress: (share: number) => void): Promise<Contents> {
  const contents: Contents = { format: "json", columns: [], good: 0, bad: 0, failures: [], documents: [] };
  const told = (answer: PieceAnswer, from: number, to: number) => progress(from + (to - from) * Math.min(1, answer.state.offset / Math.max(1, file.size)));
  let known = reading;
  let columns: [string, CellKind][] = [];
  const isTable = (format: string) => format === "csv" || format === "tsv";
  for await (const answer of pieces(file, target, isTable(reading.format) || /\.(csv|tsv|tab)$/i.test(file.name) && !reading.format ? "columns" : "check", reading, [], uploadId, abort)) {
    contents.format = answer.format;
    if (answer.columns.length) columns = answer.columns;
    else add(contents, answer);
    told(answer, 0, isTable(answer.format) ? 0.5 : 1);
  }
  known = { ...reading, format: contents.format };
  if (isTable(contents.format)) {
    contents.columns = columns.map(([name, kind]) => [name, reading.kinds[name] ?? kind]);
    for await (const answer of pieces(file, target, "check", known, contents.columns, uploadId, abort)) {
      add(contents, answer);
      told(answer, 0.5, 1);
    }
  }
  return contents;
}

function add(contents: Contents, answer: PieceAnswer): void {
  contents.good += answer.good;
  contents.bad += answer.bad;
  contents.failures.push(...answer.failures.slice(0, FAILURES_KEPT - contents.failures.length));
  contents.documents.push(...answer.documents.slice(0, PREVIEW_ROWS - contents.documents.length));
}

/** Sends the documents of a file. Ends early only where going on makes no sense, and then throws; what was done until then is in `sent`. */
export async function send(file: File, target: Target, keyPaths: string[], contents: Contents, reading: Reading, mode: Mode, uploadId: string, abort: AbortSignal, sent: Sent, progress: () => void): Promise<void> {
  const known = { ...reading, format: contents.format };
  const fail = (failure: Failure) => {
    sent.failed++;
    if (sent.failures.length < FAILURES_KEPT) sent.failures.push(failure);
  };
  for await (const answer of pieces(file, target, "documents", known, contents.columns, uploadId, abort)) {
    for (const failure of answer.failures) fail(failure);
    sent.failed += answer.bad - answer.failures.length;
    let [next, isEnded] = [0, false];
    const worker = async () => {
      while (next < answer.documents.length && !isEnded) {
        const document = answer.documents[next++]!;
        try {
          await sendOne(document, target, keyPaths, mode, abort, sent);
        } catch (error) {
          if (!(error instanceof ApiError) || error.status === 0 || error.status === 401) {
            isEnded = true;
            throw error;
          }
          fail({ row: document.row, line: document.line, reason: reasonOf(error), text: document.text });
        }
        progress();
      }
    };
    // What is under way is waited for: it counts as well.
    const ends = await Promise.allSettled(Array.from({ length: WORKERS }, worker));
    const end = ends.find((one) => one.status === "rejected");
    if (end) throw end.reason;
  }
}

const reasonOf = (error: ApiError) => (error.status === 409 ? `an item with this id and partition key exists, or a unique key is taken (${error.message})` : `${error.status}: ${error.message}`);

async function sendOne(document: UploadDocument, target: Target, keyPaths: string[], mode: Mode, abort: AbortSignal, sent: Sent): Promise<void> {
  const value = parse(document.text);
  const headers: Record<string, string> = { "x-ms-documentdb-partitionkey": partitionKeyHeader(value, keyPaths) };
  if (mode === "upsert") headers["x-ms-documentdb-is-upsert"] = "true";
  const deadline = Date.now() + THROTTLED_SECONDS_MAX * 1000;
  for (;;) {
    try {
      sent.charge += (await wire("POST", documentsPath(target.database, target.container), { body: document.text, headers, signal: abort })).charge;
      sent.written++;
      return;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 429 && Date.now() < deadline) await pause(error.retryAfterMilliseconds, abort);
      else if (error.status === 409 && mode === "skip" && (await isThere(value, target, headers, abort))) {
        sent.skipped++;
        return;
      } else throw error;
    }
  }
}

/** Whether a conflict is about the item itself: otherwise a unique key is taken, and the row is not there in any form. */
async function isThere(value: Value, target: Target, { "x-ms-documentdb-partitionkey": key }: Record<string, string>, abort: AbortSignal): Promise<boolean> {
  try {
    await wire("GET", documentPath(target.database, target.container, String(at(value, ["id"]))), { headers: { "x-ms-documentdb-partitionkey": key! }, signal: abort });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return false;
    throw error;
  }
}

function pause(milliseconds: number, abort: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    abort.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
