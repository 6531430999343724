// Sample data is made in a database of its own, writes nothing over anything, and is removed again.
import { expect, expectAccessible, test } from "./fixture.js";

const card = (page) => page.getByRole("listitem").filter({ hasText: "Books and authors" });
const home = (page) => page.getByRole("link", { name: /welcome/ }).click();
/** The documents of a container, without what the server adds. */
async function documents(server, database, container) {
  const { Documents } = (await server.wire("GET", `dbs/${database}/colls/${container}/docs`)).json;
  return Documents.map((document) => Object.fromEntries(Object.entries(document).filter(([name]) => !name.startsWith("_"))));
}
async function signedIn(server, stranger) {
  const page = await stranger(server);
  await page.goto(server.link);
  await expect(page.getByRole("banner")).toBeVisible();
  return page;
}
async function load(page, database) {
  await card(page).getByRole("button", { name: "Load and take the tour" }).click();
  const dialog = page.getByRole("dialog");
  if (database) await dialog.getByLabel("Database").fill(database);
  await dialog.getByRole("button", { name: "Load the sample" }).click();
  return dialog;
}

test("a database that is there is left as it is, also one with the names of the sample", async ({ empty: server, stranger }) => {
  // What the first steps of the README make.
  await server.database("library");
  await server.container("library", "books", "/id");
  await server.document("library", "books", { id: "b1", title: "Mine" }, "b1");
  await server.database("sample-library");
  const page = await signedIn(server, stranger);
  await card(page).getByRole("button", { name: "Load and take the tour" }).click();
  const dialog = page.getByRole("dialog");
  // It says what will be made, and where, under a name that is free.
  await expect(dialog).toContainText(`A new database is made at ${server.origin}`);
  await expect(dialog).toContainText("3 containers with 48 items");
  await expect(dialog.getByLabel("Database")).toHaveValue("sample-library-2");
  await expectAccessible(page, "dialog");
  for (const taken of ["library", "sample-library"]) {
    await dialog.getByLabel("Database").fill(taken);
    await dialog.getByRole("button", { name: "Load the sample" }).click();
    await expect(dialog.getByRole("alert")).toContainText(`There is a database ${taken} already, and nothing in it was touched. Choose another name`);
  }
  expect(await documents(server, "library", "books")).toEqual([{ id: "b1", title: "Mine" }]);
  expect((await server.wire("GET", "dbs/sample-library/colls")).json.DocumentCollections).toEqual([]);
  await dialog.getByLabel("Database").fill("sample-library-2");
  await dialog.getByRole("button", { name: "Load the sample" }).click();
  await expect(page.getByText("Books and authors in the database sample-library-2")).toBeVisible();
  expect(await documents(server, "sample-library-2", "books")).toHaveLength(20);
  expect(await documents(server, "library", "books")).toEqual([{ id: "b1", title: "Mine" }]);
  // A link to a tour over the user's own data measures nothing, and writes nothing.
  await page.goto(`${server.origin}/_explorer/#/tour?of=library&in=library&step=1`);
  await expect(page.getByText("The database library does not hold this sample.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Measure" })).toHaveCount(0);
});

test("a sample is removed by a button, with its database", async ({ empty: server, stranger }) => {
  const page = await signedIn(server, stranger);
  await load(page);
  // The tour writes as well: that does not count as a change by the user.
  await page.getByRole("button", { name: "Next" }).click();
  const way = page.getByRole("region", { name: "Embedded: every book of hers" });
  await way.getByRole("button", { name: "Measure" }).click();
  await expect(way.getByText(/RU/)).toBeVisible();
  await home(page);
  await card(page).getByRole("button", { name: "Remove the sample" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("The database sample-library with 48 items is removed. Everything in it is as the sample made it.");
  await dialog.getByRole("button", { name: "Remove the sample" }).click();
  await expect(page.getByText("The sample and its database sample-library are removed.")).toBeVisible();
  await expect(card(page).getByRole("button", { name: "Load and take the tour" })).toBeVisible();
  expect((await server.wire("GET", "dbs")).json.Databases).toEqual([]);
});

test("what a user changed or added in a sample is named and kept", async ({ empty: server, stranger }) => {
  const page = await signedIn(server, stranger);
  await load(page, "shelf");
  await expect(page.getByText("Books and authors in the database shelf")).toBeVisible();
  const before = (await documents(server, "shelf", "books")).find((book) => book.id === "b2");
  await server.document("shelf", "books", { ...before, pages: 1 }, "b2");
  await server.document("shelf", "authors", { id: "me", name: "Me" }, "me");
  await server.container("shelf", "notes");
  await server.document("shelf", "notes", { id: "n", pk: "a" }, "a");
  await home(page);
  await card(page).getByRole("button", { name: "Remove the sample" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("47 items in shelf are as the sample made them");
  await expect(dialog).toContainText(/Changed or added since, and kept: (books\/b2, authors\/me|authors\/me, books\/b2)/);
  await expect(dialog).toContainText("Not of the sample, and kept: notes");
  await expectAccessible(page, "dialog");
  await dialog.getByRole("button", { name: "Remove only what the sample made" }).click();
  await expect(page.getByText(/^The sample's items are removed\. Left in shelf:/)).toBeVisible();
  expect((await server.wire("GET", "dbs/shelf/colls")).json.DocumentCollections.map((c) => c.id).sort()).toEqual(["authors", "books", "notes"]);
  expect(await documents(server, "shelf", "books")).toEqual([{ ...before, pages: 1 }]);
  expect(await documents(server, "shelf", "authors")).toEqual([{ id: "me", name: "Me" }]);
  expect(await documents(server, "shelf", "notes")).toHaveLength(1);
});

test("a load that stops says what is there, and takes it back", async ({ empty: server, stranger }) => {
  const page = await signedIn(server, stranger);
  await page.route("**/colls/authors/docs", (route) => route.fulfill({ status: 503, contentType: "application/json", body: '{"code":"ServiceUnavailable","message":"No."}' }));
  const dialog = await load(page, "half");
  await expect(dialog.getByRole("alert")).toHaveText("No.");
  await expect(dialog).toContainText("The database half has a part of the sample.");
  await page.unrouteAll();
  await dialog.getByRole("button", { name: "Remove what was made" }).click();
  await expect(dialog.getByRole("alert")).toHaveCount(0);
  expect((await server.wire("GET", "dbs")).json.Databases).toEqual([]);
});
