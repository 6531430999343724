import { expect, expectAccessible, test, unique } from "./fixture.js";

const PANELS = [["items", "Items of c"], ["query", "Run"], ["bulk", "Preview"], ["settings", "Save throughput"], ["scripts", "New procedure"], ["partitions", "Figures of the ranges"], ["feed", "Pause"]];

for (const scheme of ["light", "dark"]) {
  test(`axe finds nothing in any panel, ${scheme}`, async ({ page, server, open }) => {
    const name = unique("open");
    await server.database(name);
    await server.container(name, "c");
    for (let i = 0; i < 5; i++) await server.document(name, "c", { id: `${i}`, pk: "a", n: i, o: { p: null } }, "a");
    await page.emulateMedia({ colorScheme: scheme });
    await open();
    await page.getByRole("treeitem", { name, exact: true }).click();
    await page.getByRole("treeitem", { name: /^c:/ }).click();
    await expectAccessible(page);
    for (const [kind, landmark] of PANELS) {
      await page.goto(`${server.origin}/_explorer/#/${kind}/${name}/c`);
      await expect(page.getByLabel(landmark).or(page.getByText(landmark, { exact: true })).first()).toBeVisible();
      if (kind === "items") await page.getByRole("gridcell", { name: "1", exact: true }).first().click();
      if (kind === "query") {
        await page.getByRole("button", { name: "Run", exact: true }).click();
        await expect(page.getByRole("grid")).toBeVisible();
        for (const view of ["Tree", "Chart", "Statistics", "Plan"]) {
          await page.getByRole("radio", { name: view }).click();
          await expectAccessible(page);
        }
      }
      await expectAccessible(page);
    }
    for (const hash of [`#/users/${name}`, "#/inspector", "#/saved", "#/home", "#/tour?of=library"]) {
      await page.goto(`${server.origin}/_explorer/${hash}`);
      await expect(page.getByRole("tabpanel")).toBeVisible();
      await expectAccessible(page);
    }
  });
}

test("axe finds nothing in the sign-in and in dialogs", async ({ page, server, open }) => {
  await page.goto(`${server.origin}/_explorer/`);
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
  await expectAccessible(page);
  await open();
  await page.getByRole("navigation").getByRole("button", { name: "New database" }).click();
  await expectAccessible(page);
});
