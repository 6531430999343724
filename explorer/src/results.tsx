// The rows of a result as a table, as JSON, as a tree, or as a chart. Rows are texts and are parsed when they are seen.
import { useMemo, useState } from "preact/hooks";
import { Chart } from "./chart.tsx";
import { Editor } from "./editor.tsx";
import { Grid, type Column, type Sort } from "./grid.tsx";
import { at, compare, format, parse, show, typeOf, type Value } from "./json.ts";
import { Empty } from "./ui.tsx";

export type ResultView = "table" | "json" | "tree" | "chart";
const SYSTEM = ["_rid", "_self", "_etag", "_attachments", "_ts"];

export function parsedRows(rows: string[]): (row: number) => Value {
  const parsed: Value[] = [];
  return (row) => (parsed[row] ??= parse(rows[row]!));
}

/** One column for each field of the rows; one for the whole where they are not objects. */
export function columnsOfRows(rows: string[], value: (row: number) => Value): Column[] {
  const names = new Set<string>();
  let whole = false;
  for (let row = 0; row < Math.min(rows.length, 200); row++) {
    const fields = value(row);
    if (fields instanceof Map) for (const name of fields.keys()) names.add(name);
    else whole = true;
  }
  const ordered = [...names].filter((name) => !SYSTEM.includes(name)).concat([...names].filter((name) => SYSTEM.includes(name)));
  const columns: Column[] = ordered.map((name) => ({ key: name, name, value: (row) => at(value(row), [name]) }));
  if (whole) columns.unshift({ key: "\u0000value", name: "value", value: (row) => { const v = value(row); return v instanceof Map ? undefined : v; } });
  return columns;
}

export function Results({ rows, view }: { rows: string[]; view: ResultView }) {
  const value = useMemo(() => parsedRows(rows), [rows]);
  if (!rows.length) return <Empty>No rows.</Empty>;
  if (view === "json") return <JsonText rows={rows} />;
  if (view === "tree") return <div class="json-tree-box" tabIndex={0} role="group" aria-label="Result as a tree">{rows.map((_, row) => <TreeNode key={row} name={String(row)} value={value(row)} depth={0} />)}</div>;
  if (view === "chart") return <Chart rows={rows.length} columns={columnsOfRows(rows, value)} />;
  return <ResultTable rows={rows} value={value} />;
}

function JsonText({ rows }: { rows: string[] }) {
  const text = useMemo(() => format(`[${rows.join(",")}]`), [rows]);
  return <Editor value={text} language="json" label="Result as JSON" readOnly />;
}

function ResultTable({ rows, value }: { rows: string[]; value: (row: number) => Value }) {
  const columns = useMemo(() => columnsOfRows(rows, value), [rows]);
  const [sort, setSort] = useState<Sort | undefined>();
  const order = useMemo(() => {
    const all = rows.map((_, row) => row);
    const column = columns.find((c) => c.key === sort?.key);
    if (!sort || !column) return all;
    const sign = sort.descending ? -1 : 1;
    return all.sort((a, b) => sign * compare(column.value(a), column.value(b)));
  }, [rows, sort]);
  const shown = useMemo(() => columns.map((column) => ({ ...column, value: (row: number) => column.value(order[row]!) })), [columns, order]);
  return <Grid label="Result" rows={rows.length} columns={shown} sort={sort} onSort={setSort} />;
}

const CHILDREN_MAX = 200;
/** Opens by click or by keyboard, as `details` does. */
export function TreeNode({ name, value, depth }: { name: string; value: Value; depth: number }) {
  const [open, setOpen] = useState(depth < 1);
  const type = typeOf(value);
  if (type !== "object" && type !== "array")
    return <div class="json-leaf"><span class="json-name">{name}</span><span class={`json-value ${type}`}>{type === "string" ? JSON.stringify(value) : show(value)}</span></div>;
  const entries: [string, Value][] = value instanceof Map ? [...value] : (value as Value[]).map((item, index) => [String(index), item]);
  return (
    <details class="json-branch" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary><span class="json-name">{name}</span><span class="json-type">{type === "array" ? `${entries.length} elements` : `${entries.length} fields`}</span></summary>
      {open && entries.slice(0, CHILDREN_MAX).map(([key, child]) => <TreeNode key={key} name={key} value={child} depth={depth + 1} />)}
      {open && entries.length > CHILDREN_MAX && <div class="json-leaf">{entries.length - CHILDREN_MAX} more</div>}
    </details>
  );
}
