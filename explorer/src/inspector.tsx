// The last requests of all clients: what was asked, what it cost, how long it took, and the plan behind a query.
import { useMemo, useRef, useState } from "preact/hooks";
import { call, callText, readable } from "./api.ts";
import { TARGETS, programOf, type Target, type WireRequest } from "./copyas.ts";
import { Editor } from "./editor.tsx";
import { Grid, type Column } from "./grid.tsx";
import { at, feedRows, format, parse, plain, write } from "./json.ts";
import { Plan, type PlanAnswer } from "./plan.tsx";
import type { PanelProps } from "./shell.tsx";
import { openTab, updateTab } from "./state.ts";
import { Button, Choices, Empty, Problem, Split, Waiting, copyText, count, duration, units, usePolling } from "./ui.tsx";

interface Seen {
  number: number;
  time: number | string;
  method: string;
  path: string;
  status: number;
  substatus: number | null;
  charge: number;
  milliseconds: number;
  activityId: string;
  userAgent: string | null;
  sql: string | null;
  /** JSON text, with every digit. */
  parameters: string | null;
  explorer: boolean;
  longQuery: boolean;
  /** Why it was refused, in the words of the answer. */
  message: string | null;
}
type Whose = "clients" | "explorer" | "all";
const WHOSE: readonly (readonly [Whose, string])[] = [["clients", "Programs"], ["explorer", "This explorer"], ["all", "All"]];
const whoseOf = (text: string | undefined): Whose => WHOSE.find(([whose]) => whose === text)?.[0] ?? "clients";
const INTERVAL = 1000;
const SEEN_MAX = 2000;

function seenOf(text: string): Seen[] {
  return feedRows(text).map((row) => {
    const value = parse(row);
    const parameters = at(value, ["parameters"]);
    const seen = plain(value) as Seen;
    return { ...seen, message: seen.message ? readable(seen.message).message : null, parameters: Array.isArray(parameters) ? write(parameters) : null };
  });
}

const timeOf = (seen: Seen) => new Date(typeof seen.time === "number" ? (seen.time < 1e11 ? seen.time * 1000 : seen.time) : seen.time);
const steps = (path: string) => path.replace(/^\/|\/$/g, "").split("/").map((step) => { try { return decodeURIComponent(step); } catch { return step; } });

export function Inspector({ tab }: PanelProps) {
  const [requests, setRequests] = useState<Seen[] | null>(null);
  const [paused, setPaused] = useState(false);
  const [error, setError] = useState("");
  const [selected, setSelected] = useState<number | null>(null);
  const after = useRef(0);
  /** Requests that were gone from the server before they were asked for. */
  const [missed, setMissed] = useState(0);
  const whose = whoseOf(tab.state.whose);
  const filter = tab.state.filter ?? "";
  usePolling(async () => {
    if (paused) return;
    try {
      const found: Seen[] = [];
      let text: string;
      const before = after.current;
      do {
        text = await callText("GET", `requests?after=${after.current}`);
        for (const seen of seenOf(text)) found.push(seen);
        after.current = Math.max(after.current, found.at(-1)?.number ?? 0);
        // One answer has about a megabyte of them.
      } while (text.endsWith('"more":true}'));
      const gap = before ? (found[0]?.number ?? 0) - before - 1 : 0;
      if (gap > 0) setMissed((old) => old + gap);
      // Asked twice at once (a pause and its end), the same requests come twice.
      setRequests((old) => {
        const fresh = found.filter((r) => r.number > (old?.[0]?.number ?? 0));
        return fresh.length || !old ? [...fresh.sort((a, b) => b.number - a.number), ...(old ?? [])].slice(0, SEEN_MAX) : old;
      });
      setError("");
    } catch (e) {
      setError((e as Error).message);
    }
  }, INTERVAL, [paused]);
  const found = useMemo(() => (requests ?? []).filter((r) => `${r.method} ${r.path} ${r.status} ${r.activityId} ${r.userAgent ?? ""} ${r.sql ?? ""} ${r.message ?? ""}`.toLowerCase().includes(filter.toLowerCase())), [requests, filter]);
  const shown = useMemo(() => (whose === "all" ? found : found.filter((r) => r.explorer === (whose === "explorer"))), [found, whose]);
  const columns = useMemo((): Column[] => [
    { key: "time", name: "Time", value: (row) => timeOf(shown[row]!).toLocaleTimeString() },
    { key: "method", name: "Method", value: (row) => shown[row]!.method },
    { key: "status", name: "Status", value: (row) => shown[row]!.status, look: (row) => lookOf(shown[row]!.status) },
    { key: "path", name: "Path", value: (row) => shown[row]!.path },
    { key: "why", name: "Why", value: (row) => shown[row]!.message?.replaceAll("\n", " ") ?? undefined },
    { key: "charge", name: "RU", value: (row) => Math.round(shown[row]!.charge * 100) / 100 },
    { key: "ms", name: "ms", value: (row) => Math.round(shown[row]!.milliseconds * 100) / 100 },
    { key: "sql", name: "Query", value: (row) => shown[row]!.sql ?? undefined },
    { key: "agent", name: "Client", value: (row) => (shown[row]!.explorer ? "explorer" : (shown[row]!.userAgent ?? undefined)) },
  ], [shown]);
  const current = requests?.find((r) => r.number === selected);
  const table = (
    <div class="items">
      <div class="toolbar">
        <input type="search" aria-label="Find by path, query, status, message, client or activity id" placeholder="Find: path, query, status, message, activity id" value={filter} onInput={(event) => updateTab(tab.key, { filter: event.currentTarget.value })} />
        <Choices label="Whose requests" options={WHOSE} value={whose} onChange={(next) => updateTab(tab.key, { whose: next })} />
        <Button icon={paused ? "run" : "stop"} onClick={() => setPaused(!paused)}>{paused ? "Go on" : "Pause"}</Button>
        <Button onClick={() => { setRequests((old) => old && []); setSelected(null); setMissed(0); }}>Clear</Button>
        <span class="space" />
        <span class={paused ? "live" : "live on"} role="status">{count(shown.length)} requests{found.length > shown.length ? `, ${count(found.length - shown.length)} of ${whose === "clients" ? "this explorer" : "programs"} not shown` : ""}</span>
      </div>
      {(requests?.length ?? 0) >= SEEN_MAX && <p class="notice" role="status">The list holds the last {count(SEEN_MAX)} requests: older ones have left it. Clear it to begin again.</p>}
      {missed > 0 && <p class="notice" role="status">{count(missed)} requests came faster than they were asked for and are not in the list: the server remembers the last 500.</p>}
      <Problem error={error} />
      <div class="fill">{shown.length ? <Grid label="Requests, newest first" rows={shown.length} columns={columns} selected={current ? shown.indexOf(current) : undefined} onSelect={(row) => setSelected(shown[row]!.number)} /> : requests ? <Empty>{found.length ? (whose === "clients" ? "No program has asked for anything: only this explorer has." : "This explorer has asked for nothing.") : requests.length ? "No request matches." : "No requests yet."}</Empty> : !error && <Waiting />}</div>
    </div>
  );
  return <Split name="requests" direction={innerWidth < 900 ? "column" : "row"} initial={55} first={table} second={current ? <Details key={current.number} request={current} onClose={() => setSelected(null)} /> : null} />;
}

/** As a query tab keeps them: names and texts of values. */
function editable(parameters: string | null): string {
  const list = parse(parameters ?? "[]");
  return JSON.stringify(Array.isArray(list) ? list.map((p) => ({ name: String(at(p, ["name"])), value: write(at(p, ["value"]) ?? null) })) : []);
}

/** What a client did wrong looks otherwise than what went wrong in the server. */
const lookOf = (status: number) => (status >= 500 ? "failed" : status >= 400 ? "refused" : "answered");

function Details({ request, onClose }: { request: Seen; onClose: () => void }) {
  const [target, setTarget] = useState<Target>("curl");
  const [plan, setPlan] = useState<PlanAnswer | null>(null);
  const [error, setError] = useState("");
  const path = steps(request.path);
  const [database, container] = [path[1] ?? "", path[2] === "colls" ? (path[3] ?? "") : ""];
  const wireRequest: WireRequest = { method: request.method, path: path.join("/"), sql: request.sql, parameters: request.parameters };
  const explain = () => call<PlanAnswer>("POST", "explain", `{"database":${JSON.stringify(database)},"container":${JSON.stringify(container)},"sql":${JSON.stringify(request.sql)},"parameters":${request.parameters ?? "[]"},"run":true}`).then((p) => { setPlan(p); setError(""); }, (e: Error) => { setPlan(null); setError(e.message); });
  const program = programOf(target, wireRequest);
  return (
    <section class="details" aria-label={`Request ${request.number}`}>
      <div class="toolbar"><strong class="mono ellipsis">{request.method} {path.map((step) => step).join("/")}</strong><span class="space" /><Button icon="close" look="quiet" label="Close the request" onClick={onClose} /></div>
      <div class="details-body" tabIndex={0} role="group" aria-label="Details">
        <dl class="pairs">
          <div><dt>Status</dt><dd class={lookOf(request.status)}>{request.status}{request.substatus ? ` / ${request.substatus}` : ""}</dd></div>
          <div><dt>Charge</dt><dd>{units(request.charge)}</dd></div>
          <div><dt>Time</dt><dd>{duration(request.milliseconds)} at {timeOf(request).toLocaleTimeString()}</dd></div>
          <div><dt>Activity id</dt><dd class="mono">{request.activityId}</dd></div>
          <div><dt>Client</dt><dd>{request.explorer ? "this explorer" : (request.userAgent ?? "unknown")}</dd></div>
        </dl>
        {request.message && <section aria-label="Why it was refused"><h2 class="sub">Why it was refused</h2><pre class={`why ${lookOf(request.status)}`}>{request.message}</pre></section>}
        {request.sql && <>
          <h2 class="sub">Query</h2>
          <pre>{request.sql}</pre>
          {request.parameters && request.parameters !== "[]" ? <pre>{format(request.parameters)}</pre> : null}
          {container && <div class="row">
            <Button icon="partitions" onClick={() => void explain()}>Plan</Button>
            <Button icon="query" onClick={() => openTab("query", database, container, { sql: request.sql!, parameters: editable(request.parameters) })}>Open as a query</Button>
          </div>}
          <Problem error={error} />
          {plan && <Plan answer={plan} />}
        </>}
        {request.longQuery && <p class="hint">The text of this query is too long to be kept.</p>}
        <h2 class="sub">As a program</h2>
        <div class="row wrap"><Choices label="Language" options={TARGETS.map((t) => [t, t] as const)} value={target} onChange={setTarget} /><Button icon="copy" onClick={() => void copyText(program, `Program for ${target}`)}>Copy</Button></div>
        <div class="medium-editor"><Editor key={target} value={program} language="javascript" label={`Program for ${target}`} readOnly /></div>
      </div>
    </section>
  );
}
