import { expect, expectAccessible, test, unique } from "./fixture.js";

// What says that a panel is there with all it has to show: looking earlier would be looking at less.
const PANELS = {
  items: async (page) => {
    await page.getByRole("gridcell", { name: "1", exact: true }).first().click();
    await expect(page.getByRole("textbox", { name: "Item as JSON" })).toBeVisible();
  },
  bulk: async (page) => {
    await page.getByLabel("Property").fill("/n");
    await page.getByLabel("Value", { exact: true }).fill("1");
    await page.getByRole("button", { name: "Preview" }).click();
    await expect(page.getByRole("grid", { name: "What would change" }).getByRole("gridcell").first()).toBeVisible();
  },
  settings: async (page) => {
    await expect(page.getByRole("button", { name: "Save throughput" })).toBeVisible();
    await expect(page.getByRole("row").filter({ hasText: "/n/?" })).toBeVisible();
  },
  scripts: async (page) => {
    await page.getByRole("button", { name: "New procedure" }).click();
    await page.getByRole("textbox", { name: "Partition key" }).fill('["a"]');
    await page.getByRole("button", { name: "Try" }).click();
    await expect(page.getByRole("region", { name: "Steps" })).toBeVisible();
  },
  partitions: async (page) => { await expect(page.getByRole("group", { name: "Figures of the ranges" })).toBeVisible(); },
  feed: async (page) => {
    await page.getByRole("radio", { name: "From the beginning" }).click();
    await page.getByRole("button", { name: /range 0/ }).first().click();
    await expect(page.getByRole("textbox", { name: "Change as JSON" })).toBeVisible();
  },
};

async function filled(server) {
  const name = unique("open");
  await server.database(name);
  await server.container(name, "c");
  await server.wire("POST", `dbs/${name}/users`, { body: { id: "ada" } });
  for (let i = 0; i < 5; i++) await server.document(name, "c", { id: `${i}`, pk: "a", n: i, o: { p: null } }, "a");
  return name;
}

for (const scheme of ["light", "dark"]) {
  test.describe(scheme, () => {
    test.use({ colorScheme: scheme });

    test(`axe finds nothing in the panels of a container, ${scheme}`, async ({ page, server, open }) => {
      const name = await filled(server);
      await open();
      await page.getByRole("treeitem", { name, exact: true }).click();
      await page.getByRole("treeitem", { name: /^c:/ }).click();
      await expect(page.getByRole("treeitem", { name: "Change feed" })).toBeVisible();
      await expectAccessible(page);
      for (const [kind, shown] of Object.entries(PANELS)) {
        await page.goto(`${server.origin}/_explorer/#/${kind}/${name}/c`);
        await shown(page);
        await expectAccessible(page, "#panel");
      }
    });

    test(`axe finds nothing in a query and in every view of its result, ${scheme}`, async ({ page, server, open }) => {
      const name = await filled(server);
      await open(`#/query/${name}/c?sql=${encodeURIComponent("SELECT * FROM c WHERE c.n > @n")}&parameters=${encodeURIComponent('[{"name":"@n","value":"1"}]')}`);
      await page.getByRole("button", { name: "Run", exact: true }).click();
      const result = page.getByRole("region", { name: "Result" });
      for (const [view, shown] of [["Table", result.getByRole("grid")], ["JSON", result.getByRole("textbox")], ["Tree", result.getByText("9 fields").first()], ["Chart", result.locator("canvas")], ["Statistics", result.getByText("Documents read")], ["Plan", result.getByRole("img", { name: /^Plan of/ })]]) {
        await page.getByRole("radio", { name: view }).click();
        await expect(shown).toBeVisible();
        await expectAccessible(page, "#panel");
      }
    });

    test(`axe finds nothing in what belongs to the account, ${scheme}`, async ({ page, server, open }) => {
      const name = await filled(server);
      await page.goto(`${server.origin}/_explorer/`);
      await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
      await expectAccessible(page);
      await open();
      for (const [hash, shown] of [[`#/users/${name}`, "Permissions of ada"], ["#/saved", "Queries"], ["#/home", "Samples"], ["#/tour?of=library", "One book, read whole"]]) {
        await page.goto(`${server.origin}/_explorer/${hash}`);
        await expect(page.getByRole("heading", { name: shown })).toBeVisible();
        await expectAccessible(page, "#panel");
      }
      await page.goto(`${server.origin}/_explorer/#/inspector`);
      await page.getByRole("gridcell").first().click();
      await expect(page.getByRole("heading", { name: "As a program" })).toBeVisible();
      await expectAccessible(page, "#panel");
      await page.getByRole("navigation").getByRole("button", { name: "New database" }).click();
      await expect(page.getByRole("dialog")).toBeVisible();
      await expectAccessible(page, "dialog");
    });
  });
}
