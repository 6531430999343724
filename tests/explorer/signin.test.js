import { KEY } from "./server.js";
import { expect, test } from "./fixture.js";

test("the printed link signs in once and leaves no trace in the address", async ({ empty: server, stranger }) => {
  const page = await stranger(server);
  await page.goto(server.link);
  await expect(page.getByRole("button", { name: "Sign out" })).toBeVisible();
  await expect(page).not.toHaveURL(/link=/);
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
