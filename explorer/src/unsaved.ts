// Questions before unsaved text is discarded: when a tab is closed, when another item or script is chosen in it, on signing out.
import { draftOf, dropDraft, dropDrafts, draftsOf, hasUnstored } from "./drafts.ts";
import { signOut } from "./signin.tsx";
import { discardTab, isChanged, tabPlace, tabs, tabTitle, type Tab } from "./state.ts";
import { ask } from "./ui.tsx";

const NAMED_MAX = 8;

/** What is changed in a tab, in words. */
function changesOf(tab: Tab): string {
  const parts = draftsOf(tab.key).map((draft) => draft.name);
  const what = parts.length ? parts.join(", ") : tab.kind === "query" ? "a query that is neither saved nor in the history" : "a bulk edit that was not applied";
  return `${tabTitle(tab)}${tabPlace(tab)}: ${what}`;
}
function listOf(changed: Tab[]): string {
  const lines = changed.slice(0, NAMED_MAX).map(changesOf);
  return [...lines, ...(changed.length > NAMED_MAX ? [`and ${changed.length - NAMED_MAX} more`] : [])].join("\n");
}

/** Whether the unsaved changes of these tabs may be discarded. */
async function mayLose(list: Tab[], title: string, confirm: string): Promise<boolean> {
  const changed = list.filter(isChanged);
  return !changed.length || ask(title, `Not saved:\n${listOf(changed)}`, confirm);
}

export async function closeTabs(keys: string[]): Promise<void> {
  const list = tabs.value.filter((tab) => keys.includes(tab.key));
  const title = list.length === 1 ? "Close this tab and discard its changes?" : "Close these tabs and discard their changes?";
  if (await mayLose(list, title, "Discard and close")) for (const { key } of list) discardTab(key);
}

/** Whether a part of a tab may show something else: it has no unsaved change, or the user discards it. */
export async function mayReplace(tab: Tab, part: string): Promise<boolean> {
  const draft = draftOf(tab.key, part);
  if (draft && !(await ask("Discard what you have changed?", `Not saved: ${draft.name}.`, "Discard changes"))) return false;
  dropDraft(tab.key, part);
  return true;
}

/** Signs out. Drafts are discarded, so that no data of the account stays in a shared browser. */
export async function leave(): Promise<void> {
  if (!(await mayLose(tabs.value, "Sign out and discard your changes?", "Discard and sign out"))) return;
  for (const { key } of tabs.value) dropDrafts(key);
  await signOut();
}

/** A sentence for the question before a database or container is deleted: the unsaved changes in its tabs. */
export function changesIn(database: string, container?: string): string {
  const changed = tabs.value.filter((tab) => tab.database === database && (container === undefined || tab.container === container) && isChanged(tab));
  return changed.length ? `\n\nOpen tabs have changes that are not saved and are lost with it:\n${listOf(changed)}` : "";
}

/** The browser asks before the page is left if a draft could not be stored. */
export function guardUnload(): void {
  addEventListener("beforeunload", (event) => {
    if (hasUnstored()) event.preventDefault();
  });
}
