// What the page remembers: tabs, theme, history, the tree; and how a tab is written into the address.
//
// Tabs live in localStorage and survive a reload. The address always says what the active tab shows, so that a copied
// address opens the same state on another machine.
import { batch, computed, effect, signal } from "@preact/signals";
import { call, type Parameter } from "./api.ts";
import { draftTabs, draftsOf, dropDrafts, hasDrafts } from "./drafts.ts";

export interface ContainerSummary {
  id: string;
  /** Not known where the server cannot tell now. */
  documents: number | null;
  bytes: number | null;
  throughput: number | null;
  partitionKey: string[];
  ranges: number;
}
export interface DatabaseSummary {
  id: string;
  throughput: number | null;
  containers: ContainerSummary[];
}
/** The tree on a small screen, where it lies over the page. */
export const sidebarOpen = signal(false);
export const overview = signal<DatabaseSummary[] | null>(null);
export const overviewError = signal("");

let overviewsAsked = 0;
let overviewShown = 0;
/** Answers may overtake each other: one that was asked for before what is shown says nothing new. */
export async function refreshOverview(): Promise<void> {
  const turn = ++overviewsAsked;
  let [databases, error]: [DatabaseSummary[] | null, string] = [null, ""];
  try {
    databases = (await call<{ databases: DatabaseSummary[] }>("GET", "overview")).databases;
  } catch (e) {
    error = e instanceof Error ? e.message : String(e);
  }
  if (turn < overviewShown) return;
  overviewShown = turn;
  if (databases) overview.value = databases;
  overviewError.value = error;
}
export const containerSummary = (database: string, container: string) =>
  overview.value?.find((d) => d.id === database)?.containers.find((c) => c.id === container);

export type TabKind =
  | "home" | "items" | "query" | "bulk" | "upload" | "schema" | "settings" | "scripts" | "partitions" | "feed" | "users" | "inspector" | "saved" | "tour";
export interface Tab {
  key: string;
  kind: TabKind;
  database: string;
  container: string;
  /** What of the tab survives a reload and travels in a link: texts only. */
  state: Record<string, string>;
  /** Of several tabs that show the same: which one it is, from 2 on. */
  number?: number;
  /** The text of a query that is somewhere else already: where it came from, or saved. */
  kept?: string;
  /** Its state came with an address, from whoever wrote that: nothing of it is run until somebody here wants it. */
  unasked?: boolean;
}

const TABS_MAX = 30;
const STATE_LENGTH_MAX = 100_000;
const ADDRESS_LENGTH_MAX = 8_000;

function stored<T>(name: string, otherwise: T, valid: (value: unknown) => boolean): T {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(`astrarium.${name}`) ?? "null");
    return value !== null && valid(value) ? (value as T) : otherwise;
  } catch {
    return otherwise;
  }
}
function keep(name: string, value: unknown): void {
  try {
    localStorage.setItem(`astrarium.${name}`, JSON.stringify(value));
  } catch {
    // A full or forbidden storage only means that nothing survives a reload.
  }
}
const isText = (value: unknown): value is string => typeof value === "string";
function isTab(value: unknown): value is Tab {
  const tab = value as Tab;
  return !!tab && isText(tab.key) && isText(tab.kind) && tab.kind in TITLES && isText(tab.database) && isText(tab.container) &&
    ["undefined", "number"].includes(typeof tab.number) && ["undefined", "string"].includes(typeof tab.kept) && typeof tab.state === "object" && tab.state !== null && Object.values(tab.state).every(isText);
}

const TITLES: Record<TabKind, string> = {
  home: "Welcome", items: "Items", query: "Query", bulk: "Bulk edit", upload: "Upload", schema: "Schema", settings: "Settings", scripts: "Scripts",
  partitions: "Partitions", feed: "Change feed", users: "Users", inspector: "Requests", saved: "Saved queries", tour: "Tour",
};
/** What of a tab's kind needs a container, or a database only. */
export const NEEDS: Record<TabKind, "nothing" | "database" | "container"> = {
  home: "nothing", inspector: "nothing", saved: "nothing", tour: "nothing", users: "database",
  items: "container", query: "container", bulk: "container", upload: "container", schema: "container", settings: "container", scripts: "container", partitions: "container", feed: "container",
};

/** Another window may have written the list last: what is not saved in this one has its tab all the same. */
function storedTabs(): Tab[] {
  const list = stored<Tab[]>("tabs", [], (v) => Array.isArray(v) && v.every(isTab));
  const missing = draftTabs().filter((tab, at, all) => !list.some((other) => other.key === tab.key) && all.findIndex((other) => other.key === tab.key) === at);
  return [...list, ...missing.map((tab) => ({ ...tab, state: {} }) as Tab).filter(isTab)];
}
export const tabs = signal<Tab[]>(storedTabs());
export const activeKey = signal<string>(stored<string>("active", "", isText));
export const activeTab = computed(() => tabs.value.find((tab) => tab.key === activeKey.value) ?? tabs.value[0]);

export function tabTitle(tab: Tab): string {
  const number = tab.number ? ` ${tab.number}` : "";
  if (tab.kind === "query") return (tab.state.title || `Query · ${tab.container}`) + number;
  if (tab.kind === "users") return `Users · ${tab.database}${number}`;
  return (NEEDS[tab.kind] === "container" ? `${TITLES[tab.kind]} · ${tab.container}` : TITLES[tab.kind]) + number;
}
/** Where it is, to be said after its title. */
export function tabPlace(tab: Tab): string {
  if (NEEDS[tab.kind] !== "container") return "";
  return tab.kind === "query" && tab.state.title ? ` in ${tab.database}/${tab.container}` : ` in ${tab.database}`;
}

/** What a query and a bulk edit begin as. */
export const FIRST_SQL = "SELECT * FROM c";
export const bulkSign = (state: Record<string, string>) => JSON.stringify([state.condition ?? "", state.action ?? "", state.path ?? "", state.value ?? ""]);
/** Whether something in it was typed that is nowhere else. */
export function isChanged(tab: Tab): boolean {
  if (draftsOf(tab.key).length) return true;
  if (tab.kind === "bulk") return [tab.state.condition, tab.state.path, tab.state.value].some((text) => text?.trim()) && tab.kept !== bulkSign(tab.state);
  const sql = tab.state.sql ?? FIRST_SQL;
  return tab.kind === "query" && sql.trim() !== "" && sql !== (tab.kept ?? FIRST_SQL) &&
    !history_.value.some((past) => past.sql === sql && past.container === tab.container && past.database === tab.database);
}
/** What the tab holds now is somewhere else, too. */
export function kept(key: string, text: string): void {
  tabs.value = tabs.value.map((tab) => (tab.key === key ? { ...tab, kept: text } : tab));
}

const newKey = () => Math.random().toString(36).slice(2, 10);

/** Opens a tab, or goes to the one that shows the same thing already; a query is always new unless its text is the same. */
export function openTab(kind: TabKind, database = "", container = "", state: Record<string, string> = {}): Tab {
  sidebarOpen.value = false;
  const twins = tabs.value.filter((tab) => tab.kind === kind && tab.database === database && tab.container === container);
  // What was typed in a tab is not replaced by what comes from elsewhere.
  const same = twins.find((tab) => (kind === "query" ? state.sql !== undefined && tab.state.sql === state.sql : !isChanged(tab) || Object.entries(state).every(([name, value]) => tab.state[name] === value)));
  if (same) {
    if (Object.keys(state).length) updateTab(same.key, state);
    activeKey.value = same.key;
    return same;
  }
  const tab: Tab = { key: newKey(), kind, database, container, state };
  if (twins.length) tab.number = 1 + Math.max(...twins.map((twin) => twin.number ?? 1));
  if (kind === "query" && state.sql !== undefined) tab.kept = state.sql;
  if (kind === "bulk") tab.kept = bulkSign(state);
  // The oldest leave, so that a storm of tabs cannot fill the storage; never one with changes.
  const oldest = tabs.value.length >= TABS_MAX ? tabs.value.find((other) => !isChanged(other)) : undefined;
  tabs.value = [...tabs.value.filter((other) => other !== oldest), tab];
  activeKey.value = tab.key;
  return tab;
}

/** Whatever is not saved in it goes with it: `closeTabs` of unsaved.ts asks first. */
export function discardTab(key: string): void {
  const at = tabs.value.findIndex((tab) => tab.key === key);
  const rest = tabs.value.filter((tab) => tab.key !== key);
  if (activeKey.value === key) activeKey.value = (rest[at] ?? rest[at - 1])?.key ?? "";
  tabs.value = rest;
  dropDrafts(key);
}

export function updateTab(key: string, change: Record<string, string>): void {
  tabs.value = tabs.value.map((tab) => (tab.key === key ? { ...tab, state: { ...tab.state, ...change } } : tab));
}

/** Tabs of what is no longer there. */
export function closeTabsOf(database: string, container?: string): void {
  for (const tab of tabs.value)
    if (tab.database === database && (container === undefined || tab.container === container)) discardTab(tab.key);
}

export function address(tab: Tab): string {
  const where = [tab.kind, tab.database, tab.container].filter(Boolean).map(encodeURIComponent).join("/");
  const state = new URLSearchParams(Object.entries(tab.state).filter(([, value]) => value !== ""));
  const full = `#/${where}${state.size ? `?${state}` : ""}`;
  return full.length <= ADDRESS_LENGTH_MAX ? full : `#/${where}`;
}

/** Somebody here wants what the tab says. */
export function wanted(key: string): void {
  tabs.value = tabs.value.map((tab) => (tab.key === key && tab.unasked ? { ...tab, unasked: false } : tab));
}

/** Opens what an address says; nothing in it is run, unless this browser has run it already. */
export function openAddress(hash: string): void {
  const [where, state] = hash.replace(/^#\/?/, "").split("?", 2);
  let parts: string[];
  try {
    parts = (where ?? "").split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return;
  }
  const kind = parts[0] as TabKind;
  if (!Object.hasOwn(TITLES, kind)) return;
  const needs = NEEDS[kind];
  if ((needs !== "nothing" && !parts[1]) || (needs === "container" && !parts[2])) return;
  const said = Object.fromEntries(new URLSearchParams(state ?? ""));
  // At once: no panel shall see the state without knowing where it is from.
  batch(() => {
    const before = tabs.value;
    const { key } = openTab(kind, parts[1] ?? "", parts[2] ?? "", said);
    const known = before.find((tab) => tab.key === key)?.state ?? {};
    if (Object.entries(said).some(([name, value]) => known[name] !== value)) tabs.value = tabs.value.map((tab) => (tab.key === key ? { ...tab, unasked: true } : tab));
  });
}

export interface Past {
  database: string;
  container: string;
  sql: string;
  parameters: Parameter[];
  time: number;
  charge: number;
  rows: number;
}
const HISTORY_MAX = 200;
export const history_ = signal<Past[]>(stored<Past[]>("history", [], Array.isArray));
export function remember(past: Past): void {
  const others = history_.value.filter((p) => p.sql !== past.sql || p.container !== past.container || p.database !== past.database);
  history_.value = [past, ...others].slice(0, HISTORY_MAX);
}

/** Whether this browser knows what somebody did here. Colours say nothing about that. */
export const hasMemory = computed(() => tabs.value.length + history_.value.length + expanded.value.length + Object.keys(columnsOf.value).length > 0 || hasDrafts());
export function forget(): void {
  for (const { key } of draftTabs()) dropDrafts(key);
  [tabs.value, history_.value, expanded.value, columnsOf.value] = [[], [], [], {}];
}

export type Theme = "system" | "light" | "dark";
export const theme = signal<Theme>(stored<Theme>("theme", "system", (v) => v === "light" || v === "dark"));
export const expanded = signal<string[]>(stored<string[]>("expanded", [], (v) => Array.isArray(v) && v.every(isText)));
export const columnsOf = signal<Record<string, string[]>>(stored("columns", {}, (v) => typeof v === "object"));

/** Before anything is painted, so that nobody sees the other colours first. */
export function showTheme(): void {
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
  });
}

/** From now on what changes is kept. Called once, after the first address has been read. */
export function keepState(): void {
  effect(() => keep("tabs", tabs.value.map((tab) => ({ ...tab, state: Object.fromEntries(Object.entries(tab.state).filter(([, v]) => v.length <= STATE_LENGTH_MAX)) }))));
  effect(() => keep("active", activeKey.value));
  effect(() => keep("history", history_.value));
  effect(() => keep("theme", theme.value));
  effect(() => keep("expanded", expanded.value));
  effect(() => keep("columns", columnsOf.value));
  effect(() => {
    const tab = activeTab.value;
    const hash = tab ? address(tab) : "#/";
    if (location.hash !== hash) history.replaceState(null, "", hash);
    document.title = tab ? `${tabTitle(tab)}${tabPlace(tab)} – Astrarium Explorer` : "Astrarium Explorer";
  });
}
