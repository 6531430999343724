// A query tab: text with completion and errors, parameters, running, pages, and the ways to look at what comes back.
import type { EditorView } from "@codemirror/view";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, canWrite, parametersText, query, type Parameter, type QueryAnswer } from "./api.ts";
import { Editor } from "./editor.tsx";
import { exportRows } from "./export.ts";
import { TARGETS, programOf, type WireRequest } from "./copyas.ts";
import { parametersIn } from "./names.ts";
import { Plan, type PlanAnswer } from "./plan.tsx";
import { QueryProblem, failureOf, type Failure } from "./query_problem.tsx";
import { Results, type ResultView } from "./results.tsx";
import { saveQuery } from "./saved.tsx";
import type { PanelProps } from "./shell.tsx";
import { completionOf, loadWords, sqlProblems } from "./sql.ts";
import { FIRST_SQL, address, kept, remember, updateTab, wanted } from "./state.ts";
import { Statistics } from "./statistics.tsx";
import { Button, Choices, Dialog, Empty, Field, Menu, Problem, Split, Waiting, copyText, count, duration, tell, tellError, units } from "./ui.tsx";
import { ValueBox } from "./value_box.tsx";
import { NameWarnings } from "./warnings.tsx";

export interface ResultPage {
  rows: string[];
  continuation: string;
  answer: QueryAnswer;
}
type View = ResultView | "plan" | "statistics";
const VIEWS: readonly (readonly [View, string])[] = [["table", "Table"], ["json", "JSON"], ["tree", "Tree"], ["chart", "Chart"], ["statistics", "Statistics"], ["plan", "Plan"]];

function copyAsActions(request: () => WireRequest): [string, () => void][] {
  const copy = async (target: (typeof TARGETS)[number]) => copyText(programOf(target, request()), `Program for ${target}`);
  return TARGETS.map((target) => [`Copy as ${target}`, () => void copy(target).catch(tellError)]);
}

interface Run {
  sql: string;
  parameters: Parameter[];
  pages: ResultPage[];
  page: number;
}

function parametersOf(text: string | undefined): Parameter[] {
  try {
    const value: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(value) ? value.filter((p): p is Parameter => typeof p?.name === "string" && typeof p?.value === "string") : [];
  } catch {
    return [];
  }
}

function useRun({ tab }: PanelProps, parameters: Parameter[], pageSize: number) {
  const [run, setRun] = useState<Run | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [abort, setAbort] = useState<AbortController | null>(null);
  const latest = useRef<AbortController | null>(null);
  const { database, container } = tab;
  // Nobody sees the answer when the tab is left.
  useEffect(() => () => latest.current?.abort(), []);
  const request = async (sql: string, offset: number, used: Parameter[], earlier: ResultPage[]) => {
    latest.current?.abort();
    const controller = (latest.current = new AbortController());
    setAbort(controller);
    setFailure(null);
    try {
      const continuation = earlier.at(-1)?.continuation ?? "";
      const answer = await query({ database, container, sql, parameters: used, pageSize, continuation, metrics: true, signal: controller.signal });
      if (controller !== latest.current) return;
      const pages = [...earlier, { rows: answer.rows, continuation: answer.continuation, answer }];
      setRun({ sql, parameters: used, pages, page: pages.length - 1 });
      if (!earlier.length) remember({ database, container, sql, parameters: used, time: Date.now(), charge: answer.charge, rows: answer.rows.length });
    } catch (e) {
      if (controller !== latest.current) return;
      // Rows and figures of the query before would pass for those of this one.
      if (!earlier.length) setRun(null);
      setFailure(failureOf(e, sql, offset));
    }
    setAbort(null);
  };
  return {
    run, failure, busy: abort !== null,
    /** A text, and where in the editor's text it begins. */
    start: (sql: string, offset = 0) => void request(sql, offset, parameters, []),
    next: () => run && void request(run.sql, 0, run.parameters, run.pages),
    go: (page: number) => run && setRun({ ...run, page }),
    cancel: () => abort?.abort(),
  };
}

export function Query({ tab }: PanelProps) {
  const { database, container } = tab;
  const sql = tab.state.sql ?? FIRST_SQL;
  const parameters = useMemo(() => parametersOf(tab.state.parameters), [tab.state.parameters]);
  const [view, setView] = [(tab.state.view ?? "table") as View, (value: View) => { wanted(tab.key); updateTab(tab.key, { view: value }); }];
  const pageSize = Number(tab.state.size ?? 100) || 100;
  const running = useRun({ tab }, parameters, pageSize);
  const editor = useRef<EditorView | null>(null);
  const complete = useMemo(() => completionOf(database, container), [database, container]);
  const [saving, setSaving] = useState(false);
  // The colours of the text need the names of the functions.
  const [ready, setReady] = useState(false);
  useEffect(() => void loadWords().finally(() => setReady(true)), []);

  /** The selection if there is one, else the whole text. */
  const chosen = () => {
    const selection = editor.current?.state.selection.main;
    return selection && !selection.empty ? editor.current!.state.sliceDoc(selection.from, selection.to) : sql;
  };
  const start = () => {
    wanted(tab.key);
    if (view === "plan") setView("table");
    const selection = editor.current?.state.selection.main;
    running.start(chosen(), selection && !selection.empty ? selection.from : 0);
  };
  const show = (from: number, to: number) => {
    const view = editor.current;
    const length = view?.state.doc.length ?? 0;
    view?.dispatch({ selection: { anchor: Math.min(from, length), head: Math.min(to, length) }, scrollIntoView: true });
    view?.focus();
  };
  const keys = [
    { key: "Mod-Enter", run: () => { start(); return true; } },
    { key: "Mod-s", preventDefault: true, run: () => { if (canWrite()) setSaving(true); return true; } },
  ];
  const top = (
    <div class="query-top">
      <div class="toolbar" role="toolbar" aria-label="Query">
        {running.busy ? <Button icon="stop" look="danger" onClick={running.cancel}>Cancel</Button> : <Button icon="run" look="primary" onClick={start} title="Ctrl+Enter; runs the selection if there is one">Run</Button>}
        <Button onClick={() => updateTab(tab.key, { parameters: JSON.stringify([...parameters, { name: `@p${parameters.length + 1}`, value: "" }]) })} icon="add">Parameter</Button>
        <label class="inline">Page size
          <select value={String(pageSize)} onChange={(event) => updateTab(tab.key, { size: event.currentTarget.value })}>
            {[10, 100, 500, 1000].map((n) => <option key={n} value={String(n)}>{n}</option>)}
          </select>
        </label>
        <span class="space" />
        {canWrite() && <Button icon="save" look="quiet" label="Save query" onClick={() => setSaving(true)} />}
        <Button icon="link" look="quiet" label="Copy a link to this query" onClick={() => void copyText(location.origin + location.pathname + address(tab), "Link")} />
        <Menu label="Copy as" icon="copy" actions={copyAsActions(() => ({ method: "POST", path: `dbs/${database}/colls/${container}/docs`, sql: chosen(), parameters: parametersText(parameters) }))} />
      </div>
      <div class="fill">
        {!ready ? <Waiting /> : <Editor value={sql} language="sql" label="Query text" onChange={(text) => updateTab(tab.key, { sql: text })} complete={complete} check={(text) => sqlProblems(text, { database, container, parameters: parameters.map((p) => p.name) })} checkAgain={tab.state.parameters} keys={keys} onView={(v) => (editor.current = v)} />}
      </div>
      <Parameters list={parameters} used={parametersIn(sql)} onChange={(list) => updateTab(tab.key, { parameters: JSON.stringify(list) })} />
    </div>
  );
  return (
    <>
      <Split name="query text" direction="column" initial={35} first={top} second={<Outcome tab={tab} running={running} view={view} setView={setView} chosen={chosen} onShow={show} parameters={parameters} pageSize={pageSize} />} />
      {saving && <SaveDialog tab={tab} sql={sql} parameters={parameters} onClose={() => setSaving(false)} />}
    </>
  );
}

function Parameters({ list, used, onChange }: { list: Parameter[]; used: Set<string>; onChange: (list: Parameter[]) => void }) {
  if (!list.length) return null;
  const set = (index: number, change: Partial<Parameter>) => onChange(list.map((p, i) => (i === index ? { ...p, ...change } : p)));
  return (
    <div class="parameters" role="group" aria-label="Parameters">
      {list.map((parameter, index) => (
        <div key={index} class="parameter">
          <span class="value-box">
            <input class="mono" aria-label={`Name of parameter ${index + 1}`} value={parameter.name} autocomplete="off" spellcheck={false} onInput={(event) => set(index, { name: event.currentTarget.value })} />
            {parameter.name && !used.has(parameter.name) && <small class="understood">{parameter.name.startsWith("@") ? "not in the query" : "names begin with @"}</small>}
          </span>
          <ValueBox label={`Value of ${parameter.name}`} typed={parameter.value} placeholder="text, or JSON" onTyped={(value) => set(index, { value })} />
          <Button icon="close" look="quiet" label={`Remove ${parameter.name}`} onClick={() => onChange(list.filter((_, i) => i !== index))} />
        </div>
      ))}
    </div>
  );
}

interface OutcomeProps extends PanelProps {
  running: ReturnType<typeof useRun>;
  view: View;
  setView: (view: View) => void;
  chosen: () => string;
  onShow: (from: number, to: number) => void;
  parameters: Parameter[];
  pageSize: number;
}
function Outcome({ tab, running, view, setView, chosen, onShow, parameters, pageSize }: OutcomeProps) {
  const { run, failure, busy } = running;
  const page = run?.pages[run.page];
  return (
    <section class="outcome" aria-label="Result">
      <div class="toolbar">
        <Choices label="View of the result" options={VIEWS} value={view} onChange={setView} />
        <span class="space" />
        <span class="summary" role="status">{busy ? "Running…" : page ? `${count(page.rows.length)} rows · ${units(page.answer.charge)} · ${duration(page.answer.milliseconds)}` : ""}</span>
        {run && <Pages run={run} onGo={running.go} onNext={running.next} busy={busy} />}
        {run && <Menu label="Export the whole result" icon="download" actions={(["json", "jsonl", "csv"] as const).map((format) => [`Export all as ${{ json: "JSON", jsonl: "JSON lines", csv: "CSV" }[format]}`, () => void exportAll(tab.database, tab.container, run, format)])} />}
      </div>
      {failure && view !== "plan" && <QueryProblem failure={failure} database={tab.database} container={tab.container} isCurrent={(tab.state.sql ?? FIRST_SQL).startsWith(failure.sql, failure.offset)} onShow={onShow} onAgain={() => running.start(failure.sql, failure.offset)} />}
      {run && page?.rows.length === 0 && !busy && view !== "plan" && <NameWarnings sql={run.sql} database={tab.database} container={tab.container} parameters={run.parameters.map((p) => p.name)} />}
      <div class="fill">
        {view === "plan" ? <PlanView tab={tab} sql={chosen()} parameters={parameters} />
          : !page && busy ? <Waiting>Running…</Waiting>
          : !page ? <Empty>{failure ? "The query did not run." : "Run the query with Ctrl+Enter."}</Empty>
          : view === "statistics" ? <Statistics database={tab.database} container={tab.container} pages={run!.pages} onApplied={() => running.start(run!.sql)} />
          : <Results key={`${run!.sql}\u0000${run!.page}\u0000${pageSize}`} rows={page.rows} view={view} />}
      </div>
    </section>
  );
}

function Pages({ run, onGo, onNext, busy }: { run: Run; onGo: (page: number) => void; onNext: () => void; busy: boolean }) {
  const last = run.page === run.pages.length - 1;
  const more = !!run.pages.at(-1)?.continuation;
  if (run.pages.length === 1 && !more) return null;
  return (
    <span class="pages">
      <Button icon="back" look="quiet" label="Previous page" disabled={run.page === 0} onClick={() => onGo(run.page - 1)} />
      <span>Page {run.page + 1}{more ? "" : ` of ${run.pages.length}`}</span>
      <Button icon="chevron" look="quiet" label="Next page" disabled={busy || (last && !more)} onClick={() => (last ? onNext() : onGo(run.page + 1))} />
    </span>
  );
}

/** From the first row again, page by page, whatever is shown. */
async function exportAll(database: string, container: string, run: Run, format: "json" | "jsonl" | "csv"): Promise<void> {
  const rows: string[] = [];
  let continuation = "";
  try {
    do {
      const answer = await query({ database, container, sql: run.sql, parameters: run.parameters, pageSize: 1000, continuation });
      for (const row of answer.rows) rows.push(row);
      continuation = answer.continuation;
    } while (continuation);
    exportRows(container, rows, format);
    tell(`${count(rows.length)} rows exported.`);
  } catch (error) {
    tellError(error);
  }
}

function PlanView({ tab, sql, parameters }: PanelProps & { sql: string; parameters: Parameter[] }) {
  const [plan, setPlan] = useState<PlanAnswer | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const ask = async (run: boolean) => {
    setBusy(true);
    try {
      const body = `{"database":${JSON.stringify(tab.database)},"container":${JSON.stringify(tab.container)},"sql":${JSON.stringify(sql)},"parameters":${parametersText(parameters)},"run":${run}}`;
      wanted(tab.key);
      setPlan(await call<PlanAnswer>("POST", "explain", body));
      setError("");
    } catch (e) {
      setPlan(null);
      setError((e as Error).message);
    }
    setBusy(false);
  };
  // A link must not run anything by itself.
  useEffect(() => { if (!tab.unasked) void ask(true); }, []);
  return (
    <div class="plan-view">
      <div class="toolbar">
        <Button icon="refresh" disabled={busy} onClick={() => void ask(false)}>Estimate</Button>
        <Button icon="run" disabled={busy} onClick={() => void ask(true)}>Run and count rows</Button>
        {busy && <span class="summary" role="status">Asking…</span>}
      </div>
      <Problem error={error} />
      {plan ? <Plan answer={plan} /> : tab.unasked && <Empty>This query came with a link. Look at it, then ask for its plan.</Empty>}
    </div>
  );
}

function SaveDialog({ tab, sql, parameters, onClose }: PanelProps & { sql: string; parameters: Parameter[]; onClose: () => void }) {
  const [name, setName] = useState(tab.state.title ?? "");
  const [error, setError] = useState("");
  const save = async () => {
    try {
      await saveQuery({ name, database: tab.database, container: tab.container, sql, parameters });
      updateTab(tab.key, { title: name });
      kept(tab.key, sql);
      tell(`Saved as ${name}; everybody who uses this account finds it under saved queries.`);
      onClose();
    } catch (e) {
      setError((e as Error).message);
    }
  };
  return (
    <Dialog title="Save query" onClose={onClose} onSubmit={() => void save()} actions={<>
      <Button onClick={onClose}>Cancel</Button>
      <Button type="submit" look="primary" disabled={!name.trim()}>Save</Button>
    </>}>
      <Field label="Name" hint="It is stored in the account, in the database “explorer”.">
        <input value={name} onInput={(event) => setName(event.currentTarget.value)} autofocus required />
      </Field>
      <Problem error={error} />
    </Dialog>
  );
}
