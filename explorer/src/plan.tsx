// A plan as a picture: one box per step, rows flow from left to right, the thicker a line the more rows.
import { useState } from "preact/hooks";
import { Button, count, units } from "./ui.tsx";

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

const BOX = { width: 280, height: 92, gapX: 44, gapY: 24, lineLength: 37, linesMax: 2 };

interface Placed {
  node: PlanNode;
  x: number;
  y: number;
  parent: Placed | null;
}

const depthOf = (node: PlanNode): number => 1 + Math.max(0, ...(node.children ?? []).map(depthOf));

/** Leaves below each other at the left, a parent at the right of the middle of its children. */
function place(node: PlanNode, column: number, parent: Placed | null, all: Placed[], next: { y: number }): Placed {
  const placed: Placed = { node, x: column * (BOX.width + BOX.gapX), y: 0, parent };
  all.push(placed);
  const children = (node.children ?? []).map((child) => place(child, column - 1, placed, all, next));
  if (children.length) placed.y = (children[0]!.y + children.at(-1)!.y) / 2;
  else {
    placed.y = next.y;
    next.y += BOX.height + BOX.gapY;
  }
  return placed;
}

const rowsOf = (node: PlanNode) => node.actualRows ?? node.estimatedRows ?? 0;
const thickness = (rows: number) => Math.min(14, 1.5 + Math.log10(rows + 1) * 2.2);

function wrap(text: string): string[] {
  const lines: string[] = [];
  for (let rest = text; rest && lines.length < BOX.linesMax; ) {
    const cut = rest.length > BOX.lineLength ? Math.max(rest.lastIndexOf(" ", BOX.lineLength), 20) : rest.length;
    lines.push(rest.slice(0, cut));
    rest = rest.slice(cut).trimStart();
    if (rest && lines.length === BOX.linesMax) lines[lines.length - 1] += "…";
  }
  return lines;
}

/** What a step did besides passing rows on. */
function workOf(node: PlanNode): string {
  const parts = [node.entries ? `${count(node.entries)} index entries` : "", node.documents ? `${count(node.documents)} documents read` : "", node.microseconds ? `${(node.microseconds / 1000).toFixed(2)} ms` : ""];
  return parts.filter(Boolean).map((part) => `, ${part}`).join("");
}
const sentence = (node: PlanNode): string =>
  `${node.operator}${node.detail ? `: ${node.detail}` : ""}${node.estimatedRows == null ? "" : `, about ${count(Math.round(node.estimatedRows))} rows expected`}${node.actualRows == null ? "" : `, ${count(node.actualRows)} rows came`}${workOf(node)}`;

export function Plan({ answer }: { answer: PlanAnswer }) {
  const [asText, setAsText] = useState(false);
  const all: Placed[] = [];
  place(answer.plan, depthOf(answer.plan) - 1, null, all, { y: 0 });
  const width = Math.max(...all.map((p) => p.x)) + BOX.width + 4;
  const height = Math.max(...all.map((p) => p.y)) + BOX.height + 4;
  return (
    <div class="plan">
      {answer.run && <p class="hint">{count(answer.run.rows)} rows for {units(answer.run.charge)}{answer.run.complete ? "" : "; it was stopped before its end"}.</p>}
      {answer.text && <Button class="plan-switch" onClick={() => setAsText(!asText)}>{asText ? "Picture" : "Text"}</Button>}
      {asText ? <pre tabIndex={0} aria-label="Plan as text">{answer.text}</pre> : (
        <div class="plan-scroll" tabIndex={0} role="group" aria-label="Plan">
          <svg width={width} height={height} viewBox={`-2 -2 ${width} ${height}`} role="img" aria-label={`Plan of ${all.length} steps: ${all.map((p) => sentence(p.node)).join("; ")}`}>
            {all.filter((p) => p.parent).map((p, i) => (
              <path key={i} class="plan-line" stroke-width={thickness(rowsOf(p.node))} d={`M${p.x + BOX.width} ${p.y + BOX.height / 2}H${p.parent!.x - BOX.gapX / 2}V${p.parent!.y + BOX.height / 2}H${p.parent!.x}`} />
            ))}
            {all.map((p, i) => <Box key={i} placed={p} />)}
          </svg>
        </div>
      )}
    </div>
  );
}

function Box({ placed: { node, x, y } }: { placed: Placed }) {
  const estimated = node.estimatedRows;
  const actual = node.actualRows;
  // Ten times more rows than expected is what a reader looks for.
  const off = estimated != null && actual != null && (actual > 10 * Math.max(estimated, 1) || estimated > 10 * Math.max(actual, 1));
  return (
    <g transform={`translate(${x} ${y})`} class={off ? "plan-box off" : "plan-box"}>
      <title>{sentence(node)}</title>
      <rect width={BOX.width} height={BOX.height} rx="10" />
      <text x="14" y="24" class="plan-operator">{node.operator}</text>
      {wrap(node.detail ?? "").map((line, i) => <text key={i} x="14" y={42 + i * 14} class="plan-detail">{line}</text>)}
      <text x="14" y={BOX.height - 10} class="plan-rows">
        {estimated != null && `≈ ${count(Math.round(estimated))} expected`}{estimated != null && actual != null ? " · " : ""}{actual != null && `${count(actual)} rows`}{node.microseconds ? ` · ${(node.microseconds / 1000).toFixed(2)} ms` : ""}
      </text>
    </g>
  );
}
