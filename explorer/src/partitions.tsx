// The key ranges of a container as a picture: as wide as their share of the key space, as high as what they hold, as warm
// as what was asked of them since the last look. Ranges can be split and merged, and the largest partition keys are listed.
import { useRef, useState } from "preact/hooks";
import { call, canWrite, scope, wire } from "./api.ts";
import type { PanelProps } from "./shell.tsx";
import { refreshOverview } from "./state.ts";
import { Button, Problem, Waiting, ask, count, size, tell, tellError, units, useLoaded, usePolling } from "./ui.tsx";

interface Range {
  id: string;
  minInclusive: string;
  maxExclusive: string;
  documents: number;
  bytes: number;
  requests: number;
  charge: number;
  throttled: number;
}
interface RangesAnswer {
  ranges: Range[];
  /** Whether a split or a merge is under way, and how far it is. */
  pending: boolean;
  progressPercent: number;
}
interface Warm extends Range {
  /** Request units per second since the last look. */
  rate: number;
  share: number;
}

const INTERVAL = 2000;
const PICTURE = { widthMax: 1000, height: 220, least: 26 };
/** A bound as a share of the key space; it is hex, `FF` is the end. */
const position = (bound: string) => (bound === "" ? 0 : Math.min(1, parseInt(bound.slice(0, 8).padEnd(8, "0"), 16) / 0xffffffff));

function warm(ranges: Range[], before: { ranges: Range[]; time: number } | null, time: number): Warm[] {
  // The last key of the newer hash begins with 3F: what is beyond is never used, and the picture ends there.
  const end = ranges.every((r) => position(r.minInclusive) < 0.25) ? 0.25 : 1;
  return ranges.map((range) => {
    const old = before?.ranges.find((r) => r.id === range.id);
    const seconds = before ? (time - before.time) / 1000 : 0;
    const share = (Math.min(end, position(range.maxExclusive)) - position(range.minInclusive)) / end;
    return { ...range, rate: old && seconds ? Math.max(0, range.charge - old.charge) / seconds : 0, share: Math.max(share, 0) };
  });
}

export function Partitions({ tab }: PanelProps) {
  const [ranges, setRanges] = useState<Warm[] | null>(null);
  const [error, setError] = useState("");
  const [pending, setPending] = useState<number | null>(null);
  const before = useRef<{ ranges: Range[]; time: number } | null>(null);
  usePolling(async (wanted) => {
    try {
      const answer = await call<RangesAnswer>("GET", `ranges?${scope(tab.database, tab.container)}`);
      if (!wanted()) return;
      const time = performance.now();
      setRanges(warm(answer.ranges, before.current, time));
      before.current = { ranges: answer.ranges, time };
      setPending(answer.pending ? answer.progressPercent : null);
      setError("");
    } catch (e) {
      setError((e as Error).message);
    }
  }, INTERVAL, [tab.database, tab.container]);
  const change = async (name: "split" | "merge", which: object, title: string, text: string) => {
    if (!(await ask(title, text, name === "split" ? "Split" : "Merge", false))) return;
    try {
      const answer = await wire("POST", `_admin/${name}`, { body: JSON.stringify({ database: tab.database, container: tab.container, ...which }) });
      const { pending: isPending, progressPercent } = JSON.parse(answer.text) as RangesAnswer;
      setPending(isPending ? progressPercent : null);
      tell(isPending ? "It is under way; requests are answered as ever." : "Done.");
      void refreshOverview();
    } catch (e) {
      tellError(e);
    }
  };
  return (
    <div class="page">
      <h1>Partitions of {tab.container}</h1>
      <p class="hint">Each block is a key range: its width is its share of the key space, its height what it holds, its warmth the request units per second of the last seconds.</p>
      <Problem error={error} />
      {!ranges && !error && <Waiting />}
      {ranges && <Picture ranges={ranges} />}
      {pending !== null && <p class="notice" role="status">A split or a merge is under way: {pending} %.</p>}
      {ranges && <Figures ranges={ranges} isBusy={pending !== null}
        onSplit={(range) => void change("split", { range: range.id }, `Split range ${range.id}?`, `Range ${range.id} holds ${count(range.documents)} items (${size(range.bytes)}). They are copied into two new ranges while requests are answered; then these take its place. Items of one partition key stay together.`)}
        onMerge={(low, high) => void change("merge", { ranges: [low.id, high.id] }, `Merge ranges ${low.id} and ${high.id}?`, `They hold ${count(low.documents + high.documents)} items (${size(low.bytes + high.bytes)}), which are copied into one new range while requests are answered; then that takes their place.`)} />}
      <LargestKeys database={tab.database} container={tab.container} />
    </div>
  );
}

function Picture({ ranges }: { ranges: Warm[] }) {
  const biggest = Math.max(1, ...ranges.map((r) => r.bytes));
  const hottest = Math.max(1, ...ranges.map((r) => r.rate));
  // As wide as a small screen, so that the names keep their size there.
  const whole = Math.min(PICTURE.widthMax, innerWidth - 32);
  let x = 0;
  return (
    <svg class="ranges" viewBox={`0 0 ${whole} ${PICTURE.height}`} role="img" aria-label={`${ranges.length} key ranges: ${ranges.map((r) => `range ${r.id}, ${count(r.documents)} items, ${size(r.bytes)}, ${r.rate.toFixed(1)} request units per second`).join("; ")}`}>
      {ranges.map((range) => {
        const width = range.share * whole;
        const height = PICTURE.least + (range.bytes / biggest) * (PICTURE.height - PICTURE.least - 4);
        const left = x;
        x += width;
        return (
          <g key={range.id} transform={`translate(${left} ${PICTURE.height - height})`}>
            <title>{`Range ${range.id}: ${count(range.documents)} items, ${size(range.bytes)}, ${units(range.rate)} per second`}</title>
            <rect class="range-ground" x="1" width={Math.max(1, width - 2)} height={height} rx="6" />
            <rect class="range-heat" x="1" width={Math.max(1, width - 2)} height={height} rx="6" opacity={range.rate / hottest} />
            {width > 30 && <text x="12" y="18">{range.id}</text>}
          </g>
        );
      })}
    </svg>
  );
}

function Figures({ ranges, isBusy, onSplit, onMerge }: { ranges: Warm[]; isBusy: boolean; onSplit: (range: Warm) => void; onMerge: (low: Warm, high: Warm) => void }) {
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Figures of the ranges">
      <table>
        <thead><tr><th scope="col">Range</th><th scope="col">From</th><th scope="col">To</th><th scope="col" class="number">Items</th><th scope="col" class="number">Size</th><th scope="col" class="number">Requests</th><th scope="col" class="number">Charge</th><th scope="col" class="number">Throttled</th><th scope="col" class="number">RU/s now</th>{canWrite() && <th scope="col">Change</th>}</tr></thead>
        <tbody>{ranges.map((r, at) => (
          <tr key={r.id}><th scope="row">{r.id}</th><td><Bound bound={r.minInclusive} /></td><td><Bound bound={r.maxExclusive} /></td><td class="number">{count(r.documents)}</td><td class="number">{size(r.bytes)}</td><td class="number">{count(r.requests)}</td><td class="number">{units(r.charge)}</td><td class="number">{count(r.throttled)}</td><td class="number">{r.rate.toFixed(1)}</td>
            {canWrite() && <td><div class="row range-actions">
              <Button disabled={isBusy} aria-label={`Split range ${r.id}`} onClick={() => onSplit(r)}>Split</Button>
              {ranges[at + 1] && <Button disabled={isBusy} aria-label={`Merge ranges ${r.id} and ${ranges[at + 1]!.id}`} onClick={() => onMerge(r, ranges[at + 1]!)}>Merge with next</Button>}
            </div></td>}</tr>
        ))}</tbody>
      </table>
    </div>
  );
}

const BOUND_LENGTH_MAX = 10;
/** The first digits say where it is; all of them stand in the title. */
function Bound({ bound }: { bound: string }) {
  return <code title={bound}>{bound.length > BOUND_LENGTH_MAX ? `${bound.slice(0, BOUND_LENGTH_MAX - 2)}…` : bound || "–"}</code>;
}

interface KeysAnswer {
  sampled: number;
  documents: number;
  partial: boolean;
  keys: { key: unknown[]; range: string; sampled: number; documents: number; bytes: number }[];
}

function LargestKeys({ database, container }: { database: string; container: string }) {
  const { value, error, reload } = useLoaded(() => call<KeysAnswer>("GET", `partition-keys?${scope(database, container)}`), [database, container]);
  const isWhole = value && value.sampled >= value.documents;
  return (
    <section aria-label="Largest partition keys">
      <div class="row"><h2>Largest partition keys</h2><span class="space" /><Button icon="refresh" onClick={reload}>Look again</Button></div>
      <Problem error={error} />
      {!value && !error && <Waiting />}
      {value && value.keys.length === 0 && <p class="hint">There are no items.</p>}
      {value && value.keys.length > 0 && <>
        <p class="hint">{isWhole ? `All ${count(value.sampled)} items were counted.` : `Estimated from ${count(value.sampled)} of ${count(value.documents)} items, from places spread over the order in which they were added.`}{value.partial ? " Only the first ranges were looked at." : ""} All items of one key are in one range, however large that gets.</p>
        <div class="table-scroll" tabIndex={0} role="group" aria-label="Largest keys">
          <table>
            <thead><tr><th scope="col">Partition key</th><th scope="col">Range</th><th scope="col" class="number">Items</th><th scope="col" class="number">Size</th><th scope="col" class="number">Share of the items</th></tr></thead>
            <tbody>{value.keys.map((key) => (
              <tr key={JSON.stringify(key.key)}><th scope="row"><code>{keyText(key.key)}</code></th><td>{key.range}</td><td class="number">{isWhole ? "" : "≈ "}{count(key.documents)}</td><td class="number">{isWhole ? "" : "≈ "}{size(key.bytes)}</td><td class="number">{Math.round((100 * key.documents) / Math.max(1, value.documents))} %</td></tr>
            ))}</tbody>
          </table>
        </div>
      </>}
    </section>
  );
}

/** A level without a value is an empty object on the wire. */
const keyText = (key: unknown[]) => key.map((level) => (typeof level === "object" && level !== null ? "(no value)" : JSON.stringify(level))).join(", ");
