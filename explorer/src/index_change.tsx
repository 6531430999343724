// Adds an index to a container's indexing policy, after showing the difference.
//
// Only the policy that was shown is replaced (If-Match).
import { useState } from "preact/hooks";
import { ApiError, containerPath, readContainer, replaceContainer, wire, type IndexingPolicy } from "./api.ts";
import { format } from "./json.ts";
import { Button, Dialog, Problem, Waiting, tell, useLoaded } from "./ui.tsx";

const BUILD_MILLISECONDS_MAX = 30_000;
const CONTEXT_LINES = 3;

/** An index that a policy can be given. */
export interface WantedIndex {
  name: string;
  change: (policy: IndexingPolicy) => IndexingPolicy;
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

interface Line {
  sign: "+" | "-" | " ";
  text: string;
}
/** What differs between two texts: one place, with some lines around it. */
export function changedLines(before: string, after: string): Line[] {
  const [old, next] = [before.split("\n"), after.split("\n")];
  const shorter = Math.min(old.length, next.length);
  let first = 0;
  while (first < shorter && old[first] === next[first]) first++;
  let last = 0;
  while (last < shorter - first && old[old.length - 1 - last] === next[next.length - 1 - last]) last++;
  const line = (sign: Line["sign"]) => (text: string): Line => ({ sign, text });
  return [
    ...next.slice(Math.max(0, first - CONTEXT_LINES), first).map(line(" ")), ...old.slice(first, old.length - last).map(line("-")),
    ...next.slice(first, next.length - last).map(line("+")), ...next.slice(next.length - last, next.length - last + CONTEXT_LINES).map(line(" ")),
  ];
}

interface AddIndexProps {
  database: string;
  container: string;
  wanted: WantedIndex;
  onClose: () => void;
  onAdded: () => void;
}
export function AddIndex({ database, container, wanted, onClose, onAdded }: AddIndexProps) {
  const { value: definition, error: loadError, reload } = useLoaded(() => readContainer(database, container), [database, container]);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const text = (policy: IndexingPolicy) => format(JSON.stringify(policy));
  const add = async () => {
    setBusy(true);
    setError("");
    try {
      await replaceContainer(database, { ...definition!, indexingPolicy: wanted.change(definition!.indexingPolicy) });
      tell(`The index ${wanted.name} is being built.`);
      await built(database, container);
      onAdded();
    } catch (e) {
      const overtaken = e instanceof ApiError && e.status === 412;
      setError(overtaken ? "Somebody changed this container meanwhile. Its policy has been read again: look at it once more." : (e as Error).message);
      if (overtaken) reload();
    }
    setBusy(false);
  };
  return (
    <Dialog title="Add an index?" onClose={onClose} onSubmit={() => void add()} actions={<>
      <Button onClick={onClose}>Cancel</Button>
      <Button type="submit" look="primary" disabled={!definition || busy}>{busy ? "Building…" : "Add the index"}</Button>
    </>}>
      <p>The index <code>{wanted.name}</code> is added to the indexing policy of {database}/{container}. It is built in the background from the items that are there; each write then keeps it, which costs some request units.</p>
      <Problem error={loadError || error} />
      {definition ? (
        <pre class="difference" tabIndex={0} aria-label="What changes in the indexing policy">
          {changedLines(text(definition.indexingPolicy), text(wanted.change(definition.indexingPolicy))).map((line, i) => <span key={i} class={line.sign === "+" ? "added" : line.sign === "-" ? "removed" : ""}>{line.sign} {line.text}{"\n"}</span>)}
        </pre>
      ) : !loadError && <Waiting />}
    </Dialog>
  );
}
