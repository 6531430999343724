// Uploading a file into a container: what is in it is shown first, then it is sent, and what became of it is listed.
//
// A run goes on while another tab is looked at, and ends with its own tab.
import { effect, signal, type Signal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { canWrite, pathSteps, readContainer } from "./api.ts";
import { Grid, type Column } from "./grid.tsx";
import { at, parse } from "./json.ts";
import type { PanelProps } from "./shell.tsx";
import { refreshOverview, tabs } from "./state.ts";
import { Button, Choices, Empty, Field, Problem, count, download, size, tell, units, useLoaded } from "./ui.tsx";
import { FAILURES_KEPT, readContents, refusalOf, send, type CellKind, type Contents, type Failure, type FileFormat, type Mode, type Reading, type Sent } from "./upload.ts";

interface Run {
  file: File | null;
  reading: Reading;
  mode: Mode;
  /** Whether wrong rows are left out; otherwise nothing is sent while there are some. */
  leavesOut: boolean;
  contents: Contents | null;
  sent: Sent | null;
  doing: "" | "reading" | "sending";
  share: number;
  error: string;
}
const FRESH: Run = { file: null, reading: { format: "", kinds: {}, emptyAsNull: false, id: "", partitionKey: [] }, mode: "insert", leavesOut: false, contents: null, sent: null, doing: "", share: 0, error: "" };
const FORMATS: readonly (readonly [FileFormat | "", string])[] = [["", "By its name"], ["json", "JSON"], ["json-lines", "JSON lines"], ["csv", "CSV"], ["tsv", "TSV"]];
const KINDS: readonly CellKind[] = ["string", "number", "boolean", "json"];
const MODES: readonly (readonly [Mode, string])[] = [["insert", "Add only"], ["skip", "Skip what exists"], ["upsert", "Replace what exists"]];
const MODE_HINTS: Record<Mode, string> = {
  insert: "An item whose id and partition key exist already is listed as failed, and what exists stays as it is.",
  skip: "An item whose id and partition key exist already is left out, and what exists stays as it is.",
  upsert: "An item whose id and partition key exist already takes the place of what exists, wholly. This cannot be undone.",
};
const SHOWN_MAX = 100;
/** How often a running upload is drawn. */
const SHOW_MILLISECONDS = 150;

const runs = new Map<string, { state: Signal<Run>; abort: AbortController; uploadId: string }>();
// Whoever closes the tab has seen enough.
effect(() => {
  const open = new Set(tabs.value.map((tab) => tab.key));
  for (const [key, run] of runs) if (!open.has(key)) { run.abort.abort(); runs.delete(key); }
});
addEventListener("beforeunload", (event) => { if ([...runs.values()].some((run) => run.state.value.doing === "sending")) event.preventDefault(); });

function runOf(key: string) {
  let run = runs.get(key);
  if (!run) runs.set(key, (run = { state: signal(FRESH), abort: new AbortController(), uploadId: crypto.getRandomValues(new Uint32Array(4)).join("-") }));
  return run;
}

export function Upload({ tab }: PanelProps) {
  const { database, container } = tab;
  const target = useMemo(() => ({ database, container }), [database, container]);
  const { value: definition, error: definitionError } = useLoaded(() => readContainer(database, container), [database, container]);
  const own = runOf(tab.key);
  const run = own.state.value;
  const set = (change: Partial<Run>) => (own.state.value = { ...own.state.value, ...change });
  const keyPaths = definition?.partitionKey.paths ?? [];

  const read = async (file: File, reading: Reading) => {
    own.abort.abort();
    const abort = (own.abort = new AbortController());
    set({ file, reading, contents: null, sent: null, doing: "reading", share: 0, error: "" });
    try {
      const refusal = await refusalOf(file);
      if (refusal) throw new Error(refusal);
      const contents = await readContents(file, target, reading, own.uploadId, abort.signal, (share) => !abort.signal.aborted && set({ share }));
      if (!abort.signal.aborted) set({ contents, doing: "" });
    } catch (error) {
      if (!abort.signal.aborted) set({ error: (error as Error).message, doing: "" });
    }
  };
  const change = (reading: Partial<Reading>) => run.file && void read(run.file, { ...run.reading, ...reading });
  const start = async () => {
    const abort = (own.abort = new AbortController());
    const sent: Sent = { written: 0, skipped: 0, failed: 0, charge: 0, failures: [] };
    let shown = 0;
    const show = () => set({ sent: { ...sent }, share: (sent.written + sent.skipped + sent.failed) / Math.max(1, run.contents!.good + run.contents!.bad) });
    set({ sent, doing: "sending", share: 0, error: "" });
    try {
      await send(run.file!, target, keyPaths, run.contents!, run.reading, run.mode, own.uploadId, abort.signal, sent, () => {
        if (performance.now() - shown < SHOW_MILLISECONDS) return;
        shown = performance.now();
        show();
      });
      tell(`${count(sent.written)} items written to ${container}.`, sent.failed > 0);
    } catch (error) {
      set({ error: abort.signal.aborted ? "Stopped. What was written until then stays; the rest of the file was not sent." : `${(error as Error).message} The upload ended there: what was written stays, the rest was not sent.` });
    }
    show();
    set({ doing: "" });
    void refreshOverview();
  };
  const { contents, sent } = run;
  const isReady = contents && contents.good > 0 && (!contents.bad || run.leavesOut) && !run.doing && !sent && definition;
  return (
    <div class="upload">
      <div class="form">
        <h1>Upload into {container}</h1>
        <FileField disabled={run.doing === "sending"} onFile={(file) => void read(file, { ...FRESH.reading })} file={run.file} />
        <Problem error={definitionError || run.error} />
        {run.file && <HowToRead run={run} keyPaths={keyPaths} onChange={change} />}
        {run.doing && <div class="row"><progress aria-label={run.doing === "reading" ? "Read" : "Sent"} max={1} value={run.share} /><Button icon="stop" onClick={() => { own.abort.abort(); if (run.doing === "reading") set({ doing: "", error: "Stopped." }); }}>Stop</Button></div>}
        <p class="summary" role="status">{summary(run)}</p>
        {contents && contents.bad > 0 && !sent && <label class="check"><input type="checkbox" checked={run.leavesOut} onChange={(event) => set({ leavesOut: event.currentTarget.checked })} /><span>Leave out {contents.bad === 1 ? "the wrong row" : `the ${count(contents.bad)} wrong rows`} and upload the others</span></label>}
        {contents && canWrite() && !sent && <>
          <Choices label="What happens to items that exist" options={MODES} value={run.mode} onChange={(mode) => set({ mode })} />
          <p class="hint">{MODE_HINTS[run.mode]}</p>
          <div class="row"><Button icon="upload" look={run.mode === "upsert" ? "danger" : "primary"} disabled={!isReady} onClick={() => void start()}>Upload {count(contents.good)} items</Button></div>
        </>}
        {!canWrite() && <p class="hint">This session is read-only: the preview works, the upload does not.</p>}
      </div>
      <Failures failures={sent?.failures ?? contents?.failures ?? []} all={sent ? sent.failed : contents?.bad ?? 0} name={container} what={sent ? "failed" : "wrong"} />
      <div class="fill">{contents && !sent && (contents.documents.length ? <Preview contents={contents} keyPaths={keyPaths} /> : <Empty>No row of this file is an item.</Empty>)}</div>
    </div>
  );
}

function summary({ contents, sent, doing, file }: Run): string {
  if (sent) return `${count(sent.written)} written${sent.skipped ? `, ${count(sent.skipped)} existed and stay` : ""}${sent.failed ? `, ${count(sent.failed)} failed` : ""} of ${count(contents ? contents.good + contents.bad : 0)} rows · ${units(sent.charge)}`;
  if (doing === "reading") return "Reading the file…";
  if (!contents || !file) return "";
  return `${file.name}: ${size(file.size)}, ${count(contents.good + contents.bad)} ${contents.good + contents.bad === 1 ? "row" : "rows"}, ${contents.bad ? `${count(contents.bad)} of them wrong` : "all good"}. Nothing is written yet.`;
}

function FileField({ file, disabled, onFile }: { file: File | null; disabled: boolean; onFile: (file: File) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const chosen = (files: FileList | null | undefined) => { const first = files?.[0]; if (first && !disabled) onFile(first); };
  return (
    <div class="drop" onDragOver={(event) => event.preventDefault()} onDrop={(event) => { event.preventDefault(); chosen(event.dataTransfer?.files); }}>
      <Button icon="upload" disabled={disabled} onClick={() => input.current?.click()}>{file ? "Another file" : "Choose a file"}</Button>
      <span class="muted">{file ? file.name : "or drop it here: a JSON array, JSON lines or CSV, up to 512 MB"}</span>
      <input ref={input} type="file" aria-label="File" class="visually-hidden" tabIndex={-1} accept=".json,.jsonl,.ndjson,.csv,.tsv,.tab,.txt" onChange={(event) => { chosen(event.currentTarget.files); event.currentTarget.value = ""; }} />
    </div>
  );
}

/** What the file does not say by itself, or says wrongly. Every change reads the file again. */
function HowToRead({ run: { reading, contents, doing }, keyPaths, onChange }: { run: Run; keyPaths: string[]; onChange: (reading: Partial<Reading>) => void }) {
  const isTable = contents?.format === "csv" || contents?.format === "tsv";
  const busy = doing === "sending";
  const keys = (index: number, text: string) => keyPaths.map((_, at) => (at === index ? text : reading.partitionKey[at] ?? ""));
  return (
    <details class="how">
      <summary>How the file is read{contents ? `: ${FORMATS.find(([format]) => format === contents.format)![1]}` : ""}</summary>
      <div class="row">
        <Field label="Format"><select disabled={busy} value={reading.format} onChange={(event) => onChange({ format: event.currentTarget.value as Reading["format"], kinds: {} })}>{FORMATS.map(([format, name]) => <option key={format} value={format}>{name}</option>)}</select></Field>
        <Field label="Id, by template" hint="Such as {country}-{number}; {#} is the number of the row."><input class="mono" disabled={busy} value={reading.id} placeholder="as in the row" onChange={(event) => onChange({ id: event.currentTarget.value })} /></Field>
        {keyPaths.map((path, index) => path !== "/id" && pathSteps(path).length === 1 && keyPaths.every((other) => pathSteps(other).length === 1) && (
          <Field key={path} label={`${path}, by template`}><input class="mono" disabled={busy} value={reading.partitionKey[index] ?? ""} placeholder="as in the row" onChange={(event) => onChange({ partitionKey: keys(index, event.currentTarget.value) })} /></Field>
        ))}
      </div>
      {reading.partitionKey.some(Boolean) && !reading.partitionKey.every(Boolean) && <p class="hint">Give a template for each path of the partition key; until then the rows say what it is.</p>}
      {isTable && <label class="check"><input type="checkbox" disabled={busy} checked={reading.emptyAsNull} onChange={(event) => onChange({ emptyAsNull: event.currentTarget.checked })} /><span>Empty cells are null; otherwise they give no property</span></label>}
      {isTable && <div class="row columns-of-file" role="group" aria-label="Types of the columns">{contents.columns.map(([name, kind]) => (
        <Field key={name} label={name}><select disabled={busy} value={kind} onChange={(event) => onChange({ kinds: { ...reading.kinds, [name]: event.currentTarget.value as CellKind } })}>{KINDS.map((one) => <option key={one} value={one}>{one}</option>)}</select></Field>
      ))}</div>}
    </details>
  );
}

function Failures({ failures, all, name, what }: { failures: Failure[]; all: number; name: string; what: "failed" | "wrong" }) {
  if (!all) return null;
  const lines = () => failures.map(({ row, line, reason, text }) => `${JSON.stringify({ row, line, reason, ...(text === undefined ? {} : { text }) })}\n`);
  return (
    <section class="failed-rows" aria-label="Rows that failed">
      <div class="row"><h2 class="sub">{count(all)} {what} {all === 1 ? "row" : "rows"}</h2>{failures.length > 0 && <Button icon="download" onClick={() => download(`${name}-failed.jsonl`, lines(), "application/x-ndjson")}>Save this list</Button>}</div>
      <ul class="failures" tabIndex={0} aria-label="Reasons">
        {failures.slice(0, SHOWN_MAX).map((failure) => <li key={failure.row}>Line {failure.line} (row {failure.row}): {failure.reason}</li>)}
        {all > SHOWN_MAX && <li class="muted">and {count(all - SHOWN_MAX)} more{all > FAILURES_KEPT ? `; the first ${count(FAILURES_KEPT)} can be saved` : ", which can be saved"}</li>}
      </ul>
    </section>
  );
}

function Preview({ contents: { documents }, keyPaths }: { contents: Contents; keyPaths: string[] }) {
  const columns = useMemo(() => {
    const values = documents.map((document) => parse(document.text));
    const all: Column[] = [
      { key: "line", name: "Line", value: (row) => documents[row]!.line },
      { key: "id", name: "id", value: (row) => at(values[row], ["id"]) },
    ];
    for (const path of keyPaths) if (path !== "/id") all.push({ key: path, name: `${path} (partition key)`, value: (row) => at(values[row], pathSteps(path)) });
    all.push({ key: "whole", name: "Item", value: (row) => values[row] });
    return all;
  }, [documents, keyPaths.join("\u0000")]);
  return <Grid label="First items of the file" rows={documents.length} columns={columns} />;
}
