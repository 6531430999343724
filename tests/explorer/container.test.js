import { expect, test, type, unique } from "./fixture.js";

async function made(server, more = {}) {
  const name = unique("made");
  await server.database(name);
  await server.container(name, "c", "/pk", more);
  return name;
}
const definition = async (server, name) => (await server.wire("GET", `dbs/${name}/colls/c`)).json;

test("settings are changed one by one, and bad ones are refused in words", async ({ page, server, open }) => {
  const name = await made(server, { uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] } });
  for (let i = 0; i < 5; i++) await server.document(name, "c", { id: `${i}`, pk: "a", email: `${i}@x`, address: { city: "Oslo" } }, "a");
  await open(`#/settings/${name}/c`);
  await expect(page.getByText("Unique keys: (/email)")).toBeVisible();
  await page.getByLabel("Items expire").selectOption("seconds");
  await page.getByLabel("Seconds").fill("3600");
  await page.getByRole("button", { name: "Save time to live" }).click();
  await expect.poll(async () => (await definition(server, name)).defaultTtl).toBe(3600);

  const policy = page.getByRole("region", { name: "Indexing policy" });
  await expect(policy.getByRole("row").filter({ hasText: "/address/city/?" })).toBeVisible();
  await type(page, "Indexing policy", '{"indexingMode":"sometimes"}');
  await policy.getByRole("button", { name: "Save indexing policy" }).click();
  await expect(policy.getByRole("alert")).toBeVisible();
  await type(page, "Indexing policy", '{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/address/*"}]}');
  await policy.getByRole("button", { name: "Save indexing policy" }).click();
  await expect.poll(async () => JSON.stringify((await definition(server, name)).indexingPolicy.excludedPaths)).toContain("/address/*");
  await expect(policy.getByRole("row").filter({ hasText: "/address/city/?" })).toHaveCount(0);

  await type(page, "Computed properties", '[{"name":"lower","query":"SELECT VALUE LOWER(c.email) FROM c"}]');
  await page.getByRole("button", { name: "Save computed properties" }).click();
  await expect.poll(async () => (await definition(server, name)).computedProperties).toHaveLength(1);
  await type(page, "Full-text policy", '{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/text","language":"en-US"}]}');
  await page.getByRole("button", { name: "Save full-text policy" }).click();
  await expect.poll(async () => (await definition(server, name)).fullTextPolicy?.fullTextPaths).toHaveLength(1);
  await type(page, "Vector policy", '{"vectorEmbeddings":[{"path":"/v","dataType":"float32","dimensions":3,"distanceFunction":"cosine"}]}');
  await page.getByRole("button", { name: "Save vector policy" }).click();
  await expect.poll(async () => (await definition(server, name)).vectorEmbeddingPolicy?.vectorEmbeddings).toHaveLength(1);

  const throughput = page.getByRole("region", { name: "Throughput" });
  await throughput.getByLabel("RU/s").fill("600");
  await throughput.getByRole("button", { name: "Save throughput" }).click();
  await expect(page.getByText("Throughput saved.")).toBeVisible();
  await page.reload();
  await expect(throughput.getByLabel("RU/s")).toHaveValue("600");
});

test("two settings saved at once are both kept, and nothing typed is lost when somebody else saves too", async ({ page, server, open }) => {
  const name = await made(server);
  await open(`#/settings/${name}/c`);
  await type(page, "Computed properties", '[{"name":"lower","query":"SELECT VALUE LOWER(c.email) FROM c"}]');
  await type(page, "Change feed policy", '{"retentionDuration":7}');
  // Without waiting for an answer in between.
  await page.evaluate(() => { for (const button of document.querySelectorAll("button")) if (/^Save (computed properties|change feed policy)$/.test(button.textContent)) button.click(); });
  await expect.poll(async () => { const d = await definition(server, name); return [d.computedProperties?.length, d.changeFeedPolicy?.retentionDuration]; }).toEqual([1, 7]);
  const policy = page.getByRole("region", { name: "Change feed policy" });
  await expect(policy.getByRole("textbox")).toHaveText('{  "retentionDuration": 7}');
  const now = await definition(server, name);
  await server.wire("PUT", `dbs/${name}/colls/c`, { body: { ...now, changeFeedPolicy: { retentionDuration: 8 } } });
  await type(page, "Change feed policy", '{"retentionDuration":9}');
  await policy.getByRole("button", { name: "Save change feed policy" }).click();
  await expect(policy.getByRole("alert")).toContainText("Somebody else changed these settings");
  await expect(policy.getByRole("textbox")).toHaveText('{"retentionDuration":9}');
  expect((await definition(server, name)).changeFeedPolicy.retentionDuration).toBe(8);
  await policy.getByRole("button", { name: "Save change feed policy" }).click();
  await expect.poll(async () => (await definition(server, name)).changeFeedPolicy.retentionDuration).toBe(9);
});

test("throughput becomes autoscale and manual again, and what is too little is refused", async ({ page, server, open }) => {
  const name = await made(server);
  const self = (await definition(server, name))._self;
  const offer = async () => (await server.wire("GET", "offers")).json.Offers.find((o) => o.resource === self).content;
  await open(`#/settings/${name}/c`);
  const throughput = page.getByRole("region", { name: "Throughput" });
  const save = throughput.getByRole("button", { name: "Save throughput" });
  await throughput.getByLabel("Kind").selectOption("auto");
  await throughput.getByLabel("Highest RU/s").fill("6000");
  await save.click();
  await expect.poll(async () => (await offer()).offerAutopilotSettings?.maxThroughput).toBe(6000);
  await expect(save).toBeDisabled();
  await throughput.getByLabel("Highest RU/s").fill("7000");
  await save.click();
  await expect.poll(async () => (await offer()).offerAutopilotSettings?.maxThroughput).toBe(7000);
  await page.reload();
  await expect(throughput.getByLabel("Kind")).toHaveValue("auto");
  await expect(throughput.getByLabel("Highest RU/s")).toHaveValue("7000");
  await throughput.getByLabel("Highest RU/s").fill("10");
  await save.click();
  await expect(throughput.getByRole("alert")).toBeVisible();
  await throughput.getByLabel("Kind").selectOption("manual");
  await throughput.getByLabel("RU/s").fill("900");
  await save.click();
  await expect.poll(async () => { const { offerThroughput, offerAutopilotSettings } = await offer(); return [offerThroughput, offerAutopilotSettings ?? null]; }).toEqual([900, null]);
  await expect(throughput.getByRole("alert")).toHaveCount(0);
});

test("users and permissions are made, give a token, and are taken away", async ({ page, server, open }) => {
  const name = await made(server);
  await open(`#/users/${name}`);
  await page.getByLabel("New user").fill("ada");
  await page.getByRole("button", { name: "Add user" }).click();
  await page.getByRole("button", { name: "Add permission" }).click();
  await page.getByRole("dialog").getByLabel("Id").fill("reader");
  await page.getByRole("dialog").getByLabel("Partition key").fill("tenant");
  await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
  const card = page.getByRole("listitem").filter({ hasText: "reader" });
  await expect(card).toContainText(`dbs/${name}/colls/c`);
  await expect(card).toContainText('["tenant"]');
  const permission = (await server.wire("GET", `dbs/${name}/users/ada/permissions`)).json.Permissions[0];
  expect(permission).toMatchObject({ id: "reader", permissionMode: "Read" });
  await page.getByRole("button", { name: "Delete the permission reader" }).click();
  await page.getByRole("button", { name: "Delete permission", exact: true }).click();
  await expect(card).toHaveCount(0);
  await page.getByRole("button", { name: "Delete the user ada" }).click();
  await page.getByRole("button", { name: "Delete user", exact: true }).click();
  await expect(page.getByText("No users.")).toBeVisible();
});

test("a procedure is written, tried without writing, stepped through, and committed", async ({ page, server, open }) => {
  const name = await made(server);
  await server.document(name, "c", { id: "old", pk: "a", n: 1 }, "a");
  await open(`#/scripts/${name}/c`);
  await page.getByRole("button", { name: "New procedure" }).click();
  await page.getByLabel("Id of the script").fill("raise");
  await type(page, "Script", `function raise(by) {
  const collection = getContext().getCollection();
  console.log("raising by " + by);
  collection.queryDocuments(collection.getSelfLink(), "SELECT * FROM c WHERE c.id = 'old'", function (error, rows) {
    if (error) throw error;
    rows[0].n += by;
    collection.replaceDocument(rows[0]._self, rows[0]);
    collection.createDocument(collection.getSelfLink(), { id: "new", pk: "a" });
    getContext().getResponse().setBody({ n: rows[0].n });
  });
}`);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("button", { name: "raise", exact: true })).toHaveAttribute("aria-pressed", "true");
  await page.getByRole("textbox", { name: "Partition key /pk" }).fill("a");
  await page.getByRole("textbox", { name: "Argument 1" }).fill("41");
  await page.getByRole("button", { name: "Try" }).click();
  await expect(page.getByRole("region", { name: "Result of the script" })).toContainText('"n": 42');
  await expect(page.getByRole("region", { name: "Console" })).toContainText("raising by 41");
  const changes = page.getByRole("region", { name: "Changes" });
  await expect(changes).toContainText("replace old");
  await expect(changes).toContainText("create new");
  await expect(page.getByText("nothing was written")).toBeVisible();
  expect((await server.read(name, "c", "old", "a")).json.n).toBe(1);
  const steps = page.getByRole("region", { name: "Steps" });
  await expect(steps.getByText(/Call 1 of 3: queryDocuments/)).toBeVisible();
  await steps.getByRole("button", { name: "Step forward" }).click();
  await expect(steps.getByText(/Call 2 of 3: replaceDocument/)).toBeVisible();
  await steps.getByRole("button", { name: "Step back" }).click();
  await expect(steps.getByText(/Call 1 of 3: queryDocuments/)).toBeVisible();
  await page.getByRole("button", { name: "Run and commit" }).click();
  await expect(page.getByText("committed", { exact: false })).toBeVisible();
  expect((await server.read(name, "c", "old", "a")).json.n).toBe(42);
  // An error rolls back and is shown with its words.
  await page.getByRole("textbox", { name: "Argument 1" }).fill('["x", nonsense]');
  await page.getByRole("button", { name: "Try" }).click();
  await expect(page.getByRole("alert")).toContainText("Argument 1: A value is expected here");
  await type(page, "Script", "function boom() { throw new Error('kaboom'); }");
  await page.getByRole("button", { name: "Remove argument 1" }).click();
  await page.getByRole("button", { name: "Try" }).click();
  await expect(page.getByRole("alert")).toContainText("kaboom");
});

test("functions and triggers are made and deleted", async ({ page, server, open }) => {
  const name = await made(server);
  await open(`#/scripts/${name}/c`);
  await page.getByRole("button", { name: "New function" }).click();
  await page.getByLabel("Id of the script").fill("double");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("button", { name: "double", exact: true })).toHaveAttribute("aria-pressed", "true");
  await page.getByRole("button", { name: "New trigger" }).click();
  await page.getByLabel("Id of the script").fill("stamp");
  await page.getByLabel("Operation").selectOption("Create");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("button", { name: "stamp", exact: true })).toBeVisible();
  expect((await server.wire("GET", `dbs/${name}/colls/c/triggers`)).json.Triggers[0]).toMatchObject({ id: "stamp", triggerType: "Pre", triggerOperation: "Create" });
  await page.getByRole("button", { name: "Delete double" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByRole("button", { name: "double", exact: true })).toHaveCount(0);
});
