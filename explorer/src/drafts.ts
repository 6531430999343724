// Drafts: text that was typed and not saved, kept per tab until it is saved or discarded, over switching tabs and reloading.
//
// In: texts, by the key of a tab and the name of a part of it. Out: the same texts, and which tabs have some.
// Invariants
// - A draft is in the browser's storage. If one could not be stored (`hasUnstored`), the browser asks before the page is left.
// - A draft records its tab, so that it is found again when another window has overwritten the stored list of tabs.
import { signal } from "@preact/signals";

/** The tab that a draft is of, without its state. */
export interface DraftTab {
  key: string;
  kind: string;
  database: string;
  container: string;
}
interface Draft {
  tab: DraftTab;
  part: string;
  /** What is changed, in words: “the item 5”. */
  name: string;
  text: string;
  /** What the text began as. */
  base: string;
}

const PREFIX = "astrarium.draft.";
const LENGTH_MAX = 500_000;
const idOf = (key: string, part: string) => `${PREFIX}${key}.${part}`;

function isDraft(value: unknown): value is Draft {
  const draft = value as Draft;
  return !!draft && [draft.part, draft.name, draft.text, draft.base, draft.tab?.key, draft.tab?.kind, draft.tab?.database, draft.tab?.container].every((text) => typeof text === "string");
}
function storedDrafts(): Map<string, Draft> {
  const found = new Map<string, Draft>();
  try {
    for (const id of Object.keys(localStorage)) {
      if (!id.startsWith(PREFIX)) continue;
      const value: unknown = JSON.parse(localStorage.getItem(id) ?? "null");
      if (isDraft(value) && idOf(value.tab.key, value.part) === id) found.set(id, value);
    }
  } catch {
    // A forbidden storage has none.
  }
  return found;
}

const drafts = signal<ReadonlyMap<string, Draft>>(typeof localStorage === "undefined" ? new Map() : storedDrafts());
const unstored = new Set<string>();
export const hasUnstored = () => unstored.size > 0;

function store(id: string, draft: Draft | null): void {
  unstored.delete(id);
  try {
    if (!draft) return localStorage.removeItem(id);
    const text = JSON.stringify(draft);
    if (text.length <= LENGTH_MAX) return localStorage.setItem(id, text);
    localStorage.removeItem(id);
  } catch {
    // Full or forbidden. What was stored of it before would be an older text.
    try { localStorage.removeItem(id); } catch { /* Then nothing was. */ }
  }
  if (draft) unstored.add(id);
}

export const draftOf = (key: string, part: string): Draft | undefined => drafts.value.get(idOf(key, part));
export const draftsOf = (key: string): Draft[] => [...drafts.value.values()].filter((draft) => draft.tab.key === key);
/** The tabs that drafts are of. */
export const draftTabs = (): DraftTab[] => [...drafts.value.values()].map((draft) => draft.tab);
export const hasDrafts = () => drafts.value.size > 0;

/** The base is that of the first keystroke, until the draft is dropped. */
export function keepDraft({ key, kind, database, container }: DraftTab, part: string, name: string, text: string, base: string): void {
  const id = idOf(key, part);
  const draft = { tab: { key, kind, database, container }, part, name, text, base: drafts.value.get(id)?.base ?? base };
  drafts.value = new Map(drafts.value).set(id, draft);
  store(id, draft);
}

export function dropDraft(key: string, part: string): void {
  const id = idOf(key, part);
  if (!drafts.value.has(id)) return;
  const rest = new Map(drafts.value);
  rest.delete(id);
  drafts.value = rest;
  store(id, null);
}
export function dropDrafts(key: string): void {
  for (const { part } of draftsOf(key)) dropDraft(key, part);
}

/** A text that is edited: as it is stored, unless it was changed and not saved. */
export function useDraft(tab: DraftTab, part: string, name: string, stored: string): { text: string; set: (text: string) => void; drop: () => void; base: string | undefined } {
  const draft = draftOf(tab.key, part);
  return {
    text: draft?.text ?? stored,
    set: (text) => (text === stored ? dropDraft(tab.key, part) : keepDraft(tab, part, name, text, stored)),
    drop: () => dropDraft(tab.key, part),
    base: draft?.base,
  };
}
