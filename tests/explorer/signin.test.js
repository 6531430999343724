import { KEY, Server } from "./server.js";
import { expect, test } from "./fixture.js";

test("the server's own address leads to the page, and on its machine the well-known key need not be typed", async ({ page, server, context }) => {
  await page.goto(server.origin);
  await expect(page).toHaveURL(/\/_explorer\/#\/$/);
  await expect(page.getByText("no key is needed")).toBeVisible();
  await page.getByRole("button", { name: "Continue with the well-known key" }).click();
  await expect(page.getByRole("button", { name: "Sign out" })).toBeVisible();
  await expect(page.getByRole("navigation").getByRole("button", { name: "New database" })).toBeVisible();
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(KEY);
  expect((await context.cookies()).map((cookie) => [cookie.httpOnly, cookie.sameSite])).toEqual([[true, "Strict"]]);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Read-only session").check();
  await page.getByRole("button", { name: "Continue with the well-known key" }).click();
  await expect(page.getByText("Read-only", { exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
});

test("with a key of its own a server asks for it", async ({ stranger }) => {
  const server = await Server.start({ key: Buffer.alloc(64, 7).toString("base64") });
  try {
    const page = await stranger(server);
    await page.goto(server.origin);
    await expect(page.getByText("use one of the account's keys")).toBeVisible();
    await expect(page.getByRole("button", { name: "Continue with the well-known key" })).toHaveCount(0);
  } finally {
    await server.stop();
  }
});

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
  expect(await page.evaluate(() => localStorage.getItem("astrarium.pageToken"))).toBeNull();
  const stolen = cookies.map((cookie) => `${cookie.name}=${cookie.value}`).join("; ");
  const answer = await fetch(`${server.origin}/_explorer/api/session`, { headers: { cookie: stolen, "x-astrarium-explorer": "1" } });
  expect(answer.status).toBe(401);
});

test("a cookie alone is worth nothing; a reload and a second tab stay signed in, and signing out counts for both", async ({ page, server, context, open }) => {
  await open("#/home");
  const cookie = (await context.cookies()).map((c) => `${c.name}=${c.value}`).join("; ");
  const token = await page.evaluate(() => localStorage.getItem("astrarium.pageToken"));
  const status = async (header) => (await fetch(`${server.origin}/_explorer/api/overview`, { headers: { cookie, "x-astrarium-explorer": header } })).status;
  expect([await status("1"), await status("none"), await status(token)]).toEqual([401, 401, 200]);
  await page.reload();
  await expect(page.getByRole("button", { name: "Sign out" })).toBeVisible();
  const second = await context.newPage();
  await second.goto(`${server.origin}/_explorer/#/home`);
  await expect(second.getByRole("button", { name: "Sign out" })).toBeVisible();
  await second.getByRole("button", { name: "Sign out" }).click();
  await expect(second.getByRole("heading", { name: "Sign in" })).toBeVisible();
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
  expect(await status(token)).toBe(401);
});

test("who is not signed out is told so, and nothing is forgotten until that is asked for", async ({ page, open }) => {
  await open("#/saved");
  await page.route("**/api/session", (route) => (route.request().method() === "DELETE" ? route.fulfill({ status: 503, contentType: "application/json", body: '{"code":"ServiceUnavailable","message":"Not now."}' }) : route.continue()));
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByText("Not now.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Sign out" })).toBeVisible();
  await page.unroute("**/api/session");
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
  const kept = () => page.evaluate(() => localStorage.getItem("astrarium.tabs"));
  expect(await kept()).toContain("saved");
  await page.getByRole("button", { name: "Forget the tabs and queries of this browser" }).click();
  await expect.poll(kept).toBe("[]");
});
