import { expect, test, type, unique } from "./fixture.js";

async function shop(server, count = 30) {
  const name = unique("shop");
  await server.database(name);
  await server.container(name, "products", "/category");
  await Promise.all(Array.from({ length: count }, (_, i) => server.document(name, "products", { id: `p${i}`, category: i % 2 ? "tea" : "cups", price: i * 1.5, address: { city: i % 3 ? "Oslo" : "Rome" } }, i % 2 ? "tea" : "cups")));
  return name;
}
const BIG = "12345678901234567890.123456789";

test("columns come from the schema; the server sorts and filters; columns can be chosen", async ({ page, server, open }) => {
  const name = await shop(server);
  await open(`#/items/${name}/products`);
  const grid = page.getByRole("grid", { name: "Items of products" });
  await expect.poll(async () => (await grid.getByRole("columnheader").allInnerTexts()).sort()).toEqual(["address.city", "category", "id", "price"]);
  await grid.getByRole("button", { name: "price" }).click();
  await expect(grid.getByRole("columnheader", { name: "price" })).toHaveAttribute("aria-sort", "ascending");
  await grid.getByRole("button", { name: "price" }).click();
  await expect(grid.getByRole("columnheader", { name: "price" })).toHaveAttribute("aria-sort", "descending");
  await expect(grid.locator('[aria-rowindex="2"]')).toContainText("p29");
  await page.getByRole("searchbox", { name: /^Filter:/ }).fill('c.address.city = "Rome" AND c.price < 10');
  await page.keyboard.press("Enter");
  await expect(grid.locator('[aria-rowindex="2"]')).toContainText("p6");
  await expect(page.getByText(/^3 items/)).toBeVisible();
  await page.getByRole("searchbox", { name: /^Filter:/ }).fill("c.price <");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("alert")).toBeVisible();
  await page.getByRole("searchbox", { name: /^Filter:/ }).fill("");
  await page.keyboard.press("Enter");
  await expect(page.getByText(/^30 items/)).toBeVisible();
  await page.getByRole("button", { name: "Choose columns" }).click();
  await page.getByRole("checkbox", { name: /price/ }).uncheck();
  await page.getByRole("button", { name: "Done" }).click();
  await expect(grid.getByRole("columnheader", { name: "price" })).toHaveCount(0);
});

test("the grid is used by keyboard", async ({ page, server, open }) => {
  const name = await shop(server, 60);
  await open(`#/items/${name}/products`);
  const grid = page.getByRole("grid");
  await expect(page.getByText(/^60 items/)).toBeVisible();
  await grid.press("Control+End");
  const active = () => grid.evaluate((element) => document.getElementById(element.getAttribute("aria-activedescendant"))?.parentElement.getAttribute("aria-rowindex"));
  await expect.poll(active).toBe("61");
  await grid.press("Home");
  await grid.press("Enter");
  await expect(page.getByRole("region", { name: /^Item p/ })).toBeVisible();
});

test("an item is created, edited, duplicated and deleted, and large numbers keep every digit", async ({ page, server, open }) => {
  const name = await shop(server, 2);
  await open(`#/items/${name}/products`);
  await page.getByRole("button", { name: "New item" }).click();
  await type(page, "Item as JSON", `{"id":"big","category":"tea","10":1,"2":2,"amount":${BIG},"count":9007199254740993}`);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("gridcell", { name: "big", exact: true }).click();
  const stored = async () => (await server.read(name, "products", "big", "tea")).text;
  const before = await stored();
  const editor = page.getByRole("textbox", { name: "Item as JSON" });
  const digits = /"amount":([^,}]+)/.exec(before)[1];
  await expect(editor).toContainText(`"amount": ${digits}`);
  await editor.click();
  await expect(editor).toBeFocused();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.insertText('"note":"edited",');
  await page.keyboard.press("Control+s");
  await expect.poll(stored).toContain('"note":"edited"');
  const after = await stored();
  expect(/"amount":([^,}]+)/.exec(after)[1]).toBe(digits);
  expect(/"count":([^,}]+)/.exec(after)[1]).toBe(/"count":([^,}]+)/.exec(before)[1]);
  // Keys that look like numbers stay where they were written.
  expect(after.indexOf('"10"')).toBeLessThan(after.indexOf('"2"'));

  await page.getByRole("gridcell", { name: "big", exact: true }).click();
  await page.getByRole("button", { name: "Duplicate" }).click();
  await expect(page.getByRole("region", { name: "New item" })).toContainText('"note": "edited"');
  await page.getByRole("button", { name: "Create" }).click();
  await expect(page.getByText(/^4 items/)).toBeVisible();
  await page.getByRole("gridcell", { name: "big", exact: true }).click();
  await page.getByRole("button", { name: "Delete item" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete item" }).click();
  await expect(page.getByText(/^3 items/)).toBeVisible();
  await expect(server.read(name, "products", "big", "tea")).rejects.toThrow("404");
});

test("bad JSON is not sent, and the place is named", async ({ page, server, open }) => {
  const name = await shop(server, 1);
  await open(`#/items/${name}/products`);
  await page.getByRole("gridcell", { name: "p0", exact: true }).click();
  await type(page, "Item as JSON", '{"id":"p0","category":"cups",}');
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("alert")).toContainText("at character 30");
});

test("a conflict shows both versions, and the merge is saved over the newer one", async ({ page, server, open }) => {
  const name = await shop(server, 1);
  await open(`#/items/${name}/products`);
  await page.getByRole("gridcell", { name: "p0", exact: true }).click();
  await expect(page.getByRole("textbox", { name: "Item as JSON" })).toContainText('"p0"');
  await server.document(name, "products", { id: "p0", category: "cups", price: 99, theirs: true }, "cups");
  await type(page, "Item as JSON", '{\n  "id": "p0",\n  "category": "cups",\n  "price": 1,\n  "mine": true\n}');
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("alert")).toContainText("Somebody else saved this item");
  await expect(page.getByRole("textbox", { name: "Your version" })).toContainText('"mine": true');
  await expect(page.getByRole("textbox", { name: "The server's version" })).toContainText('"theirs": true');
  expect((await server.read(name, "products", "p0", "cups")).json.price).toBe(99);
  await type(page, "Your version", '{"id":"p0","category":"cups","price":1,"mine":true,"theirs":true}');
  await page.getByRole("button", { name: "Save the left version" }).click();
  await expect.poll(async () => (await server.read(name, "products", "p0", "cups")).json).toMatchObject({ price: 1, mine: true, theirs: true });
});

test("many items of a condition are changed and deleted after a preview, and those of others are left alone", async ({ page, server, open }) => {
  const name = await shop(server, 20);
  await open(`#/bulk/${name}/products`);
  await type(page, "Condition, about c; empty means all items", 'c.category = "tea"');
  await page.getByLabel("Property").fill("/address/city");
  await page.getByLabel("Value", { exact: true }).fill("Lima");
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByText(/^10 items match/)).toBeVisible();
  const preview = page.getByRole("grid", { name: "What would change" });
  await expect(preview.locator('[aria-rowindex="2"]')).toContainText(/(Oslo|Rome)Lima/);
  expect((await server.read(name, "products", "p1", "tea")).json.address.city).not.toBe("Lima");
  // One of them changes after the preview.
  await server.document(name, "products", { id: "p1", category: "tea", address: { city: "Quito" } }, "tea");
  await page.getByRole("button", { name: "Change 10 items" }).click();
  await page.getByRole("button", { name: "Change all" }).click();
  await expect(page.getByText(/^9 of 10 done, 1 left alone/)).toBeVisible();
  await expect(page.getByText("p1 changed meanwhile")).toBeVisible();
  expect((await server.read(name, "products", "p1", "tea")).json.address.city).toBe("Quito");
  expect((await server.read(name, "products", "p3", "tea")).json.address.city).toBe("Lima");
  await page.getByRole("radio", { name: "Delete the items" }).click();
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByText(/^10 items match/)).toBeVisible();
  await page.getByRole("button", { name: "Delete 10 items" }).click();
  await page.getByRole("button", { name: "Delete all" }).click();
  await expect(page.getByText(/^10 of 10 done/)).toBeVisible();
  await expect(server.read(name, "products", "p3", "tea")).rejects.toThrow("404");
});

test("items are found in whatever range they are, and a page of a query is full", async ({ page, server, open }) => {
  const name = unique("spread");
  await server.database(name);
  await server.container(name, "c", "/pk", {}, { "x-ms-offer-throughput": "25000" });
  await Promise.all(Array.from({ length: 25 }, (_, i) => server.document(name, "c", { id: `${i}`, pk: `key ${i}` }, `key ${i}`)));
  await server.container(name, "one", "/pk", {}, { "x-ms-offer-throughput": "25000" });
  // Its range is one of several, and the others have nothing.
  await server.document(name, "one", { id: "lonely", pk: "z" }, "z");
  await open(`#/items/${name}/one`);
  await expect(page.getByRole("gridcell", { name: "lonely", exact: true })).toBeVisible();
  await expect(page.getByText(/^1 items/)).toBeVisible();
  await page.goto(`${server.origin}/_explorer/#/items/${name}/c`);
  await expect(page.getByText(/^25 items/)).toBeVisible();
  await page.goto(`${server.origin}/_explorer/#/query/${name}/c?${new URLSearchParams({ sql: "SELECT * FROM c", size: "10" })}`);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  for (const [shown, rows] of [["Page 1", 10], ["Page 2", 10], ["Page 3 of 3", 5]]) {
    await expect(page.getByRole("region", { name: "Result" }).getByText(shown, { exact: true })).toBeVisible();
    await expect(page.getByText(new RegExp(`^${rows} rows`))).toBeVisible();
    if (rows === 10) await page.getByRole("button", { name: "Next page" }).click();
  }
});
