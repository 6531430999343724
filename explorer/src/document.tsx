// One item as JSON: created, edited, duplicated, deleted, and never over somebody else's change.
//
// The text is what is saved: it is checked but never parsed and written again. A save says which version it is about
// (If-Match); if that is gone, both versions are shown and the person decides.
import { MergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, canWrite, documentPath, documentsPath, partitionKeyHeader, wire, type ContainerDefinition } from "./api.ts";
import { Editor, basics, jsonProblems } from "./editor.tsx";
import { at, format, parse, withoutSystemFields, type Value } from "./json.ts";
import { Button, Problem, ask, tell, units } from "./ui.tsx";

interface DocumentProps {
  database: string;
  definition: ContainerDefinition;
  /** The item as the server wrote it, or what a new one begins with. */
  text: string;
  /** The same item as the table has it now. */
  newer: string | undefined;
  /** What was typed before and not saved, if there is something. */
  typed: string | undefined;
  /** Keeps what is typed, with the item that it changes; nothing when it is saved or discarded. */
  onTyped: (typed: string | null, of: string) => void;
  isNew: boolean;
  onClose: () => void;
  onChanged: (gone: boolean) => void;
  onDuplicate: (text: string) => void;
}

function template(definition: ContainerDefinition): string {
  const fields = new Map<string, Value>([["id", crypto.randomUUID?.() ?? String(Date.now())]]);
  for (const path of definition.partitionKey.paths) {
    const steps = path.split("/").filter(Boolean);
    let inner = fields;
    for (const step of steps.slice(0, -1)) {
      const next = inner.get(step) instanceof Map ? (inner.get(step) as Map<string, Value>) : new Map<string, Value>();
      inner.set(step, next);
      inner = next;
    }
    if (steps.length && !inner.has(steps.at(-1)!)) inner.set(steps.at(-1)!, "");
  }
  return format(JSON.stringify(toPlain(fields)));
}
const toPlain = (value: Value): unknown => (value instanceof Map ? Object.fromEntries([...value].map(([k, v]) => [k, toPlain(v)])) : value);

interface Version {
  /** As the server wrote it. */
  whole: string;
  /** Without system fields, indented: what is edited. */
  edited: string;
  etag: string;
  id: string;
  key: string;
}
function versionOf(text: string, definition: ContainerDefinition): Version {
  const value = parse(text);
  return { whole: text, edited: format(withoutSystemFields(text)), etag: String(at(value, ["_etag"]) ?? ""), id: String(at(value, ["id"]) ?? ""), key: partitionKeyHeader(value, definition.partitionKey.paths) };
}

export function Document(props: DocumentProps) {
  const { database, definition, isNew } = props;
  const [base, setBase] = useState<Version | null>(() => (isNew ? null : versionOf(props.text, definition)));
  const [first] = useState(() => (isNew ? (props.text ? format(withoutSystemFields(props.text)) : template(definition)) : base!.edited));
  const [text, showText] = useState(props.typed ?? first);
  const latest = useRef(text);
  const setText = (next: string, of: Version | null = base) => {
    latest.current = next;
    showText(next);
    props.onTyped(next === (of?.edited ?? first) ? null : next, of?.whole ?? props.text);
  };
  const [error, setError] = useState("");
  const [conflict, setConflict] = useState<Version | null>(null);
  const [busy, setBusy] = useState(false);
  const dirty = isNew || text !== base?.edited;
  // The table was loaded again and has another version: shown, unless somebody is editing this one.
  useEffect(() => {
    if (!props.newer || dirty || busy) return;
    const newer = versionOf(props.newer, definition);
    if (newer.etag !== base?.etag) { setBase(newer); setText(newer.edited, newer); }
  }, [props.newer]);

  const send = async (body: string, version: Version | null) => {
    const value = parse(body);
    const key = partitionKeyHeader(value, definition.partitionKey.paths);
    const headers: Record<string, string> = { "x-ms-documentdb-partitionkey": version?.key ?? key };
    if (version) headers["if-match"] = version.etag;
    return version ? wire("PUT", documentPath(database, definition.id, version.id), { body, headers }) : wire("POST", documentsPath(database, definition.id), { body, headers });
  };
  const save = async (body: string, version: Version | null) => {
    const problem = jsonProblems(body)[0];
    if (problem) return setError(`${problem.message} (at character ${problem.from + 1}).`);
    setBusy(true);
    setError("");
    try {
      const answer = await send(body, version);
      const saved = versionOf(answer.text, definition);
      setBase(saved);
      // What was typed meanwhile stays, as a change of what was saved.
      props.onTyped(null, saved.whole);
      setText(latest.current === body ? saved.edited : latest.current, saved);
      setConflict(null);
      tell(`Saved ${saved.id} for ${units(answer.charge)}.`);
      props.onChanged(false);
    } catch (e) {
      if (e instanceof ApiError && e.status === 412 && version) await showConflict(version);
      else setError((e as Error).message);
    }
    setBusy(false);
  };
  const showConflict = async (version: Version) => {
    try {
      const answer = await wire("GET", documentPath(database, definition.id, version.id), { headers: { "x-ms-documentdb-partitionkey": version.key } });
      setConflict(versionOf(answer.text, definition));
    } catch (e) {
      setError(e instanceof ApiError && e.status === 404 ? "Somebody deleted this item meanwhile. Duplicate it to keep your text." : (e as Error).message);
    }
  };
  const remove = async () => {
    if (!base || !(await ask(`Delete the item ${base.id}?`, "This cannot be undone.", "Delete item"))) return;
    try {
      await wire("DELETE", documentPath(database, definition.id, base.id), { headers: { "x-ms-documentdb-partitionkey": base.key, "if-match": base.etag } });
      tell(`Deleted ${base.id}.`);
      props.onChanged(true);
    } catch (e) {
      setError(e instanceof ApiError && e.status === 412 ? "Somebody changed this item meanwhile: load it again before deleting it." : (e as Error).message);
    }
  };
  const duplicate = () => {
    const fresh = new Map([["id", crypto.randomUUID?.() ?? String(Date.now())]]);
    const rest = withoutSystemFields(text, ["id"]);
    props.onDuplicate(`{"id":${JSON.stringify(fresh.get("id"))}${rest === "{}" ? "}" : `,${rest.slice(1)}`}`);
  };

  if (conflict) return <Conflict mine={text} theirs={conflict} busy={busy} error={error} onSave={(merged) => void save(merged, conflict)} onMine={setText} onTheirs={() => { setBase(conflict); setText(conflict.edited, conflict); setConflict(null); props.onChanged(false); }} onBack={() => setConflict(null)} />;
  return (
    <section class="document" aria-label={isNew ? "New item" : `Item ${base!.id}`}>
      <div class="toolbar">
        {canWrite() && <Button icon="save" look="primary" disabled={busy || !dirty} onClick={() => void save(text, base)}>{isNew ? "Create" : "Save"}</Button>}
        {canWrite() && !isNew && <Button disabled={!dirty} onClick={() => { setText(base!.edited); setError(""); }}>Discard</Button>}
        <span class="space" />
        {canWrite() && !isNew && <Button icon="copy" look="quiet" label="Duplicate" onClick={duplicate} />}
        {canWrite() && !isNew && <Button icon="trash" look="quiet" label="Delete item" onClick={() => void remove()} />}
        <Button icon="close" look="quiet" label="Close the item" onClick={props.onClose} />
      </div>
      <Problem error={error} />
      <div class="fill">
        <Editor value={text} language="json" label="Item as JSON" onChange={setText} readOnly={!canWrite()} keys={[{ key: "Mod-s", preventDefault: true, run: () => { if (dirty) void save(text, base); return true; } }]} />
      </div>
    </section>
  );
}

interface ConflictProps {
  mine: string;
  theirs: Version;
  busy: boolean;
  error: string;
  onMine: (text: string) => void;
  onSave: (merged: string) => void;
  onTheirs: () => void;
  onBack: () => void;
}
/** Both versions beside each other; the left one can be edited and takes over changes of the right one. */
function Conflict({ mine, theirs, busy, error, onMine, onSave, onTheirs, onBack }: ConflictProps) {
  const element = useRef<HTMLDivElement>(null);
  const view = useRef<MergeView | null>(null);
  const told = useRef(onMine);
  told.current = onMine;
  useEffect(() => {
    view.current = new MergeView({
      parent: element.current!, revertControls: "b-to-a", gutter: true, highlightChanges: true,
      renderRevertControl: () => { const button = document.createElement("button"); button.type = "button"; button.textContent = "←"; button.setAttribute("aria-label", "Take over this change of the server's version"); return button; },
      a: { doc: mine, extensions: [...basics("json", "Your version", false), EditorView.updateListener.of((update) => { if (update.docChanged) told.current(update.state.doc.toString()); })] },
      b: { doc: theirs.edited, extensions: [...basics("json", "The server's version", true), EditorState.readOnly.of(true)] },
    });
    return () => view.current?.destroy();
  }, [theirs]);
  return (
    <section class="document conflict" aria-label="Conflict">
      <div class="notice" role="alert">Somebody else saved this item after you opened it. Your version is on the left, theirs on the right. Merge what you want into the left one.</div>
      <div class="toolbar">
        <Button look="primary" disabled={busy} onClick={() => onSave(view.current!.a.state.doc.toString())}>Save the left version</Button>
        <Button disabled={busy} onClick={onTheirs}>Take theirs</Button>
        <Button look="quiet" onClick={onBack}>Back</Button>
      </div>
      <Problem error={error} />
      <div class="merge-names" aria-hidden="true"><span>Yours</span><span>Theirs</span></div>
      <div class="fill merge" ref={element} />
    </section>
  );
}
