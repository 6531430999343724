// Stored procedures, triggers and functions: edited, saved, and procedures run without writing anything until asked.
//
// A run shows its console, the transaction's changes before they are committed, and every call to the collection, which
// can be stepped through forwards and backwards.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, callText, canWrite, containerPath, list, readContainer, segment, wire } from "./api.ts";
import { draftOf, dropDraft, keepDraft } from "./drafts.ts";
import { Editor } from "./editor.tsx";
import { at, parse, show, write, type Value } from "./json.ts";
import { literal, understood } from "./literal.ts";
import { TreeNode } from "./results.tsx";
import type { PanelProps } from "./shell.tsx";
import { refreshOverview, updateTab } from "./state.ts";
import { Button, Empty, Problem, Split, ask, count, tell, tellError, units, useLoaded } from "./ui.tsx";
import { mayReplace } from "./unsaved.ts";
import { ValueBox } from "./value_box.tsx";

type Kind = "sprocs" | "triggers" | "udfs";
const KINDS: readonly (readonly [Kind, string, string])[] = [["sprocs", "Stored procedures", "procedure"], ["triggers", "Triggers", "trigger"], ["udfs", "Functions", "function"]];
const FIRST_BODIES: Record<Kind, string> = {
  sprocs: `function hello(name) {
  const collection = getContext().getCollection();
  console.log("looking around");
  collection.queryDocuments(collection.getSelfLink(), "SELECT VALUE COUNT(1) FROM c", function (error, rows) {
    if (error) throw error;
    getContext().getResponse().setBody("Hello " + name + ", there are " + rows[0] + " items in this partition.");
  });
}
`,
  triggers: `function stamp() {
  const request = getContext().getRequest();
  const item = request.getBody();
  item.stamped = new Date().toISOString();
  request.setBody(item);
}
`,
  udfs: `function double(number) {
  return number * 2;
}
`,
};
interface Script {
  id: string;
  body: string;
  _etag: string;
  triggerType?: string;
  triggerOperation?: string;
}
interface Selected {
  kind: Kind;
  script: Script | null;
  /** Each time something is opened is a turn of its own; a save is none, and leaves the editor as it is. */
  turn: number;
}
let turns = 0;

/** What is typed of a script. */
interface Typed {
  id: string;
  body: string;
  type: string;
  operation: string;
}
const PART = "script";
const typedOf = (kind: Kind, script: Script | null): Typed => ({ id: script?.id ?? "", body: script?.body ?? FIRST_BODIES[kind], type: script?.triggerType ?? "Pre", operation: script?.triggerOperation ?? "All" });
/** The script that was being edited when the tab was left. */
function leftScript(key: string): Selected | null {
  try {
    const { kind, script } = JSON.parse(draftOf(key, PART)?.base ?? "null") as { kind: Kind; script: Script | null };
    return { kind, script, turn: ++turns };
  } catch {
    return null;
  }
}

export function Scripts({ tab }: PanelProps) {
  // Not before it is asked for: some names have no path.
  const base = () => containerPath(tab.database, tab.container);
  const { value, error, reload } = useLoaded(async () => {
    const [sprocs, triggers, udfs] = await Promise.all(KINDS.map(([kind]) => list<Script>(`${base()}/${kind}`)));
    return { sprocs, triggers, udfs } as Record<Kind, Script[]>;
  }, [tab.database, tab.container]);
  const [selected, setSelected] = useState<Selected | null>(() => leftScript(tab.key));
  const turn = useRef(0);
  turn.current = selected?.turn ?? 0;
  useEffect(() => {
    const [kind, id] = (tab.state.script ?? "").split("\u0000") as [Kind, string];
    const script = KINDS.some(([known]) => known === kind) ? value?.[kind].find((s) => s.id === id) : undefined;
    if (script && (selected?.kind !== kind || selected.script?.id !== script.id)) setSelected({ kind, script, turn: ++turns });
  }, [value, tab.state.script]);
  const open = async (kind: Kind, script: Script | null) => {
    if (script && selected?.kind === kind && selected.script?.id === script.id) return;
    if (await mayReplace(tab, PART)) choose(kind, script);
  };
  const choose = (kind: Kind, script: Script | null, turn = ++turns) => { setSelected({ kind, script, turn }); updateTab(tab.key, { script: script ? `${kind}\u0000${script.id}` : "" }); };
  const remove = async (kind: Kind, script: Script) => {
    if (!(await ask(`Delete ${script.id}?`, "This cannot be undone.", "Delete"))) return;
    try {
      await wire("DELETE", `${base()}/${kind}/${segment(script.id)}`, { headers: { "if-match": script._etag } });
    } catch (e) {
      tellError(e);
    }
    if (selected?.kind === kind && selected.script?.id === script.id) { dropDraft(tab.key, PART); setSelected(null); updateTab(tab.key, { script: "" }); }
    reload();
  };
  return (
    <div class="scripts">
      <aside aria-label="Scripts">
        <Problem error={error} />
        {KINDS.map(([kind, title, one]) => (
          <section key={kind}>
            <div class="row"><h2>{title}</h2>{canWrite() && <Button icon="add" look="quiet" label={`New ${one}`} onClick={() => void open(kind, null)} />}</div>
            <ul class="plain-list choose">
              {value?.[kind].map((script) => (
                <li key={script.id}>
                  <button type="button" aria-pressed={selected?.kind === kind && selected.script?.id === script.id} onClick={() => void open(kind, script)}>{script.id}</button>
                  {canWrite() && <Button icon="trash" look="quiet" label={`Delete ${script.id}`} onClick={() => void remove(kind, script)} />}
                </li>
              ))}
              {!value && !error && <li class="hint" role="status">Loading…</li>}
              {value?.[kind].length === 0 && <li class="hint">None.</li>}
            </ul>
          </section>
        ))}
      </aside>
      <div class="fill">
        {selected ? <ScriptEditor key={selected.turn} tab={tab} base={base} selected={selected} onSaved={(script) => { if (turn.current === selected.turn) choose(selected.kind, script, selected.turn); reload(); }} /> : <Empty>{canWrite() ? "Choose a script, or make one." : "Choose a script."}</Empty>}
      </div>
    </div>
  );
}

function ScriptEditor({ tab, base, selected: { kind, script }, onSaved }: PanelProps & { base: () => string; selected: Selected; onSaved: (script: Script) => void }) {
  const stored = typedOf(kind, script);
  const draft = draftOf(tab.key, PART);
  const typed: Typed = draft ? (JSON.parse(draft.text) as Typed) : stored;
  const { id, body, type, operation } = typed;
  const latest = useRef(typed);
  latest.current = typed;
  const [error, setError] = useState("");
  const set = (change: Partial<Typed>) => {
    const next = { ...latest.current, ...change };
    latest.current = next;
    if (JSON.stringify(next) === JSON.stringify(stored)) dropDraft(tab.key, PART);
    else keepDraft(tab, PART, script ? `the script ${script.id}` : "a new script", JSON.stringify(next), JSON.stringify({ kind, script }));
  };
  const save = async () => {
    const content = JSON.stringify({ id, body, ...(kind === "triggers" ? { triggerType: type, triggerOperation: operation } : {}) });
    try {
      const answer = script
        ? await wire("PUT", `${base()}/${kind}/${segment(script.id)}`, { body: content, headers: { "if-match": script._etag } })
        : await wire("POST", `${base()}/${kind}`, { body: content });
      setError("");
      tell(`Saved ${id}.`);
      const saved = JSON.parse(answer.text) as Script;
      // What was typed while it was saved is a change of what was saved.
      dropDraft(tab.key, PART);
      if (JSON.stringify(latest.current) !== JSON.stringify(typed)) keepDraft(tab, PART, `the script ${id}`, JSON.stringify({ ...latest.current, id }), JSON.stringify({ kind, script: saved }));
      onSaved(saved);
    } catch (e) {
      const overtaken = e instanceof ApiError && e.status === 412;
      setError(overtaken ? "Somebody else saved this script after you opened it, and nothing was overwritten. Open it in another window to see that version; what you typed stays here." : (e as Error).message);
    }
  };
  const editor = (
    <div class="document">
      <div class="toolbar">
        <input class="mono" aria-label="Id of the script" placeholder="id" value={id} readOnly={!!script} onInput={(event) => set({ id: event.currentTarget.value })} />
        {kind === "triggers" && <>
          <select aria-label="When" value={type} disabled={!canWrite()} onChange={(event) => set({ type: event.currentTarget.value })}><option value="Pre">before</option><option value="Post">after</option></select>
          <select aria-label="Operation" value={operation} disabled={!canWrite()} onChange={(event) => set({ operation: event.currentTarget.value })}>{["All", "Create", "Update", "Delete", "Replace"].map((o) => <option key={o}>{o}</option>)}</select>
        </>}
        <span class="space" />
        {canWrite() && <Button icon="save" look="primary" disabled={!id || (!!script && !draft)} onClick={() => void save()}>Save</Button>}
      </div>
      <Problem error={error} />
      <div class="fill"><Editor value={body} language="javascript" label="Script" onChange={(text) => set({ body: text })} readOnly={!canWrite()} keys={[{ key: "Mod-s", preventDefault: true, run: () => { if (id) void save(); return true; } }]} /></div>
    </div>
  );
  return kind === "sprocs" ? <Split name="script" direction="column" initial={50} first={editor} second={<RunScript tab={tab} body={body} />} /> : editor;
}

/** The answer of a run; values keep their digits. */
interface RunAnswer {
  result: Value;
  error: { message: string; stack: string } | null;
  console: string[];
  calls: { name: string; arguments: Value; result: Value; error: Value }[];
  callsLeftOut: number;
  changes: { kind: string; id: string; before: Value; after: Value }[];
  changesLeftOut: number;
  charge: number;
  committed: boolean;
}

function readRun(text: string): RunAnswer {
  const value = parse(text);
  const get = (from: Value, name: string): Value => at(from, [name]) ?? null;
  const rows = (name: string): Value[] => { const found = get(value, name); return Array.isArray(found) ? found : []; };
  const error = get(value, "error");
  return {
    result: get(value, "result"),
    error: error === null ? null : { message: show(get(error, "message")), stack: show(at(error, ["stack"]) ?? "") },
    console: rows("console").map(show),
    calls: rows("calls").map((c) => ({ name: show(get(c, "function")), arguments: get(c, "arguments"), result: get(c, "result"), error: get(c, "error") })),
    callsLeftOut: Number(get(value, "callsLeftOut") ?? 0),
    changes: rows("changes").map((c) => ({ kind: show(get(c, "kind")), id: show(get(c, "id")), before: get(c, "before"), after: get(c, "after") })),
    changesLeftOut: Number(get(value, "changesLeftOut") ?? 0),
    charge: Number(show(get(value, "charge"))),
    committed: get(value, "committed") === true,
  };
}

/** Texts that a tab keeps as one. */
function textsOf(state: string | undefined): string[] | null {
  try {
    const value: unknown = JSON.parse(state ?? "null");
    return Array.isArray(value) && value.every((text) => typeof text === "string") ? value : null;
  } catch {
    return null;
  }
}
/** The whole key as one array, or a value for each of its paths. */
function keyOf(typed: string[], paths: string[]): string {
  const whole = typed.length === 1 ? understood(typed[0]!) : null;
  if (whole && "value" in whole && Array.isArray(whole.value)) return whole.json;
  return `[${typed.map((text, i) => literal(text, paths[i] ?? "The partition key")).join(",")}]`;
}

function RunScript({ tab, body }: PanelProps & { body: string }) {
  const { value: definition } = useLoaded(() => readContainer(tab.database, tab.container), [tab.database, tab.container]);
  const paths = definition?.partitionKey.paths ?? [""];
  const typedKey = textsOf(tab.state.key) ?? [];
  const key = paths.map((_, i) => typedKey[i] ?? "");
  const parameters = textsOf(tab.state.arguments) ?? ["world"];
  const setKey = (at: number, text: string) => updateTab(tab.key, { key: JSON.stringify(key.map((old, i) => (i === at ? text : old))) });
  const setParameters = (next: string[]) => updateTab(tab.key, { arguments: JSON.stringify(next) });
  const [answer, setAnswer] = useState<RunAnswer | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const run = async (commit: boolean) => {
    setBusy(true);
    setError("");
    try {
      const given = parameters.map((text, i) => literal(text, `Argument ${i + 1}`));
      const request = `{"database":${JSON.stringify(tab.database)},"container":${JSON.stringify(tab.container)},"body":${JSON.stringify(body)},"partitionKey":${keyOf(key, paths)},"arguments":[${given.join(",")}],"commit":${commit}}`;
      setAnswer(readRun(await callText("POST", "run-script", request)));
      if (commit) void refreshOverview();
    } catch (e) {
      setAnswer(null);
      setError((e as Error).message);
    }
    setBusy(false);
  };
  return (
    <section class="run-script" aria-label="Run">
      <div class="given">
        <div class="given-values" role="group" aria-label="Partition key"><strong>Partition key</strong>
          {paths.map((path, i) => <label key={path} class="inline"><code>{path}</code><ValueBox label={`Partition key ${path}`} typed={key[i]!} onTyped={(text) => setKey(i, text)} /></label>)}
        </div>
        <div class="given-values" role="group" aria-label="Arguments"><strong>Arguments</strong>
          {parameters.map((text, i) => <span key={i} class="inline"><ValueBox label={`Argument ${i + 1}`} typed={text} onTyped={(next) => setParameters(parameters.map((old, j) => (j === i ? next : old)))} /><Button icon="close" look="quiet" label={`Remove argument ${i + 1}`} onClick={() => setParameters(parameters.filter((_, j) => j !== i))} /></span>)}
          <Button icon="add" look="quiet" onClick={() => setParameters([...parameters, ""])}>Argument</Button>
        </div>
      </div>
      <div class="toolbar">
        <Button icon="run" look="primary" disabled={busy} onClick={() => void run(false)} title="Nothing is written">Try</Button>
        {canWrite() && <Button disabled={busy} onClick={() => void run(true)}>Run and commit</Button>}
        <span class="summary" role="status">{busy ? "Running…" : answer ? `${units(answer.charge)} · ${answer.committed ? "committed" : "nothing was written"}` : ""}</span>
      </div>
      <Problem error={error} />
      {answer && <RunOutcome answer={answer} />}
    </section>
  );
}

function RunOutcome({ answer }: { answer: RunAnswer }) {
  return (
    <div class="run-outcome" tabIndex={0} role="group" aria-label="Outcome">
      {answer.error && <div class="problem" role="alert">{answer.error.message}{answer.error.stack && <pre>{answer.error.stack}</pre>}</div>}
      {!answer.error && <section aria-label="Result of the script"><h2 class="sub">Result</h2><pre>{write(answer.result, 2)}</pre></section>}
      {answer.console.length > 0 && <section aria-label="Console"><h2 class="sub">Console</h2><pre>{answer.console.join("\n")}</pre></section>}
      <section aria-label="Changes">
        <h2 class="sub">{answer.committed ? "Changes" : "Changes that a commit would make"} ({count(answer.changes.length + answer.changesLeftOut)})</h2>
        {answer.changesLeftOut > 0 && <p class="hint">The first {count(answer.changes.length)} are shown.</p>}
        {answer.changes.map((change, i) => (
          <details key={i} class="change"><summary><span class={`badge ${change.kind}`}>{change.kind}</span> <code>{change.id}</code></summary>
            <div class="columns">{change.before !== null && <div><h3>Before</h3><pre>{write(change.before, 2)}</pre></div>}{change.after !== null && <div><h3>After</h3><pre>{write(change.after, 2)}</pre></div>}</div>
          </details>
        ))}
      </section>
      {answer.calls.length > 0 && <Steps calls={answer.calls} leftOut={answer.callsLeftOut} />}
    </div>
  );
}

/** Every call to the collection, one at a time. */
function Steps({ calls, leftOut }: { calls: RunAnswer["calls"]; leftOut: number }) {
  const [place, setPlace] = useState(0);
  const current = calls[Math.min(place, calls.length - 1)]!;
  const go = (step: number) => setPlace(Math.max(0, Math.min(calls.length - 1, step)));
  const keys = (event: KeyboardEvent) => {
    if (event.key === "ArrowRight") go(place + 1);
    else if (event.key === "ArrowLeft") go(place - 1);
    else return;
    event.preventDefault();
  };
  return (
    <section aria-label="Steps" onKeyDown={keys}>
      <h2 class="sub">Calls to the collection</h2>
      <div class="row">
        <Button icon="back" label="Step back" disabled={place === 0} onClick={() => go(place - 1)} />
        <Button icon="chevron" label="Step forward" disabled={place >= calls.length - 1} onClick={() => go(place + 1)} />
        <input type="range" aria-label="Step" min={1} max={calls.length} value={place + 1} onInput={(event) => go(Number(event.currentTarget.value) - 1)} />
        <span role="status">Call {place + 1} of {calls.length}{leftOut > 0 ? ` (${count(leftOut)} more are left out)` : ""}: <code>{current.name}</code></span>
      </div>
      <div class="columns step">
        <div><h3>Arguments</h3><TreeNode key={`a${place}`} name="arguments" value={current.arguments} depth={0} /></div>
        <div><h3>{current.error ? "Error" : "Result"}</h3><TreeNode key={`r${place}`} name={current.error ? "error" : "result"} value={current.error ?? current.result} depth={0} /></div>
      </div>
    </section>
  );
}
