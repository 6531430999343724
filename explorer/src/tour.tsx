// Short tours of the samples: each step says what a model costs and lets the server prove it with measured charges.
import { useState } from "preact/hooks";
import { canWrite, documentPath, query, wire } from "./api.ts";
import { at, format, parse } from "./json.ts";
import { RENAMED, isSample } from "./samples.ts";
import { sampleOf } from "./sample_card.tsx";
import type { PanelProps } from "./shell.tsx";
import { openTab, overview, updateTab } from "./state.ts";
import { Button, Problem, Waiting, count, units, useLoaded } from "./ui.tsx";

interface Measured {
  requests: number;
  charge: number;
  text: string;
}
interface Way {
  name: string;
  writes?: boolean;
  /** In the database that the sample is in. */
  run: (database: string) => Promise<Measured>;
}
interface Step {
  title: string;
  text: string;
  ways: Way[];
  /** A container and a query. */
  look?: [string, string];
}

const key = (value: string) => ({ headers: { "x-ms-documentdb-partitionkey": JSON.stringify([value]) } });
async function read(database: string, container: string, id: string, partition = id): Promise<Measured> {
  const answer = await wire("GET", documentPath(database, container, id), key(partition));
  return { requests: 1, charge: answer.charge, text: answer.text };
}
async function ask(database: string, container: string, sql: string): Promise<Measured> {
  const answer = await query({ database, container, sql, pageSize: 1000 });
  return { requests: 1, charge: answer.charge, text: `[${answer.rows.join(",")}]` };
}
async function set(database: string, container: string, id: string, path: string, value: unknown): Promise<Measured> {
  const answer = await wire("PATCH", documentPath(database, container, id), { ...key(id), body: JSON.stringify({ operations: [{ op: "set", path, value }] }) });
  return { requests: 1, charge: answer.charge, text: answer.text };
}
const sum = (all: Measured[]): Measured => ({ requests: all.reduce((n, m) => n + m.requests, 0), charge: all.reduce((n, m) => n + m.charge, 0), text: all.at(-1)?.text ?? "" });

async function bookWithAuthors(database: string): Promise<Measured> {
  const book = await read(database, "books", "b1");
  const ids = at(parse(book.text), ["authors"]);
  const authors = await Promise.all((Array.isArray(ids) ? ids : []).map((id) => read(database, "authors", String(id))));
  return { ...sum([book, ...authors]), text: `[${[book, ...authors].map((m) => m.text).join(",")}]` };
}
async function renameEverywhere(database: string): Promise<Measured> {
  const found = await ask(database, "embedded", 'SELECT c.id, c.authors FROM c JOIN a IN c.authors WHERE a.id = "a1"');
  const rows = parse(found.text);
  const writes: Measured[] = [];
  for (const row of Array.isArray(rows) ? rows : []) {
    const authors = at(row, ["authors"]);
    const place = Array.isArray(authors) ? authors.findIndex((author) => at(author, ["id"]) === "a1") : -1;
    if (place >= 0) writes.push(await set(database, "embedded", String(at(row, ["id"])), `/authors/${place}/name`, "Mara Lindqvist-Ode"));
  }
  return sum([found, ...writes]);
}

const LIBRARY: Step[] = [
  { title: "One book, read whole", text: "A book that holds its authors is read in one go: one request, about one request unit. With references the book is read first and then each author, so the client waits twice and pays for every read.",
    ways: [{ name: "Embedded: one read", run: (db) => read(db, "embedded", "b1") }, { name: "Referenced: book, then authors", run: bookWithAuthors }], look: ["embedded", "SELECT * FROM c WHERE c.id = \"b1\""] },
  { title: "An author changes her name", text: "What is embedded is copied: a change must find and rewrite every copy. A reference is written once. Embed what rarely changes; refer to what changes often or is shared by many.",
    ways: [{ name: "Embedded: every book of hers", writes: true, run: renameEverywhere }, { name: "Referenced: one write", writes: true, run: (db) => set(db, "authors", "a1", "/name", RENAMED) }], look: ["authors", "SELECT c.id, c.name, c.countOfBooks FROM c"] },
  { title: "Counting, or knowing", text: "Each author knows how many books there are (countOfBooks). Reading that number costs one read; counting the books costs a query. Worth it where reads are many and writes are few, if both are written in one transaction.",
    ways: [{ name: "Read the stored number", run: (db) => read(db, "authors", "a1") }, { name: "Count in a query", run: (db) => ask(db, "books", 'SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.authors, "a1")') }] },
  { title: "The rule of thumb", text: "Embed when the data is read together, belongs to one parent, stays small and changes rarely. Refer when it grows without bound, is shared, or changes often. And mix: a book may hold each author's id and name, and leave the rest to the author's own item.",
    ways: [{ name: "Names from the embedded copies", run: (db) => ask(db, "embedded", "SELECT c.title, ARRAY(SELECT VALUE a.name FROM a IN c.authors) AS names FROM c WHERE c.year > 2010") }], look: ["embedded", "SELECT c.title, c.year, c.price FROM c ORDER BY c.price DESC"] },
];
const BLOG: Step[] = [
  { title: "A post with everything around it", text: "Posts, comments and likes share the partition key postId, so a post and all its comments are one query in one partition. Were comments an array in the post, a popular post would grow without bound.",
    ways: [{ name: "One partition", run: (db) => ask(db, "posts", 'SELECT * FROM c WHERE c.postId = "p3" AND c.type IN ("post", "comment")') }, { name: "The post alone", run: (db) => read(db, "posts", "p3", "p3") }], look: ["posts", 'SELECT * FROM c WHERE c.postId = "p3"'] },
  { title: "Copied user names", text: "Each comment holds its writer's name beside the id: a page of comments needs no further reads. The price is paid when a user changes the name, which is rare.",
    ways: [{ name: "Comments with names", run: (db) => ask(db, "posts", 'SELECT c.userUsername, c.content FROM c WHERE c.postId = "p3" AND c.type = "comment"') }, { name: "Each user read by id", run: async (db) => { const users = await Promise.all(["u1", "u2", "u3", "u4"].map((id) => read(db, "users", id))); return sum(users); } }] },
  { title: "Questions across partitions", text: "The newest posts of all are spread over all partitions, so this query visits every range. It is fine now and then; where it is the front page, keep a second container fed by the change feed.",
    ways: [{ name: "Newest posts, everywhere", run: (db) => ask(db, "posts", 'SELECT TOP 5 c.title, c.creationDate FROM c WHERE c.type = "post" ORDER BY c.creationDate DESC') }, { name: "Posts of one partition", run: (db) => ask(db, "posts", 'SELECT c.title FROM c WHERE c.postId = "p1" AND c.type = "post"') }], look: ["posts", 'SELECT c.type, COUNT(1) AS n FROM c GROUP BY c.type'] },
  { title: "Counters beside the data", text: "A post knows how many comments and likes it has. The list of posts shows them without counting, and a stored procedure keeps them right in the same transaction as the comment.",
    ways: [{ name: "Stored counters", run: (db) => ask(db, "posts", 'SELECT c.id, c.commentCount, c.likeCount FROM c WHERE c.type = "post" AND c.postId = "p3"') }, { name: "Counted", run: (db) => ask(db, "posts", 'SELECT VALUE COUNT(1) FROM c WHERE c.postId = "p3" AND c.type = "comment"') }] },
];

export function Tour({ tab }: PanelProps) {
  const sample = sampleOf(tab.state.of);
  const database = tab.state.in ?? "";
  // Links may name any database: nothing is measured, and nothing written, in one that does not hold the sample.
  const { value: isThere, error } = useLoaded(async () => database !== "" && isSample(sample.make(), database), [tab.state.of, database, !!overview.value?.some((d) => d.id === database)]);
  const steps = tab.state.of === "blog" ? BLOG : LIBRARY;
  const at = Math.min(Number(tab.state.step ?? 0) || 0, steps.length - 1);
  const step = steps[at]!;
  const go = (next: number) => updateTab(tab.key, { step: String(next) });
  return (
    <div class="page tour">
      <p class="muted">{sample.title}{isThere ? ` in the database ${database}` : ""} · step {at + 1} of {steps.length}</p>
      <h1>{step.title}</h1>
      <p class="lead">{step.text}</p>
      <Problem error={error} />
      {isThere === undefined && !error && <Waiting />}
      {isThere === false && <div class="notice" role="status">{database ? `The database ${database} does not hold this sample.` : "This sample is not loaded."} The tour can be read; to measure, load the sample on the <a href="#/home">welcome page</a>.</div>}
      {isThere && <div class="ways" key={`${tab.state.of}${at}`}>{step.ways.map((way) => <WayCard key={way.name} way={way} database={database} />)}</div>}
      <div class="row">
        <Button icon="back" disabled={at === 0} onClick={() => go(at - 1)}>Back</Button>
        <Button look="primary" disabled={at === steps.length - 1} onClick={() => go(at + 1)}>Next</Button>
        {step.look && isThere && <Button icon="query" onClick={() => openTab("query", database, step.look![0], { sql: step.look![1] })}>Look for yourself</Button>}
      </div>
    </div>
  );
}

function WayCard({ way, database }: { way: Way; database: string }) {
  const [measured, setMeasured] = useState<Measured | null>(null);
  const [error, setError] = useState("");
  const run = () => way.run(database).then((m) => { setMeasured(m); setError(""); }, (e: Error) => { setMeasured(null); setError(e.message); });
  return (
    <section class="card" aria-label={way.name}>
      <h2>{way.name}</h2>
      <Button icon="run" disabled={way.writes && !canWrite()} onClick={() => void run()}>Measure</Button>
      <div role="status">{measured && <p class="measure"><strong>{units(measured.charge)}</strong> in {count(measured.requests)} request{measured.requests === 1 ? "" : "s"}</p>}</div>
      <Problem error={error} />
      {measured && <details><summary>Answer</summary><pre>{format(measured.text)}</pre></details>}
    </section>
  );
}
