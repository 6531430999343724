import { execFileSync } from "node:child_process";
import { KEY } from "./server.js";
import { expect, test, unique } from "./fixture.js";

test("partitions are a picture with figures that follow the load", async ({ page, server, open }) => {
  const name = unique("parts");
  await server.database(name);
  await server.container(name, "c");
  for (let i = 0; i < 20; i++) await server.document(name, "c", { id: `${i}`, pk: `${i}` }, `${i}`);
  await open(`#/partitions/${name}/c`);
  await expect(page.getByRole("img", { name: /^1 key ranges: range 0, 20 items/ })).toBeVisible();
  await expect.poll(async () => {
    for (let i = 0; i < 10; i++) await server.read(name, "c", `${i}`, `${i}`);
    return Number(await page.getByRole("row").nth(1).getByRole("cell").last().innerText());
  }).toBeGreaterThan(0);
});

test("the change feed shows writes as they happen", async ({ page, server, open }) => {
  const name = unique("feed");
  await server.database(name);
  await server.container(name, "c");
  await server.document(name, "c", { id: "before", pk: "a" }, "a");
  await open(`#/feed/${name}/c`);
  await expect(page.getByText("Waiting for changes.")).toBeVisible();
  // The first answer says where now is.
  await page.waitForResponse((response) => response.url().endsWith("/docs") && response.headers().etag !== undefined);
  await server.document(name, "c", { id: "after", pk: "a", value: 7 }, "a");
  await page.getByRole("button", { name: /after/ }).click();
  await expect(page.getByRole("textbox", { name: "Change as JSON" })).toContainText('"value": 7');
  await expect(page.getByRole("button", { name: /before/ })).toHaveCount(0);
  await page.getByRole("radio", { name: "From the beginning" }).click();
  await expect(page.getByRole("button", { name: /before/ })).toBeVisible();
});

test("requests of other clients are listed with charge, plan and a program that really runs", async ({ page, server, open }) => {
  const name = unique("seen");
  await server.database(name);
  await server.container(name, "c");
  await server.document(name, "c", { id: "x", pk: "it's" }, "it's");
  await open("#/inspector");
  const sql = "SELECT * FROM c WHERE c.pk = @pk";
  await server.wire("POST", `dbs/${name}/colls/c/docs`, { body: { query: sql, parameters: [{ name: "@pk", value: "it's" }] }, headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "true", "x-ms-documentdb-query-enablecrosspartition": "true" } });
  await page.getByRole("searchbox").fill(name);
  await page.getByRole("gridcell", { name: sql }).first().click();
  const details = page.getByRole("region", { name: /^Request \d+/ });
  await expect(details.getByText("RU", { exact: false }).first()).toBeVisible();
  await details.getByRole("button", { name: "Plan" }).click();
  await expect(details.getByRole("img", { name: /^Plan of/ })).toBeVisible();
  for (const language of ["Python", "JavaScript", "C#", "Java", "Go"]) {
    await details.getByRole("radio", { name: language, exact: true }).click();
    await expect(details.getByRole("textbox", { name: `Program for ${language}` })).toContainText(sql);
  }
  await details.getByRole("radio", { name: "curl" }).click();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await details.getByRole("button", { name: "Copy", exact: true }).click();
  await expect(page.getByText("Program for curl copied.")).toBeVisible();
  const program = await page.evaluate(() => navigator.clipboard.readText());
  const answer = execFileSync("bash", ["-c", program], { env: { ...process.env, COSMOS_KEY: KEY }, encoding: "utf8" });
  expect(JSON.parse(answer).Documents[0].id).toBe("x");
});

test("an empty account offers samples, and the tour measures what a model costs", async ({ empty: server, stranger }) => {
  const page = await stranger(server);
  await page.goto(server.link);
  await expect(page.getByRole("heading", { name: "Nothing here yet: begin with a sample" })).toBeVisible();
  await page.getByRole("listitem").filter({ hasText: "Books and authors" }).getByRole("button", { name: "Load and take the tour" }).click();
  await expect(page.getByRole("heading", { name: "One book, read whole" })).toBeVisible();
  const charge = async (way) => {
    const card = page.getByRole("region", { name: way });
    await card.getByRole("button", { name: "Measure" }).click();
    return Number(/([\d.]+) RU/.exec(await card.getByText(/RU/).innerText())[1]);
  };
  expect(await charge("Referenced: book, then authors")).toBeGreaterThan(await charge("Embedded: one read"));
  await page.getByRole("button", { name: "Next" }).click();
  expect(await charge("Embedded: every book of hers")).toBeGreaterThan(await charge("Referenced: one write"));
  await page.getByRole("link", { name: /welcome/ }).click();
  await page.getByRole("listitem").filter({ hasText: "A blog platform" }).getByRole("button", { name: "Load and take the tour" }).click();
  await expect(page.getByRole("heading", { name: "A post with everything around it" })).toBeVisible();
  await page.getByRole("button", { name: "Measure" }).first().click();
  await expect(page.getByText(/in 1 request/)).toBeVisible();
});
