// What every test begins with: a server per worker, a page that is signed in, and eyes on the page: a console error, a
// breach of the content policy or a request to anybody else fails the test.
//
// EXPLORER_ASSETS names a folder whose files are shown instead of the embedded ones, for work on the page.
import { test as base, expect } from "@playwright/test";
import AxeBuilder from "@axe-core/playwright";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { KEY, Server } from "./server.js";

const assets = process.env.EXPLORER_ASSETS;
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

async function showFolder(page) {
  await page.route("**/_explorer/**", async (route) => {
    const name = new URL(route.request().url()).pathname.replace(/^\/_explorer\/?(assets\/)?/, "") || "index.html";
    const file = path.join(assets, name);
    if (name.startsWith("api/") || !existsSync(file)) return route.continue();
    // The content policy of the real page holds for the file as well.
    const real = await route.fetch({ url: new URL("/_explorer/", route.request().url()).href }).catch(() => null);
    if (!real) return; // The page was left meanwhile.
    await route.fulfill({ body: await readFile(file), headers: { "content-type": TYPES[path.extname(file)], "content-security-policy": real.headers()["content-security-policy"] ?? "" } }).catch(() => {});
  });
}

/** Whatever goes wrong in the page is written down. */
async function watch(page, server, faults) {
  if (assets) await showFolder(page);
  page.on("console", (message) => {
    // Chromium reports every refused answer as an error of the console; the page handles those.
    if (message.type() === "error" && !/Failed to load resource: the server responded/.test(message.text())) faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`page: ${error.stack}`));
  page.on("dialog", (dialog) => { faults.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
  page.on("request", (request) => { if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== server.origin) faults.push(`request: ${request.url()}`); });
  await page.addInitScript(() => document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
}

export const test = base.extend({
  server: [async ({}, use) => { const server = await Server.start(); await use(server); await server.stop(); }, { scope: "worker" }],
  /** A server that nobody else has used, with a link to sign in with. */
  empty: async ({}, use) => { const server = await Server.start({ terminal: true }); await use(server); await server.stop(); },
  /** What went wrong in the page besides what the test looks at; a test that provokes an answer of an error clears it. */
  faults: async ({}, use) => { const faults = []; await use(faults); expect(faults).toEqual([]); },
  page: async ({ page, server, faults }, use) => {
    await watch(page, server, faults);
    await use(page);
  },
  /** Another window of the same browser. */
  another: async ({ page, server, faults }, use) => use(async () => {
    const other = await page.context().newPage();
    await watch(other, server, faults);
    return other;
  }),
  /** A page in a browser that knows nothing of the others. */
  stranger: async ({ browser, faults }, use) => {
    const contexts = [];
    await use(async (server) => {
      const context = await browser.newContext();
      contexts.push(context);
      const page = await context.newPage();
      await watch(page, server, faults);
      return page;
    });
    for (const context of contexts) await context.close();
  },
  /** Signs in and goes to an address of the page, such as `#/items/db/container`. */
  open: async ({ page, server }, use) => {
    await use(async (hash = "", { readOnly = false } = {}) => {
      await page.goto(`${server.origin}/_explorer/`);
      await page.evaluate(async ({ key, readOnly }) => {
        const answer = await fetch("/_explorer/api/session", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ key, readOnly }) });
        localStorage.setItem("astrarium.pageToken", (await answer.json()).pageToken);
      }, { key: KEY, readOnly });
      await page.goto("about:blank");
      await page.goto(`${server.origin}/_explorer/${hash}`);
      await expect(page.getByRole("banner")).toBeVisible();
    });
  },
});

let names = 0;
/** A name that no other test of this run uses. */
export const unique = (word) => `${word}${process.pid}x${++names}`;

/** Replaces the text of a CodeMirror editor, as a person would. */
export async function type(page, label, text) {
  const editor = page.getByRole("textbox", { name: label, exact: true });
  await editor.focus();
  await expect(editor).toBeFocused();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(text);
}

/** The whole page, or a part of it: most of the page is the same in all panels, and looking at it takes seconds. */
export async function expectAccessible(page, part) {
  // Panels are loaded when they are first shown.
  await page.locator("h1").first().waitFor({ state: "attached" });
  const builder = new AxeBuilder({ page });
  const result = await (part ? builder.include(part) : builder).analyze();
  expect(result.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => `${n.html.slice(0, 200)} ${n.failureSummary}`).slice(0, 3).join(" | ")}`)).toEqual([]);
}
export { expect };
