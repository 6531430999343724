// Takes the pictures of docs/explorer.md: the real page in Chromium, with data made here. `run pictures` writes them to docs/explorer.
//
// Every picture is waited for by what it is to show, so a page that has changed makes this fail instead of taking a picture of something
// else. Ids, texts and figures of the data are fixed; what the server makes (charges, times) may differ from run to run.
import { chromium } from "@playwright/test";
import { mkdir, stat } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { KEY, Server } from "./server.js";

const BYTES_MAX = 150_000;
const folder = fileURLToPath(new URL("../../docs/explorer/", import.meta.url));
const TITLES = ["Solaris", "Eden", "The Invincible", "Fiasco", "Roadside Picnic", "Hard to Be a God", "The Dispossessed", "The Lathe of Heaven", "Kindred", "Dawn"];
const AUTHORS = ["Lem", "Lem", "Lem", "Lem", "Strugatsky", "Strugatsky", "Le Guin", "Le Guin", "Butler", "Butler"];
const YEARS = [1961, 1959, 1964, 1986, 1972, 1964, 1974, 1971, 1979, 1987];
const QUERY = "SELECT b.author, COUNT(1) AS books, AVG(b.pages) AS pages\nFROM b\nWHERE b.year >= @since\nGROUP BY b.author";

/** A library of ten books in four copies each, and loans of some. */
async function fill(server) {
  await server.database("library");
  await server.container("library", "books", "/author");
  // So much throughput needs several key ranges.
  await server.container("library", "loans", "/reader", {}, { "x-ms-offer-throughput": "30000" });
  for (let i = 0; i < 40; i++) {
    const title = TITLES[i % TITLES.length];
    const author = AUTHORS[i % AUTHORS.length];
    const book = { id: `book-${String(i).padStart(2, "0")}`, author, title, year: YEARS[i % YEARS.length], pages: 180 + ((i * 37) % 240), tags: ["novel", i % 2 ? "paperback" : "hardcover"], shelf: { room: 1 + (i % 3), place: i } };
    await server.document("library", "books", book, author);
  }
  for (let i = 0; i < 60; i++) await server.document("library", "loans", { id: `loan-${i}`, reader: `reader-${i % 17}`, book: `book-${String(i % 40).padStart(2, "0")}`, days: 7 + (i % 21) }, `reader-${i % 17}`);
}

/** Signs in as the tests do, and goes to an address of the page. */
async function open(page, server, hash) {
  await page.goto(`${server.origin}/_explorer/`);
  await page.evaluate(async (key) => {
    const answer = await fetch("/_explorer/api/session", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ key, readOnly: false }) });
    localStorage.setItem("astrarium.pageToken", (await answer.json()).pageToken);
  }, KEY);
  await page.goto("about:blank");
  await page.goto(`${server.origin}/_explorer/${hash}`);
  await page.getByRole("banner").waitFor();
  // The tree shows its containers.
  await page.getByRole("treeitem", { name: "library" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.getByRole("treeitem", { name: "loans" }).waitFor();
}

const query = (more) => `#/query/library/books?${new URLSearchParams({ sql: QUERY, parameters: JSON.stringify([{ name: "@since", value: "1960" }]), ...more })}`;

async function run(page) {
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("region", { name: "Result" }).getByRole("grid").getByText("Strugatsky").first().waitFor();
}

/** The pictures by name: what is opened, and what is done until the page shows it. */
const PICTURES = {
  items: async (page, server) => {
    await open(page, server, "#/items/library/books");
    await page.getByRole("gridcell", { name: "book-04", exact: true }).click();
    await page.getByRole("textbox", { name: "Item as JSON" }).getByText("Roadside Picnic").waitFor();
  },
  query: async (page, server) => {
    await open(page, server, query());
    await run(page);
  },
  plan: async (page, server) => {
    await open(page, server, query());
    await run(page);
    await page.getByRole("radio", { name: "Plan" }).click();
    await page.getByRole("img", { name: /^Plan of/ }).waitFor();
  },
  partitions: async (page, server) => {
    await open(page, server, "#/partitions/library/loans");
    await page.getByRole("img", { name: /^[2-9] key ranges: range / }).waitFor();
  },
  feed: async (page, server) => {
    await open(page, server, "#/feed/library/books");
    await page.getByText("Waiting for changes.").waitFor();
    for (const [id, title] of [["book-40", "Memoirs Found in a Bathtub"], ["book-41", "The Futurological Congress"]]) {
      await server.document("library", "books", { id, author: "Lem", title, year: 1971, pages: 149 }, "Lem");
    }
    await page.getByRole("button", { name: /book-41/ }).click();
    await page.getByRole("textbox", { name: "Change as JSON" }).getByText("Futurological").waitFor();
  },
  inspector: async (page, server) => {
    await server.wire("POST", "dbs/library/colls/books/docs", { body: { query: "SELECT * FROM b WHERE b.author = 'Lem'", parameters: [] }, headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "true", "x-ms-documentdb-partitionkey": '["Lem"]' } });
    // So much text would be a large picture.
    await page.setViewportSize({ width: 1280, height: 560 });
    await open(page, server, "#/inspector");
    await page.getByRole("gridcell", { name: /b\.author = 'Lem'/ }).first().click();
    await page.getByRole("region", { name: /^Request \d+/ }).getByRole("button", { name: "Plan" }).waitFor();
    // The click on the query has moved the table sideways.
    await page.getByRole("grid").first().evaluate((grid) => { grid.scrollLeft = 0; });
  },
};

const server = await Server.start();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
try {
  await mkdir(folder, { recursive: true });
  await fill(server);
  for (const [name, show] of Object.entries(PICTURES)) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, colorScheme: "light", reducedMotion: "reduce" });
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await show(page, server);
    const file = path.join(folder, `${name}.png`);
    await page.screenshot({ path: file, animations: "disabled", caret: "hide" });
    await context.close();
    const { size } = await stat(file);
    if (size > BYTES_MAX) throw new Error(`${name}.png has ${size} bytes, which is more than ${BYTES_MAX}`);
    console.log(`${name}.png: ${size} bytes`);
  }
} finally {
  await browser.close();
  await server.stop();
}
