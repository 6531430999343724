import { expect, test, unique } from "./fixture.js";

const MARKUP = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;

test("markup in names and values stays text everywhere", async ({ page, server, open }) => {
  const database = `${unique("evil")}<b onmouseover=alert(3)>`;
  const container = `<svg onload=alert(4)>"'`;
  await server.database(database);
  await server.container(database, container, "/pk");
  await server.document(database, container, { id: "<i>1", pk: MARKUP, [MARKUP]: MARKUP, nested: { [MARKUP]: [MARKUP] } }, MARKUP);
  await server.wire("POST", `dbs/${database}/colls/${container}/udfs`, { body: { id: "<u>f", body: `function f() { return "${MARKUP.replaceAll('"', "'")}"; }` } });
  await server.wire("POST", `dbs/${database}/users`, { body: { id: "<em>ada" } });
  const at = (kind, more = "") => `#/${kind}/${encodeURIComponent(database)}/${encodeURIComponent(container)}${more}`;
  await open();
  await expect(page.getByRole("treeitem", { name: database, exact: true })).toBeVisible();
  await page.getByRole("treeitem", { name: database, exact: true }).click();
  await expect(page.getByText(container, { exact: true }).first()).toBeVisible();
  await page.goto(`${server.origin}/_explorer/${at("items")}`);
  await page.getByRole("gridcell", { name: "<i>1", exact: true }).click();
  await expect(page.getByRole("textbox", { name: "Item as JSON" })).toContainText("<script>alert(2)</script>");
  await page.goto(`${server.origin}/_explorer/${at("query", `?${new URLSearchParams({ sql: "SELECT * FROM c", title: MARKUP })}`)}`);
  await expect(page.getByRole("tab", { name: MARKUP })).toBeVisible();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page.getByRole("columnheader", { name: MARKUP })).toBeVisible();
  for (const view of ["JSON", "Tree", "Chart", "Statistics", "Plan"]) {
    await page.getByRole("radio", { name: view }).click();
    await expect(page.getByRole("radio", { name: view })).toBeChecked();
  }
  for (const [kind, text] of [["settings", "Indexing policy"], ["scripts", "<u>f"], ["partitions", "Partitions of"], ["feed", "Waiting for changes"], ["bulk", "Items where"]]) {
    await page.goto(`${server.origin}/_explorer/${at(kind)}`);
    await expect(page.getByText(text).first()).toBeVisible();
  }
  await page.goto(`${server.origin}/_explorer/#/users/${encodeURIComponent(database)}`);
  await expect(page.getByRole("button", { name: "<em>ada", exact: true })).toBeVisible();
  await page.goto(`${server.origin}/_explorer/#/inspector`);
  await expect(page.getByRole("grid")).toBeVisible();
  // Nothing of it became an element: the page itself has neither images nor such elements.
  expect(await page.locator("#app img, #app script, #app i, #app em, #app u, #app b").count()).toBe(0);
});

test("an address that makes no sense opens nothing and breaks nothing", async ({ page, server, open }) => {
  for (const hash of ["#/items", "#/nonsense/a/b", "#/__proto__", "#/query/%E0%A4%A/c", "#/query/a/b?parameters=%7B&view=zzz"]) {
    await open(hash);
    await expect(page.getByRole("navigation")).toBeVisible();
  }
  await page.evaluate(() => { localStorage.setItem("astrarium.tabs", '[{"key":1,"kind":"constructor"}]'); localStorage.setItem("astrarium.history", "{"); });
  await page.goto(`${server.origin}/_explorer/`);
  await page.reload();
  await expect(page.getByRole("navigation")).toBeVisible();
});
