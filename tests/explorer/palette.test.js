import { expect, expectAccessible, test, unique } from "./fixture.js";

async function two(server) {
  const name = unique("Pal");
  await server.database(name);
  await server.container(name, "Orders");
  await server.container(name, "people");
  return name;
}

for (const scheme of ["light", "dark"])
  test(`containers, panels and actions are found and run by the keyboard alone, ${scheme}`, async ({ page, server, open }) => {
    const name = await two(server);
    await page.emulateMedia({ colorScheme: scheme });
    await open(`#/query/${name}/people`);
    // Also from within an editor, which has keys of its own.
    await page.getByRole("textbox", { name: "Query text" }).focus();
    await page.keyboard.press("Control+k");
    const input = page.getByRole("dialog").getByRole("combobox");
    await expect(input).toBeFocused();
    await page.keyboard.type(`sche order ${name}`);
    const option = page.getByRole("dialog").getByRole("option");
    await expect(option).toHaveCount(1);
    await expect(option).toContainText("Schema: Orders");
    await expect(option).toHaveAttribute("aria-selected", "true");
    await expect(input).toHaveAttribute("aria-activedescendant", await option.getAttribute("id"));
    await expectAccessible(page, "dialog");
    await page.keyboard.press("Enter");
    await expect(page.getByRole("tab", { name: "Schema · Orders" })).toHaveAttribute("aria-selected", "true");
    // Arrows choose, the list goes round, Escape leaves everything as it was.
    await page.keyboard.press("Control+k");
    await page.keyboard.type("colours");
    await expect(option).toHaveCount(2);
    await page.keyboard.press("ArrowUp");
    await expect(option.nth(1)).toHaveAttribute("aria-selected", "true");
    await page.keyboard.press("ArrowDown");
    await expect(option.nth(0)).toHaveAttribute("aria-selected", "true");
    await page.keyboard.press("Escape");
    await expect(page.getByRole("dialog")).toHaveCount(0);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("nothing is called like this");
    await expect(page.getByRole("dialog").getByRole("status")).toHaveText("Nothing is called so.");
    await expectAccessible(page, "dialog");
    await page.keyboard.press("Control+k");
    await expect(page.getByRole("dialog")).toHaveCount(0);
    await page.keyboard.press("Control+k");
    await page.keyboard.type(`new container ${name}`);
    await page.keyboard.press("Enter");
    await expect(page.getByRole("dialog", { name: `New container in ${name}` })).toBeVisible();
  });

test("the palette opens by its button, and shows a read-only session nothing that changes data", async ({ page, server, open }) => {
  const name = await two(server);
  await open("#/home", { readOnly: true });
  await page.getByRole("button", { name: /^Go to or do/ }).click();
  await page.keyboard.type("new");
  await expect(page.getByRole("option", { name: `New query: people ${name}` })).toBeVisible();
  await expect(page.getByRole("option", { name: /^New (database|container)/ })).toHaveCount(0);
});

test("the tree is filtered by names of databases and containers", async ({ page, server, open }) => {
  const [one, other] = [await two(server), unique("Other")];
  await server.database(other);
  await open();
  const filter = page.getByLabel("Filter databases and containers");
  await filter.fill(one.toLowerCase());
  await expect(page.getByRole("treeitem", { name: one, exact: true })).toBeVisible();
  await expect(page.getByRole("treeitem", { name: other, exact: true })).toHaveCount(0);
  await expect(page.getByRole("treeitem", { name: /^Orders:/ })).toBeVisible();
  await filter.fill("orders");
  await expect(page.getByRole("treeitem", { name: /^Orders:/ }).first()).toBeVisible();
  await expect(page.getByRole("treeitem", { name: /^people:/ })).toHaveCount(0);
  await filter.press("ArrowDown");
  await expect(page.getByRole("treeitem").first()).toBeFocused();
  await expectAccessible(page, "nav");
  await filter.fill("no such thing");
  await expect(page.getByRole("navigation").getByText("Nothing is called so.")).toBeVisible();
  await filter.press("Escape");
  await expect(page.getByRole("treeitem", { name: other, exact: true })).toBeVisible();
});
