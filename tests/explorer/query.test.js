import { readFile } from "node:fs/promises";
import { expect, expectAccessible, test, type, unique } from "./fixture.js";

async function tea(server, more = {}) {
  const name = unique("tea");
  await server.database(name);
  await server.container(name, "pots", "/kind", more);
  await Promise.all(Array.from({ length: 25 }, (_, i) => server.document(name, "pots", { id: `p${String(i).padStart(2, "0")}`, kind: i % 2 ? "green" : "black", grams: i * 10, leaf: { origin: i % 3 ? "Assam" : "Uji" } }, i % 2 ? "green" : "black")));
  return name;
}
const address = (name, sql, more = {}) => `#/query/${name}/pots?${new URLSearchParams({ sql, ...more })}`;
const run = (page) => page.getByRole("button", { name: "Run", exact: true }).click();

test("completion knows keywords, functions with help, and the container's own paths and values", async ({ page, server, open }) => {
  const name = await tea(server);
  await open(address(name, ""));
  const editor = page.getByRole("textbox", { name: "Query text" });
  const list = page.getByRole("listbox");
  await editor.click();
  await page.keyboard.type("SEL");
  await expect(list.getByRole("option", { name: /^SELECT/ })).toBeVisible();
  await type(page, "Query text", "SELECT ");
  await page.keyboard.type("STARTSW");
  await expect(list.getByRole("option", { name: /^STARTSWITH/ })).toBeVisible();
  await expect(page.locator(".cm-completionInfo")).toContainText("STARTSWITH(");
  await type(page, "Query text", "SELECT * FROM c WHERE c.leaf.");
  await page.keyboard.press("Control+Space");
  await expect(list.getByRole("option", { name: /^origin/ })).toBeVisible();
  // Not by Enter: the list ignores it in its first moments, so that nobody accepts what he has not seen.
  await list.getByRole("option", { name: /^origin/ }).click();
  await expect(editor).toHaveText("SELECT * FROM c WHERE c.leaf.origin");
  await page.keyboard.type(" = ");
  await page.keyboard.press("Control+Space");
  await expect(list.getByRole("option", { name: /^"Uji"/ })).toBeVisible();
});

test("an error is shown at its place while typing", async ({ page, server, open }) => {
  const name = await tea(server);
  await open(address(name, "SELECT * FROM c"));
  await type(page, "Query text", "SELECT * FROM c WHERE c.grams = = 1");
  await expect(page.locator(".cm-lintRange-error")).toHaveText("=");
  await run(page);
  await expect(page.getByRole("alert")).toBeVisible();
  await type(page, "Query text", "SELECT * FROM c");
  await expect(page.locator(".cm-lintRange-error")).toHaveCount(0);
});

test("parameters, selection, pages and every view", async ({ page, server, open }) => {
  const name = await tea(server);
  await open(address(name, "SELECT c.id, c.grams, c.leaf FROM c WHERE c.grams >= @least ORDER BY c.grams", { parameters: JSON.stringify([{ name: "@least", value: "50" }]), size: "10" }));
  await page.getByRole("textbox", { name: "Query text" }).click();
  await page.keyboard.press("Control+Enter");
  const result = page.getByRole("region", { name: "Result" });
  const grid = result.getByRole("grid");
  await expect(grid.locator('[aria-rowindex="2"]')).toContainText("p05");
  await expect(result.getByText("Page 1", { exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Next page" }).click();
  await expect(result.getByText("Page 2", { exact: false })).toBeVisible();
  await expect(grid.locator('[aria-rowindex="2"]')).toContainText("p15");
  await page.getByRole("button", { name: "Previous page" }).click();
  await expect(grid.locator('[aria-rowindex="2"]')).toContainText("p05");
  await grid.getByRole("button", { name: "grams" }).click();
  await grid.getByRole("button", { name: "grams" }).click();
  await expect(grid.locator('[aria-rowindex="2"]')).toContainText("p14");
  await page.getByRole("radio", { name: "JSON" }).click();
  await expect(page.getByRole("textbox", { name: "Result as JSON" })).toContainText('"origin": "Assam"');
  await page.getByRole("radio", { name: "Tree" }).click();
  await expect(result.getByText("3 fields").first()).toBeVisible();
  await page.getByRole("radio", { name: "Chart" }).click();
  await expect(page.getByRole("img", { name: /^Chart of grams over id, 10 points/ }).locator("canvas")).toBeVisible();
  await page.getByRole("radio", { name: "Statistics" }).click();
  await expect(result.getByText("Documents read")).toBeVisible();
  // The selection alone runs.
  await type(page, "Query text", "SELECT VALUE 41 + 1 FROM c OFFSET 0 LIMIT 1\nnot SQL at all");
  await page.keyboard.press("Escape");
  await page.getByRole("radio", { name: "Table" }).click();
  await page.getByRole("textbox", { name: "Query text" }).focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("Shift+End");
  await page.keyboard.press("Control+Enter");
  await expect(grid.getByRole("gridcell", { name: "42" })).toBeVisible();
});

test("a running query can be cancelled", async ({ page, server, open }) => {
  const name = await tea(server);
  let go;
  const cancelled = new Promise((resolve) => { go = resolve; });
  await page.route("**/docs", async (route) => { await cancelled; await route.continue().catch(() => {}); });
  await open(address(name, "SELECT * FROM c"));
  await run(page);
  await page.getByRole("button", { name: "Cancel" }).click();
  await expect(page.getByRole("alert")).toHaveText("Cancelled.");
  await expect(page.getByRole("button", { name: "Run", exact: true })).toBeVisible();
  go();
});

test("a slow query that is cancelled, or whose tab is left, is not worked on any longer", async ({ empty: server, stranger }) => {
  await server.database("slow");
  await server.container("slow", "c");
  await server.document("slow", "c", { id: "1", pk: "a", x: Array.from({ length: 700 }, (_, i) => i) }, "a");
  const page = await stranger(server);
  await page.goto(server.link);
  await expect(page.getByRole("banner")).toBeVisible();
  await page.goto(`${server.origin}/_explorer/#/query/slow/c?${new URLSearchParams({ sql: "SELECT VALUE COUNT(1) FROM c JOIN a IN c.x JOIN b IN c.x JOIN d IN c.x WHERE a + b + d = 5" })}`);
  /** Milliseconds of processor that the server uses in two seconds: a tenth of them would still be much, on a busy machine. */
  const work = async () => {
    const before = server.processorMilliseconds();
    await new Promise((go) => setTimeout(go, 2000));
    return server.processorMilliseconds() - before;
  };
  const stop = { cancel: () => page.getByRole("button", { name: "Cancel" }).click(), leave: () => page.keyboard.press("Alt+w") };
  for (const way of ["cancel", "leave"]) {
    await run(page);
    const before = server.processorMilliseconds();
    // It works, and is not done before we have seen that.
    await expect.poll(() => server.processorMilliseconds() - before).toBeGreaterThan(300);
    await expect(page.getByRole("button", { name: "Cancel" })).toBeVisible();
    await stop[way]();
    await expect.poll(work, { intervals: [0] }).toBeLessThan(60);
    if (way === "cancel") await expect(page.getByRole("alert")).toHaveText("Cancelled.");
    else await expect(page.getByRole("tab")).toHaveCount(0);
  }
});

test("the whole result is exported, not the page that is shown", async ({ page, server, open }) => {
  const name = await tea(server);
  await server.document(name, "pots", '{"id":"zz","kind":"black","grams":1,"note":"=1+1, \\"quoted\\"","exact":0.1234567890123456789}', "black");
  await open(address(name, "SELECT * FROM c", { size: "10" }));
  await run(page);
  await expect(page.getByText(/^10 rows/)).toBeVisible();
  const exported = async (format) => {
    await page.getByRole("button", { name: "Export the whole result" }).click();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name: `Export all as ${format}`, exact: true }).click()]);
    return readFile(await file.path(), "utf8");
  };
  expect((await exported("JSON lines")).trim().split("\n")).toHaveLength(26);
  expect(JSON.parse(await exported("JSON"))).toHaveLength(26);
  const csv = await exported("CSV");
  expect(csv.trim().split("\r\n")).toHaveLength(27);
  expect(csv).toContain(`"'=1+1, ""quoted"""`);
});

test("index advice is applied by a button, and the query then uses the index", async ({ page, server, open }) => {
  const name = await tea(server, { indexingPolicy: { indexingMode: "consistent", automatic: true, includedPaths: [{ path: "/kind/?" }], excludedPaths: [{ path: "/*" }] } });
  await open(address(name, "SELECT * FROM c WHERE c.grams = 30", { view: "statistics" }));
  await run(page);
  await page.getByRole("button", { name: "Apply index" }).first().click();
  // Nothing is changed before it was shown.
  await expect(page.getByLabel("What changes in the indexing policy")).toContainText('+       "path": "/grams/?"');
  expect(JSON.stringify((await server.wire("GET", `dbs/${name}/colls/pots`)).json.indexingPolicy.includedPaths)).not.toContain("/grams/?");
  await page.getByRole("button", { name: "Add the index" }).click();
  await expect.poll(async () => JSON.stringify((await server.wire("GET", `dbs/${name}/colls/pots`)).json.indexingPolicy.includedPaths)).toContain("/grams/?");
  await expect(page.getByRole("button", { name: "Apply index" })).toHaveCount(0);
  await expect(page.getByRole("region", { name: "Result" }).locator("code", { hasText: "/grams/?" })).toBeVisible();
});

test("the plan is a picture with expected and actual rows", async ({ page, server, open }) => {
  const name = await tea(server);
  const asked = [];
  page.on("request", (request) => { if (/\/api\/explain$|\/docs$/.test(request.url())) asked.push(request.url()); });
  await open(address(name, "SELECT * FROM c WHERE c.grams > 100 ORDER BY c.grams", { view: "plan" }));
  const picture = page.getByRole("img", { name: /^Plan of \d+ steps/ });
  // Whoever wrote the address has not run anything by it, also after a reload.
  await expect(page.getByText("This query came with a link.")).toBeVisible();
  await page.reload();
  await expect(page.getByText("This query came with a link.")).toBeVisible();
  expect(asked).toEqual([]);
  await page.getByRole("button", { name: "Run and count rows" }).click();
  await expect(picture).toBeVisible();
  // What somebody has chosen here is run by choosing it.
  await page.getByRole("radio", { name: "Table" }).click();
  await page.getByRole("radio", { name: "Plan" }).click();
  await expect(picture).toBeVisible();
  await expect(picture).toHaveAttribute("aria-label", /14 rows came/);
  expect(await picture.locator("rect").count()).toBeGreaterThan(0);
});

test("queries are saved in the account and found again, and what ran is in the history", async ({ page, server, open }) => {
  const name = await tea(server);
  await open(address(name, "SELECT VALUE COUNT(1) FROM c"));
  await run(page);
  await expect(page.getByRole("gridcell", { name: "25" })).toBeVisible();
  await page.getByRole("button", { name: "Save query" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill(`Number of pots in ${name}`);
  await page.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("tab", { name: `Number of pots in ${name}` })).toBeVisible();
  await page.getByRole("tab", { name: `Number of pots in ${name}` }).press("Delete");
  await page.getByRole("button", { name: "Saved queries and history" }).click();
  const card = page.getByRole("listitem").filter({ hasText: `Number of pots in ${name}` });
  await card.getByRole("button", { name: "Open" }).click();
  await expect(page.getByRole("textbox", { name: "Query text" })).toHaveText("SELECT VALUE COUNT(1) FROM c");
  await page.getByRole("tab", { name: "Saved queries" }).click();
  await page.getByRole("radio", { name: "History of this browser" }).click();
  await expect(page.getByRole("listitem").filter({ hasText: "SELECT VALUE COUNT(1) FROM c" }).first()).toContainText(name);
  await page.getByRole("radio", { name: "Saved in the account" }).click();
  await page.getByRole("button", { name: `Delete Number of pots in ${name}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(card).toHaveCount(0);
});

test("a query without its composite index offers to make it, shows what changes, and then runs", async ({ page, server, open }) => {
  const name = await tea(server);
  await open(address(name, "SELECT c.id FROM c WHERE c.grams > 10 ORDER BY c.kind, c.leaf.origin DESC, c.grams ASC OFFSET 0 LIMIT 5"));
  await run(page);
  const result = page.getByRole("region", { name: "Result" });
  await expect(result.getByRole("alert")).toContainText("does not have a corresponding composite index");
  await result.getByRole("button", { name: "Make the composite index /kind ASC, /leaf/origin DESC, /grams ASC" }).click();
  const change = page.getByLabel("What changes in the indexing policy");
  await expect(change).toContainText('"path": "/leaf/origin"');
  await expectAccessible(page, "dialog");
  const policy = async () => (await server.wire("GET", `dbs/${name}/colls/pots`)).json.indexingPolicy;
  expect((await policy()).compositeIndexes ?? []).toEqual([]);
  // Somebody else changes the policy after it was shown: it is shown again, and his change stays.
  const now = (await server.wire("GET", `dbs/${name}/colls/pots`)).json;
  await server.wire("PUT", `dbs/${name}/colls/pots`, { body: { ...now, indexingPolicy: { ...now.indexingPolicy, compositeIndexes: [[{ path: "/a", order: "ascending" }, { path: "/b", order: "ascending" }]] } } });
  await page.getByRole("button", { name: "Add the index" }).click();
  await expect(page.getByRole("dialog").getByRole("alert")).toContainText("Somebody changed this container meanwhile");
  await page.getByRole("button", { name: "Add the index" }).click();
  await expect(result.getByText(/^5 rows/)).toBeVisible();
  expect((await policy()).compositeIndexes).toEqual([
    [{ path: "/a", order: "ascending" }, { path: "/b", order: "ascending" }],
    [{ path: "/kind", order: "ascending" }, { path: "/leaf/origin", order: "descending" }, { path: "/grams", order: "ascending" }],
  ]);
});

test("a mistake is shown with its line, its column and its place, also in a selection", async ({ page, server, open }) => {
  const name = await tea(server);
  await open(address(name, "SELECT * FROM c\nWHERE c.grams = = 1"));
  await run(page);
  const result = page.getByRole("region", { name: "Result" });
  await expect(result.getByRole("alert")).toContainText(/Line 2, column 17/);
  await expect(result.locator(".excerpt")).toHaveText("WHERE c.grams = = 1\n                ^");
  const selected = () => page.evaluate(() => getSelection().toString());
  await result.getByRole("button", { name: "Go to the place" }).click();
  await expect(page.getByRole("textbox", { name: "Query text" })).toBeFocused();
  expect(await selected()).toBe("=");
  await type(page, "Query text", "SELECT * FROM c");
  await expect(result.getByRole("button", { name: "Go to the place" })).toHaveCount(0);
  // The same in a part of the text: the place is that of the editor.
  await type(page, "Query text", "SELECT 1\nSELECT * FROM c LIMIT 5");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Shift+Home");
  await page.keyboard.press("Control+Enter");
  await expect(result.getByRole("alert")).toContainText("LIMIT");
  await result.getByRole("button", { name: "Go to the place" }).click();
  await expect.poll(selected).toBe("LIMIT");
  await expectAccessible(page, "#panel");
});
