// Sample data, written through the public protocol: books and authors in three models, and a blog platform.
//
// Invariants
// - A sample is created in a new database and overwrites nothing.
// - Removing deletes only documents that are as the sample created them, each by its etag; containers and the database only when
//   they are empty.
import { ApiError, containerPath, databasePath, documentPath, documentsPath, list, partitionKeyHeader, query, wire, type Parameter } from "./api.ts";
import { at, parse, write, type Value } from "./json.ts";

export interface Sample {
  /** What it is called, and its database after “sample-”. */
  database: string;
  containers: { id: string; key: string; documents: Record<string, unknown>[] }[];
}

const AUTHORS = ["Mara Lindqvist", "Tomás Arriaga", "Ifeoma Okafor", "Jun Watanabe", "Leila Haddad", "Piet de Graaf", "Anouk Marchand", "Ravi Menon"];
const TITLES = ["Tides and Tables", "The Patient Index", "Salt Roads", "A Map of Small Hours", "Letters to a Lighthouse", "The Copper Garden", "Northern Arithmetic", "Seven Bridges Home", "The Glass Orchard", "Quiet Engines", "An Atlas of Rain", "The Ferryman's Ledger", "Winter Grammar", "The Paper Observatory", "Harbour Lights", "Of Moss and Iron", "The Second Meridian", "Cartographers", "The Long Shelf", "Clockwork Herbarium"];
const PUBLISHERS = ["Meridian Press", "Blue Heron Books", "Kestrel House"];

/** The same books three times: all in one, by reference, and a mixture. */
export function librarySample(): Sample {
  const authors = AUTHORS.map((name, i) => ({ id: `a${i + 1}`, type: "author", name, born: 1950 + i * 5, countOfBooks: TITLES.filter((_, b) => authorsOf(b).includes(i)).length, books: TITLES.flatMap((_, b) => (authorsOf(b).includes(i) ? [`b${b + 1}`] : [])) }));
  const book = (b: number) => ({ id: `b${b + 1}`, type: "book", title: TITLES[b]!, year: 1990 + (b * 7) % 34, pages: 120 + (b * 53) % 400, price: 9.5 + (b % 6) * 2.25, publisher: PUBLISHERS[b % 3]! });
  return {
    database: "library",
    containers: [
      { id: "embedded", key: "/id", documents: TITLES.map((_, b) => ({ ...book(b), authors: authorsOf(b).map((a) => ({ id: `a${a + 1}`, name: AUTHORS[a]!, born: 1950 + a * 5 })) })) },
      { id: "books", key: "/id", documents: TITLES.map((_, b) => ({ ...book(b), authors: authorsOf(b).map((a) => `a${a + 1}`) })) },
      { id: "authors", key: "/id", documents: authors },
    ],
  };
}
export const authorsOf = (book: number): number[] => [...new Set([book % AUTHORS.length, ...(book % 3 === 0 ? [(book * 3 + 1) % AUTHORS.length] : [])])];

const POSTS = 15;
/** Posts, comments and likes share the partition of their post; users have a container of their own. */
export function blogSample(): Sample {
  const users = AUTHORS.map((name, i) => ({ id: `u${i + 1}`, userId: `u${i + 1}`, type: "user", username: name.split(" ")[0]!.toLowerCase() }));
  const posts: Record<string, unknown>[] = [];
  for (let p = 1; p <= POSTS; p++) {
    const [comments, likes] = [2 + (p * 5) % 9, (p * 7) % 11];
    posts.push({ id: `p${p}`, postId: `p${p}`, type: "post", userId: `u${1 + (p % users.length)}`, userUsername: users[p % users.length]!.username, title: TITLES[p % TITLES.length], content: `What I learned about ${TITLES[p % TITLES.length]!.toLowerCase()}, part ${p}. `.repeat(6), creationDate: `2026-0${1 + (p % 9)}-1${p % 10}`, commentCount: comments, likeCount: likes });
    for (let c = 1; c <= comments; c++) posts.push({ id: `p${p}-c${c}`, postId: `p${p}`, type: "comment", userId: `u${1 + ((p + c) % users.length)}`, userUsername: users[(p + c) % users.length]!.username, content: `Comment ${c} on post ${p}.`, creationDate: `2026-0${1 + (p % 9)}-2${c % 9}` });
    for (let l = 1; l <= likes; l++) posts.push({ id: `p${p}-l${l}`, postId: `p${p}`, type: "like", userId: `u${1 + ((p * 2 + l) % users.length)}`, creationDate: `2026-0${1 + (p % 9)}-2${l % 9}` });
  }
  return { database: "blog", containers: [{ id: "posts", key: "/postId", documents: posts }, { id: "users", key: "/userId", documents: users }] };
}

/** How many items a sample has. */
export const itemCount = (sample: Sample) => sample.containers.reduce((sum, c) => sum + c.documents.length, 0);

/** A name that no database has: the sample's own, or with a number. */
export function freeName(sample: Sample, taken: readonly string[]): string {
  const name = `sample-${sample.database}`;
  let free = name;
  for (let number = 2; taken.includes(free); number++) free = `${name}-${number}`;
  return free;
}

const WORKERS = 6;
async function forEach<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => { while (next < all.length) await work(all[next++]!); };
  await Promise.all(Array.from({ length: WORKERS }, worker));
}
const keyHeader = (document: Record<string, unknown>, key: string) => partitionKeyHeader(parse(JSON.stringify(document)), [key]);

/** The database is there already. */
export class NameTaken extends Error {}

/** Makes the sample in a database of its own; a database that is there is left as it is. */
export async function load(sample: Sample, database: string, progress: (done: number, total: number) => void): Promise<void> {
  try {
    await wire("POST", "dbs", { body: JSON.stringify({ id: database }) });
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 409)) throw error;
    throw new NameTaken(`There is a database ${database} already, and nothing in it was touched. Choose another name, or delete that database first.`);
  }
  let done = 0;
  for (const { id, key, documents } of sample.containers) {
    await wire("POST", `${databasePath(database)}/colls`, { body: JSON.stringify({ id, partitionKey: { paths: [key], kind: "Hash", version: 2 } }) });
    await forEach(documents, async (document) => {
      await wire("POST", documentsPath(database, id), { body: JSON.stringify(document), headers: { "x-ms-documentdb-partitionkey": keyHeader(document, key) } });
      progress(++done, itemCount(sample));
    });
  }
}

/** The same text for the same data. The tour renames one author; that does not count as a change by the user. */
export const RENAMED = "Mara Lindqvist-Ode";
function sameText(value: Value): string {
  if (value instanceof Map) return `{${[...value].filter(([name]) => !name.startsWith("_")).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, field]) => `${JSON.stringify(name)}:${sameText(field)}`).join(",")}}`;
  if (Array.isArray(value)) return `[${value.map(sameText).join(",")}]`;
  return write(value === RENAMED ? AUTHORS[0]! : value);
}

/** What is in a database beside what its sample made of it. */
export interface Inventory {
  /** Items as the sample made them: container, id, key and etag. */
  own: { container: string; id: string; key: string; etag: string }[];
  /** Items that were changed or added, by container and id; not all where they are many. */
  foreign: string[];
  /** Containers that the sample has no part in. */
  containers: string[];
  /** The sample's containers that are there. */
  made: string[];
}
interface Resource {
  id: string;
  _etag: string;
}
const FOREIGN_MAX = 100;
export async function takeInventory(sample: Sample, database: string): Promise<Inventory> {
  const found: Inventory = { own: [], foreign: [], containers: [], made: [] };
  for (const { id: container } of await list<Resource>(`${databasePath(database)}/colls`)) {
    const part = sample.containers.find((c) => c.id === container);
    if (!part) {
      found.containers.push(container);
      continue;
    }
    found.made.push(container);
    const expected = new Map(part.documents.map((document) => [String(document.id), sameText(parse(JSON.stringify(document)))]));
    // The container may have grown to any size: only the documents of the sample are read, and the ids of a few others.
    const parameters = [{ name: "@ids", value: JSON.stringify([...expected.keys()]) }];
    for (const row of await everyRow(database, container, "SELECT * FROM c WHERE ARRAY_CONTAINS(@ids, c.id)", parameters, 2 * expected.size)) {
      const value = parse(row);
      const id = String(at(value, ["id"]));
      if (expected.get(id) === sameText(value)) found.own.push({ container, id, key: partitionKeyHeader(value, [part.key]), etag: String(at(value, ["_etag"])) });
      else found.foreign.push(`${container}/${id}`);
    }
    const others = await everyRow(database, container, `SELECT TOP ${FOREIGN_MAX} VALUE c.id FROM c WHERE NOT ARRAY_CONTAINS(@ids, c.id)`, parameters, FOREIGN_MAX);
    found.foreign.push(...others.map((id) => `${container}/${String(parse(id))}`));
  }
  return found;
}
async function everyRow(database: string, container: string, sql: string, parameters: Parameter[], countMax: number): Promise<string[]> {
  const rows: string[] = [];
  let continuation = "";
  do {
    const page = await query({ database, container, sql, parameters, pageSize: 1000, continuation });
    for (const row of page.rows) rows.push(row);
    continuation = page.continuation;
  } while (continuation && rows.length < countMax);
  return rows.slice(0, countMax);
}

/** Removes the items of an inventory that are still as they were, then containers and the database, if nothing else is in them. */
export async function remove(database: string, inventory: Inventory): Promise<{ isGone: boolean; left: string[] }> {
  await forEach(inventory.own, async ({ container, id, key, etag }) => {
    await wire("DELETE", documentPath(database, container, id), { headers: { "x-ms-documentdb-partitionkey": key, "if-match": etag } }).catch((error: unknown) => {
      // Changed or deleted meanwhile: it is none of the sample's any more.
      if (!(error instanceof ApiError && (error.status === 412 || error.status === 404))) throw error;
    });
  });
  const left: string[] = [];
  for (const { id, _etag } of await list<Resource>(`${databasePath(database)}/colls`)) {
    const path = containerPath(database, id);
    const isOwn = inventory.made.includes(id);
    const scripts = isOwn ? (await Promise.all(["sprocs", "triggers", "udfs"].map((kind) => list<Resource>(`${path}/${kind}`)))).flat() : [];
    const isEmpty = isOwn && !scripts.length && !(await query({ database, container: id, sql: "SELECT TOP 1 c.id FROM c" })).rows.length;
    if (isEmpty) await wire("DELETE", path, { headers: { "if-match": _etag } });
    else left.push(id);
  }
  const users = await list<Resource>(`${databasePath(database)}/users`);
  if (left.length || users.length) return { isGone: false, left };
  const { _etag } = JSON.parse((await wire("GET", databasePath(database))).text) as Resource;
  await wire("DELETE", databasePath(database), { headers: { "if-match": _etag } });
  return { isGone: true, left };
}

/** Whether a database holds the sample: at least half of the titles of its first container, under their ids. */
export async function isSample(sample: Sample, database: string): Promise<boolean> {
  const [{ id: container, documents }] = sample.containers as [Sample["containers"][number]];
  const titles = new Map(documents.flatMap((document) => (typeof document.title === "string" ? [[String(document.id), document.title] as const] : [])));
  try {
    const sql = "SELECT TOP 100 c.id, c.title FROM c WHERE ARRAY_CONTAINS(@titles, c.title)";
    const { rows } = await query({ database, container, sql, parameters: [{ name: "@titles", value: JSON.stringify([...titles.values()]) }] });
    const same = rows.map(parse).filter((row) => titles.get(String(at(row, ["id"]))) === at(row, ["title"]));
    return same.length * 2 >= titles.size;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return false;
    throw error;
  }
}
