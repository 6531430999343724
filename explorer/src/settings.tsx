// The settings of a container: what is fixed is shown, what can change has an editor of its own and is saved by itself.
import { useRef, useState } from "preact/hooks";
import { ApiError, call, canWrite, readContainer, replaceContainer, scope, wire, type ContainerDefinition } from "./api.ts";
import { useDraft } from "./drafts.ts";
import { Editor, jsonProblems } from "./editor.tsx";
import { feedRows, format } from "./json.ts";
import type { PanelProps } from "./shell.tsx";
import { containerSummary, refreshOverview } from "./state.ts";
import { Figure } from "./statistics.tsx";
import { Button, Field, Problem, Waiting, count, size, tell, useLoaded } from "./ui.tsx";

interface Part {
  property: string;
  title: string;
  help: string;
  example: string;
}
const PARTS: Part[] = [
  { property: "indexingPolicy", title: "Indexing policy", help: "Which paths are indexed, and composite, spatial, vector and full-text indexes.", example: "" },
  { property: "computedProperties", title: "Computed properties", help: "Values that queries may use as if they were stored.", example: '[{"name":"lowerName","query":"SELECT VALUE LOWER(c.name) FROM c"}]' },
  { property: "fullTextPolicy", title: "Full-text policy", help: "The paths that hold text, and their language.", example: '{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/text","language":"en-US"}]}' },
  { property: "vectorEmbeddingPolicy", title: "Vector policy", help: "The paths that hold vectors, their dimensions and distance.", example: '{"vectorEmbeddings":[{"path":"/vector","dataType":"float32","dimensions":3,"distanceFunction":"cosine"}]}' },
  { property: "changeFeedPolicy", title: "Change feed policy", help: "How long all versions and deletes are kept, in minutes.", example: '{"retentionDuration":60}' },
];

export function Settings({ tab }: PanelProps) {
  const { database, container } = tab;
  const { value: loaded, error } = useLoaded(() => readContainer(database, container), [database, container]);
  const [saved, setSaved] = useState<ContainerDefinition | null>(null);
  const definition = saved ?? loaded;
  const latest = useRef(definition);
  latest.current = definition;
  const saving = useRef<Promise<unknown>>(Promise.resolve());
  const summary = containerSummary(database, container);
  // One after the other, each from what the one before has made of the container: nobody is in conflict with himself.
  const save = (change: Partial<ContainerDefinition>, without: string[] = []) => {
    const mine = saving.current.then(async () => {
      const next = { ...latest.current, ...change } as ContainerDefinition;
      for (const name of without) delete next[name];
      try {
        setSaved((latest.current = await replaceContainer(database, next)));
      } catch (e) {
        if (!(e instanceof ApiError && e.status === 412)) throw e;
        setSaved((latest.current = await readContainer(database, container)));
        throw new Error("Somebody else changed these settings meanwhile. They have been loaded again; save once more to have yours.");
      }
      tell("Saved.");
      void refreshOverview();
      return latest.current;
    });
    saving.current = mine.catch(() => undefined);
    return mine;
  };
  if (!definition) return error ? <Problem error={error} /> : <Waiting />;
  return (
    <div class="page settings">
      <h1>{container}</h1>
      <section class="figures" aria-label="Container">
        <Figure name="Items" value={summary ? count(summary.documents) : "…"} />
        <Figure name="Size" value={summary ? size(summary.bytes) : "…"} />
        <Figure name="Ranges" value={summary ? count(summary.ranges) : "…"} />
        <Figure name="Partition key" value={definition.partitionKey.paths.join(", ")} />
      </section>
      <p class="hint">The partition key ({definition.partitionKey.kind}, version {definition.partitionKey.version ?? 1}) and the unique keys are fixed when a container is made.
        {" "}Unique keys: {definition.uniqueKeyPolicy?.uniqueKeys?.length ? definition.uniqueKeyPolicy.uniqueKeys.map((key) => `(${key.paths.join(", ")})`).join(" ") : "none"}.</p>
      <Throughput tab={tab} definition={definition} />
      <TimeToLive tab={tab} definition={definition} onSave={save} />
      {PARTS.map((part) => <JsonPart key={part.property} tab={tab} part={part} definition={definition} onSave={save}>{part.property === "indexingPolicy" && <IndexCosts database={database} container={container} version={definition._etag} />}</JsonPart>)}
    </div>
  );
}

type Save = (change: Partial<ContainerDefinition>, without?: string[]) => Promise<ContainerDefinition>;
const textOf = (definition: ContainerDefinition, property: string) => (definition[property] === undefined ? "" : format(JSON.stringify(definition[property])));

function JsonPart({ tab, part, definition, onSave, children }: PanelProps & { part: Part; definition: ContainerDefinition; onSave: Save; children?: preact.ComponentChildren }) {
  const stored = textOf(definition, part.property);
  const { text, set: setText, drop, base } = useDraft(tab, part.property, `the ${part.title.toLowerCase()}`, stored);
  const latest = useRef(text);
  latest.current = text;
  const [error, setError] = useState("");
  const save = async () => {
    const problem = jsonProblems(text)[0];
    if (problem) return setError(`${problem.message} (at character ${problem.from + 1}).`);
    try {
      await (text.trim() ? onSave({ [part.property]: JSON.parse(text) as unknown }) : onSave({}, [part.property]));
      if (latest.current === text) drop();
      setError("");
    } catch (e) {
      setError((e as Error).message);
    }
  };
  return (
    <section class="setting" aria-label={part.title}>
      <h2>{part.title}</h2>
      <p class="hint">{part.help}</p>
      <div class={part.property === "indexingPolicy" ? "medium-editor" : "small-editor"}>
        <Editor value={text} language="json" label={part.title} onChange={setText} readOnly={!canWrite()} placeholder={part.example} />
      </div>
      <Problem error={error} />
      {base !== undefined && base !== stored && <p class="notice" role="status">The server has another version than the one you began with. Saving replaces it; discard your changes to see it.</p>}
      {canWrite() && <div class="row">
        <Button look="primary" disabled={text === stored} onClick={() => void save()}>Save {part.title.toLowerCase()}</Button>
        {base !== undefined && <Button onClick={() => { drop(); setError(""); }}>Discard</Button>}
        {!text && part.example && <Button onClick={() => setText(format(part.example))}>Begin with an example</Button>}
      </div>}
      {children}
    </section>
  );
}

interface Costs {
  documents: number;
  paths: { path: string; terms: number; bytes: number }[];
}
function IndexCosts({ database, container, version }: { database: string; container: string; version: string }) {
  const { value, error } = useLoaded(() => call<Costs>("GET", `index-costs?${scope(database, container)}`), [database, container, version]);
  if (error) return <Problem error={error} />;
  if (!value) return <p class="hint" role="status">Measuring what each path costs…</p>;
  const paths = [...value.paths].sort((a, b) => b.bytes - a.bytes);
  const most = Math.max(1, ...paths.map((p) => p.bytes));
  return (
    <>
      <h3>What each path costs when an item is written</h3>
      <p class="hint">Measured on {count(value.documents)} items. Excluding a path that no query filters or sorts by makes writes cheaper.</p>
      {paths.length > 0 && <div class="table-scroll" tabIndex={0} role="group" aria-label="What each path costs"><table class="costs">
        <thead><tr><th scope="col">Path</th><th scope="col" class="number">Index entries per item</th><th scope="col" class="number">Bytes per item</th><th scope="col"><span class="visually-hidden">Share</span></th></tr></thead>
        <tbody>{paths.slice(0, 60).map((p) => (
          <tr key={p.path}><td><code>{p.path}</code></td><td class="number">{(p.terms / Math.max(1, value.documents)).toFixed(1)}</td><td class="number">{(p.bytes / Math.max(1, value.documents)).toFixed(0)}</td>
            <td class="share"><span style={{ width: `${(p.bytes / most) * 100}%` }} /></td></tr>
        ))}</tbody>
      </table></div>}
    </>
  );
}

function TimeToLive({ tab, definition, onSave }: PanelProps & { definition: ContainerDefinition; onSave: Save }) {
  const stored = definition.defaultTtl;
  const kindNow = stored === undefined || stored === null ? "off" : stored === -1 ? "own" : "seconds";
  const { text, set, drop } = useDraft(tab, "timeToLive", "the time to live", `${kindNow} ${stored && stored > 0 ? stored : 86400}`);
  const [kind, seconds] = text.split(" ", 2) as [string, string];
  const [error, setError] = useState("");
  const save = async () => {
    try {
      await (kind === "off" ? onSave({}, ["defaultTtl"]) : onSave({ defaultTtl: kind === "own" ? -1 : Number(seconds) }));
      drop();
      setError("");
    } catch (e) {
      setError((e as Error).message);
    }
  };
  return (
    <section class="setting" aria-label="Time to live">
      <h2>Time to live</h2>
      <div class="row">
        <Field label="Items expire">
          <select value={kind} disabled={!canWrite()} onChange={(event) => set(`${event.currentTarget.value} ${seconds}`)}>
            <option value="off">never</option><option value="own">when an item says so itself</option><option value="seconds">after a time</option>
          </select>
        </Field>
        {kind === "seconds" && <Field label="Seconds"><input type="number" min={1} value={seconds} disabled={!canWrite()} onInput={(event) => set(`${kind} ${event.currentTarget.value}`)} /></Field>}
        {canWrite() && <Button look="primary" onClick={() => void save()}>Save time to live</Button>}
      </div>
      <Problem error={error} />
    </section>
  );
}

interface Offer {
  _rid: string;
  _etag: string;
  resource: string;
  content: { offerThroughput?: number; offerAutopilotSettings?: { maxThroughput: number } };
}
async function offerOf(link: string): Promise<Offer | null> {
  const answer = await wire("POST", "offers", {
    body: JSON.stringify({ query: "SELECT * FROM r WHERE r.resource = @link", parameters: [{ name: "@link", value: link }] }),
    headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "true" },
  });
  const row = feedRows(answer.text)[0];
  return row ? (JSON.parse(row) as Offer) : null;
}

function Throughput({ tab, definition }: PanelProps & { definition: ContainerDefinition }) {
  const { value: offer, error: loadError, reload } = useLoaded(() => offerOf(definition._self), [definition._self]);
  const [error, setError] = useState("");
  const automatic = offer?.content.offerAutopilotSettings;
  const { text, set, drop, base } = useDraft(tab, "throughput", "the throughput", `${automatic ? "auto" : "manual"} ${automatic?.maxThroughput ?? offer?.content.offerThroughput ?? 400}`);
  const current = { automatic: text.startsWith("auto "), amount: text.slice(text.indexOf(" ") + 1) };
  const save = async () => {
    const amount = Number(current.amount);
    const put = async (to: Offer, migration: string): Promise<Offer> => {
      const content = { ...to.content, ...(current.automatic ? { offerAutopilotSettings: { maxThroughput: amount } } : { offerThroughput: amount, offerAutopilotSettings: undefined }) };
      const headers = { "if-match": to._etag, ...(migration ? { [`x-ms-cosmos-migrate-offer-to-${migration}`]: "true" } : {}) };
      return JSON.parse((await wire("PUT", `offers/${to._rid}`, { body: JSON.stringify({ ...to, content }), headers })).text) as Offer;
    };
    try {
      const changed = await put(offer!, current.automatic === !!automatic ? "" : current.automatic ? "autopilot" : "manual-throughput");
      // A change of the kind chooses the amount itself.
      if (amount !== (current.automatic ? changed.content.offerAutopilotSettings?.maxThroughput : changed.content.offerThroughput)) await put(changed, "");
      setError("");
      drop();
      tell("Throughput saved.");
      reload();
      void refreshOverview();
    } catch (e) {
      setError((e as Error).message);
    }
  };
  return (
    <section class="setting" aria-label="Throughput">
      <h2>Throughput</h2>
      {offer === null ? <p class="hint">This container shares the throughput of its database.</p> : offer && (
        <div class="row">
          <Field label="Kind">
            <select value={current.automatic ? "auto" : "manual"} disabled={!canWrite()} onChange={(event) => set(`${event.currentTarget.value} ${event.currentTarget.value === "auto" ? "1000" : "400"}`)}>
              <option value="manual">Manual</option><option value="auto">Autoscale</option>
            </select>
          </Field>
          <Field label={current.automatic ? "Highest RU/s" : "RU/s"}><input type="number" step={current.automatic ? 1000 : 100} min={current.automatic ? 1000 : 400} value={current.amount} disabled={!canWrite()} onInput={(event) => set(`${current.automatic ? "auto" : "manual"} ${event.currentTarget.value}`)} /></Field>
          {canWrite() && <Button look="primary" disabled={base === undefined} onClick={() => void save()}>Save throughput</Button>}
        </div>
      )}
      <Problem error={loadError || error} />
    </section>
  );
}
