import { KEY } from "./server.js";
import { expect, test } from "./fixture.js";

test("the printed link signs in once and leaves no trace in the address", async ({ empty: server, stranger }) => {
  const page = await stranger(server);
  await page.goto(server.link);
  await expect(page.getByRole("button", { name: "Sign out" })).toBeVisible();
  expect(page.url()).not.toContain("link=");
  const second = await stranger(server);
  await second.goto(server.link);
  await expect(second.getByRole("alert")).toContainText("works once");
});

test("a wrong key is refused, the right one signs in, and signing out ends the session on the server", async ({ page, server, context }) => {
  await page.goto(`${server.origin}/_explorer/`);
  await page.getByLabel("Account key").fill("bm90IHRoZSBrZXk=");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
  await page.getByLabel("Account key").fill(KEY);
  await page.getByLabel("Account key").press("Enter");
  await expect(page.getByRole("heading", { name: "Welcome" }).or(page.getByRole("heading", { name: "Databases" })).first()).toBeVisible();
  expect(await page.evaluate(() => document.cookie)).toBe("");
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(KEY);
  const cookies = await context.cookies();
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
  const stolen = cookies.map((cookie) => `${cookie.name}=${cookie.value}`).join("; ");
  const answer = await fetch(`${server.origin}/_explorer/api/session`, { headers: { cookie: stolen, "x-astrarium-explorer": "1" } });
  expect(answer.status).toBe(401);
});

test("a read-only session shows no way to change anything, and the server refuses it too", async ({ page, server, open }) => {
  await server.database("quiet");
  await server.container("quiet", "things");
  await server.document("quiet", "things", { id: "1", pk: "a" }, "a");
  await open("#/items/quiet/things", { readOnly: true });
  await expect(page.getByText("Read-only", { exact: true })).toBeVisible();
  await page.getByRole("gridcell", { name: "1", exact: true }).click();
  await expect(page.getByRole("region", { name: "Item 1" })).toBeVisible();
  for (const name of ["New item", "Save", "Delete item", "Duplicate", "New database"]) await expect(page.getByRole("button", { name, exact: true })).toHaveCount(0);
  const status = await page.evaluate(async () => (await fetch("/_explorer/api/wire/dbs", { method: "POST", headers: { "x-astrarium-explorer": "1", "content-type": "application/json", "x-ms-version": "2020-07-15" }, body: '{"id":"no"}' })).status);
  expect([401, 403]).toContain(status);
});
