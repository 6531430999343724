// What a query cost and why: charge, times, documents read, the indexes it used and those that would help.
import { useState } from "preact/hooks";
import { canWrite } from "./api.ts";
import { AddIndex, type WantedIndex } from "./index_change.tsx";
import { withComposite, withSingle } from "./policy.ts";
import type { ResultPage } from "./query.tsx";
import { Button, count, duration, size, units } from "./ui.tsx";

const NAMES: Record<string, string> = {
  totalExecutionTimeInMs: "Time on the server", queryCompileTimeInMs: "Compiling", queryLogicalPlanBuildTimeInMs: "Logical plan", queryPhysicalPlanBuildTimeInMs: "Physical plan",
  queryOptimizationTimeInMs: "Optimising", VMExecutionTimeInMs: "Executing", indexLookupTimeInMs: "Index lookups", documentLoadTimeInMs: "Loading documents",
  systemFunctionExecuteTimeInMs: "Built-in functions", userFunctionExecuteTimeInMs: "User-defined functions", writeOutputTimeInMs: "Writing the result",
  retrievedDocumentCount: "Documents read", retrievedDocumentSize: "Bytes read", outputDocumentCount: "Rows returned", outputDocumentSize: "Bytes returned",
  indexUtilizationRatio: "Rows returned per document read", instructionCount: "Instructions",
};

interface SingleIndex {
  FilterExpression?: string;
  IndexSpec?: string;
  IndexDocumentExpression?: string;
  IndexImpactScore?: string;
}
interface CompositeIndex {
  IndexSpecs?: string[];
  IndexDocumentExpressions?: string[];
  IndexImpactScore?: string;
}
interface Utilization {
  UtilizedSingleIndexes?: SingleIndex[];
  PotentialSingleIndexes?: SingleIndex[];
  UtilizedCompositeIndexes?: CompositeIndex[];
  PotentialCompositeIndexes?: CompositeIndex[];
}

/** Both forms of the header: base64 of JSON, or JSON with percent signs. */
export function utilizationOf(header: string | null): Utilization {
  if (!header) return {};
  try {
    const text = header.startsWith("%7B") || header.startsWith("{") ? decodeURIComponent(header) : new TextDecoder().decode(Uint8Array.from(atob(header), (c) => c.charCodeAt(0)));
    return JSON.parse(text) as Utilization;
  } catch {
    return {};
  }
}

function metricsOf(pages: ResultPage[]): [string, string][] {
  const sums = new Map<string, number>();
  const answers = pages.flatMap((page) => page.answer.metrics);
  for (const metrics of answers)
    for (const part of metrics.split(";")) {
      const [name, value] = part.split("=");
      if (name && value) sums.set(name, (sums.get(name) ?? 0) + Number(value));
    }
  return [...sums].filter(([name, value]) => Object.hasOwn(NAMES, name) && (value > 0 || !name.endsWith("InMs"))).map(([name, value]) => [
    NAMES[name]!,
    name.endsWith("InMs") ? `${value.toFixed(2)} ms` : name.endsWith("Size") ? size(value) : name.endsWith("Ratio") ? (value / answers.length).toFixed(2) : count(value),
  ]);
}

const single = (index: SingleIndex) => index.IndexSpec ?? index.IndexDocumentExpression ?? "";
const composite = (index: CompositeIndex) => index.IndexSpecs ?? index.IndexDocumentExpressions ?? [];

export function Statistics({ database, container, pages, onApplied }: { database: string; container: string; pages: ResultPage[]; onApplied: () => void }) {
  const used = utilizationOf(pages[0]?.answer.headers.get("x-ms-cosmos-index-utilization") ?? null);
  const [adding, setAdding] = useState<WantedIndex | null>(null);
  const sum = (value: (page: ResultPage) => number) => pages.reduce((total, page) => total + value(page), 0);
  return (
    <div class="statistics" tabIndex={0} role="group" aria-label="Statistics">
      <section class="figures" aria-label="Totals">
        <Figure name="Charge" value={units(sum((p) => p.answer.charge))} />
        <Figure name="Rows" value={count(sum((p) => p.rows.length))} />
        <Figure name="Pages" value={count(pages.length)} />
        <Figure name="Round trip" value={duration(sum((p) => p.answer.milliseconds))} />
      </section>
      <div class="columns">
        <section>
          <h2 class="sub">Execution</h2>
          <dl class="pairs">{metricsOf(pages).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
        </section>
        <section>
          <h2 class="sub">Indexes used</h2>
          <ul class="plain-list">
            {(used.UtilizedSingleIndexes ?? []).map((index, i) => <li key={i}><code>{single(index)}</code>{index.FilterExpression && <small>{index.FilterExpression}</small>}</li>)}
            {(used.UtilizedCompositeIndexes ?? []).map((index, i) => <li key={`c${i}`}><code>{composite(index).join(", ")}</code></li>)}
            {!used.UtilizedSingleIndexes?.length && !used.UtilizedCompositeIndexes?.length && <li class="hint">None.</li>}
          </ul>
          <h2 class="sub">Indexes that would help</h2>
          <ul class="plain-list">
            {(used.PotentialSingleIndexes ?? []).map((index, i) => <Advice key={i} name={single(index)} impact={index.IndexImpactScore} onApply={() => setAdding({ name: single(index), change: (policy) => withSingle(policy, single(index)) })} />)}
            {(used.PotentialCompositeIndexes ?? []).map((index, i) => <Advice key={`c${i}`} name={composite(index).join(", ")} impact={index.IndexImpactScore} onApply={() => setAdding({ name: composite(index).join(", "), change: (policy) => withComposite(policy, composite(index)) })} />)}
            {!used.PotentialSingleIndexes?.length && !used.PotentialCompositeIndexes?.length && <li class="hint">None: this query has what it needs.</li>}
          </ul>
        </section>
      </div>
      {adding && <AddIndex database={database} container={container} wanted={adding} onClose={() => setAdding(null)} onAdded={() => { setAdding(null); onApplied(); }} />}
    </div>
  );
}

function Advice({ name, impact, onApply }: { name: string; impact: string | undefined; onApply: () => void }) {
  return (
    <li class="advice">
      <code>{name}</code>
      {impact && <small>{impact} impact</small>}
      {canWrite() && <Button onClick={onApply}>Apply index</Button>}
    </li>
  );
}
export function Figure({ name, value }: { name: string; value: string }) {
  return <div class="figure"><span>{name}</span><strong>{value}</strong></div>;
}
