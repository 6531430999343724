// What is typed and not saved is kept or asked for, whatever is done next; and tabs say what they are.
import { expect, expectAccessible, test, type, unique } from "./fixture.js";

async function shelf(server) {
  const name = unique("unsaved");
  await server.database(name);
  await server.container(name, "books");
  for (const id of ["one", "two", "three"]) await server.document(name, "books", { id, pk: "a", title: `Book ${id}` }, "a");
  return name;
}
const item = (page) => page.getByRole("textbox", { name: "Item as JSON" });
const choose = (page, id) => page.getByRole("gridcell", { name: id, exact: true }).click();
const tab = (page, name) => page.getByRole("tab", { name });
const discard = (page) => page.getByRole("dialog").getByRole("button", { name: /^Discard/ });
const stay = (page) => page.getByRole("dialog").getByRole("button", { name: "Cancel" });
const EDITED = '{\n  "id": "one",\n  "pk": "a",\n  "title": "Mine"\n}';

test("an edited item is asked for on another row and on closing, and is there after a reload and in another tab", async ({ page, server, open }) => {
  const name = await shelf(server);
  await open(`#/items/${name}/books`);
  await choose(page, "one");
  await expect(tab(page, /not saved/)).toHaveCount(0);
  await type(page, "Item as JSON", EDITED);
  await expect(tab(page, new RegExp(`^Items · books in ${name} ?, not saved$`))).toBeVisible();
  const leave = {
    "another row": () => choose(page, "two"), "a new item": () => page.getByRole("button", { name: "New item" }).click(), "its cross": () => page.getByRole("button", { name: "Close the item" }).click(),
    "Alt+W": () => page.keyboard.press("Alt+w"), "the cross of the tab": () => page.getByRole("button", { name: "Close this tab" }).click(), "Delete": () => tab(page, /Items/).press("Delete"),
    "the middle button": () => tab(page, /Items/).click({ button: "middle" }), "signing out": () => page.getByRole("button", { name: "Sign out" }).click(),
  };
  for (const [way, go] of Object.entries(leave)) {
    await go();
    await expect(page.getByRole("dialog"), way).toContainText("the item one");
    await stay(page).click();
    await expect(item(page), way).toContainText('"Mine"');
  }
  // Another tab, sorting, a reload: nothing is asked, and the text is there.
  await page.getByRole("grid").getByRole("button", { name: "title" }).click();
  await expect(item(page)).toContainText('"Mine"');
  await page.goto(`${server.origin}/_explorer/#/inspector`);
  await expect(page.getByRole("heading", { name: "Requests" })).toBeAttached();
  await page.reload();
  await tab(page, /^Items/).click();
  await expect(item(page)).toContainText('"Mine"');
  // It is saved over the version that it began with, and the tab is as before.
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(tab(page, /not saved/)).toHaveCount(0);
  await expect.poll(async () => (await server.read(name, "books", "one", "a")).json.title).toBe("Mine");
  await type(page, "Item as JSON", EDITED.replace("Mine", "Again"));
  await choose(page, "two");
  await discard(page).click();
  await expect(item(page)).toContainText("Book two");
  expect((await server.read(name, "books", "one", "a")).json.title).toBe("Mine");
  expect(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("astrarium.draft")))).toEqual([]);
});

test("a draft of an item that another client has changed meanwhile is a conflict, and neither version is lost", async ({ page, server, open }) => {
  const name = await shelf(server);
  await open(`#/items/${name}/books`);
  await choose(page, "one");
  await type(page, "Item as JSON", EDITED);
  await server.document(name, "books", { id: "one", pk: "a", title: "Theirs" }, "a");
  await page.reload();
  await expect(item(page)).toContainText('"Mine"');
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("textbox", { name: "The server's version" })).toContainText("Theirs");
  expect((await server.read(name, "books", "one", "a")).json.title).toBe("Theirs");
  // What is merged is not lost by going back.
  await type(page, "Your version", EDITED.replace("Mine", "Merged"));
  await page.getByRole("button", { name: "Back" }).click();
  await expect(item(page)).toContainText('"Merged"');
});

test("a new item that was begun and a copy of an edited one are kept", async ({ page, server, open }) => {
  const name = await shelf(server);
  await open(`#/items/${name}/books`);
  await page.getByRole("button", { name: "New item" }).click();
  await expect(tab(page, /not saved/)).toHaveCount(0);
  await type(page, "Item as JSON", '{"id":"fresh","pk":"a"}');
  await choose(page, "two");
  await expect(page.getByRole("dialog")).toContainText("a new item");
  await stay(page).click();
  await page.reload();
  await expect(page.getByRole("region", { name: "New item" })).toContainText("fresh");
  await page.getByRole("button", { name: "Create" }).click();
  await expect(page.getByText(/^4 items/)).toBeVisible();
  await expect(tab(page, /not saved/)).toHaveCount(0);
  await choose(page, "one");
  await type(page, "Item as JSON", EDITED);
  await page.getByRole("button", { name: "Duplicate" }).click();
  await expect(page.getByRole("region", { name: "New item" })).toContainText('"Mine"');
  await choose(page, "two");
  await expect(page.getByRole("dialog")).toContainText("a new item");
  await stay(page).click();
  expect((await server.read(name, "books", "one", "a")).json.title).toBe("Book one");
});

test("what has no room in the browser's storage is asked for by the browser itself", async ({ page, server, open, faults }) => {
  const name = await shelf(server);
  await page.addInitScript(() => {
    const { setItem } = Storage.prototype;
    Storage.prototype.setItem = function (name, value) {
      if (name.startsWith("astrarium.draft")) throw new DOMException("full", "QuotaExceededError");
      setItem.call(this, name, value);
    };
  });
  await open(`#/items/${name}/books`);
  await choose(page, "one");
  await item(page).click();
  await type(page, "Item as JSON", EDITED);
  await expect(tab(page, /not saved/)).toBeVisible();
  const asked = page.waitForEvent("dialog");
  await page.evaluate(() => void setTimeout(() => location.reload()));
  expect((await asked).type()).toBe("beforeunload");
  await expect(item(page)).toContainText('"Mine"');
  faults.length = 0;
});

test("settings, scripts, users, bulk edits and queries are kept and asked for as well", async ({ page, server, open }) => {
  const name = await shelf(server);
  await server.wire("POST", `dbs/${name}/colls/books/udfs`, { body: { id: "double", body: "function double(n) { return n * 2; }" } });
  const go = (hash) => page.goto(`${server.origin}/_explorer/${hash}`);
  await open(`#/settings/${name}/books`);
  await type(page, "Change feed policy", '{"retentionDuration":9}');
  await page.getByLabel("Items expire").selectOption("own");
  await page.getByRole("region", { name: "Throughput" }).getByLabel("RU/s").fill("700");
  await go(`#/scripts/${name}/books`);
  await page.getByRole("button", { name: "double", exact: true }).click();
  await type(page, "Script", "function double(n) { return n + n; }");
  await page.getByRole("button", { name: "New trigger" }).click();
  await expect(page.getByRole("dialog")).toContainText("the script double");
  await stay(page).click();
  await go(`#/users/${name}`);
  await page.getByLabel("New user").fill("ada");
  await go(`#/bulk/${name}/books`);
  await type(page, "Condition, about c; empty means all items", "c.n = 1");
  await go(`#/query/${name}/books`);
  await type(page, "Query text", "SELECT c.title FROM c");
  await expect(tab(page, /not saved/)).toHaveCount(5);
  await page.reload();
  await expect(tab(page, /not saved/)).toHaveCount(5);
  await expect(page.getByRole("textbox", { name: "Query text" })).toHaveText("SELECT c.title FROM c");
  await tab(page, /^Bulk edit/).click();
  await expect(page.getByRole("textbox", { name: /^Condition/ })).toHaveText("c.n = 1");
  await tab(page, /^Users/).click();
  await expect(page.getByLabel("New user")).toHaveValue("ada");
  await tab(page, /^Scripts/).click();
  await expect(page.getByRole("textbox", { name: "Script", exact: true })).toHaveText("function double(n) { return n + n; }");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(tab(page, /^Scripts.*not saved/)).toHaveCount(0);
  expect((await server.wire("GET", `dbs/${name}/colls/books/udfs`)).json.UserDefinedFunctions[0].body).toContain("n + n");
  await tab(page, /^Settings/).click();
  await expect(page.getByRole("textbox", { name: "Change feed policy" })).toHaveText('{"retentionDuration":9}');
  await expect(page.getByLabel("Items expire")).toHaveValue("own");
  await expect(page.getByRole("region", { name: "Throughput" }).getByLabel("RU/s")).toHaveValue("700");
  await page.getByRole("button", { name: "Save change feed policy" }).click();
  await page.getByRole("button", { name: "Save time to live" }).click();
  await page.getByRole("button", { name: "Save throughput" }).click();
  await expect(tab(page, /^Settings.*not saved/)).toHaveCount(0);
  // A query that has run is in the history: it may be closed.
  await tab(page, /^Query/).click();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(tab(page, /^Query.*not saved/)).toHaveCount(0);
  await page.keyboard.press("Alt+w");
  await expect(tab(page, /^Query/)).toHaveCount(0);
  await page.getByRole("button", { name: /^All 4 tabs/ }).click();
  await page.getByRole("menuitem", { name: "Close all tabs" }).click();
  await expect(page.getByRole("dialog")).toContainText("a bulk edit that was not applied");
  await expect(page.getByRole("dialog")).toContainText("the name of a new user");
  await discard(page).click();
  await expect(page.getByRole("tab")).toHaveCount(0);
});

test("signing out discards what was given up, and deleting a container says what is lost with it", async ({ page, server, open }) => {
  const name = await shelf(server);
  await open(`#/items/${name}/books`);
  await choose(page, "one");
  await type(page, "Item as JSON", EDITED);
  await page.getByRole("treeitem", { name, exact: true }).click();
  await page.getByRole("treeitem", { name: /^books:/ }).press("Delete");
  await expect(page.getByRole("dialog")).toContainText("the item one");
  await stay(page).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await discard(page).click();
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
  expect(await page.evaluate(() => Object.values(localStorage).join())).not.toContain("Mine");
});

test("tabs tell their database, twins have a number, and a list shows and closes them", async ({ page, server, open }) => {
  const [first, second] = [await shelf(server), await shelf(server)];
  const go = (hash) => page.goto(`${server.origin}/_explorer/${hash}`);
  await open(`#/items/${first}/books`);
  await go(`#/items/${second}/books`);
  await expect(tab(page, `Items · books in ${first}`)).toBeVisible();
  await expect(tab(page, `Items · books in ${second}`)).toHaveAttribute("aria-selected", "true");
  await expect(page).toHaveTitle(`Items · books in ${second} – Astrarium Explorer`);
  await page.keyboard.press("Alt+n");
  await page.keyboard.press("Alt+n");
  await expect(tab(page, `Query · books 2 in ${second}`)).toBeVisible();
  // The number stays when its twin leaves.
  await tab(page, `Query · books in ${second}`).click();
  await page.keyboard.press("Alt+w");
  await expect(tab(page, `Query · books 2 in ${second}`)).toBeVisible();
  await page.getByRole("button", { name: "All 3 tabs" }).click();
  await page.getByRole("menuitem", { name: `Items · books in ${first}` }).click();
  await expect(tab(page, `Items · books in ${first}`)).toHaveAttribute("aria-selected", "true");
  // The list closes when the focus leaves it.
  await page.getByRole("button", { name: "All 3 tabs" }).click();
  // On the tab that is shown.
  await expect(page.getByRole("menuitem").first()).toBeFocused();
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await expectAccessible(page, ".tabs");
  }
  await page.getByRole("button", { name: "Sign out" }).focus();
  await expect(page.getByRole("menu")).toHaveCount(0);
  await page.getByRole("button", { name: "All 3 tabs" }).click();
  await page.getByRole("menuitem", { name: "Close the other tabs" }).click();
  await expect(page.getByRole("tab")).toHaveCount(1);
  await expect(tab(page, `Items · books in ${first}`)).toBeVisible();
});

test("many tabs push out the oldest one, and never one with changes", async ({ page, server, open }) => {
  const name = await shelf(server);
  await open(`#/items/${name}/books`);
  await choose(page, "one");
  await type(page, "Item as JSON", EDITED);
  await expect(tab(page, /not saved/)).toBeVisible();
  for (let i = 0; i < 32; i++) await page.keyboard.press("Alt+n");
  await expect(page.getByRole("tab")).toHaveCount(30);
  await tab(page, /not saved/).click();
  await expect(item(page)).toContainText('"Mine"');
});

test("a draft survives another window that writes the list of tabs", async ({ page, server, open, another }) => {
  const name = await shelf(server);
  await open("#/home");
  const other = await another();
  await other.goto(`${server.origin}/_explorer/#/home`);
  await expect(other.getByRole("banner")).toBeVisible();
  await page.goto(`${server.origin}/_explorer/#/items/${name}/books`);
  await choose(page, "one");
  await type(page, "Item as JSON", EDITED);
  await expect(tab(page, /not saved/)).toBeVisible();
  await other.goto(`${server.origin}/_explorer/#/saved`);
  await expect(other.getByRole("tab")).toHaveCount(2);
  await page.reload();
  await tab(page, /^Items/).click();
  await expect(item(page)).toContainText('"Mine"');
});
