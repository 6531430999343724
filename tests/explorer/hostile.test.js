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

test("a filter that comes with an address is run by a click only", async ({ page, server, open }) => {
  const name = unique("link");
  await server.database(name);
  await server.container(name, "c");
  await server.document(name, "c", { id: "1", pk: "a" }, "a");
  const asked = [];
  page.on("request", (request) => { if (/\/docs$/.test(request.url())) asked.push(request.postData()); });
  await open(`#/items/${name}/c?${new URLSearchParams({ filter: 'c.pk = "a"', sort: "not JSON" })}`);
  await expect(page.getByText("A link brought this:")).toContainText('WHERE c.pk = "a"');
  await page.reload();
  await expect(page.getByText("A link brought this:")).toBeVisible();
  expect(asked).toEqual([]);
  await page.getByRole("button", { name: "Run it" }).click();
  await expect(page.getByRole("gridcell", { name: "1", exact: true })).toBeVisible();
  expect(asked[0]).toContain("WHERE");
  // What somebody has run here is run again after a reload; the address of a tab that is open already brings something new.
  await page.reload();
  await expect(page.getByRole("gridcell", { name: "1", exact: true })).toBeVisible();
  await page.goto(`${server.origin}/_explorer/#/items/${name}/c?${new URLSearchParams({ filter: "true" })}`);
  await expect(page.getByText("A link brought this:")).toContainText("WHERE true");
});

test("what is called .. is never taken for what it is in", async ({ page, server, open }) => {
  const name = unique("dots");
  await server.database(name);
  await server.container(name, "..");
  await server.container(name, "c");
  await server.wire("POST", `dbs/${name}/users`, { body: { id: ".." } });
  await server.wire("POST", `dbs/${name}/colls/c/udfs`, { body: { id: "..", body: "function f() {}" } });
  await server.document(name, "c", { id: "..", pk: "a" }, "a");
  const sent = [];
  page.on("request", (request) => { if (request.method() === "DELETE") sent.push(`${request.url()} ${request.headers()["if-match"]}`); });
  await open(`#/items/${name}/c`);
  const refused = page.getByText("A browser cannot address what is called “..”").last();
  const told = async () => { await expect(refused).toBeVisible(); };
  await page.getByRole("treeitem", { name, exact: true }).click();
  await page.getByRole("treeitem", { name: /^\.\.:/ }).press("Delete");
  await told();
  await page.getByRole("gridcell", { name: "..", exact: true }).click();
  await page.getByRole("button", { name: "Delete item" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete item" }).click();
  await expect(page.getByRole("region", { name: "Item .." }).getByRole("alert")).toContainText("A browser cannot address");
  for (const [hash, button, confirm] of [[`#/scripts/${name}/c`, "Delete ..", "Delete"], [`#/users/${name}`, "Delete the user ..", "Delete user"]]) {
    await page.goto(`${server.origin}/_explorer/${hash}`);
    await page.getByRole("button", { name: button, exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: confirm, exact: true }).click();
    await told();
  }
  for (const kind of ["items", "settings", "scripts", "feed", "query"]) {
    await page.goto(`${server.origin}/_explorer/#/${kind}/${name}/..`);
    await expect(page.getByRole("banner")).toBeVisible();
  }
  expect(sent).toEqual([]);
  expect((await server.wire("GET", `dbs/${name}`)).json.id).toBe(name);
  // Everything else is deleted as it was seen.
  await page.getByRole("treeitem", { name: /^c:/ }).press("Delete");
  await page.getByRole("dialog").getByRole("button", { name: "Delete container" }).click();
  await expect(page.getByText("The container c is deleted.")).toBeVisible();
  expect(sent).toHaveLength(1);
  expect(sent[0]).not.toContain("undefined");
});
