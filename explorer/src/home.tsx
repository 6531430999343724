// The welcome page: what is here, and for an empty account something to begin with.
import { useState } from "preact/hooks";
import { canWrite, session } from "./api.ts";
import { CreateContainer, CreateDatabase } from "./create.tsx";
import { SAMPLES, SampleCard } from "./sample_card.tsx";
import type { PanelProps } from "./shell.tsx";
import { openTab, overview, overviewError } from "./state.ts";
import { Button, Problem, Waiting, count, size } from "./ui.tsx";

export function Home(_: PanelProps) {
  const [creating, setCreating] = useState<"database" | { database: string } | null>(null);
  const databases = overview.value;
  const account = session.value?.account;
  // What there is to do depends on what is there: nothing is offered before the first answer.
  if (!databases) return <div class="page home"><h1>Databases</h1>{overviewError.value ? <Problem error={overviewError.value} /> : <Waiting />}</div>;
  return (
    <div class="page home">
      <h1>{databases.length === 0 ? "Welcome" : "Databases"}</h1>
      <p class="muted">{account?.endpoint}{account?.version ? ` · version ${account.version}` : ""}</p>
      {databases.length > 0 && (
        <ul class="cards wide-cards">
          {databases.map((database) => (
            <li key={database.id}>
              <div class="card-head"><strong>{database.id}</strong><span class="muted">{database.throughput === null ? "" : `${count(database.throughput)} RU/s`}</span></div>
              <ul class="plain-list choose">
                {database.containers.map((container) => (
                  <li key={container.id}><button type="button" onClick={() => openTab("items", database.id, container.id)}>{container.id}<span class="muted">{count(container.documents)} items · {size(container.bytes)}{container.throughput === null ? "" : ` · ${count(container.throughput)} RU/s`}</span></button></li>
                ))}
                {database.containers.length === 0 && <li class="hint">No containers.</li>}
              </ul>
              {canWrite() && <Button icon="add" onClick={() => setCreating({ database: database.id })}>New container</Button>}
            </li>
          ))}
        </ul>
      )}
      {canWrite() && <div class="row"><Button icon="add" look="primary" onClick={() => setCreating("database")}>New database</Button></div>}
      <h2>{databases.length === 0 ? "Nothing here yet: begin with a sample" : "Samples"}</h2>
      <ul class="cards">{SAMPLES.map((sample) => <SampleCard key={sample.of} sample={sample} />)}</ul>
      <h2>Keys</h2>
      <dl class="pairs keys">
        <div><dt><kbd>Ctrl</kbd> <kbd>K</kbd></dt><dd>go to anything, do anything (<kbd>⌘</kbd> <kbd>K</kbd> on a Mac)</dd></div>
        <div><dt><kbd>Ctrl</kbd> <kbd>Enter</kbd></dt><dd>run the query, or its selection</dd></div>
        <div><dt><kbd>Ctrl</kbd> <kbd>Space</kbd></dt><dd>complete</dd></div>
        <div><dt><kbd>Ctrl</kbd> <kbd>S</kbd></dt><dd>save an item, a script or a query</dd></div>
        <div><dt><kbd>Alt</kbd> <kbd>N</kbd></dt><dd>new query on this container</dd></div>
        <div><dt><kbd>Alt</kbd> <kbd>Page Down</kbd></dt><dd>next tab</dd></div>
        <div><dt><kbd>Alt</kbd> <kbd>W</kbd></dt><dd>close the tab</dd></div>
        <div><dt><kbd>Insert</kbd>, <kbd>Delete</kbd></dt><dd>in the tree: new container, delete</dd></div>
      </dl>
      {creating === "database" && <CreateDatabase onClose={() => setCreating(null)} />}
      {creating && creating !== "database" && <CreateContainer database={creating.database} onClose={() => setCreating(null)} />}
    </div>
  );
}
