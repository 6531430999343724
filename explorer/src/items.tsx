// The items of a container: a table over as many as there are, and beside it the chosen one as JSON.
//
// Sorting and filtering are done by the server, so they hold for all items and not only for those that are loaded.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { canWrite, expression, query, readContainer, type ContainerDefinition } from "./api.ts";
import { Document } from "./document.tsx";
import { draftOf, dropDraft, keepDraft } from "./drafts.ts";
import { Grid, type Column, type Sort } from "./grid.tsx";
import { at, format, parse, show, type Value } from "./json.ts";
import { parsedRows } from "./results.tsx";
import type { PanelProps } from "./shell.tsx";
import { schemaOf, type Schema } from "./sql.ts";
import { columnsOf, containerSummary, openTab, refreshOverview, updateTab, wanted } from "./state.ts";
import { Button, Dialog, Empty, Problem, Split, Waiting, count, tellError, units, useLoaded } from "./ui.tsx";
import { mayReplace } from "./unsaved.ts";
import { NameWarnings } from "./warnings.tsx";

const PAGE_SIZE = 1000;
const COLUMNS_AT_FIRST = 8;
const keyOf = (path: readonly string[]) => JSON.stringify(path);
const stepsOf = (key: string) => JSON.parse(key) as string[];
/** What the server keeps with each item, whatever it holds: columns that can be chosen. */
const SYSTEM = new Map([[keyOf(["_ts"]), "time of the last write, in seconds since 1970"], [keyOf(["_etag"]), "version, another one after each write"]]);
/** Addresses may say anything. */
function isKey(key: string | undefined): key is string {
  try {
    const steps: unknown = JSON.parse(key ?? "");
    return Array.isArray(steps) && steps.every((step) => typeof step === "string");
  } catch {
    return false;
  }
}

/** What is beside the table: an item, or a new one, which has no mark. Each time it is opened is a turn of its own. */
interface Chosen {
  turn: number;
  mark: string;
  text: string;
}
let turns = 0;
/** The part of the tab that is edited. */
const PART = "item";
/** The item that was being edited when the tab was left. */
function leftItem(key: string): Chosen | undefined {
  try {
    const { mark, text } = JSON.parse(draftOf(key, PART)?.base ?? "null") as Chosen;
    return { turn: ++turns, mark, text };
  } catch {
    return undefined;
  }
}
const nameOf = ({ mark, text }: Chosen) => (mark ? `the item ${show(at(parse(text), ["id"]))}` : "a new item");
const markOf = (item: Value) => `"_rid":${JSON.stringify(at(item, ["_rid"]))}`;

interface Loaded {
  rows: string[];
  continuation: string;
  charge: number;
}

const NOTHING: Loaded = { rows: [], continuation: "", charge: 0 };
/** The items that are loaded so far (`answered`: the server has said which); more come when the table's end is in view. */
function useItems(database: string, container: string, sql: string, isWanted: boolean) {
  const [answer, setLoaded] = useState<Loaded | null>(null);
  const loaded = answer ?? NOTHING;
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const abort = useRef<AbortController | null>(null);
  const fetchPages = async (from: Loaded, all: boolean) => {
    abort.current?.abort();
    const controller = (abort.current = new AbortController());
    setBusy(true);
    setError("");
    let state = from;
    // One array that grows: a copy of all rows for each page would be a square of them.
    const rows = from.rows.slice();
    try {
      do {
        const answer = await query({ database, container, sql, pageSize: PAGE_SIZE, continuation: state.continuation, signal: controller.signal });
        for (const row of answer.rows) rows.push(row);
        state = { rows, continuation: answer.continuation, charge: state.charge + answer.charge };
        if (controller.signal.aborted) return;
        setLoaded({ ...state });
      } while (all && state.continuation);
    } catch (e) {
      if (controller.signal.aborted) return;
      setError((e as Error).message);
      if (!from.rows.length) setLoaded(NOTHING);
    }
    setBusy(false);
  };
  useEffect(() => {
    if (isWanted) void fetchPages(NOTHING, false);
    return () => abort.current?.abort();
  }, [database, container, sql, isWanted]);
  return {
    ...loaded, error, busy, answered: answer !== null,
    reload: () => void fetchPages(NOTHING, false),
    more: () => { if (!busy && loaded.continuation) void fetchPages(loaded, false); },
    all: () => void fetchPages(loaded, true),
    stop: () => { abort.current?.abort(); setBusy(false); },
  };
}

function firstColumns(definition: ContainerDefinition | undefined, schema: Schema | undefined): string[] {
  const chosen = [keyOf(["id"])];
  for (const path of definition?.partitionKey.paths ?? []) chosen.push(keyOf(path.split("/").filter(Boolean)));
  for (const { path, types } of schema?.paths ?? []) {
    const scalar = Object.keys(types).some((type) => type !== "object" && type !== "array");
    if (scalar && !path[0]!.startsWith("_") && !path.includes("[]")) chosen.push(keyOf(path));
  }
  return [...new Set(chosen)].slice(0, COLUMNS_AT_FIRST);
}

export function Items({ tab }: PanelProps) {
  const { database, container } = tab;
  const { value: definition, error: definitionError } = useLoaded(() => readContainer(database, container), [database, container]);
  const { value: schema, reload: reloadSchema } = useLoaded(() => schemaOf(database, container, true), [database, container]);
  const sort: Sort | undefined = isKey(tab.state.sort) ? { key: tab.state.sort, descending: tab.state.order === "desc" } : undefined;
  const filter = tab.state.filter ?? "";
  const sql = `SELECT * FROM c${filter ? ` WHERE ${filter}` : ""}${sort ? ` ORDER BY ${expression(stepsOf(sort.key))}${sort.descending ? " DESC" : ""}` : ""}`;
  // A link must not run anything by itself; all items are what everybody sees who opens the container.
  const isWanted = !tab.unasked || (!filter && !sort);
  const items = useItems(database, container, sql, isWanted);
  const [chosen, setChosen] = useState<Chosen | undefined>(() => leftItem(tab.key));
  const [choosing, setChoosing] = useState(false);
  const value = useMemo(() => parsedRows(items.rows), [items.rows]);
  const name = `${database}\u0000${container}`;
  const keys = columnsOf.value[name] ?? firstColumns(definition, schema);
  const columns = useMemo(() => keys.map((key): Column => { const steps = stepsOf(key); return { key, name: steps.join("."), value: (row) => at(value(row), steps) }; }), [keys.join("\u0001"), value]);
  const after = () => { items.reload(); reloadSchema(); void refreshOverview(); };
  // The chosen item stays chosen wherever it is after a reload; its row is found by what only its text has.
  const selected = useMemo(() => (chosen?.mark ? items.rows.findIndex((row) => row.includes(chosen.mark)) : -1), [items.rows, chosen?.mark]);
  const choose = async (next: Chosen | undefined) => { if (await mayReplace(tab, PART)) setChosen(next); };
  const open = (row: number) => {
    const mark = markOf(value(row));
    if (!chosen || mark !== chosen.mark) void choose({ turn: ++turns, mark, text: items.rows[row]! });
  };
  /** The copy has the unsaved text, so no question is needed. */
  const duplicate = (text: string) => {
    const next = { turn: ++turns, mark: "", text };
    const isTyped = !!draftOf(tab.key, PART);
    dropDraft(tab.key, PART);
    if (isTyped) keepDraft(tab, PART, nameOf(next), format(text), JSON.stringify({ mark: "", text: "" }));
    setChosen(next);
  };
  const openNew = (text: string) => void choose({ turn: ++turns, mark: "", text });

  const table = (
    <div class="items">
      <ItemsToolbar tab={tab} items={items} filter={filter} sql={sql} onNew={() => openNew("")} onColumns={() => setChoosing(true)} />
      <Problem error={definitionError || items.error} />
      {filter && isWanted && items.answered && !items.error && <NameWarnings sql={sql} database={database} container={container} parameters={[]} />}
      <div class="fill">
        {!isWanted ? <Empty>A link brought this: <code>{sql}</code><Button look="primary" icon="run" onClick={() => wanted(tab.key)}>Run it</Button></Empty> : !items.answered ? <Waiting /> : items.rows.length === 0 && !items.busy && !items.error ? <Empty>{filter ? "No item matches the filter." : "No items yet."}{canWrite() && !filter && <Button look="primary" icon="add" onClick={() => openNew("")}>Make the first item</Button>}</Empty> : (
          <Grid label={`Items of ${container}`} rows={items.rows.length} total={filter ? items.rows.length : Math.max(items.rows.length, containerSummary(database, container)?.documents ?? 0)} columns={columns} sort={sort}
            onSort={(next) => { wanted(tab.key); updateTab(tab.key, { sort: next?.key ?? "", order: next?.descending ? "desc" : "" }); }}
            selected={selected < 0 ? undefined : selected} onSelect={open} onEnd={items.more} />
        )}
      </div>
    </div>
  );
  const beside = chosen && definition && (
    <Document key={chosen.turn} database={database} definition={definition} text={chosen.text} newer={items.rows[selected]} isNew={!chosen.mark}
      typed={draftOf(tab.key, PART)?.text} onTyped={(typed, of) => (typed === null ? dropDraft(tab.key, PART) : keepDraft(tab, PART, nameOf(chosen), typed, JSON.stringify({ mark: chosen.mark, text: of })))}
      onClose={() => void choose(undefined)} onChanged={(gone) => { if (gone) dropDraft(tab.key, PART); if (gone || (!chosen.mark && !draftOf(tab.key, PART))) setChosen((now) => (now === chosen ? undefined : now)); after(); }} onDuplicate={duplicate} />
  );
  return (
    <>
      <Split name="table" direction={innerWidth < 900 ? "column" : "row"} initial={56} first={table} second={beside || null} />
      {choosing && <ChooseColumns name={name} keys={keys} schema={schema} onClose={() => setChoosing(false)} />}
    </>
  );
}

function ItemsToolbar({ tab, items, filter, sql, onNew, onColumns }: PanelProps & { items: ReturnType<typeof useItems>; filter: string; sql: string; onNew: () => void; onColumns: () => void }) {
  const [text, setText] = useState(filter);
  const apply = (event: Event) => { event.preventDefault(); wanted(tab.key); updateTab(tab.key, { filter: text.trim() }); };
  return (
    <div class="toolbar">
      <form class="filter" role="search" onSubmit={apply}>
        <span class="filter-word" aria-hidden="true">WHERE</span>
        <input class="mono" type="search" aria-label="Filter: a condition of SQL about c" placeholder={'c.city = "Oslo"'} spellcheck={false} autocomplete="off" value={text} onInput={(event) => setText(event.currentTarget.value)} onSearch={apply} />
      </form>
      <Button icon="columns" look="quiet" label="Choose columns" onClick={onColumns} />
      <Button icon="refresh" look="quiet" label="Load again" onClick={() => { wanted(tab.key); items.reload(); }} />
      <Button icon="query" look="quiet" label="Open as a query" onClick={() => openTab("query", tab.database, tab.container, { sql })} />
      <span class="space" />
      <span class="summary" role="status">{items.busy ? "Loading… " : ""}{count(items.rows.length)}{items.continuation ? " loaded" : " items"} · {units(items.charge)}</span>
      {items.busy && items.rows.length > PAGE_SIZE ? <Button onClick={items.stop}>Stop</Button> : items.continuation && <Button onClick={items.all}>Load all</Button>}
      {canWrite() && <Button icon="add" look="primary" onClick={onNew}>New item</Button>}
    </div>
  );
}

function ChooseColumns({ name, keys, schema, onClose }: { name: string; keys: string[]; schema: Schema | undefined; onClose: () => void }) {
  const all = [...new Set([...keys, ...(schema?.paths ?? []).filter((p) => !p.path.includes("[]")).map((p) => keyOf(p.path)), ...SYSTEM.keys()])];
  const [find, setFind] = useState("");
  const set = (next: string[]) => { columnsOf.value = { ...columnsOf.value, [name]: next }; };
  const toFirst = () => { const { [name]: _gone, ...rest } = columnsOf.value; columnsOf.value = rest; };
  useEffect(() => { if (!schema) tellError("The schema of this container is not there yet."); }, []);
  return (
    <Dialog title="Columns" onClose={onClose} onSubmit={onClose} actions={<><Button onClick={toFirst}>As at first</Button><Button type="submit" look="primary">Done</Button></>}>
      {schema && <p class="hint">Found in {count(schema.sampled)} sampled items.</p>}
      <input type="search" aria-label="Find a column" placeholder="Find" value={find} onInput={(event) => setFind(event.currentTarget.value)} />
      <div class="checks">
        {all.filter((key) => stepsOf(key).join(".").toLowerCase().includes(find.toLowerCase())).map((key) => (
          <label key={key} class="check">
            <input type="checkbox" checked={keys.includes(key)} onChange={(event) => set(event.currentTarget.checked ? [...keys, key] : keys.filter((k) => k !== key))} />
            <span class="mono">{stepsOf(key).join(".")}</span>
            <small>{SYSTEM.get(key) ?? Object.keys(schema?.paths.find((p) => keyOf(p.path) === key)?.types ?? {}).join(", ")}</small>
          </label>
        ))}
      </div>
    </Dialog>
  );
}
