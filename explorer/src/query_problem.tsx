// Why a query did not run: the server's words, the place in the text, and what can be done about it.
import { useState } from "preact/hooks";
import { ApiError, canWrite, type Fault } from "./api.ts";
import { AddIndex, type WantedIndex } from "./index_change.tsx";
import { orderedPaths } from "./names.ts";
import { withComposite } from "./policy.ts";
import { Button } from "./ui.tsx";

export interface Failure {
  message: string;
  faults: Fault[];
  /** The text that did not run, and where it begins in the editor's. */
  sql: string;
  offset: number;
}
export function failureOf(error: unknown, sql: string, offset: number): Failure {
  return { message: (error as Error).message, faults: error instanceof ApiError ? error.faults : [], sql, offset };
}

const WANTS_COMPOSITE = /does not have a corresponding composite index/;
function wantedIndex({ message, sql }: Failure): WantedIndex | null {
  const specs = WANTS_COMPOSITE.test(message) ? orderedPaths(sql) : null;
  return specs && { name: specs.join(", "), change: (policy) => withComposite(policy, specs) };
}

/** The line of a fault, with signs below what is meant. */
function excerpt(sql: string, { start, end }: Fault): string {
  const from = sql.lastIndexOf("\n", start - 1) + 1;
  const lineEnd = sql.indexOf("\n", start);
  const line = sql.slice(from, lineEnd < 0 ? sql.length : lineEnd).replaceAll("\t", " ");
  return `${line}\n${" ".repeat(start - from)}${"^".repeat(Math.max(1, Math.min(end, from + line.length) - start))}`;
}

interface QueryProblemProps {
  failure: Failure;
  database: string;
  container: string;
  /** Whether the text is still as it was when it failed. */
  isCurrent: boolean;
  onShow: (from: number, to: number) => void;
  onAgain: () => void;
}
export function QueryProblem({ failure, database, container, isCurrent, onShow, onAgain }: QueryProblemProps) {
  const [adding, setAdding] = useState<WantedIndex | null>(null);
  const fault = failure.faults[0];
  const wanted = wantedIndex(failure);
  const place = fault && isCurrent && { from: failure.offset + fault.start, to: failure.offset + Math.max(fault.end, fault.start + 1) };
  return (
    <div class="problem">
      <div role="alert">{failure.message}</div>
      {fault && fault.start <= failure.sql.length && <pre class="excerpt" aria-hidden="true">{excerpt(failure.sql, fault)}</pre>}
      {(place || (wanted && canWrite())) && <div class="row">
        {place && <Button onClick={() => onShow(place.from, place.to)}>Go to the place</Button>}
        {wanted && canWrite() && <Button look="primary" onClick={() => setAdding(wanted)}>Make the composite index {wanted.name}</Button>}
      </div>}
      {adding && <AddIndex database={database} container={container} wanted={adding} onClose={() => setAdding(null)} onAdded={() => { setAdding(null); onAgain(); }} />}
    </div>
  );
}
