// Many items at once: what a condition finds is set, removed, increased or deleted, after a look at what would change.
//
// Every item is changed only if it is still as it was in the preview's query (If-Match); who was faster is listed.
import { useMemo, useRef, useState } from "preact/hooks";
import { ApiError, canWrite, documentPath, partitionKeyHeader, pathSteps, query, readContainer, wire } from "./api.ts";
import { Editor } from "./editor.tsx";
import { Grid, type Column } from "./grid.tsx";
import { at, parse } from "./json.ts";
import { literal } from "./literal.ts";
import { ACTIONS, actionOf, changed, patchBody, type Action } from "./patch.ts";
import { parsedRows } from "./results.tsx";
import type { PanelProps } from "./shell.tsx";
import { completionOf, sqlProblems } from "./sql.ts";
import { bulkSign, kept, refreshOverview, updateTab } from "./state.ts";
import { Button, Choices, Empty, Field, Problem, ask, count, tell, units, useLoaded } from "./ui.tsx";
import { ValueBox } from "./value_box.tsx";

const WORKERS = 6;
const FAILURES_SHOWN = 100;

interface Progress {
  done: number;
  failed: { id: string; reason: string }[];
  charge: number;
  total: number;
}

async function everyMatch(database: string, container: string, sql: string): Promise<{ rows: string[]; charge: number }> {
  const rows: string[] = [];
  let [charge, continuation] = [0, ""];
  do {
    const answer = await query({ database, container, sql, pageSize: 1000, continuation });
    for (const row of answer.rows) rows.push(row);
    charge += answer.charge;
    continuation = answer.continuation;
  } while (continuation);
  return { rows, charge };
}

export function Bulk({ tab }: PanelProps) {
  const { database, container } = tab;
  const { value: definition } = useLoaded(() => readContainer(database, container), [database, container]);
  const condition = tab.state.condition ?? "";
  const action = actionOf(tab.state.action);
  const [path, text] = [tab.state.path ?? "", tab.state.value ?? ""];
  const [preview, setPreview] = useState<{ rows: string[]; charge: number; of: string } | null>(null);
  const [progress, setProgress] = useState<Progress | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const stopped = useRef(false);
  const complete = useMemo(() => completionOf(database, container), [database, container]);
  const sql = `SELECT * FROM c${condition.trim() ? ` WHERE ${condition}` : ""}`;
  const sign = bulkSign(tab.state);
  const steps = pathSteps(path);

  const look = async () => {
    setBusy(true); setError(""); setProgress(null);
    try {
      if (action !== "delete" && !steps.length) throw new Error("Say which property, e.g. /address/city.");
      if (action === "set" || action === "incr") literal(text, "The value");
      if (action === "incr" && Number.isNaN(Number(literal(text, "The amount")))) throw new Error("The amount is a number, e.g. 1 or -2.5.");
      setPreview({ ...(await everyMatch(database, container, sql)), of: sign });
    } catch (e) {
      setPreview(null);
      setError((e as Error).message);
    }
    setBusy(false);
  };
  const one = async (row: string): Promise<number> => {
    const value = parse(row);
    const headers = { "x-ms-documentdb-partitionkey": partitionKeyHeader(value, definition!.partitionKey.paths), "if-match": String(at(value, ["_etag"])) };
    const target = documentPath(database, container, String(at(value, ["id"])));
    if (action === "delete") return (await wire("DELETE", target, { headers })).charge;
    return (await wire("PATCH", target, { headers: { ...headers, "content-type": "application/json-patch+json" }, body: patchBody(action, steps, action === "remove" ? "" : literal(text, "The value")) })).charge;
  };
  const apply = async () => {
    const rows = preview!.rows;
    const what = action === "delete" ? "deleted. This cannot be undone" : "changed";
    if (!(await ask(`${action === "delete" ? "Delete" : "Change"} ${count(rows.length)} items?`, `${count(rows.length)} items of ${container} are ${what}. Items that somebody changes meanwhile are left alone and listed.`, action === "delete" ? "Delete all" : "Change all", action === "delete"))) return;
    stopped.current = false;
    setBusy(true);
    const state: Progress = { done: 0, failed: [], charge: 0, total: rows.length };
    let next = 0;
    const worker = async () => {
      while (next < rows.length && !stopped.current) {
        const row = rows[next++]!;
        try {
          state.charge += await one(row);
          state.done++;
        } catch (e) {
          const reason = e instanceof ApiError && e.status === 412 ? "changed meanwhile" : (e as Error).message;
          state.failed.push({ id: String(at(parse(row), ["id"])), reason });
        }
        if ((state.done + state.failed.length) % 20 === 0) setProgress({ ...state });
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, worker));
    setProgress({ ...state });
    if (!stopped.current && !state.failed.length) kept(tab.key, sign);
    setPreview(null);
    setBusy(false);
    tell(`${count(state.done)} items ${action === "delete" ? "deleted" : "changed"}.`);
    void refreshOverview();
  };
  const set = (change: Record<string, string>) => updateTab(tab.key, change);
  const current = preview?.of === sign ? preview : null;
  return (
    <div class="bulk">
      <div class="form">
        <div class="field" role="group" aria-label="Condition"><span>Items where</span><div class="small-editor"><Editor value={condition} language="sql" label="Condition, about c; empty means all items" placeholder='c.type = "draft"' complete={complete} check={(written) => sqlProblems(written, { database, container, before: "SELECT * FROM c WHERE " })} onChange={(value) => set({ condition: value })} /></div></div>
        <Choices label="What to do" options={ACTIONS} value={action} onChange={(value) => set({ action: value })} />
        {action !== "delete" && <div class="row">
          <Field label="Property"><input class="mono" placeholder="/address/city" value={path} onInput={(event) => set({ path: event.currentTarget.value })} /></Field>
          {action !== "remove" && <div class="field"><span>{action === "incr" ? "Amount" : "Value"}</span><ValueBox label={action === "incr" ? "Amount" : "Value"} placeholder={action === "incr" ? "1" : "text, or JSON"} typed={text} onTyped={(value) => set({ value })} /></div>}
        </div>}
        <div class="row">
          <Button icon="items" disabled={busy} onClick={() => void look()}>Preview</Button>
          {canWrite() && <Button look={action === "delete" ? "danger" : "primary"} disabled={busy || !current?.rows.length || !definition} onClick={() => void apply()}>{action === "delete" ? "Delete" : "Change"} {current ? count(current.rows.length) : ""} items</Button>}
          {busy && progress && <Button icon="stop" onClick={() => (stopped.current = true)}>Stop</Button>}
          <span class="summary" role="status">{current ? `${count(current.rows.length)} items match · ${units(current.charge)}` : progress ? `${count(progress.done)} of ${count(progress.total)} done, ${count(progress.failed.length)} left alone · ${units(progress.charge)}` : busy ? "Looking…" : ""}</span>
        </div>
        <Problem error={error} />
        {!canWrite() && <p class="hint">This session is read-only: the preview works, the change does not.</p>}
      </div>
      {progress?.failed.length ? <ul class="failures">{progress.failed.slice(0, FAILURES_SHOWN).map((f, i) => <li key={i}><code>{f.id}</code> {f.reason}</li>)}</ul> : null}
      <div class="fill">{current && (current.rows.length ? <Preview rows={current.rows} action={action} steps={steps} text={text} keyPaths={definition?.partitionKey.paths ?? []} /> : <Empty>No item matches.</Empty>)}</div>
    </div>
  );
}

function Preview({ rows, action, steps, text, keyPaths }: { rows: string[]; action: Action; steps: string[]; text: string; keyPaths: string[] }) {
  const columns = useMemo(() => {
    const value = parsedRows(rows);
    const change = action === "set" || action === "incr" ? parse(literal(text, "The value")) : null;
    const all: Column[] = [{ key: "id", name: "id", value: (row) => at(value(row), ["id"]) }];
    for (const path of keyPaths) if (path !== "/id") all.push({ key: path, name: path, value: (row) => at(value(row), pathSteps(path)) });
    if (action === "delete") all.push({ key: "whole", name: "is deleted", value });
    else all.push(
      { key: "now", name: `${steps.join(".")} now`, value: (row) => at(value(row), steps) },
      { key: "then", name: "then", value: (row) => { const after = changed(action, at(value(row), steps), change); return after === "impossible" ? "cannot be added to" : after; } },
    );
    return all;
  }, [rows, action, text, steps.join("/")]);
  return <Grid label="What would change" rows={rows.length} columns={columns} />;
}
