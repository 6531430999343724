// The key ranges of a container as a picture: as wide as their share of the key space, as high as what they hold, as warm
// as what was asked of them since the last look.
import { useRef, useState } from "preact/hooks";
import { call, scope } from "./api.ts";
import type { PanelProps } from "./shell.tsx";
import { Problem, Waiting, count, size, units, usePolling } from "./ui.tsx";

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
  const before = useRef<{ ranges: Range[]; time: number } | null>(null);
  usePolling(async (wanted) => {
    try {
      const answer = await call<{ ranges: Range[] }>("GET", `ranges?${scope(tab.database, tab.container)}`);
      if (!wanted()) return;
      const time = performance.now();
      setRanges(warm(answer.ranges, before.current, time));
      before.current = { ranges: answer.ranges, time };
      setError("");
    } catch (e) {
      setError((e as Error).message);
    }
  }, INTERVAL, [tab.database, tab.container]);
  return (
    <div class="page">
      <h1>Partitions of {tab.container}</h1>
      <p class="hint">Each block is a key range: its width is its share of the key space, its height what it holds, its warmth the request units per second of the last seconds.</p>
      <Problem error={error} />
      {!ranges && !error && <Waiting />}
      {ranges && <Picture ranges={ranges} />}
      {ranges && <Figures ranges={ranges} />}
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

function Figures({ ranges }: { ranges: Warm[] }) {
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Figures of the ranges">
      <table>
        <thead><tr><th scope="col">Range</th><th scope="col">From</th><th scope="col">To</th><th scope="col" class="number">Items</th><th scope="col" class="number">Size</th><th scope="col" class="number">Requests</th><th scope="col" class="number">Charge</th><th scope="col" class="number">Throttled</th><th scope="col" class="number">RU/s now</th></tr></thead>
        <tbody>{ranges.map((r) => (
          <tr key={r.id}><th scope="row">{r.id}</th><td><code>{r.minInclusive || "–"}</code></td><td><code>{r.maxExclusive}</code></td><td class="number">{count(r.documents)}</td><td class="number">{size(r.bytes)}</td><td class="number">{count(r.requests)}</td><td class="number">{units(r.charge)}</td><td class="number">{count(r.throttled)}</td><td class="number">{r.rate.toFixed(1)}</td></tr>
        ))}</tbody>
      </table>
    </div>
  );
}
