// The command palette: whatever can be opened or done, found by a few letters of its name, by the keyboard alone.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { canWrite } from "./api.ts";
import { CreateContainer, CreateDatabase } from "./create.tsx";
import { activeTab, openTab, overview, theme, type TabKind } from "./state.ts";
import { PARTS } from "./tree.tsx";
import { Button, Icon, count, type IconName } from "./ui.tsx";
import { closeTabs, leave } from "./unsaved.ts";

interface Command {
  key: string;
  icon: IconName;
  name: string;
  /** What it belongs to. */
  where: string;
  run: () => void;
}
const ENTRIES_MAX = 60;
const isMac = /Mac|iP(hone|ad)/.test(navigator.platform);
export const PALETTE_KEYS = isMac ? "⌘K" : "Ctrl+K";

const isOpen = signal(false);
const creating = signal<"database" | { database: string } | null>(null);
export const openPalette = () => (isOpen.value = true);

function commands(): Command[] {
  const found: Command[] = [];
  const add = (icon: IconName, name: string, where: string, run: () => void) => found.push({ key: `${where}\u0000${name}`, icon, name, where, run });
  const open = (kind: TabKind, database = "", container = "") => () => void openTab(kind, database, container);
  for (const database of overview.value ?? []) {
    for (const container of database.containers) add("container", container.id, database.id, open("items", database.id, container.id));
    add("users", `Users and permissions of ${database.id}`, "", open("users", database.id));
    if (canWrite()) add("add", `New container in ${database.id}`, "", () => (creating.value = { database: database.id }));
  }
  for (const database of overview.value ?? [])
    for (const container of database.containers)
      for (const [kind, name, icon] of PARTS) if (kind !== "items") add(icon, `${name}: ${container.id}`, database.id, open(kind, database.id, container.id));
  if (canWrite()) add("add", "New database", "", () => (creating.value = "database"));
  add("home", "Databases", "", open("home"));
  add("inspector", "Requests of all clients", "", open("inspector"));
  add("saved", "Saved queries and history", "", open("saved"));
  for (const one of ["system", "light", "dark"] as const) if (theme.value !== one) add("theme", `Colours: ${one}`, "", () => (theme.value = one));
  const tab = activeTab.value;
  if (tab) add("close", "Close this tab", "", () => void closeTabs([tab.key]));
  add("out", "Sign out", "", () => void leave());
  return found;
}

/** How well letters fit a text, the lower the better: in one piece at the beginning, at a word, anywhere, or only in their order. */
function fit(text: string, letters: string): number | null {
  const at = text.indexOf(letters);
  if (at === 0) return 0;
  if (at > 0) return /\W|_/.test(text[at - 1]!) ? 1 : 2;
  let place = -1;
  for (const letter of letters) {
    place = text.indexOf(letter, place + 1);
    if (place < 0) return null;
  }
  return 3;
}

/** All words must fit, each into the name or into what it belongs to. */
function matching(all: Command[], text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const ranked: { command: Command; rank: number; at: number }[] = [];
  all.forEach((command, at) => {
    const [name, where] = [command.name.toLowerCase(), command.where.toLowerCase()];
    const fits = words.map((word) => {
      const [own, place] = [fit(name, word), where ? fit(where, word) : null];
      return own === null ? (place === null ? null : place + 1) : Math.min(own, place === null ? own : place + 1);
    });
    if (fits.every((one) => one !== null)) ranked.push({ command, rank: fits.reduce((sum, one) => sum + one!, 0), at });
  });
  return ranked.sort((left, right) => left.rank - right.rank || left.at - right.at).map(({ command }) => command);
}

export function Palette() {
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      const isAsked = (isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey) && !event.altKey && !event.shiftKey && event.code === "KeyK";
      if (!isAsked || (document.querySelector("dialog[open]") && !isOpen.value)) return;
      event.preventDefault();
      event.stopPropagation();
      isOpen.value = !isOpen.value;
    };
    // Before editors take the key.
    document.addEventListener("keydown", keys, true);
    return () => document.removeEventListener("keydown", keys, true);
  }, []);
  const made = creating.value;
  const close = () => (creating.value = null);
  return (
    <>
      {isOpen.value && <Search />}
      {made === "database" && <CreateDatabase onClose={close} />}
      {made && made !== "database" && <CreateContainer database={made.database} onClose={close} />}
    </>
  );
}

function Search() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const element = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const all = matching(commands(), text);
  const found = all.slice(0, ENTRIES_MAX);
  const chosen = Math.min(at, found.length - 1);
  useLayoutEffect(() => element.current?.showModal(), []);
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen, text]);
  const close = () => (isOpen.value = false);
  const run = (command: Command | undefined) => {
    if (!command) return;
    close();
    command.run();
  };
  const keys = (event: KeyboardEvent) => {
    const last = found.length - 1;
    if (event.isComposing) return;
    if (event.key === "ArrowDown") setAt(chosen >= last ? 0 : chosen + 1);
    else if (event.key === "ArrowUp") setAt(chosen <= 0 ? last : chosen - 1);
    else if (event.key === "PageDown") setAt(Math.min(last, chosen + 10));
    else if (event.key === "PageUp") setAt(Math.max(0, chosen - 10));
    else if (event.key === "Enter") run(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={element} class="dialog palette" aria-label="Go to or do" onClose={close} onClick={(event) => event.target === element.current && close()}>
      <input type="text" role="combobox" aria-label="Name of a database, a container, a panel or an action" aria-expanded={found.length > 0} aria-controls="palette-list" aria-autocomplete="list" aria-activedescendant={found.length ? `palette-${chosen}` : undefined}
        placeholder="Go to a container or a panel, or do something" spellcheck={false} autocomplete="off" autofocus value={text} onInput={(event) => { setText(event.currentTarget.value); setAt(0); }} onKeyDown={keys} />
      <ul id="palette-list" role="listbox" aria-label="What fits" ref={list}>
        {found.map((command, index) => (
          <li key={command.key} id={`palette-${index}`} role="option" aria-selected={index === chosen} onClick={() => run(command)} onPointerMove={() => setAt(index)}>
            <Icon name={command.icon} /><span>{command.name}</span>{command.where && <span class="where">{command.where}</span>}
          </li>
        ))}
      </ul>
      <p class="hint" role="status">{found.length === 0 ? "Nothing is called so." : all.length > found.length ? `${count(found.length)} of ${count(all.length)} shown; type more letters.` : `${count(all.length)} found`}</p>
    </dialog>
  );
}

export function PaletteButton() {
  return <Button icon="search" look="quiet" label={`Go to or do (${PALETTE_KEYS})`} onClick={openPalette} />;
}
