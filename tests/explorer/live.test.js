import { execFileSync } from "node:child_process";
import { KEY } from "./server.js";
import { expect, expectAccessible, test, unique } from "./fixture.js";

test("partitions are a picture with figures that follow the load", async ({ page, server, open }) => {
  const name = unique("parts");
  await server.database(name);
  await server.container(name, "c");
  for (let i = 0; i < 20; i++) await server.document(name, "c", { id: `${i}`, pk: `${i}` }, `${i}`);
  await open(`#/partitions/${name}/c`);
  await expect(page.getByRole("img", { name: /^1 key ranges: range 0, 20 items/ })).toBeVisible();
  await expect.poll(async () => {
    for (let i = 0; i < 10; i++) await server.read(name, "c", `${i}`, `${i}`);
    const figures = page.getByRole("group", { name: "Figures of the ranges" }).getByRole("row").nth(1);
    return Number(await figures.locator("td.number").last().innerText());
  }).toBeGreaterThan(0);
});

test("the change feed shows writes as they happen", async ({ page, server, open }) => {
  const name = unique("feed");
  await server.database(name);
  await server.container(name, "c");
  await server.document(name, "c", { id: "before", pk: "a" }, "a");
  await open(`#/feed/${name}/c`);
  // Said after the first answer, which says where now is.
  await expect(page.getByText("Waiting for changes.")).toBeVisible();
  await server.document(name, "c", { id: "after", pk: "a", value: 7 }, "a");
  await page.getByRole("button", { name: /after/ }).click();
  await expect(page.getByRole("textbox", { name: "Change as JSON" })).toContainText('"value": 7');
  await expect(page.getByRole("button", { name: /before/ })).toHaveCount(0);
  await page.getByRole("radio", { name: "From the beginning" }).click();
  await expect(page.getByRole("button", { name: /before/ })).toBeVisible();
});

test("requests of other clients are listed with charge, plan and a program that really runs", async ({ page, server, open }) => {
  const name = unique("seen");
  await server.database(name);
  await server.container(name, "c");
  await server.document(name, "c", { id: "x", pk: "it's" }, "it's");
  await open("#/inspector");
  const sql = "SELECT * FROM c WHERE c.pk = @pk";
  await server.wire("POST", `dbs/${name}/colls/c/docs`, { body: { query: sql, parameters: [{ name: "@pk", value: "it's" }] }, headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "true", "x-ms-documentdb-query-enablecrosspartition": "true" } });
  await page.getByRole("searchbox", { name: /^Find/ }).fill(name);
  await page.getByRole("gridcell", { name: sql }).first().click();
  const details = page.getByRole("region", { name: /^Request \d+/ });
  await expect(details.getByText("RU", { exact: false }).first()).toBeVisible();
  await details.getByRole("button", { name: "Plan" }).click();
  await expect(details.getByRole("img", { name: /^Plan of/ })).toBeVisible();
  for (const language of ["Python", "JavaScript", "C#", "Java", "Go"]) {
    await details.getByRole("radio", { name: language, exact: true }).click();
    await expect(details.getByRole("textbox", { name: `Program for ${language}` })).toContainText(sql);
  }
  await details.getByRole("radio", { name: "curl" }).click();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await details.getByRole("button", { name: "Copy", exact: true }).click();
  await expect(page.getByText("Program for curl copied.")).toBeVisible();
  const program = await page.evaluate(() => navigator.clipboard.readText());
  const answer = execFileSync("bash", ["-c", program], { env: { ...process.env, COSMOS_KEY: KEY }, encoding: "utf8" });
  expect(JSON.parse(answer).Documents[0].id).toBe("x");
});

test("an empty account offers samples, and the tour measures what a model costs", async ({ empty: server, stranger }) => {
  const page = await stranger(server);
  await page.goto(server.link);
  await expect(page.getByRole("heading", { name: "Nothing here yet: begin with a sample" })).toBeVisible();
  const load = async (title) => {
    await page.getByRole("listitem").filter({ hasText: title }).getByRole("button", { name: "Load and take the tour" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Load the sample" }).click();
  };
  await load("Books and authors");
  await expect(page.getByRole("heading", { name: "One book, read whole" })).toBeVisible();
  const charge = async (way) => {
    const card = page.getByRole("region", { name: way });
    await card.getByRole("button", { name: "Measure" }).click();
    return Number(/([\d.]+) RU/.exec(await card.getByText(/RU/).innerText())[1]);
  };
  expect(await charge("Referenced: book, then authors")).toBeGreaterThan(await charge("Embedded: one read"));
  await page.getByRole("button", { name: "Next" }).click();
  expect(await charge("Embedded: every book of hers")).toBeGreaterThan(await charge("Referenced: one write"));
  await page.getByRole("link", { name: /welcome/ }).click();
  await load("A blog platform");
  await expect(page.getByRole("heading", { name: "A post with everything around it" })).toBeVisible();
  await page.getByRole("button", { name: "Measure" }).first().click();
  await expect(page.getByText(/in 1 request/)).toBeVisible();
});

test("the change feed of all versions shows creates, replaces and deletes", async ({ page, server, open }) => {
  const name = unique("versions");
  await server.database(name);
  await server.container(name, "c", "/pk", { changeFeedPolicy: { retentionDuration: 10 } });
  await open(`#/feed/${name}/c`);
  await expect(page.getByText("Waiting for changes.")).toBeVisible();
  await expect(page.getByText(/0 changes, all versions/)).toBeVisible();
  await server.document(name, "c", { id: "short-lived", pk: "a", value: 1 }, "a");
  await server.document(name, "c", { id: "short-lived", pk: "a", value: 2 }, "a");
  await server.delete(name, "c", "short-lived", "a");
  const entries = page.getByRole("list", { name: "Changes, newest first" }).getByRole("button", { name: /short-lived/ });
  await expect(entries).toHaveCount(3);
  await expect(entries.locator(".badge")).toHaveText(["delete", "replace", "create"]);
  const text = page.getByRole("textbox", { name: "Change as JSON" });
  await entries.nth(1).click();
  await expect(text).toContainText('"value": 2');
  await entries.first().click();
  await expect(text).toContainText('"operationType": "delete"');
  // Who begins anew, in the feed of the latest versions, sees what is there: nothing of the deleted item.
  await server.document(name, "c", { id: "stays", pk: "a" }, "a");
  await expect(page.getByRole("button", { name: /stays/ })).toBeVisible();
  await page.getByRole("radio", { name: "From the beginning" }).click();
  await expect(page.getByText(/1 changes$/)).toBeVisible();
  await expect(page.getByRole("button", { name: /stays/ })).toBeVisible();
});

test("several ranges stand beside each other with what each holds", async ({ page, server, open }) => {
  const name = unique("ranges");
  await server.database(name);
  await server.container(name, "c", "/pk", {}, { "x-ms-offer-throughput": "25000" });
  await Promise.all(Array.from({ length: 60 }, (_, i) => server.document(name, "c", { id: `${i}`, pk: `key ${i}` }, `key ${i}`)));
  const ranges = (await server.wire("GET", `dbs/${name}/colls/c/pkranges`)).json.PartitionKeyRanges.length;
  expect(ranges).toBeGreaterThan(1);
  await open(`#/partitions/${name}/c`);
  const picture = page.getByRole("img", { name: new RegExp(`^${ranges} key ranges: range 0, `) });
  await expect(picture).toBeVisible();
  // Beside each other: each begins where the one before ends, and together they are as wide as the picture.
  const places = await picture.locator(".range-ground").evaluateAll((all) => all.map((box) => [box.parentElement.transform.baseVal[0].matrix.e, box.width.baseVal.value + 2]));
  expect(places).toHaveLength(ranges);
  let end = 0;
  for (const [left, width] of places) {
    expect(left).toBeCloseTo(end, 3);
    expect(width).toBeGreaterThan(20);
    end = left + width;
  }
  expect(end).toBeCloseTo(1000, 0);
  const items = async () => (await page.getByRole("group", { name: "Figures of the ranges" }).getByRole("row").evaluateAll((rows) => rows.slice(1).map((row) => Number(row.children[3].textContent.replaceAll(",", "")))));
  await expect.poll(async () => (await items()).reduce((sum, n) => sum + n, 0)).toBe(60);
  expect((await items()).filter((n) => n > 0).length).toBeGreaterThan(1);
});

test("the inspector says why a request was refused, and keeps the explorer's own apart", async ({ page, server, open }) => {
  const name = unique("why");
  await server.database(name);
  await server.container(name, "c");
  await server.document(name, "c", { id: "1", pk: "a" }, "a");
  const query = { headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "true", "x-ms-documentdb-query-enablecrosspartition": "true" } };
  await open(`#/items/${name}/c`);
  await expect(page.getByText(/^1 items/)).toBeVisible();
  await expect(server.wire("GET", `dbs/${name}/colls/missing`)).rejects.toThrow("404");
  await expect(server.wire("POST", `dbs/${name}/colls/c/docs`, { ...query, body: { query: "SELECT * FROM c LIMIT 5", parameters: [] } })).rejects.toThrow("400");
  await page.goto(`${server.origin}/_explorer/#/inspector`);
  await page.getByRole("searchbox", { name: /^Find/ }).fill(name);
  const grid = page.getByRole("grid", { name: "Requests, newest first" });
  const refused = grid.getByRole("row").filter({ hasText: "Syntax error" });
  await expect(refused).toContainText("incorrect syntax near 'LIMIT'");
  const colour = (row, status) => row.getByRole("gridcell", { name: status, exact: true }).evaluate((cell) => getComputedStyle(cell).color);
  const made = grid.getByRole("row").filter({ hasText: "201" }).first();
  expect(await colour(refused, "400")).not.toBe(await colour(made, "201"));
  // Only programs are listed; what is left out is counted.
  await expect(grid.getByRole("gridcell", { name: "explorer", exact: true })).toHaveCount(0);
  await expect(page.getByText(/requests, \d+ of this explorer not shown/)).toBeVisible();
  await refused.getByRole("gridcell", { name: "400", exact: true }).click();
  const details = page.getByRole("region", { name: "Why it was refused" });
  await expect(details).toContainText("Syntax error, incorrect syntax near 'LIMIT'.");
  await expect(details).toContainText(/Line 1, column 17/);
  await page.getByRole("radio", { name: "This explorer" }).click();
  await expect(grid.getByRole("gridcell", { name: "explorer", exact: true }).first()).toBeVisible();
  await expect(refused).toHaveCount(0);
  await page.getByRole("radio", { name: "All" }).click();
  await expect(refused).toHaveCount(1);
  await expectAccessible(page, "#panel");
});

test("no proof of who asked is in what the inspector is told", async ({ page, server, open }) => {
  const secret = "type%3dmaster%26ver%3d1.0%26sig%3dVGhpcyBpcyBhIHNlY3JldCBzaWduYXR1cmUgb2Ygbm9ib2R5";
  const answer = await fetch(`${server.origin}/dbs`, { headers: { authorization: secret, "x-ms-date": new Date().toUTCString(), "x-ms-version": "2020-07-15" } });
  expect(answer.status).toBe(401);
  const told = page.waitForResponse(/api\/requests/);
  await open("#/inspector");
  const text = await (await told).text();
  expect(text).toContain('"status":401');
  expect(text).not.toMatch(/VGhpcyBpcyBh|sig%3d|sig=/i);
  const requests = JSON.parse(text).requests;
  for (const request of requests) expect((request.message ?? "").length).toBeLessThanOrEqual(1000);
  expect(requests.filter((request) => request.status < 400 && request.message !== null)).toEqual([]);
});

test("the feed says what its list no longer holds, and goes on counting", async ({ page, server, open }) => {
  const name = unique("long");
  await server.database(name);
  await server.container(name, "c");
  for (let batch = 0; batch < 11; batch++) {
    const body = Array.from({ length: 100 }, (_, i) => ({ operationType: "Create", resourceBody: { id: `${batch}-${i}`, pk: "a" } }));
    await server.wire("POST", `dbs/${name}/colls/c/docs`, { body, headers: { "x-ms-documentdb-partitionkey": '["a"]', "x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true" } });
  }
  await open(`#/feed/${name}/c`);
  await page.getByRole("radio", { name: "From the beginning" }).click();
  await expect(page.getByText("Live · 1,100 changes")).toBeVisible({ timeout: 60_000 });
  await expect(page.getByText("The list holds the last 1,000 changes; 100 older ones have left it.")).toBeVisible();
  await expectAccessible(page, "#panel");
  await page.getByRole("button", { name: "Clear" }).click();
  await expect(page.getByText("Live · 0 changes")).toBeVisible();
  await server.document(name, "c", { id: "late", pk: "a" }, "a");
  await expect(page.getByText("Live · 1 changes")).toBeVisible();
});
