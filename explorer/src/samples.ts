// Sample data, made over the wire like anybody's: books and authors in three models, and a blog platform.
import { ApiError, documentsPath, partitionKeyHeader, wire } from "./api.ts";
import { parse } from "./json.ts";

export interface Sample {
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

const unlessThere = (promise: Promise<unknown>) => promise.catch((error: unknown) => { if (!(error instanceof ApiError && error.status === 409)) throw error; });

/** Loads a sample; what is there already stays as it is. */
export async function load(sample: Sample, progress: (done: number, total: number) => void): Promise<void> {
  await unlessThere(wire("POST", "dbs", { body: JSON.stringify({ id: sample.database }) }));
  const total = sample.containers.reduce((sum, c) => sum + c.documents.length, 0);
  let done = 0;
  for (const { id, key, documents } of sample.containers) {
    await unlessThere(wire("POST", `dbs/${sample.database}/colls`, { body: JSON.stringify({ id, partitionKey: { paths: [key], kind: "Hash", version: 2 } }) }));
    let next = 0;
    const worker = async () => {
      while (next < documents.length) {
        const body = JSON.stringify(documents[next++]);
        await wire("POST", documentsPath(sample.database, id), { body, headers: { "x-ms-documentdb-is-upsert": "true", "x-ms-documentdb-partitionkey": partitionKeyHeader(parse(body), [key]) } });
        progress(++done, total);
      }
    };
    await Promise.all(Array.from({ length: 6 }, worker));
  }
}
