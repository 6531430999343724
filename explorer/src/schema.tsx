// What the items of a container look like: their properties with types, shares and ranges, and the kinds of items that there are. All of it
// is of a sample, and says so.
import { useMemo, useState } from "preact/hooks";
import { callText, expression, scope } from "./api.ts";
import { at, parse, plain, show, type Value } from "./json.ts";
import type { PanelProps } from "./shell.tsx";
import { openTab } from "./state.ts";
import { Button, Empty, Problem, Waiting, count, useLoaded } from "./ui.tsx";

interface Property {
  path: string[];
  types: Record<string, number>;
  values: Value[];
  numbers: Value[] | null;
  texts: Value[] | null;
  lengths: number[] | null;
}
interface Shape {
  count: number;
  names: string[];
  constants: Map<string, Value>;
}
interface Sample {
  sampled: number;
  documents: number;
  paths: Property[];
  shapes: Shape[];
  otherShapes: number;
}

const list = (value: Value | undefined): Value[] => (Array.isArray(value) ? value : []);
const listOrNull = (value: Value | undefined): Value[] | null => (Array.isArray(value) ? value : null);

/** Values keep their digits. */
function readSample(text: string): Sample {
  const value = parse(text);
  return {
    sampled: Number(at(value, ["sampled"])), documents: Number(at(value, ["documents"])), otherShapes: Number(at(value, ["otherShapes"])),
    paths: list(at(value, ["paths"])).map((path) => ({
      path: plain(at(path, ["path"])!) as string[], types: plain(at(path, ["types"])!) as Record<string, number>, values: list(at(path, ["values"])),
      numbers: listOrNull(at(path, ["numbers"])), texts: listOrNull(at(path, ["texts"])), lengths: plain(at(path, ["lengths"]) ?? null) as number[] | null,
    })),
    shapes: list(at(value, ["shapes"])).map((shape) => ({ count: Number(at(shape, ["count"])), names: plain(at(shape, ["names"])!) as string[], constants: at(shape, ["constants"]) as Map<string, Value> })),
  };
}

const key = (path: readonly string[]) => path.join("\u0000");
const total = (types: Record<string, number>) => Object.values(types).reduce((sum, n) => sum + n, 0);
const percent = (part: number, whole: number): string => {
  const share = whole ? (100 * part) / whole : 0;
  return share > 0 && share < 1 ? "<1 %" : share > 99 && share < 100 ? ">99 %" : `${Math.round(share)} %`;
};
const named = (path: readonly string[]) => path.reduce((text, step) => (step === "[]" ? `${text}[ ]` : text ? `${text}.${step}` : step), "");

/** What a property could be in: the items, the objects that it is a part of, or the elements of the array. */
function wholeOf(property: Property, sample: Sample, byPath: Map<string, Property>): number {
  const above = byPath.get(key(property.path.slice(0, -1)));
  if (!above) return sample.sampled;
  return property.path.at(-1) === "[]" ? total(property.types) : above.types.object ?? total(above.types);
}

function rangesOf({ numbers, texts, lengths }: Property): string[] {
  const between = (range: Value[]) => (show(range[0]) === show(range[1]) ? show(range[0]) : `${show(range[0])} to ${show(range[1])}`);
  return [numbers ? between(numbers) : "", texts ? between(texts) : "", lengths ? (lengths[0] === lengths[1] ? `${lengths[0]} elements` : `${lengths[0]} to ${lengths[1]} elements`) : ""].filter(Boolean);
}

export function SchemaPage({ tab: { database, container } }: PanelProps) {
  const { value: sample, error, reload } = useLoaded(() => callText("GET", `schema?${scope(database, container)}`).then(readSample), [database, container]);
  return (
    <div class="page">
      <div class="row"><h1>Schema of {container}</h1><span class="space" /><Button icon="refresh" onClick={reload}>Look again</Button></div>
      <Problem error={error} />
      {!sample && !error && <Waiting />}
      {sample && (sample.sampled === 0 ? <Empty>There are no items to look at.</Empty> : <>
        <p class="hint">{sample.sampled >= sample.documents ? `All ${count(sample.sampled)} items were looked at.` : `${count(sample.sampled)} of ${count(sample.documents)} items were looked at, from places spread over the order in which they were added. What is rare may be missing here.`} A container has no schema of its own: this is what its items have in common.</p>
        <Shapes sample={sample} database={database} container={container} />
        <Properties sample={sample} />
      </>)}
    </div>
  );
}

function Shapes({ sample, database, container }: { sample: Sample; database: string; container: string }) {
  const everywhere = useMemo(() => new Set(sample.shapes[0]?.names.filter((name) => sample.shapes.every((shape) => shape.names.includes(name))) ?? []), [sample]);
  return (
    <section aria-label="Kinds of items">
      <h2>Kinds of items</h2>
      <p class="hint">Items with the same properties at the top are one kind. {everywhere.size > 0 && sample.shapes.length > 1 && <>All have <code>{[...everywhere].join(", ")}</code>.</>}</p>
      <ul class="cards">
        {sample.shapes.map((shape) => (
          <li key={shape.names.join("\u0000")}>
            <div class="card-head"><strong>{title(shape)}</strong><span class="muted">{percent(shape.count, sample.sampled)}, {count(shape.count)} items</span></div>
            <p><code>{(sample.shapes.length > 1 ? shape.names.filter((name) => !everywhere.has(name)) : shape.names).join(", ") || "nothing else"}</code></p>
            <Button icon="query" onClick={() => openTab("query", database, container, { sql: queryOf(shape, sample) })}>Query these items</Button>
          </li>
        ))}
      </ul>
      {sample.otherShapes > 0 && <p class="hint">{count(sample.otherShapes)} more items of the sample are of other kinds.</p>}
    </section>
  );
}

/** What tells kinds apart by custom is a better name than a list of properties. */
const DISCRIMINATORS = ["type", "kind", "_type", "docType", "documentType", "entityType", "discriminator", "$type"];
const discriminator = (shape: Shape) => DISCRIMINATORS.find((name) => typeof shape.constants.get(name) === "string");
const title = (shape: Shape) => {
  const name = discriminator(shape);
  return name ? `${name} = ${show(shape.constants.get(name))}` : `${shape.names.length} properties`;
};

function queryOf(shape: Shape, sample: Sample): string {
  const name = discriminator(shape);
  if (name) return `SELECT * FROM c WHERE ${expression([name])} = ${JSON.stringify(shape.constants.get(name))}`;
  const all = [...new Set(sample.shapes.flatMap((other) => other.names))];
  const conditions = all.filter((property) => sample.shapes.some((other) => other.names.includes(property) !== shape.names.includes(property)))
    .map((property) => `${shape.names.includes(property) ? "" : "NOT "}IS_DEFINED(${expression([property])})`);
  return `SELECT * FROM c${conditions.length ? ` WHERE ${conditions.slice(0, 20).join(" AND ")}` : ""}`;
}

function Properties({ sample }: { sample: Sample }) {
  const [text, setText] = useState("");
  const byPath = useMemo(() => new Map(sample.paths.map((property) => [key(property.path), property])), [sample]);
  const shown = sample.paths.filter((property) => named(property.path).toLowerCase().includes(text.toLowerCase()));
  return (
    <section aria-label="Properties">
      <div class="row"><h2>Properties</h2><span class="space" /><input type="search" aria-label="Filter the properties" placeholder="Filter" value={text} onInput={(event) => setText(event.currentTarget.value)} /></div>
      <div class="table-scroll" tabIndex={0} role="group" aria-label="Table of the properties">
        <table class="schema">
          <thead><tr><th scope="col">Property</th><th scope="col">In</th><th scope="col"><span class="visually-hidden">Share</span></th><th scope="col">Types</th><th scope="col">From, to</th><th scope="col">Most frequent values</th></tr></thead>
          <tbody>{shown.map((property) => <Line key={key(property.path)} property={property} whole={wholeOf(property, sample, byPath)} />)}</tbody>
        </table>
      </div>
      {shown.length === 0 && <p class="hint">No property is called so.</p>}
    </section>
  );
}

function Line({ property, whole }: { property: Property; whole: number }) {
  const found = total(property.types);
  const types = Object.entries(property.types).sort((left, right) => right[1] - left[1]);
  return (
    <tr>
      <th scope="row"><code style={{ paddingLeft: `${(property.path.length - 1) * 14}px` }} title={named(property.path)}>{property.path.at(-1) === "[]" ? "each element" : property.path.at(-1)}</code></th>
      <td class="number">{property.path.at(-1) === "[]" ? "" : percent(found, whole)}</td>
      <td class="share">{property.path.at(-1) !== "[]" && <span style={{ width: `${Math.min(100, (100 * found) / Math.max(1, whole))}%` }} />}</td>
      <td>{types.map(([type, n]) => (types.length === 1 ? type : `${type} ${percent(n, found)}`)).join(", ")}</td>
      <td class="cut">{rangesOf(property).join("; ")}</td>
      <td class="cut">{property.values.slice(0, 5).map((value) => show(value)).join(", ")}</td>
    </tr>
  );
}
