// The change feed as it happens: every range is asked in turn for what came after the last answer.
import { useRef, useState } from "preact/hooks";
import { documentsPath, list, containerPath, readContainer, wire } from "./api.ts";
import { Editor } from "./editor.tsx";
import { at, feedRows, format, parse, show, type Value } from "./json.ts";
import type { PanelProps } from "./shell.tsx";
import { Button, Choices, Empty, Problem, Split, Waiting, count, useLoaded, usePolling } from "./ui.tsx";

interface Entry {
  key: number;
  range: string;
  text: string;
  value: Value;
  operation: string;
  time: number;
}
type Start = "now" | "beginning";
const INTERVAL = 1000;
const ENTRIES_MAX = 1000;

/** In the feed of all versions an entry says what happened; in the other it is the item itself. */
function entryOf(text: string, range: string, key: number): Entry {
  const value = parse(text);
  const operation = at(value, ["metadata", "operationType"]);
  const seconds = Number(at(value, ["metadata", "crts"]) ?? at(value, ["_ts"]));
  return { key, range, text, value, operation: operation === undefined ? "write" : String(operation), time: seconds ? seconds * 1000 : Date.now() };
}
const idOf = (value: Value) => show(at(value, ["current", "id"]) ?? at(value, ["metadata", "id"]) ?? at(value, ["previous", "id"]) ?? at(value, ["id"]));

export function ChangeFeed({ tab }: PanelProps) {
  const { database, container } = tab;
  const { value: definition, error: definitionError } = useLoaded(() => readContainer(database, container), [database, container]);
  const [start, setStart] = useState<Start>("now");
  const [paused, setPaused] = useState(false);
  /** None until the first answer, which says where now is. */
  const [entries, setEntries] = useState<Entry[] | null>(null);
  const [selected, setSelected] = useState<Entry | null>(null);
  const [error, setError] = useState("");
  /** All that came, also what the list no longer holds. */
  const [seen, setSeen] = useState(0);
  const positions = useRef(new Map<string, string>());
  const key = useRef(0);
  const allVersions = (definition?.changeFeedPolicy?.retentionDuration ?? 0) > 0 && start === "now";

  const ask = async (range: string, places: Map<string, string>): Promise<Entry[]> => {
    const headers: Record<string, string> = { "a-im": allVersions ? "Full-Fidelity Feed" : "Incremental feed", "x-ms-documentdb-partitionkeyrangeid": range, "x-ms-max-item-count": "100" };
    if (allVersions) headers["x-ms-cosmos-changefeed-wire-format-version"] = "2021-09-15";
    const position = places.get(range) ?? (start === "now" ? "*" : "");
    if (position) headers["if-none-match"] = position;
    const answer = await wire("GET", documentsPath(database, container), { headers });
    const etag = answer.headers.get("etag");
    if (etag) places.set(range, etag);
    return answer.status === 304 ? [] : feedRows(answer.text).map((row) => entryOf(row, range, ++key.current));
  };
  usePolling(async (wanted) => {
    if (paused || !definition) return;
    // Whoever begins anew gets a new map: what was asked for before goes on in the old one, and is not shown.
    const places = positions.current;
    const current = () => wanted() && places === positions.current;
    try {
      const ranges = await list<{ id: string }>(`${containerPath(database, container)}/pkranges`);
      const found = (await Promise.all(ranges.map(({ id }) => ask(id, places)))).flat();
      // A pause only stops the asking: what came is shown, since its place in the feed is passed.
      if (places !== positions.current) return;
      setSeen((old) => old + found.length);
      setEntries((old) => (found.length || !old ? [...found.reverse().sort((a, b) => b.time - a.time), ...(old ?? [])].slice(0, ENTRIES_MAX) : old));
      setError("");
    } catch (e) {
      if (current()) setError((e as Error).message);
    }
  }, INTERVAL, [database, container, start, paused, !!definition]);
  const restart = (next: Start) => { positions.current = new Map(); setEntries(null); setSeen(0); setSelected(null); setStart(next); };

  const left = (
    <div class="feed">
      <div class="toolbar">
        <Choices label="Begin" options={[["now", "From now"], ["beginning", "From the beginning"]]} value={start} onChange={restart} />
        <Button icon={paused ? "run" : "stop"} onClick={() => setPaused(!paused)}>{paused ? "Go on" : "Pause"}</Button>
        <Button onClick={() => { setEntries((old) => old && []); setSelected(null); setSeen(0); }}>Clear</Button>
        <span class="space" />
        <span class={paused ? "live" : "live on"} role="status">{paused ? "Paused" : "Live"} · {count(seen)} changes{allVersions ? ", all versions" : ""}</span>
      </div>
      <Problem error={definitionError || error} />
      {seen > ENTRIES_MAX && <p class="notice" role="status">The list holds the last {count(ENTRIES_MAX)} changes; {count(seen - (entries?.length ?? 0))} older ones have left it. The feed goes on and is counted.</p>}
      {!entries ? (!error && !definitionError && !paused && <Waiting>Looking where the feed is…</Waiting>) : entries.length === 0 ? <Empty>Waiting for changes.{start === "now" ? " Write an item in another tab or program." : ""}</Empty> : (
        <ol class="entries" aria-label="Changes, newest first">
          {entries.map((entry) => (
            <li key={entry.key}>
              <button type="button" aria-pressed={selected === entry} onClick={() => setSelected(entry)}>
                <time>{new Date(entry.time).toLocaleTimeString()}</time><span class={`badge ${entry.operation}`}>{entry.operation}</span><code>{idOf(entry.value)}</code><span class="muted">range {entry.range}</span>
              </button>
            </li>
          ))}
        </ol>
      )}
    </div>
  );
  return <Split name="list" direction={innerWidth < 900 ? "column" : "row"} first={left} second={selected ? <Editor value={format(selected.text)} language="json" label="Change as JSON" readOnly /> : null} />;
}
