// Rows as files. JSON is written from the rows' own texts, so that nothing is lost on the way.
import { at, parse, show, write, type Value } from "./json.ts";
import { columnsOfRows, parsedRows } from "./results.tsx";
import { download } from "./ui.tsx";

/** Quoted where a comma, a quote or a line break asks for it; a leading formula sign is kept from spreadsheets. */
function csvCell(value: Value | undefined): string {
  const text = value === undefined ? "" : typeof value === "object" && value !== null ? write(value) : show(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csvOf(rows: string[]): string {
  const value = parsedRows(rows);
  const names = new Set<string>(columnsOfRows(rows, value).map((column) => column.key));
  rows.forEach((_, row) => { const fields = value(row); if (fields instanceof Map) for (const name of fields.keys()) names.add(name); });
  const all = [...names];
  const head = all.map((name) => csvCell(name === "\u0000value" ? "value" : name)).join(",");
  const body = rows.map((row) => { const fields = parse(row); return all.map((name) => csvCell(name === "\u0000value" ? (fields instanceof Map ? undefined : fields) : at(fields, [name]))).join(","); });
  return [head, ...body].join("\r\n") + "\r\n";
}

export function exportRows(name: string, rows: string[], format: "json" | "jsonl" | "csv"): void {
  if (format === "csv") download(`${name}.csv`, [csvOf(rows)], "text/csv");
  else if (format === "jsonl") download(`${name}.jsonl`, rows.map((row) => row.replace(/[\r\n]/g, " ") + "\n"), "application/x-ndjson");
  else download(`${name}.json`, ["[\n", rows.join(",\n"), "\n]\n"], "application/json");
}
