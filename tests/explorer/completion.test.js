// Completion never changes what was typed: Tab takes it, Enter only what the arrows have chosen.
import { expect, test, type, unique } from "./fixture.js";

async function orders(server) {
  const name = unique("orders");
  await server.database(name);
  await server.container(name, "orders", "/customer");
  for (const [id, total, customer] of [["1", 119.97, "Ada Byron"], ["2", 1990, "Alan T."], ["3", 250, "O'Neil"]])
    await server.document(name, "orders", { id, total, customer, category: "books", done: true }, customer);
  return name;
}
const editors = { query: "Query text", bulk: "Condition, about c; empty means all items" };
const lines = (page, label) => page.getByRole("textbox", { name: label, exact: true }).locator(".cm-line");
async function clear(page, label) {
  await page.getByRole("textbox", { name: label, exact: true }).focus();
  await page.keyboard.press("Control+A");
  await page.keyboard.press("Backspace");
}
/** What the editor knows of the data has come: the container's own words are offered. */
async function ready(page, label) {
  await type(page, label, "c.cat");
  await page.keyboard.press("Control+Space");
  await expect(page.getByRole("option", { name: /^category/ })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("listbox")).toHaveCount(0);
}

for (const [kind, label] of Object.entries(editors))
  test(`in the ${kind} editor Enter is a new line, and Tab or a choice by the arrows completes`, async ({ page, server, open }) => {
    const name = await orders(server);
    await open(`#/${kind}/${name}/orders?${new URLSearchParams({ sql: "" })}`);
    await ready(page, label);
    await clear(page, label);
    await page.keyboard.type("c.cat");
    await expect(page.getByRole("option", { name: /^category/ })).toBeVisible();
    // The list takes no key in its first moments, so that nobody accepts what he has not seen.
    await page.waitForTimeout(150);
    await page.keyboard.press("Enter");
    await expect(lines(page, label)).toHaveText(["c.cat", ""]);
    await page.keyboard.type("c.cat");
    await expect(page.getByRole("option", { name: /^category/ })).toBeVisible();
    await page.waitForTimeout(150);
    await page.keyboard.press("Tab");
    await expect(lines(page, label)).toHaveText(["c.cat", "c.category"]);
    await page.keyboard.type(" AND c.c");
    await expect(page.getByRole("option", { name: /^customer/ })).toBeVisible();
    await page.waitForTimeout(150);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await expect(lines(page, label)).toHaveText(["c.cat", "c.category AND c.customer"]);
    // A choice is for the list it was made in: after another letter Enter is a new line again.
    await page.keyboard.type(" AND c.");
    await expect(page.getByRole("option", { name: /^customer/ })).toBeVisible();
    await page.waitForTimeout(150);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.type("c");
    await expect(page.getByRole("option", { name: /^id/ })).toHaveCount(0);
    await expect(page.getByRole("option", { name: /^customer/ })).toBeVisible();
    await page.waitForTimeout(150);
    await page.keyboard.press("Enter");
    await expect(lines(page, label)).toHaveText(["c.cat", "c.category AND c.customer AND c.c", ""]);
  });

for (const [kind, label] of Object.entries(editors))
  test(`in the ${kind} editor numbers and open quotes are never made into others`, async ({ page, server, open }) => {
    const name = await orders(server);
    await open(`#/${kind}/${name}/orders?${new URLSearchParams({ sql: "" })}`);
    await ready(page, label);
    await clear(page, label);
    // Where nothing is typed yet, the values are offered: the list is there before the number.
    await page.keyboard.type("c.total > ");
    await expect(page.getByRole("option", { name: /^119.97/ })).toBeVisible();
    for (const digit of "199") {
      await page.keyboard.type(digit);
      await expect(page.getByRole("listbox")).toHaveCount(0);
    }
    await page.keyboard.press("Control+Space");
    await page.waitForTimeout(300);
    await expect(page.getByRole("listbox")).toHaveCount(0);
    await page.keyboard.press("Enter");
    await expect(lines(page, label)).toHaveText(["c.total > 199", ""]);
    await clear(page, label);
    await page.keyboard.type("c.customer = \"a");
    await page.keyboard.press("Control+Space");
    await page.waitForTimeout(300);
    await expect(page.getByRole("listbox")).toHaveCount(0);
    await page.keyboard.press("Tab");
    await expect(lines(page, label)).toHaveText(['c.customer = "a"']);
    // What begins as the text that was typed is offered, and Tab ends it with one quote.
    await clear(page, label);
    await page.keyboard.type("c.customer = \"Ad");
    await expect(page.locator(".cm-tooltip-autocomplete").getByRole("option")).toHaveText([/"Ada Byron"/]);
    await page.waitForTimeout(150);
    await page.keyboard.press("Tab");
    await expect(lines(page, label)).toHaveText(['c.customer = "Ada Byron"']);
    await clear(page, label);
    await page.keyboard.type("c.customer = 'Al");
    await expect(page.locator(".cm-tooltip-autocomplete").getByRole("option")).toHaveText([/'Alan T.'/]);
    await page.waitForTimeout(150);
    await page.keyboard.press("Tab");
    await expect(lines(page, label)).toHaveText(["c.customer = 'Alan T.'"]);
    // Nor is the name of a parameter made into a function.
    await clear(page, label);
    await page.keyboard.type("c.customer = @nam");
    await page.keyboard.press("Control+Space");
    await page.waitForTimeout(300);
    await expect(page.getByRole("listbox")).toHaveCount(0);
    // Nor is anything put into a comment.
    await clear(page, label);
    await page.keyboard.type("-- it's about cat");
    await page.keyboard.press("Control+Space");
    await page.waitForTimeout(300);
    await expect(page.getByRole("listbox")).toHaveCount(0);
  });

test("a list closes when the focus leaves, and one that comes late is not shown", async ({ page, server, open }) => {
  const name = await orders(server);
  await open(`#/bulk/${name}/orders`);
  const label = editors.bulk;
  await ready(page, label);
  await clear(page, label);
  await page.keyboard.type("c.cat");
  await expect(page.getByRole("option", { name: /^category/ })).toBeVisible();
  await page.getByLabel("Property").focus();
  await expect(page.getByRole("listbox")).toHaveCount(0);
  await expect(lines(page, label)).toHaveText(["c.cat"]);
  // The answer about the data is on its way while the focus leaves.
  let asked = () => {};
  let release = () => {};
  const [began, released] = [new Promise((go) => (asked = go)), new Promise((go) => (release = go))];
  await page.route("**/api/schema?**", async (route) => { asked(); await released; await route.continue(); });
  await open(`#/bulk/${name}/orders`);
  await type(page, label, "c.cat");
  await page.keyboard.press("Control+Space");
  await began;
  await page.getByLabel("Property").focus();
  const answered = page.waitForResponse(/api\/schema/);
  release();
  await answered;
  await page.waitForTimeout(300);
  await expect(page.getByRole("listbox")).toHaveCount(0);
});

test("the box of the filter is sent as it was typed", async ({ page, server, open }) => {
  const name = await orders(server);
  await open(`#/items/${name}/orders`);
  await expect(page.getByText(/^3 items/)).toBeVisible();
  const box = page.getByRole("searchbox", { name: /^Filter:/ });
  await box.pressSequentially("c.total > 199");
  await box.press("Enter");
  await expect(page.getByText(/^2 items/)).toBeVisible();
  await expect(box).toHaveValue("c.total > 199");
  await expect(box).toHaveAttribute("autocomplete", "off");
});

test("a query that fails leaves no rows and no figures of the one before", async ({ page, server, open }) => {
  const name = await orders(server);
  await open(`#/query/${name}/orders?${new URLSearchParams({ sql: "SELECT * FROM c" })}`);
  const result = page.getByRole("region", { name: "Result" });
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(result.getByRole("status")).toHaveText(/^3 rows/);
  await type(page, "Query text", "SELECT * FROM c WHERE");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(result.getByRole("alert")).toBeVisible();
  await expect(result.getByRole("grid")).toHaveCount(0);
  await expect(result.getByText("The query did not run.")).toBeVisible();
  await expect(result.getByRole("status")).toHaveText("");
  await expect(result.getByRole("button", { name: "Export the whole result" })).toHaveCount(0);
  await page.getByRole("radio", { name: "Statistics" }).click();
  await expect(result.getByText("Documents read")).toHaveCount(0);
  // A plan of another text is not shown beside the error either.
  await type(page, "Query text", "SELECT * FROM c");
  await page.getByRole("radio", { name: "Plan" }).click();
  await expect(page.getByRole("img", { name: /^Plan of/ })).toBeVisible();
  await type(page, "Query text", "SELECT * FROM c WHERE");
  await page.getByRole("button", { name: "Estimate" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
  await expect(page.getByRole("img", { name: /^Plan of/ })).toHaveCount(0);
});

test("the time and the version that the server keeps are columns that can be chosen and sorted by", async ({ page, server, open }) => {
  const name = await orders(server);
  await open(`#/items/${name}/orders`);
  const grid = page.getByRole("grid", { name: "Items of orders" });
  await expect(page.getByText(/^3 items/)).toBeVisible();
  await expect(grid.getByRole("columnheader", { name: "_ts" })).toHaveCount(0);
  await page.getByRole("button", { name: "Choose columns" }).click();
  await page.getByRole("checkbox", { name: /^_ts/ }).check();
  await page.getByRole("checkbox", { name: /^_etag/ }).check();
  await page.getByRole("button", { name: "Done", exact: true }).click();
  const stored = (await server.read(name, "orders", "1", "Ada Byron")).json;
  await expect(grid.getByRole("gridcell", { name: stored._etag })).toBeVisible();
  await expect(grid.getByRole("row").filter({ hasText: "Ada Byron" })).toContainText(String(stored._ts));
  await grid.getByRole("button", { name: "_ts" }).click();
  await expect(grid.getByRole("columnheader", { name: "_ts" })).toHaveAttribute("aria-sort", "ascending");
  await expect(page.getByText(/^3 items/)).toBeVisible();
});
