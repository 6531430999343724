import { expect, expectAccessible, test, unique } from "./fixture.js";

async function mixed(server) {
  const name = unique("shape");
  await server.database(name);
  await server.container(name, "c");
  for (let i = 0; i < 8; i++) await server.document(name, "c", { id: `p${i}`, pk: "a", type: "post", title: `T${i}`, likes: i < 6 ? i : "many", tags: ["x"].slice(i % 2), by: { name: "Ada" } }, "a");
  for (let i = 0; i < 2; i++) await server.document(name, "c", { id: `c${i}`, pk: "a", type: "comment", text: "<b>hello</b>" }, "a");
  return name;
}

for (const scheme of ["light", "dark"])
  test(`types, shares, ranges and kinds of items are shown, and of how many, ${scheme}`, async ({ page, server, open }) => {
    const name = await mixed(server);
    await page.emulateMedia({ colorScheme: scheme });
    await open(`#/schema/${name}/c`);
    await expect(page.getByText("All 10 items were looked at.")).toBeVisible();
    const row = (property) => page.getByRole("row").filter({ has: page.getByRole("rowheader", { name: property, exact: true }) });
    await expect(row("id")).toContainText("100 %");
    await expect(row("title")).toContainText("80 %");
    await expect(row("title")).toContainText("T0 to T7");
    await expect(row("likes")).toContainText("number 75 %, string 25 %");
    await expect(row("likes")).toContainText("0 to 5");
    await expect(row("tags")).toContainText("0 to 1 elements");
    // Of the objects that could have it.
    await expect(row("name")).toContainText("100 %");
    await expect(row("text")).toContainText("<b>hello</b>");
    const kinds = page.getByRole("region", { name: "Kinds of items" });
    await expect(kinds.getByRole("listitem")).toHaveCount(2);
    await expect(kinds.getByRole("listitem").first()).toContainText("type = post");
    await expect(kinds.getByRole("listitem").first()).toContainText("80 %, 8 items");
    await expectAccessible(page, "#panel");
    await page.getByLabel("Filter the properties").fill("by.na");
    await expect(page.getByRole("rowheader")).toHaveCount(1);
    await kinds.getByRole("listitem").nth(1).getByRole("button", { name: "Query these items" }).click();
    await expect(page.getByRole("textbox", { name: "Query text" })).toHaveText('SELECT * FROM c WHERE c.type = "comment"');
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await expect(page.getByText(/^2 rows/)).toBeVisible();
  });

test("a sample says that it is one, and an empty container has nothing to show", async ({ page, server, open }) => {
  const name = unique("shape");
  await server.database(name);
  await server.container(name, "c");
  await open(`#/schema/${name}/c`);
  await expect(page.getByText("There are no items to look at.")).toBeVisible();
  for (let start = 0; start < 320; start += 40) await Promise.all(Array.from({ length: 40 }, (_, i) => server.document(name, "c", { id: `${start + i}`, pk: "a", n: start + i }, "a")));
  await page.setViewportSize({ width: 390, height: 800 });
  await page.getByRole("button", { name: "Look again" }).click();
  await expect(page.getByText(/^300 of 320 items were looked at/)).toBeVisible();
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
});
