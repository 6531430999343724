import { expect, expectAccessible, test, unique } from "./fixture.js";

async function keyed(server) {
  const name = unique("keys");
  await server.database(name);
  await server.container(name, "c");
  for (let i = 0; i < 12; i++) await server.document(name, "c", { id: `${i}`, pk: i < 7 ? "large" : `k${i}`, text: "x".repeat(400) }, i < 7 ? "large" : `k${i}`);
  return name;
}

test("the largest partition keys are listed, a range is split and the two are merged again, each after a question", async ({ page, server, open }) => {
  const name = await keyed(server);
  await open(`#/partitions/${name}/c`);
  const keys = page.getByRole("region", { name: "Largest partition keys" });
  await expect(keys.getByText("All 12 items were counted.")).toBeVisible();
  await expect(keys.getByRole("row").nth(1)).toContainText('"large"');
  await expect(keys.getByRole("row").nth(1)).toContainText("58 %");
  // Sizes are in KB of 1,024 bytes, as in the shell.
  await expect(keys.getByRole("row").nth(1).getByRole("cell", { name: "3 KB", exact: true })).toBeVisible();
  const ids = async () => (await server.wire("GET", `dbs/${name}/colls/c/pkranges`)).json.PartitionKeyRanges.map((range) => range.id);
  await page.getByRole("button", { name: "Split range 0" }).click();
  await expect(page.getByRole("dialog")).toContainText("Range 0 holds 12 items");
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  expect(await ids()).toEqual(["0"]);
  await page.getByRole("button", { name: "Split range 0" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Split", exact: true }).click();
  await expect.poll(async () => (await ids()).length).toBe(2);
  const [low, high] = await ids();
  await expectAccessible(page, "#panel");
  await page.getByRole("button", { name: `Merge ranges ${low} and ${high}` }).click();
  await expect(page.getByRole("dialog")).toContainText("They hold 12 items");
  await page.getByRole("dialog").getByRole("button", { name: "Merge", exact: true }).click();
  await expect.poll(async () => (await ids()).length).toBe(1);
  await expect(page.getByRole("button", { name: /^Merge ranges/ })).toHaveCount(0);
  expect((await server.wire("GET", `dbs/${name}/colls/c/docs`)).json.Documents).toHaveLength(12);
});

test("a read-only session sees ranges and keys and changes neither", async ({ page, server, open }) => {
  const name = await keyed(server);
  await open(`#/partitions/${name}/c`, { readOnly: true });
  await expect(page.getByRole("group", { name: "Largest keys" })).toBeVisible();
  await expect(page.getByRole("group", { name: "Figures of the ranges" })).toBeVisible();
  await expect(page.getByRole("button", { name: /^(Split|Merge)/ })).toHaveCount(0);
  const status = await page.evaluate(async (name) => (await fetch("/_explorer/api/wire/_admin/split", { method: "POST", headers: { "x-astrarium-explorer": localStorage.getItem("astrarium.pageToken"), "content-type": "application/json" }, body: JSON.stringify({ database: name, container: "c", range: "0" }) })).status, name);
  expect([401, 403]).toContain(status);
});
