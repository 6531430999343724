import { expect, test, unique } from "./fixture.js";

const address = (name, sql) => `#/query/${name}/pots?${new URLSearchParams({ sql, view: "plan" })}`;
async function tea(server) {
  const name = unique("plan");
  await server.database(name);
  await server.container(name, "pots", "/kind");
  await Promise.all(Array.from({ length: 60 }, (_, i) => server.document(name, "pots", { id: `p${i}`, kind: i % 2 ? "green" : "black", grams: i, leaf: { origin: i % 3 ? "Assam" : "Uji" }, steps: [1, 2] }, i % 2 ? "green" : "black")));
  return name;
}
const LONG = "SELECT DISTINCT TOP 50 c.leaf.origin, s FROM c JOIN s IN c.steps WHERE c.grams > 10 AND c.kind IN ('green', 'black') AND CONTAINS(c.leaf.origin, 's') AND (c.leaf.origin = 'Assam' OR c.leaf.origin = 'Uji' OR STARTSWITH(c.leaf.origin, 'a text that is much longer than a line of a box in the picture')) ORDER BY c.grams DESC";
const picture = (page) => page.getByRole("img", { name: /^Plan of \d+ steps/ });

for (const width of [390, 1280])
  test(`a long plan is as wide as a screen of ${width}, and every text in it has its lines`, async ({ page, server, open }) => {
    const name = await tea(server);
    await page.setViewportSize({ width, height: 800 });
    await open(address(name, LONG));
    await page.getByRole("button", { name: "Run and count rows" }).click();
    const box = page.getByRole("group", { name: "Plan", exact: true });
    await expect(picture(page)).toBeVisible();
    expect(await box.evaluate((element) => element.scrollWidth - element.clientWidth)).toBeLessThanOrEqual(0);
    // No text leaves its box, and the long condition is there to its last word.
    const outside = () => picture(page).evaluate((svg) => [...svg.querySelectorAll("g")].flatMap((group) => {
      const frame = group.querySelector("rect").getBoundingClientRect();
      return [...group.querySelectorAll("text")].filter((text) => { const own = text.getBoundingClientRect(); return own.left < frame.left || own.right > frame.right + 1 || own.bottom > frame.bottom + 1; }).map((text) => text.textContent);
    }));
    expect(await outside()).toEqual([]);
    const words = (await picture(page).locator(".plan-detail").allTextContents()).join(" ");
    expect(words).toContain("picture");
    // Each size keeps to the width.
    const height = () => picture(page).evaluate((svg) => svg.getBoundingClientRect().height);
    const fitting = await height();
    await page.getByRole("button", { name: "Larger" }).click();
    await page.getByRole("button", { name: "Larger" }).click();
    expect(await height()).toBeGreaterThan(fitting);
    if (width === 1280) expect(await box.evaluate((element) => element.scrollWidth - element.clientWidth)).toBeLessThanOrEqual(0);
    await page.getByRole("button", { name: "Fit" }).click();
    expect(await height()).toBe(fitting);
    await page.getByRole("radio", { name: "Text" }).click();
    await expect(page.getByLabel("Plan as text")).toContainText("filter");
  });

test("a step that the index alone answers is not marked as a surprise, and one that gives ten times what was expected is", async ({ page, server, open }) => {
  const name = await tea(server);
  await open(address(name, "SELECT VALUE COUNT(1) FROM c WHERE c.grams > 5"));
  await page.getByRole("button", { name: "Run and count rows" }).click();
  await expect(picture(page)).toHaveAttribute("aria-label", /answered from the index alone/);
  await expect(picture(page).locator(".plan-box.off")).toHaveCount(0);
  // A limit that ends the reading early is no surprise either.
  await page.goto(`${server.origin}/_explorer/${address(name, "SELECT TOP 1 * FROM c WHERE c.grams > 5")}`);
  await page.getByRole("button", { name: "Run and count rows" }).click();
  await expect(picture(page)).toHaveAttribute("aria-label", /1 rows came/);
  await expect(picture(page).locator(".plan-box.off")).toHaveCount(0);
  // Nothing else comes of what the server says: a tenth of what was expected is marked.
  await page.route("**/api/explain", async (route) => {
    await route.fulfill({ contentType: "application/json", body: JSON.stringify({ plan: { operator: "filter", detail: "x", estimatedRows: 3, actualRows: 40, children: [{ operator: "access", detail: "scan", estimatedRows: 100, actualRows: 50, documents: 50, children: [] }] }, text: "", run: { rows: 40, pages: 1, charge: 1, complete: true } }) });
  });
  await page.getByRole("button", { name: "Run and count rows" }).click();
  await expect(picture(page).locator(".plan-box.off")).toHaveCount(1);
  await expect(picture(page).locator(".plan-box.off")).toContainText("filter");
});
