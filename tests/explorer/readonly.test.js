import { expect, test, unique } from "./fixture.js";

/** One of everything that a panel would offer to change. */
async function full(server) {
  const name = unique("quiet");
  await server.database(name);
  await server.container(name, "things", "/pk", { indexingPolicy: { indexingMode: "consistent", automatic: true, includedPaths: [{ path: "/pk/?" }], excludedPaths: [{ path: "/*" }] } });
  await server.document(name, "things", { id: "1", pk: "a", n: 1 }, "a");
  await server.wire("POST", `dbs/${name}/colls/things/sprocs`, { body: { id: "proc", body: "function proc() { getContext().getCollection().createDocument(getContext().getCollection().getSelfLink(), { id: 'made', pk: 'a' }); }" } });
  await server.wire("POST", `dbs/${name}/colls/things/triggers`, { body: { id: "trig", body: "function trig() {}", triggerType: "Pre", triggerOperation: "All" } });
  await server.wire("POST", `dbs/${name}/users`, { body: { id: "ada" } });
  await server.wire("POST", `dbs/${name}/users/ada/permissions`, { body: { id: "reader", permissionMode: "Read", resource: `dbs/${name}/colls/things` } });
  return name;
}
// Every button of the page whose name begins so would change something; "Delete" and "Save" are parts of many.
const CHANGING = /^(New |Add |Save$|Save |Create|Delete|Duplicate|Discard|Make |Change |Run and commit|Apply index|Load and take|Begin with|Split |Merge |Upload \d)/;

async function expectNothingToChange(page) {
  await expect(page.getByRole("button", { name: CHANGING })).toHaveCount(0);
}

test("a read-only session shows no way to change anything, in no panel", async ({ page, server, open }) => {
  const name = await full(server);
  const go = (hash) => page.goto(`${server.origin}/_explorer/${hash}`);
  await open("#/home", { readOnly: true });
  await expect(page.getByText("Read-only", { exact: true })).toBeVisible();
  await expect(page.getByRole("heading", { name: "Samples" })).toBeVisible();
  await expectNothingToChange(page);
  // The keys of the tree are no way either.
  const database = page.getByRole("treeitem", { name, exact: true });
  for (const key of ["Insert", "Delete"]) await database.press(key);
  await expect(page.getByRole("dialog")).toHaveCount(0);

  await go(`#/items/${name}/things`);
  await page.getByRole("gridcell", { name: "1", exact: true }).first().click();
  const editor = page.getByRole("textbox", { name: "Item as JSON" });
  await expect(editor).toContainText('"n": 1');
  await editor.focus();
  await page.keyboard.insertText("x");
  await expect(editor).not.toContainText("x");
  await expectNothingToChange(page);

  await go(`#/query/${name}/things?${new URLSearchParams({ sql: "SELECT * FROM c WHERE c.n = 1", view: "statistics" })}`);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page.getByText("Documents read")).toBeVisible();
  await page.getByRole("textbox", { name: "Query text" }).press("Control+s");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await expectNothingToChange(page);

  await go(`#/bulk/${name}/things`);
  await page.getByRole("radio", { name: "Delete the items" }).click();
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByText(/^1 items match/)).toBeVisible();
  await expectNothingToChange(page);

  await go(`#/settings/${name}/things`);
  await expect(page.getByRole("region", { name: "Throughput" }).getByLabel("RU/s")).toBeDisabled();
  await expect(page.getByLabel("Items expire")).toBeDisabled();
  await expect(page.getByRole("textbox", { name: "Vector policy" })).toHaveAttribute("aria-readonly", "true");
  await expectNothingToChange(page);

  await go(`#/scripts/${name}/things`);
  await page.getByRole("button", { name: "trig", exact: true }).click();
  await expect(page.getByLabel("Operation")).toBeDisabled();
  await page.getByRole("button", { name: "proc", exact: true }).click();
  await expect(page.getByRole("textbox", { name: "Script", exact: true })).toHaveAttribute("aria-readonly", "true");
  await expectNothingToChange(page);

  await go(`#/users/${name}`);
  await expect(page.getByRole("listitem").filter({ hasText: "reader" })).toBeVisible();
  await expectNothingToChange(page);
  for (const [hash, shown] of [[`#/feed/${name}/things`, "Waiting for changes."], [`#/partitions/${name}/things`, "Partitions of things"], ["#/saved", "No query is saved yet"], ["#/inspector", "requests"]]) {
    await go(hash);
    await expect(page.getByText(shown).first()).toBeVisible();
    await expectNothingToChange(page);
  }
  expect((await server.read(name, "things", "1", "a")).json.n).toBe(1);
});

test("what a read-only session asks for all the same is refused by the server", async ({ page, server, open }) => {
  const name = await full(server);
  const before = (await server.wire("GET", `dbs/${name}/colls/things`)).text;
  await open("#/home", { readOnly: true });
  const send = (method, path, body, headers = {}) => page.evaluate(async ({ method, path, body, headers }) => {
    const answer = await fetch(`/_explorer/api/${path}`, { method, headers: { "x-astrarium-explorer": localStorage.getItem("astrarium.pageToken"), "content-type": "application/json", "x-ms-version": "2020-07-15", ...headers }, body: body === undefined ? undefined : JSON.stringify(body) });
    return answer.status;
  }, { method, path, body, headers });
  const container = `wire/dbs/${name}/colls/things`;
  const key = { "x-ms-documentdb-partitionkey": '["a"]' };
  const offer = (await server.wire("GET", "offers")).json.Offers[0];
  for (const [method, path, body, headers] of [
    ["POST", "wire/dbs", { id: "no" }], ["DELETE", `wire/dbs/${name}`], ["POST", `wire/dbs/${name}/colls`, { id: "no", partitionKey: { paths: ["/pk"], kind: "Hash" } }], ["DELETE", container],
    ["PUT", container, { ...JSON.parse(before), defaultTtl: 5 }],
    ["POST", `${container}/docs`, { id: "2", pk: "a" }, key], ["POST", `${container}/docs`, { id: "1", pk: "a" }, { ...key, "x-ms-documentdb-is-upsert": "true" }],
    ["PUT", `${container}/docs/1`, { id: "1", pk: "a" }, key], ["PATCH", `${container}/docs/1`, { operations: [{ op: "set", path: "/n", value: 2 }] }, key], ["DELETE", `${container}/docs/1`, undefined, key],
    ["POST", `${container}/docs`, [{ operationType: "Create", resourceBody: { id: "3", pk: "a" } }], { ...key, "x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true" }],
    ["POST", `${container}/sprocs`, { id: "no", body: "function no() {}" }], ["POST", `${container}/sprocs/proc`, [], key], ["DELETE", `${container}/triggers/trig`], ["POST", `${container}/udfs`, { id: "no", body: "function no() {}" }],
    ["POST", `wire/dbs/${name}/users`, { id: "eve" }], ["DELETE", `wire/dbs/${name}/users/ada`], ["DELETE", `wire/dbs/${name}/users/ada/permissions/reader`],
    ["PUT", `wire/offers/${offer._rid}`, { ...offer, content: { ...offer.content, offerThroughput: 500 } }],
    ["POST", "run-script", { database: name, container: "things", body: "function f() { const c = getContext().getCollection(); c.createDocument(c.getSelfLink(), { id: 'made', pk: 'a' }); }", partitionKey: ["a"], arguments: [], commit: true }],
  ]) expect([401, 403], `${method} ${path}`).toContain(await send(method, path, body, headers));
  expect((await server.wire("GET", `dbs/${name}/colls/things`)).text).toBe(before);
  const ids = async (path, list) => (await server.wire("GET", path)).json[list].map((row) => row.id);
  expect(await ids(`dbs/${name}/colls/things/docs`, "Documents")).toEqual(["1"]);
  expect(await ids(`dbs/${name}/colls/things/sprocs`, "StoredProcedures")).toEqual(["proc"]);
  expect(await ids(`dbs/${name}/colls/things/triggers`, "Triggers")).toEqual(["trig"]);
  expect(await ids(`dbs/${name}/users`, "Users")).toEqual(["ada"]);
});
