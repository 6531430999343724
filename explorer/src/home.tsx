// The welcome page: what is here, and for an empty account something to begin with.
import { useState } from "preact/hooks";
import { canWrite, session } from "./api.ts";
import { CreateContainer, CreateDatabase } from "./create.tsx";
import { blogSample, librarySample, load, type Sample } from "./samples.ts";
import type { PanelProps } from "./shell.tsx";
import { expanded, openTab, overview, overviewError, refreshOverview } from "./state.ts";
import { Button, Problem, Waiting, count, size } from "./ui.tsx";

const SAMPLES: { of: string; title: string; text: string; make: () => Sample }[] = [
  { of: "library", title: "Books and authors", text: "Twenty books in three models, with a tour of embedding and referencing and what each costs.", make: librarySample },
  { of: "blog", title: "A blog platform", text: "Posts, comments, likes and users, with a tour of partition keys, copies and counters.", make: blogSample },
];

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

function SampleCard({ sample }: { sample: (typeof SAMPLES)[number] }) {
  const [progress, setProgress] = useState("");
  const [error, setError] = useState("");
  const made = sample.make();
  const there = made.containers.every((c) => overview.value?.find((d) => d.id === made.database)?.containers.some((x) => x.id === c.id));
  const start = async () => {
    setError("");
    setProgress("Loading…");
    try {
      await load(made, (done, total) => setProgress(`${done} of ${total} items`));
      expanded.value = [...new Set([...expanded.value, made.database])];
      await refreshOverview();
      openTab("tour", "", "", { of: sample.of, step: "0" });
    } catch (e) {
      setError((e as Error).message);
    }
    setProgress("");
  };
  return (
    <li>
      <strong>{sample.title}</strong>
      <p>{sample.text}</p>
      <Problem error={error} />
      <div class="row">
        {there && !progress ? <Button look="primary" onClick={() => openTab("tour", "", "", { of: sample.of, step: "0" })}>Take the tour</Button>
          : canWrite() ? <Button look="primary" disabled={!!progress} onClick={() => void start()}>Load and take the tour</Button>
          : <span class="hint">A session that may write can load it.</span>}
        <span role="status" class="muted">{progress}</span>
      </div>
    </li>
  );
}
