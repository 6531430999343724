// The frame around everything: top bar, tree, tab strip, and the panel of the active tab.
import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { lazy } from "./lazy.tsx";
import { canWrite, session, spent } from "./api.ts";
import { Home } from "./home.tsx";
import { Brand } from "./signin.tsx";
import { activeTab, activeKey, isChanged, openTab, refreshOverview, sidebarOpen, tabPlace, tabs, tabTitle, theme, type Tab, type TabKind, type Theme } from "./state.ts";
import { Palette, PaletteButton } from "./palette.tsx";
import { Tree } from "./tree.tsx";
import { Button, Icon, Menu, units, usePolling, type IconName, type MenuAction } from "./ui.tsx";
import { closeTabs, leave } from "./unsaved.ts";

export interface PanelProps {
  tab: Tab;
}
const PANELS: Record<TabKind, ComponentType<PanelProps>> = {
  home: Home,
  items: lazy(() => import("./items.tsx").then((m) => m.Items)),
  query: lazy(() => import("./query.tsx").then((m) => m.Query)),
  bulk: lazy(() => import("./bulk.tsx").then((m) => m.Bulk)),
  upload: lazy(() => import("./upload.tsx").then((m) => m.Upload)),
  schema: lazy(() => import("./schema.tsx").then((m) => m.SchemaPage)),
  settings: lazy(() => import("./settings.tsx").then((m) => m.Settings)),
  scripts: lazy(() => import("./scripts.tsx").then((m) => m.Scripts)),
  partitions: lazy(() => import("./partitions.tsx").then((m) => m.Partitions)),
  feed: lazy(() => import("./feed.tsx").then((m) => m.ChangeFeed)),
  users: lazy(() => import("./users.tsx").then((m) => m.Users)),
  inspector: lazy(() => import("./inspector.tsx").then((m) => m.Inspector)),
  saved: lazy(() => import("./saved.tsx").then((m) => m.Saved)),
  tour: lazy(() => import("./tour.tsx").then((m) => m.Tour)),
};
/** Panels that show a heading of level one themselves. */
const OWN_HEADING = new Set<TabKind>(["home", "upload", "schema", "settings", "partitions", "users", "saved", "tour"]);
export const TAB_ICONS: Record<TabKind, IconName> = {
  home: "home", items: "items", query: "query", bulk: "bulk", upload: "upload", schema: "columns", settings: "settings", scripts: "scripts", partitions: "partitions",
  feed: "feed", users: "users", inspector: "inspector", saved: "saved", tour: "home",
};

export function Shell() {
  usePolling(refreshOverview, 5000, []);
  // Wherever the focus is: after a click beside everything it is nowhere in the page.
  useEffect(() => {
    document.addEventListener("keydown", shortcuts);
    return () => document.removeEventListener("keydown", shortcuts);
  }, []);
  const tab = activeTab.value;
  const Panel = tab ? PANELS[tab.kind] : Home;
  return (
    <div class={sidebarOpen.value ? "shell sidebar-open" : "shell"}>
      <TopBar />
      <nav class="sidebar" aria-label="Databases and containers"><Tree /></nav>
      {sidebarOpen.value && <button type="button" class="shade" aria-label="Close the tree" onClick={() => (sidebarOpen.value = false)} />}
      <main>
        <TabStrip />
        <div class="panel" role={tab ? "tabpanel" : undefined} aria-label={tab ? tabTitle(tab) + tabPlace(tab) : undefined} id="panel">
            {tab && !OWN_HEADING.has(tab.kind) && <h1 class="visually-hidden">{tabTitle(tab) + tabPlace(tab)}</h1>}
          <Panel key={tab?.key ?? "home"} tab={tab ?? { key: "home", kind: "home", database: "", container: "", state: {} }} />
        </div>
      </main>
      <Palette />
    </div>
  );
}

function shortcuts(event: KeyboardEvent): void {
  const all = tabs.value;
  const at = all.findIndex((tab) => tab.key === activeTab.value?.key);
  if (!event.altKey || event.ctrlKey || event.metaKey || at < 0 || document.querySelector("dialog[open]")) return;
  if (event.code === "KeyW") void closeTabs([all[at]!.key]);
  else if (event.code === "BracketRight" || event.code === "PageDown") activeKey.value = all[(at + 1) % all.length]!.key;
  else if (event.code === "BracketLeft" || event.code === "PageUp") activeKey.value = all[(at - 1 + all.length) % all.length]!.key;
  else if (event.code === "KeyN" && all[at]!.container) openTab("query", all[at]!.database, all[at]!.container);
  else return;
  event.preventDefault();
}

function TopBar() {
  const current = session.value!;
  return (
    <header class="top">
      <Button icon="menu" look="quiet" label="Databases" class="only-small" aria-expanded={sidebarOpen.value} onClick={() => (sidebarOpen.value = !sidebarOpen.value)} />
      <a class="brand-link" href="#/home" aria-label="Astrarium, welcome page"><Brand /></a>
      <span class="account only-large">{current.account.endpoint ?? current.account.name ?? ""}</span>
      {!canWrite() && <span class="badge">Read-only</span>}
      <span class="space" />
      <span class="spent only-large" title="Request units that this page has used since it was opened">{units(spent.value)}</span>
      <PaletteButton />
      <Button icon="saved" look="quiet" label="Saved queries and history" onClick={() => openTab("saved")} />
      <Button icon="inspector" look="quiet" label="Requests of all clients" onClick={() => openTab("inspector")} />
      <ThemeSwitch />
      <Button icon="out" look="quiet" label="Sign out" onClick={() => void leave()} />
    </header>
  );
}

function ThemeSwitch() {
  const next: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
  return <Button icon="theme" look="quiet" label={`Colours: ${theme.value}. Switch to ${next[theme.value]}`} onClick={() => (theme.value = next[theme.value])} />;
}

function TabStrip() {
  const all = tabs.value;
  const current = activeTab.value?.key;
  const strip = useRef<HTMLDivElement>(null);
  useEffect(() => strip.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ inline: "nearest", block: "nearest" }), [current]);
  if (!all.length) return null;
  const keys = (event: KeyboardEvent) => {
    const at = all.findIndex((tab) => tab.key === current);
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (event.key === "Delete" && current) void closeTabs([current]);
    else if (step) activeKey.value = all[(at + step + all.length) % all.length]!.key;
    else return;
    event.preventDefault();
    requestAnimationFrame(() => strip.current?.querySelector<HTMLElement>("[aria-selected=true]")?.focus());
  };
  return (
    <div class="tabs">
      <div role="tablist" aria-label="Open tabs" ref={strip} onKeyDown={keys}>
        {all.map((tab) => (
          <button key={tab.key} type="button" role="tab" aria-selected={tab.key === current} aria-controls={tab.key === current ? "panel" : undefined} tabIndex={tab.key === current ? 0 : -1}
            class="tab" title={`${tabTitle(tab)}${tabPlace(tab)}${isChanged(tab) ? ", not saved" : ""} (Delete or Alt+W closes)`}
            onClick={() => (activeKey.value = tab.key)} onAuxClick={(event) => event.button === 1 && void closeTabs([tab.key])}>
            <Icon name={TAB_ICONS[tab.kind]} />
            <TabName tab={tab} />
          </button>
        ))}
      </div>
      {current && <Button icon="close" look="quiet" label="Close this tab" onClick={() => void closeTabs([current])} />}
      <Menu label={`All ${all.length} tabs`} icon="more" actions={tabActions(all, current)} />
    </div>
  );
}

/** What it shows, and below in which database; read as one sentence. */
function TabName({ tab }: { tab: Tab }) {
  const place = tabPlace(tab);
  return (
    <span class="tab-name">
      <span>{tabTitle(tab)}</span>
      {place && <small><span class="visually-hidden"> in </span>{place.replace(/^ in /, "")}</small>}
      {isChanged(tab) && <span class="changed"><span class="visually-hidden">, not saved</span></span>}
    </span>
  );
}

function tabActions(all: Tab[], current: string | undefined): MenuAction[] {
  const keys = all.map((tab) => tab.key);
  return [
    ...all.map((tab): MenuAction => [`${tabTitle(tab)}${tabPlace(tab)}${isChanged(tab) ? ", not saved" : ""}`, () => (activeKey.value = tab.key), tab.key === current ? "current" : ""]),
    ["Close the other tabs", () => void closeTabs(keys.filter((key) => key !== current)), "first"],
    ["Close all tabs", () => void closeTabs(keys), ""],
  ];
}
