import { readFile } from "node:fs/promises";
import { expect, expectAccessible, test, unique } from "./fixture.js";

async function made(server, key = "/pk", more = {}) {
  const name = unique("up");
  await server.database(name);
  await server.container(name, "c", key, more);
  return name;
}
const choose = (page, name, text) => page.getByLabel("File", { exact: true }).setInputFiles({ name, mimeType: "application/octet-stream", buffer: Buffer.from(text) });
const count = async (server, name) => Number(/documentsCount=(\d+)/.exec((await server.wire("GET", `dbs/${name}/colls/c`, { headers: { "x-ms-documentdb-populatequotainfo": "True" } })).headers.get("x-ms-resource-usage"))[1]);
const start = (page) => page.getByRole("button", { name: /^Upload [\d,]+ items$/ });

test("a CSV file is shown with its types and what is wrong, and nothing is written before that is asked for", async ({ page, server, open }) => {
  const name = await made(server);
  await server.document(name, "c", { id: "2", pk: "b", kept: true }, "b");
  await open(`#/upload/${name}/c`);
  await choose(page, "people.csv", 'id,pk,age,big,note\n1,a,30,12345678901234567890,"two\nlines"\n2,b,31,1,\n3,c\n4,a,32,2,é\n');
  await expect(page.getByText(/^people\.csv: .*4 rows, 1 of them wrong\. Nothing is written yet\.$/)).toBeVisible();
  await expect(page.getByRole("list", { name: "Reasons" })).toContainText("Line 5 (row 3): the row has 2 cells, the first line 5 names");
  const grid = page.getByRole("grid", { name: "First items of the file" });
  await expect(grid.getByRole("columnheader")).toHaveText(["Line", "id", "/pk (partition key)", "Item"]);
  await expect(grid.getByRole("row").nth(1).getByRole("gridcell")).toContainText(["2", "1", "a", '"big":12345678901234567890']);
  await page.getByText("How the file is read: CSV").click();
  const types = page.getByRole("group", { name: "Types of the columns" });
  await expect(types.getByLabel("age")).toHaveValue("number");
  await expect(types.getByLabel("id")).toHaveValue("string");
  // Another type is read at once.
  await types.getByLabel("age").selectOption("string");
  await expect(grid.getByRole("gridcell").filter({ hasText: '"age":"30"' })).toBeVisible();
  await expect(start(page)).toBeDisabled();
  expect(await count(server, name)).toBe(1);
  await page.getByLabel("Leave out the wrong row").check();
  await start(page).click();
  // Add only: what exists fails, with line and reason, and stays.
  await expect(page.getByText(/^2 written, 2 failed of 4 rows/)).toBeVisible();
  await expect(page.getByRole("list", { name: "Reasons" })).toContainText(/Line 4 \(row 2\): an item with this id and partition key exists/);
  expect((await server.read(name, "c", "2", "b")).json.kept).toBe(true);
  expect((await server.read(name, "c", "1", "a")).text).toContain('"big":12345678901234567890');
  expect((await server.read(name, "c", "1", "a")).json).toMatchObject({ age: "30", note: "two\nlines" });
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save this list" }).click()]);
  const saved = (await readFile(await file.path(), "utf8")).trim().split("\n").map((line) => JSON.parse(line));
  expect(saved.map((one) => [one.row, one.line])).toEqual([[3, 5], [2, 4]]);
});

test("items that exist are skipped or replaced only when that was chosen", async ({ page, server, open }) => {
  const name = await made(server);
  await server.document(name, "c", { id: "1", pk: "a", n: 1 }, "a");
  const file = '{"id":"1","pk":"a","n":2}\n{"id":"2","pk":"a","n":2}\n';
  await open(`#/upload/${name}/c`);
  await choose(page, "x.jsonl", file);
  await page.getByRole("radio", { name: "Skip what exists" }).click();
  await start(page).click();
  await expect(page.getByText(/^1 written, 1 existed and stay of 2 rows/)).toBeVisible();
  expect((await server.read(name, "c", "1", "a")).json.n).toBe(1);
  await choose(page, "x.jsonl", file);
  await page.getByRole("radio", { name: "Replace what exists" }).click();
  await expect(page.getByText("takes the place of what exists")).toBeVisible();
  await start(page).click();
  await expect(page.getByText(/^2 written of 2 rows/)).toBeVisible();
  expect((await server.read(name, "c", "1", "a")).json.n).toBe(2);
});

test("a unique key that is taken is a failure, also where existing items are skipped", async ({ page, server, open }) => {
  const name = await made(server, "/pk", { uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/mail"] }] } });
  await server.document(name, "c", { id: "1", pk: "a", mail: "x" }, "a");
  await open(`#/upload/${name}/c`);
  await choose(page, "x.json", '[{"id":"1","pk":"a","mail":"y"},{"id":"2","pk":"a","mail":"x"}]');
  await page.getByRole("radio", { name: "Skip what exists" }).click();
  await start(page).click();
  await expect(page.getByText(/^0 written, 1 existed and stay, 1 failed of 2 rows/)).toBeVisible();
  await expect(page.getByRole("list", { name: "Reasons" })).toContainText("Line 1 (row 2)");
});

test("a file of many pieces is read and sent whole, while another tab is looked at", async ({ page, server, open }) => {
  const name = await made(server, "/id");
  const rows = 1200;
  await open(`#/upload/${name}/c`);
  await choose(page, "many.json", `[${Array.from({ length: rows }, (_, i) => JSON.stringify({ id: `r${i}`, text: "x".repeat(900), n: i })).join(",\n")}]`);
  await expect(page.getByText(/1,200 rows, all good/)).toBeVisible();
  await start(page).click();
  await expect(page.getByRole("progressbar", { name: "Sent" })).toBeVisible();
  await page.goto(`${server.origin}/_explorer/#/home`);
  await expect(page.getByRole("heading", { name: "Databases", level: 1 })).toBeVisible();
  await page.getByRole("tab", { name: "Upload · c" }).click();
  await expect(page.getByText(/^1,200 written of 1,200 rows/)).toBeVisible({ timeout: 100_000 });
  await expect.poll(() => count(server, name)).toBe(rows);
});

test("an upload that is stopped says what stays", async ({ page, server, open }) => {
  const name = await made(server, "/id");
  await open(`#/upload/${name}/c`);
  await choose(page, "many.jsonl", Array.from({ length: 2000 }, (_, i) => JSON.stringify({ id: `r${i}` })).join("\n"));
  await start(page).click();
  await expect.poll(() => count(server, name)).toBeGreaterThan(0);
  await page.getByRole("button", { name: "Stop" }).click();
  await expect(page.getByRole("alert")).toContainText("Stopped. What was written until then stays");
  const written = Number(/^([\d,]+) written/.exec(await page.getByRole("status").filter({ hasText: "written" }).textContent())[1].replace(",", ""));
  expect(written).toBeGreaterThan(0);
  expect(written).toBeLessThan(2000);
});

test("ids and partition keys are made by template; packed files and files of nothing known are refused in words", async ({ page, server, open }) => {
  const name = await made(server, "/country");
  await open(`#/upload/${name}/c`);
  await choose(page, "x.csv", "country,number,name\nno,7,Oslo\nit,9,Rome\n");
  await page.getByText("How the file is read: CSV").click();
  await page.getByLabel("Id, by template").fill("{country}-{number}");
  await page.getByLabel("Id, by template").press("Enter");
  const grid = page.getByRole("grid", { name: "First items of the file" });
  await expect(grid.getByRole("gridcell", { name: "no-7", exact: true })).toBeVisible();
  await start(page).click();
  await expect(page.getByText(/^2 written of 2 rows/)).toBeVisible();
  expect((await server.read(name, "c", "it-9", "it")).json).toMatchObject({ name: "Rome", number: 9 });
  await choose(page, "x.csv.gz", Buffer.from([0x1f, 0x8b, 8, 0]));
  await expect(page.getByRole("alert")).toContainText("packed with gzip");
  await choose(page, "x.bin", "hello");
  await expect(page.getByRole("alert")).toContainText("Choose JSON, JSON lines, CSV or TSV");
  await choose(page, "x.json", '[{"id":"1"}');
  await expect(page.getByRole("alert")).toContainText("the array does not end");
});

for (const scheme of ["light", "dark"])
  test(`axe finds nothing in an upload, and it is no wider than a small screen, ${scheme}`, async ({ page, server, open }) => {
    const name = await made(server);
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width: 390, height: 800 });
    await open(`#/upload/${name}/c`);
    await expectAccessible(page, "#panel");
    await choose(page, "people.csv", `id,pk,n\n1,a,1\n2\n3,${"long".repeat(100)},2\n`);
    await page.getByText("How the file is read: CSV").click();
    await expect(page.getByRole("grid")).toBeVisible();
    await expectAccessible(page, "#panel");
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  });

test("a read-only session looks at a file and cannot upload it", async ({ page, server, open }) => {
  const name = await made(server);
  await open(`#/upload/${name}/c`, { readOnly: true });
  await choose(page, "x.json", '[{"id":"1","pk":"a"}]');
  await expect(page.getByRole("grid", { name: "First items of the file" })).toBeVisible();
  await expect(start(page)).toHaveCount(0);
});
