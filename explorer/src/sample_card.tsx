// A sample on the welcome page: loaded into a database of its own after a question, toured, and removed again.
import { useState } from "preact/hooks";
import { canWrite, session } from "./api.ts";
import { NameTaken, blogSample, freeName, isSample, itemCount, librarySample, load, remove, takeInventory, type Inventory, type Sample } from "./samples.ts";
import { closeTabsOf, expanded, openTab, overview, refreshOverview, type DatabaseSummary } from "./state.ts";
import { Button, Dialog, Field, Problem, count, tell, useLoaded } from "./ui.tsx";
import { changesIn } from "./unsaved.ts";

export interface SampleInfo {
  of: string;
  title: string;
  text: string;
  make: () => Sample;
}
export const SAMPLES: readonly SampleInfo[] = [
  { of: "library", title: "Books and authors", text: "Twenty books in three models, with a tour of embedding and referencing and what each costs.", make: librarySample },
  { of: "blog", title: "A blog platform", text: "Posts, comments, likes and users, with a tour of partition keys, copies and counters.", make: blogSample },
];
/** The sample that a tab names. Tabs come from addresses, which may name anything. */
export const sampleOf = (of: string | undefined): SampleInfo => SAMPLES.find((sample) => sample.of === of) ?? SAMPLES[0]!;

const tour = (info: SampleInfo, database: string) => openTab("tour", "", "", { of: info.of, in: database, step: "0" });
/** Whether a database may hold the sample: then it is looked into. */
const hasShape = (sample: Sample, database: DatabaseSummary) =>
  sample.containers.every(({ id, key }) => database.containers.some((c) => c.id === id && c.partitionKey.length === 1 && c.partitionKey[0] === key));

export function SampleCard({ sample: info }: { sample: SampleInfo }) {
  const [sample] = useState(info.make);
  const [loading, setLoading] = useState(false);
  const [removing, setRemoving] = useState<{ database: string; inventory: Inventory } | null>(null);
  const [error, setError] = useState("");
  const candidates = (overview.value ?? []).filter((database) => hasShape(sample, database)).map((database) => database.id);
  const { value: loaded, error: lookError } = useLoaded(async () => {
    const found: string[] = [];
    for (const database of candidates) if (await isSample(sample, database)) found.push(database);
    return found;
  }, [candidates.join("\u0000")]);
  const look = async (database: string) => {
    setError("");
    try {
      setRemoving({ database, inventory: await takeInventory(sample, database) });
    } catch (e) {
      setError((e as Error).message);
    }
  };
  return (
    <li>
      <strong>{info.title}</strong>
      <p>{info.text}</p>
      <Problem error={error || lookError} />
      {loaded?.map((database) => (
        <div key={database} class="row" role="group" aria-label={`${info.title} in ${database}`}>
          <Button look="primary" onClick={() => tour(info, database)}>Take the tour</Button>
          {canWrite() && <Button icon="trash" onClick={() => void look(database)}>Remove the sample</Button>}
          <span class="muted">in {database}</span>
        </div>
      ))}
      {loaded?.length === 0 && <div class="row">{canWrite() ? <Button look="primary" onClick={() => setLoading(true)}>Load and take the tour…</Button> : <span class="hint">A session that may write can load it.</span>}</div>}
      {loading && <LoadDialog info={info} sample={sample} onClose={() => setLoading(false)} />}
      {removing && <RemoveDialog info={info} {...removing} onClose={() => setRemoving(null)} />}
    </li>
  );
}

function LoadDialog({ info, sample, onClose }: { info: SampleInfo; sample: Sample; onClose: () => void }) {
  const [name, setName] = useState(() => freeName(sample, (overview.value ?? []).map((d) => d.id)));
  const [progress, setProgress] = useState("");
  const [error, setError] = useState("");
  /** The database of a load that stopped before its end. */
  const [partial, setPartial] = useState("");
  const undo = async () => {
    setProgress("Removing…");
    try {
      await remove(partial, await takeInventory(sample, partial));
      setPartial("");
      setError("");
    } catch (e) {
      setError((e as Error).message);
    }
    setProgress("");
    void refreshOverview();
  };
  const start = async () => {
    setError("");
    setProgress("Loading…");
    try {
      await load(sample, name, (done, total) => setProgress(`${count(done)} of ${count(total)} items`));
      expanded.value = [...new Set([...expanded.value, name])];
      await refreshOverview();
      onClose();
      tour(info, name);
    } catch (e) {
      setError((e as Error).message);
      if (!(e instanceof NameTaken)) setPartial(name);
      void refreshOverview();
    }
    setProgress("");
  };
  return (
    <Dialog title={`Load “${info.title}”?`} onClose={onClose} onSubmit={() => void start()} actions={<>
      <span role="status" class="muted">{progress}</span>
      <Button onClick={onClose}>Cancel</Button>
      <Button type="submit" look="primary" disabled={!name.trim() || !!progress || !!partial}>Load the sample</Button>
    </>}>
      <p>A new database is made at {session.value?.account.endpoint ?? "this server"}, and nothing that exists is changed. The sample can be removed again on the welcome page.</p>
      <Field label="Database" hint="A name that no database has yet."><input class="mono" value={name} onInput={(event) => setName(event.currentTarget.value)} required autofocus /></Field>
      <div>
        <p>It gets {count(sample.containers.length)} containers with {count(itemCount(sample))} items:</p>
        <ul class="plain-list">{sample.containers.map((c) => <li key={c.id}><code>{c.id}</code><small>{count(c.documents.length)} items, partition key {c.key}</small></li>)}</ul>
      </div>
      <Problem error={error} />
      {partial && <div class="row"><span>The database {partial} has a part of the sample.</span><Button look="danger" disabled={!!progress} onClick={() => void undo()}>Remove what was made</Button></div>}
    </Dialog>
  );
}

const NAMED_MAX = 10;
const named = (names: string[]) => names.slice(0, NAMED_MAX).join(", ") + (names.length > NAMED_MAX ? " and more" : "");

function RemoveDialog({ info, database, inventory, onClose }: { info: SampleInfo; database: string; inventory: Inventory; onClose: () => void }) {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const { own, foreign, containers } = inventory;
  const isMixed = foreign.length + containers.length > 0;
  const start = async () => {
    setBusy(true);
    setError("");
    try {
      const { isGone, left } = await remove(database, inventory);
      if (isGone) closeTabsOf(database);
      else for (const container of inventory.made) if (!left.includes(container)) closeTabsOf(database, container);
      tell(isGone ? `The sample and its database ${database} are removed.` : `The sample's items are removed. ${left.length ? `Left in ${database}: ${named(left)}.` : `The database ${database} has users and stays.`}`);
      await refreshOverview();
      onClose();
    } catch (e) {
      setError((e as Error).message);
    }
    setBusy(false);
  };
  return (
    <Dialog title={`Remove “${info.title}”?`} onClose={onClose} onSubmit={() => void start()} actions={<>
      <Button onClick={onClose}>Cancel</Button>
      <Button type="submit" look="danger" disabled={busy}>{busy ? "Removing…" : isMixed ? "Remove only what the sample made" : "Remove the sample"}</Button>
    </>}>
      <p class="pre">{isMixed
        ? `${count(own.length)} items in ${database} are as the sample made them and are removed. The rest stays, with the containers that it is in.`
        : `The database ${database} with ${count(own.length)} items is removed. Everything in it is as the sample made it.`}{changesIn(database)}</p>
      {foreign.length > 0 && <p>Changed or added since, and kept: <code>{named(foreign)}</code></p>}
      {containers.length > 0 && <p>Not of the sample, and kept: <code>{named(containers)}</code></p>}
      <Problem error={error} />
    </Dialog>
  );
}
