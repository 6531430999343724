// What a query cost and why: charge, times, documents read, the indexes it used and those that would help.
import { useState } from "preact/hooks";
import { canWrite, containerPath, readContainer, replaceContainer, wire, type IndexingPolicy } from "./api.ts";
import type { ResultPage } from "./query.tsx";
import { Button, count, duration, size, tell, tellError, units } from "./ui.tsx";

const NAMES: Record<string, string> = {
  totalExecutionTimeInMs: "Time on the server", queryCompileTimeInMs: "Compiling", queryLogicalPlanBuildTimeInMs: "Logical plan", queryPhysicalPlanBuildTimeInMs: "Physical plan",
  queryOptimizationTimeInMs: "Optimising", VMExecutionTimeInMs: "Executing", indexLookupTimeInMs: "Index lookups", documentLoadTimeInMs: "Loading documents",
  systemFunctionExecuteTimeInMs: "Built-in functions", userFunctionExecuteTimeInMs: "User-defined functions", writeOutputTimeInMs: "Writing the result",
  retrievedDocumentCount: "Documents read", retrievedDocumentSize: "Bytes read", outputDocumentCount: "Rows returned", outputDocumentSize: "Bytes returned",
  indexUtilizationRatio: "Rows returned per document read", instructionCount: "Instructions",
};

const BUILD_MILLISECONDS_MAX = 30_000;

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

/** Waits until the container has all the indexes of its policy, for a while. */
async function built(database: string, container: string): Promise<void> {
  const deadline = Date.now() + BUILD_MILLISECONDS_MAX;
  while (Date.now() < deadline) {
    const answer = await wire("GET", containerPath(database, container), { headers: { "x-ms-documentdb-populatequotainfo": "true" } });
    if (answer.headers.get("x-ms-documentdb-collection-index-transformation-progress") === "100") return;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

const single = (index: SingleIndex) => index.IndexSpec ?? index.IndexDocumentExpression ?? "";
const composite = (index: CompositeIndex) => index.IndexSpecs ?? index.IndexDocumentExpressions ?? [];

/** The policy with one index more. */
export function withSingle(policy: IndexingPolicy, path: string): IndexingPolicy {
  return { ...policy, indexingMode: "consistent", automatic: true,
    includedPaths: [...(policy.includedPaths ?? []).filter((p) => p.path !== path), { path }],
    excludedPaths: (policy.excludedPaths ?? []).filter((p) => p.path !== path) };
}
export function withComposite(policy: IndexingPolicy, specs: string[]): IndexingPolicy {
  const paths = specs.map((spec) => {
    const [path, order] = spec.trim().split(/\s+(?=(?:ASC|DESC)$)/i);
    return { path: path!, order: /^DESC/i.test(order ?? "") ? "descending" : "ascending" };
  });
  return { ...policy, compositeIndexes: [...(policy.compositeIndexes ?? []), paths] };
}

export function Statistics({ database, container, pages, onApplied }: { database: string; container: string; pages: ResultPage[]; onApplied: () => void }) {
  const used = utilizationOf(pages[0]?.answer.headers.get("x-ms-cosmos-index-utilization") ?? null);
  const [busy, setBusy] = useState(false);
  const apply = async (change: (policy: IndexingPolicy) => IndexingPolicy, name: string) => {
    setBusy(true);
    try {
      const definition = await readContainer(database, container);
      await replaceContainer(database, { ...definition, indexingPolicy: change(definition.indexingPolicy) });
      tell(`The index ${name} is being built.`);
      await built(database, container);
      onApplied();
    } catch (error) {
      tellError(error);
    }
    setBusy(false);
  };
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
            {(used.PotentialSingleIndexes ?? []).map((index, i) => <Advice key={i} name={single(index)} impact={index.IndexImpactScore} busy={busy} onApply={() => void apply((policy) => withSingle(policy, single(index)), single(index))} />)}
            {(used.PotentialCompositeIndexes ?? []).map((index, i) => <Advice key={`c${i}`} name={composite(index).join(", ")} impact={index.IndexImpactScore} busy={busy} onApply={() => void apply((policy) => withComposite(policy, composite(index)), composite(index).join(", "))} />)}
            {!used.PotentialSingleIndexes?.length && !used.PotentialCompositeIndexes?.length && <li class="hint">None: this query has what it needs.</li>}
          </ul>
        </section>
      </div>
    </div>
  );
}

function Advice({ name, impact, busy, onApply }: { name: string; impact: string | undefined; busy: boolean; onApply: () => void }) {
  return (
    <li class="advice">
      <code>{name}</code>
      {impact && <small>{impact} impact</small>}
      {canWrite() && <Button disabled={busy} onClick={onApply}>Apply index</Button>}
    </li>
  );
}
export function Figure({ name, value }: { name: string; value: string }) {
  return <div class="figure"><span>{name}</span><strong>{value}</strong></div>;
}
