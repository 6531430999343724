// A plan as a picture: one box per step, in the order in which rows pass them, the thicker a line the more rows.
//
// The boxes fill lines of the width that there is, as words do, so that no plan is wider than the window. Zooming changes how many fit
// into a line. `Fit` takes the largest size at which the whole plan is in view, down to one that can still be read.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button, Choices, count, units } from "./ui.tsx";

export interface PlanNode {
  operator: string;
  detail?: string | null;
  estimatedRows?: number | null;
  actualRows?: number | null;
  entries?: number | null;
  documents?: number | null;
  microseconds?: number | null;
  children?: PlanNode[];
}
export interface PlanAnswer {
  plan: PlanNode;
  run?: { rows: number; pages: number; charge: number; complete: boolean } | null;
  text?: string;
}

const BOX = { width: 280, gapX: 44, gapY: 30, lineLength: 38, linesMax: 8, lineHeight: 14, top: 42, bottom: 28 };
/** Sizes that zooming goes through; `Fit` stays where the text can be read, the small ones are for the shape alone. */
const ZOOMS = [2, 1.6, 1.3, 1, 0.85, 0.7, 0.6, 0.45, 0.35];
const FIT = { max: 1, min: 0.85 };

interface Step {
  node: PlanNode;
  lines: string[];
  x: number;
  y: number;
  height: number;
}

/** The steps in the order in which they work: each on the rows of those before it. */
const stepsOf = (node: PlanNode): PlanNode[] => [...(node.children ?? []).flatMap(stepsOf), node];

/** Lines of a text, cut at spaces where there are some. What is too long even so ends in an ellipsis; the whole is in the title. */
export function wrapped(text: string): string[] {
  const lines: string[] = [];
  for (let rest = text.trim(); rest; ) {
    if (lines.length === BOX.linesMax) {
      lines.push(`${lines.pop()!.slice(0, BOX.lineLength - 1)}…`);
      break;
    }
    const space = rest.lastIndexOf(" ", BOX.lineLength);
    const cut = rest.length <= BOX.lineLength ? rest.length : space > BOX.lineLength / 3 ? space : BOX.lineLength;
    lines.push(rest.slice(0, cut));
    rest = rest.slice(cut).trimStart();
  }
  return lines;
}

/** The boxes in lines of a width; each line is as high as its highest box. */
function placed(nodes: PlanNode[], width: number): { steps: Step[]; width: number; height: number } {
  const perLine = Math.max(1, Math.floor((width + BOX.gapX) / (BOX.width + BOX.gapX)));
  const steps = nodes.map((node, at): Step => {
    const lines = wrapped(node.detail ?? "");
    return { node, lines, x: (at % perLine) * (BOX.width + BOX.gapX), y: 0, height: BOX.top + Math.max(1, lines.length) * BOX.lineHeight + BOX.bottom };
  });
  let y = 0;
  for (let start = 0; start < steps.length; start += perLine) {
    const line = steps.slice(start, start + perLine);
    const height = Math.max(...line.map((step) => step.height));
    for (const step of line) Object.assign(step, { y, height });
    y += height + BOX.gapY;
  }
  const columns = Math.min(perLine, steps.length);
  return { steps, width: columns * (BOX.width + BOX.gapX) - BOX.gapX, height: y - BOX.gapY };
}

const rowsOf = (node: PlanNode) => node.actualRows ?? node.estimatedRows ?? 0;
const thickness = (rows: number) => Math.min(14, 1.5 + Math.log10(rows + 1) * 2.2);

/** What a step did besides passing rows on. */
function workOf(node: PlanNode): string {
  const parts = [node.entries ? `${count(node.entries)} index entries` : "", node.documents ? `${count(node.documents)} documents read` : "", node.microseconds ? `${(node.microseconds / 1000).toFixed(2)} ms` : ""];
  return parts.filter(Boolean).map((part) => `, ${part}`).join("");
}
const rows = (n: number) => `${count(n)} ${n === 1 ? "row" : "rows"}`;
const cameOf = (node: PlanNode, silent: boolean) => (node.actualRows == null ? "" : silent ? "from the index alone" : rows(node.actualRows));
const sentence = (node: PlanNode, silent: boolean): string =>
  `${node.operator}${node.detail ? `: ${node.detail}` : ""}${node.estimatedRows == null ? "" : `, about ${count(Math.round(node.estimatedRows))} rows expected`}${node.actualRows == null ? "" : silent ? ", answered from the index alone" : `, ${count(node.actualRows)} rows came`}${workOf(node)}`;

/** Steps that no rows passed because the index alone had the answer: no document was read, and yet something came of it. */
export function silentSteps(steps: PlanNode[]): Set<PlanNode> {
  const hasAnswer = (steps.at(-1)?.actualRows ?? 0) > 0 && !steps.some((step) => step.documents);
  return new Set(hasAnswer ? steps.filter((step) => step.actualRows === 0) : []);
}

/** Steps that gave ten times as many rows as expected, or a tenth: what a reader looks for. */
export function surprises(steps: PlanNode[], isWhole: boolean): Set<PlanNode> {
  const silent = silentSteps(steps);
  const found = steps.filter((step, at) => {
    const [estimated, actual] = [step.estimatedRows, step.actualRows];
    if (estimated == null || actual == null || silent.has(step)) return false;
    // Whatever a limit cut short gave fewer rows than it would have.
    const isCut = !isWhole || steps.slice(at + 1).some((later) => later.operator === "limit");
    return actual > 10 * Math.max(estimated, 1) || (!isCut && estimated > 10 * Math.max(actual, 1));
  });
  return new Set(found);
}

export function Plan({ answer }: { answer: PlanAnswer }) {
  const [view, setView] = useState<"picture" | "text">("picture");
  const [chosen, setChosen] = useState<number | null>(null);
  const [room, setRoom] = useState<{ width: number; height: number } | null>(null);
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => setRoom({ width: entry!.contentRect.width, height: entry!.contentRect.height }));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [view]);
  const nodes = stepsOf(answer.plan);
  const at = (size: number) => placed(nodes, (room?.width ?? 0) / size - 4);
  const fits = (size: number) => (at(size).height + 4) * size <= (room?.height ?? 0);
  const usable = ZOOMS.filter((size) => size <= FIT.max && size >= FIT.min);
  const zoom = chosen ?? usable.find(fits) ?? FIT.min;
  const next = (step: number) => ZOOMS[ZOOMS.indexOf(zoom) + step];
  return (
    <div class="plan">
      <div class="row plan-head">
        {answer.text && <Choices label="Show the plan as" options={[["picture", "Picture"], ["text", "Text"]] as const} value={view} onChange={setView} />}
        {view === "picture" && <div class="row" role="group" aria-label="Size of the picture">
          <Button icon="minus" label="Smaller" disabled={next(1) === undefined} onClick={() => setChosen(next(1)!)} />
          <Button icon="add" label="Larger" disabled={next(-1) === undefined} onClick={() => setChosen(next(-1)!)} />
          <Button disabled={chosen === null} onClick={() => setChosen(null)}>Fit</Button>
        </div>}
        {answer.run && <span class="hint">{rows(answer.run.rows)} for {units(answer.run.charge)}{answer.run.complete ? "" : "; it was stopped before its end"}</span>}
      </div>
      {view === "text" ? <pre class="plan-scroll" tabIndex={0} aria-label="Plan as text">{answer.text}</pre> : (
        <div class="plan-scroll" tabIndex={0} role="group" aria-label="Plan" ref={element}>
          {room && <Picture nodes={nodes} isWhole={answer.run?.complete ?? true} zoom={zoom} {...at(zoom)} />}
        </div>
      )}
    </div>
  );
}

function Picture({ nodes, steps, isWhole, width, height, zoom }: { nodes: PlanNode[]; steps: Step[]; isWhole: boolean; width: number; height: number; zoom: number }) {
  const [silent, off] = [silentSteps(nodes), surprises(nodes, isWhole)];
  return (
    <svg width={(width + 4) * zoom} height={(height + 4) * zoom} viewBox={`-2 -2 ${width + 4} ${height + 4}`} role="img" aria-label={`Plan of ${nodes.length} steps: ${nodes.map((node) => sentence(node, silent.has(node))).join("; ")}`}>
      {steps.slice(1).map((step, at) => <path key={at} class="plan-line" stroke-width={thickness(rowsOf(steps[at]!.node))} d={line(steps[at]!, step)} />)}
      {steps.map((step, at) => <Box key={at} step={step} silent={silent.has(step.node)} off={off.has(step.node)} />)}
    </svg>
  );
}

/** To the next box in the line, or down and back to the beginning of the next line. */
function line(from: Step, to: Step): string {
  const right = from.x + BOX.width;
  if (to.y === from.y) return `M${right} ${from.y + from.height / 2}H${to.x}`;
  const between = from.y + from.height + BOX.gapY / 2;
  return `M${from.x + BOX.width / 2} ${from.y + from.height}V${between}H${to.x + BOX.width / 2}V${to.y}`;
}

function Box({ step: { node, lines, x, y, height }, silent, off }: { step: Step; silent: boolean; off: boolean }) {
  const [estimated, actual] = [node.estimatedRows, node.actualRows];
  const figures = [estimated == null ? "" : `≈ ${count(Math.round(estimated))} expected`, actual == null ? "" : cameOf(node, silent)];
  return (
    <g transform={`translate(${x} ${y})`} class={off ? "plan-box off" : "plan-box"}>
      <title>{sentence(node, silent)}</title>
      <rect width={BOX.width} height={height} rx="10" />
      <text x="14" y="24" class="plan-operator">{node.operator}</text>
      {node.microseconds ? <text x={BOX.width - 14} y="24" text-anchor="end" class="plan-detail">{(node.microseconds / 1000).toFixed(2)} ms</text> : null}
      {lines.map((text, at) => <text key={at} x="14" y={BOX.top + at * BOX.lineHeight} class="plan-detail">{text}</text>)}
      <text x="14" y={height - 10} class="plan-rows">{figures.filter(Boolean).join(" · ")}</text>
    </g>
  );
}
