// What is typed is understood as a person means it, and names that the data does not know are said.
import { expect, test, type, unique } from "./fixture.js";
import { understood } from "../../explorer/src/literal.ts";
import { nearest, orderedPaths, warningsOf } from "../../explorer/src/names.ts";

const paths = ["id", "title", "year", "address", "address.city", "authors", "authors.[]", "authors.[].name", "tags", "tags.[]"].map((path) => ({ path: path.split(".") }));
const known = { paths, sampled: 5, documents: 5, computed: ["lower"], parameters: ["@name"] };
const said = (sql, more = {}) => warningsOf(sql, { ...known, ...more }).map(({ start, end, message }) => `${sql.slice(start, end)}: ${message}`);

test("a name that no item has is said at its place, with the one that was perhaps meant", () => {
  for (const [sql, ...expected] of [
    ["SELECT c.titel FROM c", "titel: No item has `titel`; did you mean `title`?"],
    ["SELECT c['yaer'] FROM c", "'yaer': No item has `yaer`; did you mean `year`?"],
    ["SELECT c.address.citty FROM c", "citty: No item has `address.citty`; did you mean `address.city`?"],
    ["SELECT c.ID FROM c", "ID: No item has `ID`; did you mean `id`?"],
    ["SELECT c.publisher FROM c", "publisher: No item has `publisher`."],
    ["SELECT b.titel FROM books AS b", "titel: No item has `titel`; did you mean `title`?"],
    ["SELECT ARRAY(SELECT VALUE a.nme FROM a IN c.authors) AS n FROM c", "nme: None of the 5 sampled items has `authors[].nme`; did you mean `authors[].name`?"],
    ["SELECT * FROM c WHERE c.title = @nam", "@nam: The parameter `@nam` has no value; did you mean `@name`?"],
    ["SELECT * FROM c WHERE c.title = @x", "@x: The parameter `@x` has no value."],
  ]) expect(said(sql), sql).toEqual(expected);
  // A sample that is not all items is called one, and one that left paths out says nothing.
  expect(said("SELECT c.titel FROM c", { documents: 900 })).toEqual(["titel: None of the 5 sampled items has `titel`; did you mean `title`?"]);
  expect(said("SELECT c.titel FROM c", { documents: null })).toEqual(["titel: None of the 5 sampled items has `titel`; did you mean `title`?"]);
  expect(said("SELECT c.titel FROM c", { paths: Array.from({ length: 1000 }, (_, i) => ({ path: [`p${i}`] })) })).toEqual([]);
  expect(said("SELECT c.titel FROM c", { sampled: 0, documents: 0, paths: [] })).toEqual([]);
  expect([nearest("naem", ["name", "game"]), nearest("x", ["name"]), nearest("ab", ["cd"])]).toEqual(["name", undefined, undefined]);
});

test("what is right, computed, quoted, or not certain is passed over", () => {
  for (const sql of [
    "SELECT c.title, c.lower, c._ts, c._etag, c.id, c.address.city, c.authors[0].name, c.tags[1] FROM c", "SELECT VALUE {titel: c.title} FROM c", "SELECT 'c.titel' /* c.titel */ FROM c -- c.titel",
    "SELECT x.foo FROM (SELECT c.title AS foo FROM c) AS x", "SELECT c[@name].anything FROM c", "SELECT udf.titel(c.title) FROM c", "SELECT c.title.ToUpper() FROM c", "SELECT t FROM c JOIN t IN c.tags",
    "SELECT COUNT(1) AS n, c.year FROM c GROUP BY c.year ORDER BY c.year", "SELECT * FROM c JOIN (SELECT VALUE t FROM t IN c.tags) AS q WHERE q.z = 1", "SELECT c.title AS titel FROM c", "SELECT * FROM c.authors", "SELECT other.titel FROM c",
  ]) expect(said(sql), sql).toEqual([]);
});

test("the composite index of an order is read from the text, or is not offered", () => {
  for (const [sql, expected] of [
    ["SELECT * FROM c ORDER BY c.a, c.b.d DESC", ["/a ASC", "/b/d DESC"]],
    ["SELECT * FROM books AS b WHERE b.x IN (1, 2) ORDER BY b['a b'] ASC, b.c DESC OFFSET 0 LIMIT 1 -- c.x", ['/"a b" ASC', "/c DESC"]],
    ["SELECT * FROM c ORDER BY LOWER(c.a), c.b", null], ["SELECT t FROM c JOIN t IN c.tags ORDER BY t.a, c.b", null], ["SELECT * FROM c", null], ["SELECT * FROM c ORDER BY c[@a], c.b", null],
  ]) expect(orderedPaths(sql), sql).toEqual(expected);
});

test("a word or a date is a text, JSON is the value that it says, and half of one is a mistake", () => {
  const of = (typed) => { const found = understood(typed); return found.error ?? [found.json, found.said]; };
  expect(of("p1")).toEqual(['"p1"', 'text "p1"']);
  expect(of(" 2026-03-01 ")).toEqual(['"2026-03-01"', 'text "2026-03-01"']);
  expect(of("it's \"so\"")).toEqual(['"it\'s \\"so\\""', 'text "it\'s \\"so\\""']);
  expect(of("")).toEqual(['""', 'text ""']);
  expect(of("12345678901234567890.5")).toEqual(["12345678901234567890.5", "number 12345678901234567890.5"]);
  expect(of("007")).toEqual(['"007"', 'text "007"']);
  expect(of('"5"')).toEqual(['"5"', 'text "5"']);
  expect([of("true"), of("null")]).toEqual([["true", "true"], ["null", "null"]]);
  expect(of("[1, x]")).toMatch(/A value is expected here.*into quotes/);
  expect(of('"half')).toMatch(/no closing quote/);
});

test("the editors of queries and of conditions warn, and what has a warning runs", async ({ page, server, open }) => {
  const name = unique("names");
  await server.database(name);
  await server.container(name, "books", "/pk", { computedProperties: [{ name: "lower", query: "SELECT VALUE LOWER(c.title) FROM c" }] });
  for (const id of ["1", "2"]) await server.document(name, "books", { id, pk: "a", title: `Book ${id}` }, "a");
  await open(`#/query/${name}/books?${new URLSearchParams({ sql: "SELECT c.titel, c.lower FROM c WHERE c.title = @nam" })}`);
  const warnings = page.locator(".cm-lintRange-warning");
  await expect(warnings).toHaveText(["titel", "@nam"]);
  await warnings.first().hover();
  await expect(page.locator(".cm-diagnostic")).toHaveText("No item has `titel`; did you mean `title`?");
  await page.mouse.move(0, 0);
  // A value for the parameter, typed as a person writes it.
  await page.getByRole("button", { name: "Parameter", exact: true }).click();
  await page.getByRole("textbox", { name: "Name of parameter 1" }).fill("@nam");
  await page.getByRole("textbox", { name: "Value of @nam" }).fill("Book 1");
  await expect(page.getByText('text "Book 1"')).toBeVisible();
  await expect(warnings).toHaveText(["titel"]);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page.getByRole("gridcell", { name: "book 1" })).toBeVisible();
  await page.getByRole("textbox", { name: "Value of @nam" }).fill("[1");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page.getByRole("alert")).toContainText("The value of @nam:");
  await page.getByRole("textbox", { name: "Value of @nam" }).fill("Book 3");
  await page.getByRole("textbox", { name: "Name of parameter 1" }).fill("@name");
  await expect(page.getByText("not in the query")).toBeVisible();
  // Where nothing is found, it is perhaps why.
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page.getByRole("region", { name: "Result" })).toContainText("The parameter `@nam` has no value; did you mean `@name`?");
  await page.goto(`${server.origin}/_explorer/#/items/${name}/books`);
  await page.getByRole("searchbox", { name: /^Filter:/ }).fill("c.titel = 'Book 1'");
  await page.keyboard.press("Enter");
  await expect(page.getByText("No item has `titel`; did you mean `title`?")).toBeVisible();
  await page.goto(`${server.origin}/_explorer/#/bulk/${name}/books`);
  await type(page, "Condition, about c; empty means all items", 'c.titel = "Book 1"');
  await expect(warnings).toHaveText(["titel"]);
  await type(page, "Condition, about c; empty means all items", "c.title = = 1");
  await expect(page.locator(".cm-lintRange-error")).toHaveText("=");
});

test("scripts take their key and their arguments as they are typed, and say how they were understood", async ({ page, server, open }) => {
  const name = unique("typed");
  await server.database(name);
  await server.wire("POST", `dbs/${name}/colls`, { body: { id: "c", partitionKey: { paths: ["/tenant", "/day"], kind: "MultiHash", version: 2 } } });
  await server.wire("POST", `dbs/${name}/colls/c/sprocs`, { body: { id: "echo", body: "function echo() { getContext().getResponse().setBody([].slice.call(arguments)); }" } });
  await open(`#/scripts/${name}/c`);
  await page.getByRole("button", { name: "echo", exact: true }).click();
  await page.getByRole("textbox", { name: "Partition key /tenant" }).fill("p1");
  await page.getByRole("textbox", { name: "Partition key /day" }).fill("2026-03-01");
  await expect(page.getByText('text "2026-03-01"')).toBeVisible();
  await page.getByRole("textbox", { name: "Argument 1" }).fill("p1");
  await page.getByRole("button", { name: "Argument", exact: true }).click();
  await page.getByRole("textbox", { name: "Argument 2" }).fill("12345678901234567890");
  await expect(page.getByText("number 12345678901234567890")).toBeVisible();
  const sent = page.waitForRequest(/run-script/);
  await page.getByRole("button", { name: "Try" }).click();
  const body = (await sent).postData();
  expect(body).toContain('"partitionKey":["p1","2026-03-01"],"arguments":["p1",12345678901234567890]');
  await expect(page.getByRole("region", { name: "Result of the script" })).toContainText('"p1"');
  // They are there after a reload.
  await page.reload();
  await expect(page.getByRole("textbox", { name: "Partition key /day" })).toHaveValue("2026-03-01");
  await expect(page.getByRole("textbox", { name: "Argument 2" })).toHaveValue("12345678901234567890");
});
