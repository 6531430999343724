// A chart of numeric columns over one other column, drawn by uPlot on a canvas; the same figures are in the table view.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Column } from "./grid.tsx";
import { RawNumber, show, typeOf } from "./json.ts";
import { theme } from "./state.ts";
import { Choices, Empty } from "./ui.tsx";

type Kind = "bars" | "lines" | "points";
const KINDS: readonly (readonly [Kind, string])[] = [["bars", "Bars"], ["lines", "Lines"], ["points", "Points"]];
const POINTS_MAX = 5000;

const numberOf = (value: unknown) => (typeof value === "number" ? value : value instanceof RawNumber ? Number(value.raw) : null);

export function Chart({ rows, columns }: { rows: number; columns: Column[] }) {
  const length = Math.min(rows, POINTS_MAX);
  const numeric = useMemo(() => columns.filter((c) => { for (let i = 0; i < Math.min(length, 50); i++) if (typeOf(c.value(i)) === "number") return true; return false; }), [columns]);
  const own = numeric.filter((c) => !c.key.startsWith("_"));
  const [x, setX] = useState(columns.find((c) => !numeric.includes(c))?.key ?? "");
  const [y, setY] = useState((own[0] ?? numeric[0])?.key ?? "");
  const [kind, setKind] = useState<Kind>("bars");
  const across = columns.find((c) => c.key === x);
  const up = numeric.find((c) => c.key === y);
  if (!up) return <Empty>Nothing to draw: no column of these rows is a number.</Empty>;
  return (
    <div class="chart">
      <div class="toolbar">
        <Choices label="Kind of chart" options={KINDS} value={kind} onChange={setKind} />
        <label class="inline">Across <select value={x} onChange={(event) => setX(event.currentTarget.value)}><option value="">row number</option>{columns.map((c) => <option key={c.key} value={c.key}>{c.name}</option>)}</select></label>
        <label class="inline">Up <select value={y} onChange={(event) => setY(event.currentTarget.value)}>{numeric.map((c) => <option key={c.key} value={c.key}>{c.name}</option>)}</select></label>
      </div>
      <Plot key={theme.value} length={length} across={across} up={up} kind={kind} />
      {rows > length && <p class="hint">The first {POINTS_MAX} rows are drawn.</p>}
    </div>
  );
}

/** Numbers across are a scale; anything else is a list of names at equal distances. */
function dataOf(length: number, across: Column | undefined, up: Column) {
  const values = Array.from({ length }, (_, i) => numberOf(up.value(i)));
  const xs = across && Array.from({ length }, (_, i) => numberOf(across.value(i)));
  if (xs?.every((v) => v !== null)) {
    const order = xs.map((_, i) => i).sort((a, b) => xs[a]! - xs[b]!);
    return { xs: order.map((i) => xs[i]!), ys: order.map((i) => values[i]!), names: null };
  }
  return { xs: values.map((_, i) => i), ys: values, names: across ? Array.from({ length }, (_, i) => show(across.value(i))) : null };
}

function Plot({ length, across, up, kind }: { length: number; across: Column | undefined; up: Column; kind: Kind }) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const box = element.current!;
    const colour = (name: string) => getComputedStyle(box).getPropertyValue(name).trim();
    const { xs, ys, names } = dataOf(length, across, up);
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--border"), width: 1 }, ticks: { stroke: colour("--border"), width: 1 } };
    const nameOf = (value: number) => (Number.isInteger(value) ? (names?.[value] ?? "").slice(0, 14) : "");
    const plot = new uPlot({
      width: box.clientWidth, height: Math.max(180, box.clientHeight - 56),
      scales: { x: { time: false, range: (_u, low, high) => (kind === "bars" || low === high ? [low - 0.6, high + 0.6] : [low, high]) }, y: { range: (_u, low, high) => [Math.min(0, low), high === low ? high + 1 : high + (high - Math.min(0, low)) * 0.06] } },
      series: [{ label: across?.name ?? "row", ...(names ? { value: (_u: uPlot, v: number | null) => (v === null ? "" : (names[v] ?? "")) } : {}) }, {
        label: up.name, stroke: colour("--accent"), width: 2,
        fill: kind === "bars" ? colour("--accent-faint") : undefined,
        points: { show: kind === "points", size: 7, fill: colour("--accent") },
        ...(kind === "bars" ? { paths: uPlot.paths.bars!({ size: [0.7, 60] }) } : kind === "points" ? { paths: () => null } : {}),
      } as uPlot.Series],
      axes: [{ ...axis, ...(names ? { values: (_u: uPlot, splits: number[]) => splits.map(nameOf), space: 90 } : {}) }, axis],
    }, [xs, ys] as uPlot.AlignedData, box);
    const watch = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: Math.max(180, box.clientHeight - 56) }));
    watch.observe(box);
    return () => { watch.disconnect(); plot.destroy(); };
  }, [length, across, up, kind]);
  return <div class="plot" ref={element} role="img" aria-label={`Chart of ${up.name}${across ? ` over ${across.name}` : ""}, ${length} points`} />;
}
