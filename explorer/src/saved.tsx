// Saved queries, which live in the account so that a team shares them, and the history of this browser.
import { useState } from "preact/hooks";
import { ApiError, canWrite, containerPath, documentPath, documentsPath, partitionKeyHeader, query, wire, type Parameter } from "./api.ts";
import { parse, plain } from "./json.ts";
import type { PanelProps } from "./shell.tsx";
import { history_, openTab } from "./state.ts";
import { Button, Choices, Empty, Problem, Waiting, ask, count, tellError, units, useLoaded } from "./ui.tsx";

const DATABASE = "explorer";
const CONTAINER = "queries";

export interface SavedQuery {
  name: string;
  database: string;
  container: string;
  sql: string;
  parameters: Parameter[];
}
interface StoredQuery extends SavedQuery {
  id: string;
  target: string;
  _etag: string;
}

async function unlessThere(create: Promise<unknown>): Promise<void> {
  await create.catch((error: unknown) => { if (!(error instanceof ApiError && error.status === 409)) throw error; });
}

/** Upserts by name; the container is made by whoever saves first. */
export async function saveQuery(saved: SavedQuery): Promise<void> {
  const target = `${saved.database}/${saved.container}`;
  // Ids may not have slashes and the like, names of queries may.
  const id = encodeURIComponent(`${target}/${saved.name}`).replaceAll("%", ".");
  const body = JSON.stringify({ id, ...saved, target, container: saved.container });
  const post = () => wire("POST", documentsPath(DATABASE, CONTAINER), { body, headers: { "x-ms-documentdb-is-upsert": "true", "x-ms-documentdb-partitionkey": partitionKeyHeader(parse(body), ["/container"]) } });
  try {
    await post();
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
    await unlessThere(wire("POST", "dbs", { body: JSON.stringify({ id: DATABASE }) }));
    await unlessThere(wire("POST", `dbs/${DATABASE}/colls`, { body: JSON.stringify({ id: CONTAINER, partitionKey: { paths: ["/container"], kind: "Hash", version: 2 } }) }));
    await post();
  }
}

async function savedQueries(): Promise<StoredQuery[]> {
  try {
    await wire("GET", containerPath(DATABASE, CONTAINER));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return [];
    throw error;
  }
  const answer = await query({ database: DATABASE, container: CONTAINER, sql: "SELECT * FROM c", pageSize: 1000 });
  const rows = answer.rows.map((row) => plain(parse(row)) as StoredQuery);
  return rows.filter((row) => typeof row.name === "string" && typeof row.sql === "string").sort((a, b) => a.name.localeCompare(b.name));
}

export function Saved({ tab: _tab }: PanelProps) {
  const [view, setView] = useState<"saved" | "history">("saved");
  const [find, setFind] = useState("");
  return (
    <div class="page">
      <h1>Queries</h1>
      <div class="toolbar flat">
        <Choices label="Which queries" options={[["saved", "Saved in the account"], ["history", "History of this browser"]]} value={view} onChange={setView} />
        <input type="search" aria-label="Find a query" placeholder="Find" value={find} onInput={(event) => setFind(event.currentTarget.value)} />
      </div>
      {view === "saved" ? <SavedList find={find.toLowerCase()} /> : <HistoryList find={find.toLowerCase()} />}
    </div>
  );
}

function open(q: SavedQuery): void {
  openTab("query", q.database, q.container, { sql: q.sql, parameters: JSON.stringify(q.parameters ?? []), ...(q.name ? { title: q.name } : {}) });
}

function SavedList({ find }: { find: string }) {
  const { value, error, reload } = useLoaded(savedQueries, []);
  const remove = async (q: StoredQuery) => {
    if (!(await ask(`Delete the saved query ${q.name}?`, q.sql, "Delete"))) return;
    try {
      await wire("DELETE", documentPath(DATABASE, CONTAINER, q.id), { headers: { "if-match": q._etag, "x-ms-documentdb-partitionkey": partitionKeyHeader(new Map([["container", q.container]]), ["/container"]) } });
    } catch (e) {
      tellError(e);
    }
    reload();
  };
  if (error) return <Problem error={error} />;
  if (!value) return <Waiting />;
  const shown = value.filter((q) => `${q.name} ${q.sql} ${q.target}`.toLowerCase().includes(find));
  if (!shown.length) return <Empty>{value.length ? "Nothing found." : "No query is saved yet: Ctrl+S in a query tab saves one."}</Empty>;
  return (
    <ul class="cards">
      {shown.map((q) => (
        <li key={q.id}>
          <div class="card-head"><strong>{q.name}</strong><span class="muted">{q.database} / {q.container}</span></div>
          <pre>{q.sql}</pre>
          <div class="row"><Button icon="query" onClick={() => open(q)}>Open</Button>{canWrite() && <Button icon="trash" look="quiet" label={`Delete ${q.name}`} onClick={() => void remove(q)} />}</div>
        </li>
      ))}
    </ul>
  );
}

function HistoryList({ find }: { find: string }) {
  const shown = history_.value.filter((q) => `${q.sql} ${q.database} ${q.container}`.toLowerCase().includes(find));
  if (!shown.length) return <Empty>{history_.value.length ? "Nothing found." : "What you run is listed here."}</Empty>;
  return (
    <>
      <ul class="cards">
        {shown.map((q) => (
          <li key={`${q.time}${q.sql}`}>
            <div class="card-head"><span class="muted">{q.database} / {q.container} · {new Date(q.time).toLocaleString()} · {units(q.charge)} · {count(q.rows)} rows</span></div>
            <pre>{q.sql}</pre>
            <div class="row"><Button icon="query" onClick={() => open({ ...q, name: "" })}>Open</Button></div>
          </li>
        ))}
      </ul>
      <Button icon="trash" onClick={() => (history_.value = [])}>Clear the history</Button>
    </>
  );
}
