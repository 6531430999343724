// Making and deleting databases and containers.
import { useState } from "preact/hooks";
import { containerPath, databasePath, wire } from "./api.ts";
import { closeTabsOf, expanded, openTab, refreshOverview } from "./state.ts";
import { Button, Dialog, Field, Problem, ask, tell, tellError } from "./ui.tsx";
import { changesIn } from "./unsaved.ts";

interface Throughput {
  kind: "none" | "manual" | "autoscale";
  amount: string;
}
function throughputHeaders({ kind, amount }: Throughput): Record<string, string> {
  if (kind === "manual") return { "x-ms-offer-throughput": amount };
  if (kind === "autoscale") return { "x-ms-cosmos-offer-autopilot-settings": JSON.stringify({ maxThroughput: Number(amount) }) };
  return {};
}

function ThroughputField({ value, onChange, none }: { value: Throughput; onChange: (value: Throughput) => void; none: string }) {
  return (
    <div class="row">
      <Field label="Throughput">
        <select value={value.kind} onChange={(event) => { const kind = event.currentTarget.value as Throughput["kind"]; onChange({ kind, amount: kind === "autoscale" ? "1000" : "400" }); }}>
          <option value="none">{none}</option>
          <option value="manual">Manual</option>
          <option value="autoscale">Autoscale</option>
        </select>
      </Field>
      {value.kind !== "none" && (
        <Field label={value.kind === "manual" ? "RU/s" : "Highest RU/s"}>
          <input type="number" min={value.kind === "manual" ? 400 : 1000} step={value.kind === "manual" ? 100 : 1000} value={value.amount} onInput={(event) => onChange({ ...value, amount: event.currentTarget.value })} />
        </Field>
      )}
    </div>
  );
}

export function CreateDatabase({ onClose }: { onClose: () => void }) {
  const [id, setId] = useState("");
  const [throughput, setThroughput] = useState<Throughput>({ kind: "none", amount: "400" });
  const [error, setError] = useState("");
  const create = async () => {
    try {
      await wire("POST", "dbs", { body: JSON.stringify({ id }), headers: throughputHeaders(throughput) });
      expanded.value = [...expanded.value, id];
      await refreshOverview();
      onClose();
    } catch (e) {
      setError((e as Error).message);
    }
  };
  return (
    <Dialog title="New database" onClose={onClose} onSubmit={() => void create()} actions={<>
      <Button onClick={onClose}>Cancel</Button>
      <Button type="submit" look="primary" disabled={!id}>Create</Button>
    </>}>
      <Field label="Id"><input value={id} onInput={(event) => setId(event.currentTarget.value)} required autofocus /></Field>
      <ThroughputField value={throughput} onChange={setThroughput} none="Of each container" />
      <Problem error={error} />
    </Dialog>
  );
}

const lines = (text: string) => text.split(/[\n]/).map((line) => line.trim()).filter(Boolean);
const paths = (text: string) => text.split(",").map((path) => path.trim()).filter(Boolean).map((path) => (path.startsWith("/") ? path : `/${path}`));

export function CreateContainer({ database, onClose }: { database: string; onClose: () => void }) {
  const [id, setId] = useState("");
  const [key, setKey] = useState("/id");
  const [unique, setUnique] = useState("");
  const [ttl, setTtl] = useState("");
  const [throughput, setThroughput] = useState<Throughput>({ kind: "none", amount: "400" });
  const [error, setError] = useState("");
  const create = async () => {
    const keyPaths = paths(key);
    const uniqueKeys = lines(unique).map((line) => ({ paths: paths(line) }));
    const body = {
      id,
      partitionKey: { paths: keyPaths, kind: keyPaths.length > 1 ? "MultiHash" : "Hash", version: 2 },
      ...(uniqueKeys.length ? { uniqueKeyPolicy: { uniqueKeys } } : {}),
      ...(ttl ? { defaultTtl: Number(ttl) } : {}),
    };
    try {
      await wire("POST", `${databasePath(database)}/colls`, { body: JSON.stringify(body), headers: throughputHeaders(throughput) });
      expanded.value = [...new Set([...expanded.value, database, `${database}\u0000${id}`])];
      await refreshOverview();
      openTab("items", database, id);
      onClose();
    } catch (e) {
      setError((e as Error).message);
    }
  };
  return (
    <Dialog title={`New container in ${database}`} onClose={onClose} onSubmit={() => void create()} actions={<>
      <Button onClick={onClose}>Cancel</Button>
      <Button type="submit" look="primary" disabled={!id}>Create</Button>
    </>}>
      <Field label="Id"><input value={id} onInput={(event) => setId(event.currentTarget.value)} required autofocus /></Field>
      <Field label="Partition key" hint="One path, or up to three with commas for a hierarchical key. It cannot be changed later.">
        <input value={key} onInput={(event) => setKey(event.currentTarget.value)} required class="mono" />
      </Field>
      <Field label="Unique keys" hint="One key per line, its paths with commas. They cannot be changed later.">
        <textarea rows={2} value={unique} onInput={(event) => setUnique(event.currentTarget.value)} class="mono" placeholder="/email" />
      </Field>
      <Field label="Time to live, seconds" hint="Empty: items stay. -1: each item may say its own.">
        <input type="number" min={-1} value={ttl} onInput={(event) => setTtl(event.currentTarget.value)} />
      </Field>
      <ThroughputField value={throughput} onChange={setThroughput} none="Default" />
      <Problem error={error} />
    </Dialog>
  );
}

async function etagOf(path: string): Promise<Record<string, string>> {
  const resource = JSON.parse((await wire("GET", path)).text) as { _etag: string };
  return { "if-match": resource._etag };
}

export async function deleteDatabase(database: string): Promise<void> {
  try {
    // Before the question: what is meant is what is there now.
    const headers = await etagOf(databasePath(database));
    if (!(await ask(`Delete the database ${database}?`, `All its containers and items are deleted. This cannot be undone.${changesIn(database)}`, "Delete database"))) return;
    await wire("DELETE", databasePath(database), { headers });
    closeTabsOf(database);
    tell(`The database ${database} is deleted.`);
  } catch (error) {
    tellError(error);
  }
  await refreshOverview();
}

export async function deleteContainer(database: string, container: string): Promise<void> {
  try {
    const headers = await etagOf(containerPath(database, container));
    if (!(await ask(`Delete the container ${container}?`, `All items of ${container} in ${database} are deleted. This cannot be undone.${changesIn(database, container)}`, "Delete container"))) return;
    await wire("DELETE", containerPath(database, container), { headers });
    closeTabsOf(database, container);
    tell(`The container ${container} is deleted.`);
  } catch (error) {
    tellError(error);
  }
  await refreshOverview();
}
