// The tree of databases and containers, with counts, sizes and throughput, and what can be opened of each.
//
// One tab stop; arrows, Home, End, Enter and Space work as in every tree.
import { useRef, useState } from "preact/hooks";
import { canWrite } from "./api.ts";
import { CreateContainer, CreateDatabase, deleteContainer, deleteDatabase } from "./create.tsx";
import { activeTab, expanded, openTab, overview, overviewError, type ContainerSummary, type DatabaseSummary, type TabKind } from "./state.ts";
import { Button, Icon, Problem, count, size, type IconName } from "./ui.tsx";

interface Node {
  key: string;
  level: number;
  icon: IconName;
  name: string;
  note?: string;
  title?: string;
  open?: boolean;
  selected: boolean;
  act: () => void;
  remove?: () => void;
  add?: () => void;
}
/** What can be opened of a container. */
export const PARTS: readonly (readonly [TabKind, string, IconName])[] = [
  ["items", "Items", "items"], ["query", "New query", "query"], ["bulk", "Bulk edit", "bulk"], ["upload", "Upload", "upload"], ["schema", "Schema", "columns"], ["settings", "Settings", "settings"],
  ["scripts", "Scripts", "scripts"], ["partitions", "Partitions", "partitions"], ["feed", "Change feed", "feed"],
];

function toggle(key: string, open?: boolean): void {
  const has = expanded.value.includes(key);
  if (open === has) return;
  expanded.value = has ? expanded.value.filter((k) => k !== key) : [...expanded.value, key];
}

function containerTitle(c: ContainerSummary): string {
  const throughput = c.throughput === null ? "throughput shared with the database" : `${count(c.throughput)} RU/s`;
  return `${count(c.documents)} items, ${size(c.bytes)}, ${throughput}, partition key ${c.partitionKey.join(", ")}, ${c.ranges} range${c.ranges === 1 ? "" : "s"}`;
}

/** The containers of a database that a filter leaves, or nothing if it leaves out the database, too. */
function left(database: DatabaseSummary, filter: string): ContainerSummary[] | null {
  const fits = (name: string) => name.toLowerCase().includes(filter);
  const containers = database.containers.filter((container) => fits(container.id));
  return fits(database.id) ? (containers.length ? containers : database.containers) : containers.length ? containers : null;
}

/** With a filter every database that has something left is open. */
function nodes(filter: string, addContainer: (database: string) => void): Node[] {
  const found: Node[] = [];
  const tab = activeTab.value;
  const open = (kind: TabKind, database: string, container = "") => () => void openTab(kind, database, container);
  for (const database of overview.value ?? []) {
    const key = database.id;
    const containers = left(database, filter);
    if (!containers) continue;
    const isOpen = filter !== "" || expanded.value.includes(key);
    found.push({
      key, level: 1, icon: "database", name: database.id, open: isOpen, selected: false, act: () => toggle(key),
      ...(database.throughput === null ? {} : { note: `${count(database.throughput)} RU/s` }),
      ...(canWrite() ? { remove: () => void deleteDatabase(database.id), add: () => addContainer(database.id) } : {}),
    });
    if (!isOpen) continue;
    for (const container of containers) {
      const inner = `${key}\u0000${container.id}`;
      const isInnerOpen = expanded.value.includes(inner);
      found.push({
        key: inner, level: 2, icon: "container", name: container.id, open: isInnerOpen, selected: false, act: () => toggle(inner),
        note: `${count(container.documents)} · ${size(container.bytes)}`, title: containerTitle(container),
        ...(canWrite() ? { remove: () => void deleteContainer(database.id, container.id) } : {}),
      });
      if (!isInnerOpen) continue;
      for (const [kind, name, icon] of PARTS)
        found.push({ key: `${inner}\u0000${kind}`, level: 3, icon, name, act: open(kind, database.id, container.id),
          selected: tab?.kind === kind && tab.database === database.id && tab.container === container.id });
    }
    if (!filter) found.push({ key: `${key}\u0000\u0000users`, level: 2, icon: "users", name: "Users and permissions", act: open("users", database.id),
      selected: tab?.kind === "users" && tab.database === database.id });
  }
  return found;
}

export function Tree() {
  const [creating, setCreating] = useState<"database" | { database: string } | null>(null);
  const [focused, setFocused] = useState("");
  const element = useRef<HTMLUListElement>(null);
  const [filter, setFilter] = useState("");
  const all = nodes(filter.trim().toLowerCase(), (database) => setCreating({ database }));
  const current = all.find((node) => node.key === focused) ?? all[0];
  const go = (node: Node | undefined) => {
    if (!node) return;
    setFocused(node.key);
    element.current?.querySelectorAll<HTMLElement>("[role=treeitem]")[all.indexOf(node)]?.focus();
  };
  const keys = (event: KeyboardEvent) => {
    if (!current) return;
    const at = all.indexOf(current);
    if (event.key === "ArrowDown") go(all[at + 1]);
    else if (event.key === "ArrowUp") go(all[at - 1]);
    else if (event.key === "Home") go(all[0]);
    else if (event.key === "End") go(all.at(-1));
    else if (event.key === "ArrowRight" && current.open === false) toggle(current.key, true);
    else if (event.key === "ArrowRight" && current.open) go(all[at + 1]);
    else if (event.key === "ArrowLeft" && current.open) toggle(current.key, false);
    else if (event.key === "ArrowLeft") go(all.slice(0, at).findLast((node) => node.level < current.level));
    else if (event.key === "Enter" || event.key === " ") current.act();
    else if (event.key === "Delete") current.remove?.();
    else if (event.key === "Insert") current.add?.();
    else return;
    event.preventDefault();
  };
  return (
    <>
      <div class="sidebar-head">
        <h2>Databases</h2>
        {canWrite() && <Button icon="add" look="quiet" label="New database" onClick={() => setCreating("database")} />}
      </div>
      {overview.value && overview.value.length > 0 && (
        <input type="search" class="tree-filter" aria-label="Filter databases and containers" placeholder="Filter" value={filter} onInput={(event) => setFilter(event.currentTarget.value)}
          onKeyDown={(event) => { if (event.key === "ArrowDown") { event.preventDefault(); go(all[0]); } else if (event.key === "Escape") setFilter(""); }} />
      )}
      <Problem error={overviewError.value} />
      {!overview.value && !overviewError.value && <p class="hint" role="status">Loading…</p>}
      {filter && all.length === 0 && <p class="hint" role="status">Nothing is called so.</p>}
      {overview.value?.length === 0 && <p class="hint">No database yet.</p>}
      {all.length > 0 && (
        <ul role="tree" aria-label="Databases" ref={element} onKeyDown={keys}>
          {all.map((node) => <Item key={node.key} node={node} focused={node === current} onFocus={() => setFocused(node.key)} />)}
        </ul>
      )}
      {creating === "database" && <CreateDatabase onClose={() => setCreating(null)} />}
      {creating && creating !== "database" && <CreateContainer database={creating.database} onClose={() => setCreating(null)} />}
    </>
  );
}

/** The buttons in a row are for the mouse; the keyboard has Insert and Delete, and the welcome page has buttons. */
function Item({ node, focused, onFocus }: { node: Node; focused: boolean; onFocus: () => void }) {
  return (
    <li role="treeitem" class={`node level-${node.level} ${node.selected ? "selected" : ""}`} aria-level={node.level} aria-expanded={node.open} aria-selected={node.selected}
      aria-label={node.title ? `${node.name}: ${node.title}` : node.name} title={node.title} tabIndex={focused ? 0 : -1} onFocus={onFocus} onClick={node.act}>
      <span class={`twist ${node.open ? "open" : ""}`} aria-hidden="true">{node.open !== undefined && <Icon name="chevron" />}</span>
      <Icon name={node.icon} />
      <span class="name">{node.name}</span>
      {node.note && <span class="note" aria-hidden="true">{node.note}</span>}
      {(node.add || node.remove) && (
        <span class="row-actions" aria-hidden="true">
          {node.add && <span class="mini" title={`New container in ${node.name}`} onClick={(event) => { event.stopPropagation(); node.add!(); }}><Icon name="add" /></span>}
          {node.remove && <span class="mini" title={`Delete ${node.name}`} onClick={(event) => { event.stopPropagation(); node.remove!(); }}><Icon name="trash" /></span>}
        </span>
      )}
    </li>
  );
}
