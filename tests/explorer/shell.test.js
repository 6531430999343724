import { expect, test, unique } from "./fixture.js";

test("databases and containers are made, shown with counts, and deleted", async ({ page, server, open }) => {
  const name = unique("shelf");
  await open();
  await page.getByRole("navigation").getByRole("button", { name: "New database" }).click();
  await page.getByRole("dialog").getByLabel("Id").fill(name);
  await page.getByRole("button", { name: "Create" }).click();
  const database = page.getByRole("treeitem", { name, exact: true });
  await expect(database).toHaveAttribute("aria-expanded", "true");
  // By the keyboard alone from here on.
  await database.press("Insert");
  await page.getByRole("dialog").getByLabel("Id").fill("books");
  await page.getByLabel("Partition key").fill("/shelf");
  await page.getByLabel("Unique keys").fill("/isbn");
  await page.getByRole("dialog").getByRole("button", { name: "Create" }).press("Enter");
  await expect(page.getByRole("tab", { name: "Items · books" })).toHaveAttribute("aria-selected", "true");
  const made = (await server.wire("GET", `dbs/${name}/colls/books`)).json;
  expect(made.partitionKey.paths).toEqual(["/shelf"]);
  expect(made.uniqueKeyPolicy.uniqueKeys).toEqual([{ paths: ["/isbn"] }]);
  for (const id of ["1", "2", "3"]) await server.document(name, "books", { id, shelf: "a", isbn: id }, "a");
  const container = page.getByRole("treeitem", { name: /^books: 3 items, .* partition key \/shelf/ });
  await expect(container).toBeVisible();
  await container.press("ArrowDown");
  await expect(page.getByRole("treeitem", { name: "Items", exact: true })).toBeFocused();
  await container.press("Delete");
  await page.getByRole("button", { name: "Delete container" }).click();
  await expect(container).toHaveCount(0);
  await expect(page.getByRole("tab", { name: "Items · books" })).toHaveCount(0);
  await database.press("Delete");
  await page.getByRole("button", { name: "Delete database" }).click();
  await expect(database).toHaveCount(0);
  await expect(server.wire("GET", `dbs/${name}`)).rejects.toThrow("404");
});

test("tabs survive a reload, and an address opens the same state elsewhere", async ({ page, server, open, stranger }) => {
  const name = unique("kept");
  await server.database(name);
  await server.container(name, "c");
  const sql = "SELECT VALUE 1 -- kept & sound";
  await open(`#/query/${name}/c?${new URLSearchParams({ sql, parameters: JSON.stringify([{ name: "@a", value: "12345678901234567890" }]), view: "json" })}`);
  await expect(page.getByRole("textbox", { name: "Query text" })).toHaveText(sql);
  await page.keyboard.press("Alt+n");
  await expect(page.getByRole("tab")).toHaveCount(2);
  await expect(page.getByRole("textbox", { name: "Query text" })).toHaveText("SELECT * FROM c");
  await page.keyboard.press("Alt+w");
  await expect(page.getByRole("tab")).toHaveCount(1);
  await page.goto(`${server.origin}/_explorer/#/settings/${name}/c`);
  await expect(page.getByRole("tab")).toHaveCount(2);
  await page.reload();
  await expect(page.getByRole("tab")).toHaveCount(2);
  await expect(page.getByRole("tab", { name: "Settings · c" })).toHaveAttribute("aria-selected", "true");
  await page.getByRole("tab", { name: "Query · c" }).click();
  await expect(page.getByRole("textbox", { name: "Query text" })).toHaveText(sql);
  await expect(page.getByRole("textbox", { name: "Value of @a" })).toHaveValue("12345678901234567890");
  await expect(page.getByRole("radio", { name: "JSON" })).toBeChecked();
  // The address alone carries the state: another browser has no storage of ours.
  await expect(page).toHaveURL(/#\/query\/.*12345678901234567890/);
  const address = page.url();
  const elsewhere = await stranger(server);
  await elsewhere.context().addCookies(await page.context().cookies());
  const token = await page.evaluate(() => localStorage.getItem("astrarium.pageToken"));
  await elsewhere.addInitScript((token) => localStorage.setItem("astrarium.pageToken", token), token);
  await elsewhere.goto(address);
  await expect(elsewhere.getByRole("textbox", { name: "Value of @a" })).toHaveValue("12345678901234567890");
  await page.getByRole("tab", { name: "Query · c" }).press("Delete");
  await expect(page.getByRole("tab")).toHaveCount(1);
});

test("colours follow the system and the switch", async ({ page, open }) => {
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: "dark" });
  await open();
  await expect.poll(ground).toBe("rgb(20, 23, 31)");
  await page.getByRole("button", { name: "Colours: system. Switch to light" }).click();
  await expect.poll(ground).toBe("rgb(255, 255, 255)");
  // At once after a reload, also while nobody knows yet who is signed in.
  await page.route("**/api/session", () => {});
  await page.reload();
  await expect(page.getByText("Connecting…")).toBeVisible();
  expect(await ground()).toBe("rgb(255, 255, 255)");
  await page.unroute("**/api/session");
  await page.reload();
  await expect(page.getByRole("button", { name: "Colours: light. Switch to dark" })).toBeVisible();
  await expect.poll(ground).toBe("rgb(255, 255, 255)");
});

test("on a small screen the tree is behind a button and nothing is wider than the screen", async ({ page, server, open }) => {
  const name = unique("small");
  await server.database(name);
  await server.container(name, "c");
  await page.setViewportSize({ width: 390, height: 800 });
  await open();
  await expect(page.getByRole("navigation")).toBeHidden();
  await page.getByRole("button", { name: "Databases" }).click();
  await page.getByRole("treeitem", { name, exact: true }).click();
  await page.getByRole("treeitem", { name: /^c:/ }).click();
  await page.getByRole("treeitem", { name: "Settings" }).last().click();
  await expect(page.getByRole("heading", { name: "Indexing policy" })).toBeVisible();
  await expect(page.getByRole("navigation")).toBeHidden();
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
});

for (const width of [390, 1280])
  test(`no panel is wider than a screen of ${width}`, async ({ page, server, open }) => {
    const name = unique("wide");
    await server.database(name);
    await server.container(name, "c", "/a/long/path/of/a/partition/key", {}, { "x-ms-offer-throughput": "25000" });
    await server.document(name, "c", { id: "1", word: "longword".repeat(40), inner: { [`property${"x".repeat(60)}`]: 1 } }, {});
    await page.setViewportSize({ width, height: 800 });
    await open("#/home");
    const at = (kind, more = "") => `#/${kind}/${name}/c${more}`;
    for (const [hash, shown] of [
      [at("items"), page.getByRole("gridcell").first()], [at("query", "?view=table"), page.getByRole("textbox", { name: "Query text" })], [at("bulk"), page.getByRole("button", { name: "Preview" })],
      [at("settings"), page.getByRole("row").filter({ hasText: "/word/?" })], [at("scripts"), page.getByText("None.").first()], [at("partitions"), page.getByRole("row").nth(1)], [at("feed"), page.getByText("Waiting for changes.")],
      [`#/users/${name}`, page.getByText("No users.")], ["#/inspector", page.getByRole("gridcell").first()], ["#/saved", page.getByRole("heading", { name: "Queries" })], ["#/home", page.getByRole("heading", { name: "Samples" })],
    ]) {
      await page.goto(`${server.origin}/_explorer/${hash}`);
      await expect(shown).toBeVisible();
      if (hash === at("items") || hash === "#/inspector") await shown.click();
      await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth), { message: hash }).toBeLessThanOrEqual(width);
    }
  });
