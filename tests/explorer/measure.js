// How fast the page is: first paint, and frames while a table of 100,000 rows scrolls. Prints figures; nothing is tested.
import { chromium } from "@playwright/test";
import { Server } from "./server.js";

const ROWS = 100_000;
const server = await Server.start({ terminal: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();

async function paints(count) {
  const found = [];
  for (let i = 0; i < count; i++) {
    await page.goto("about:blank");
    await page.goto(`${server.origin}/_explorer/`);
    await page.getByRole("banner").waitFor();
    found.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
  }
  return found.sort((a, b) => a - b);
}

/** Batches of one partition, as a client would send them. */
async function fill() {
  await server.database("many");
  await server.container("many", "rows");
  const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  let next = 0;
  const worker = async () => {
    while (next < ROWS) {
      const from = next;
      next += 100;
      const key = String(from);
      const body = Array.from({ length: 100 }, (_, i) => ({ operationType: "Create", resourceBody: { id: `row-${from + i}`, pk: key, number: from + i, name: `Name of row ${from + i}`, city: ["Oslo", "Rome", "Lima"][i % 3], price: (i * 13) % 97 } }));
      for (;;) {
        try {
          await server.wire("POST", "dbs/many/colls/rows/docs", { body, headers: { "x-ms-documentdb-partitionkey": JSON.stringify([key]), "x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true" } });
          break;
        } catch (error) {
          if (!/: 429 /.test(error.message)) throw error;
          await wait(20);
        }
      }
    }
  };
  await Promise.all(Array.from({ length: 4 }, worker));
}

/** The times between frames while the table moves from its top to its end. */
function scroll() {
  return page.evaluate(() => new Promise((resolve) => {
    const grid = document.querySelector(".grid");
    const times = [];
    const start = performance.now();
    let last = start;
    const frame = (now) => {
      times.push(now - last);
      last = now;
      const part = (now - start) / 4000;
      if (part >= 1) return resolve({ times: times.slice(1), top: grid.scrollTop, empty: grid.querySelectorAll(".grid-row").length });
      grid.scrollTop = part * (grid.scrollHeight - grid.clientHeight);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }));
}

try {
  await page.goto(server.link);
  await page.getByRole("banner").waitFor();
  const painted = await paints(9);
  console.log(`first contentful paint: median ${painted[4].toFixed(0)} ms, worst of ${painted.length} ${painted.at(-1).toFixed(0)} ms`);
  await fill();
  await page.goto(`${server.origin}/_explorer/#/items/many/rows`);
  const began = Date.now();
  await page.getByRole("button", { name: "Load all" }).click();
  await page.getByText(/^100,000 items/).waitFor({ timeout: 300_000 });
  console.log(`loading ${ROWS} rows: ${((Date.now() - began) / 1000).toFixed(1)} s`);
  const { times, top } = await scroll();
  const sorted = [...times].sort((a, b) => a - b);
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
  console.log(`scrolling ${ROWS} rows to ${Math.round(top)} px: ${(1000 / mean).toFixed(1)} frames a second, 95 % within ${sorted[Math.floor(times.length * 0.95)].toFixed(1)} ms, longest ${sorted.at(-1).toFixed(1)} ms`);
} finally {
  await browser.close();
  await server.stop();
}
