// Triggers at work: named by a request, before and after each kind of write, in the transaction of that write.

import assert from "node:assert/strict";
import { test } from "node:test";
import { all, content, fresh, makeContainer, overBothSchemes, refused, scriptText } from "./support/check.js";

const STAMP = `
function stamp() {
  const request = getContext().getRequest();
  const item = request.getBody();
  item.stamp = request.getOperationType();
  request.setBody(item);
}`;
const FORBID = "function () { throw new Error('not today'); }";

overBothSchemes((shared) => {
  // A container of its own for each test: one may have twenty-five triggers.
  const prepared = async (...triggers) => {
    const container = await makeContainer(shared.database);
    for (const [id, triggerType, triggerOperation, body] of triggers) {
      await container.scripts.triggers.create({ id, triggerType, triggerOperation, body });
    }
    return container;
  };
  const stored = async (container) => (await all(container.items.query("SELECT VALUE c.id FROM c"))).sort();
  const write = {
    Create: (container, item, options) => container.items.create(item, options),
    Replace: (container, item, options) => container.item(item.id, item.pk).replace(item, options),
    Upsert: (container, item, options) => container.items.upsert(item, options),
    Delete: (container, item, options) => container.item(item.id, item.pk).delete(options),
  };

  test("a trigger before every operation", async () => {
    const operations = ["Create", "Replace", "Upsert"];
    const own = operations.map((operation) => [operation, "Pre", operation, STAMP]);
    const container = await prepared(["All", "Pre", "All", STAMP], ...own);
    for (const operation of operations) {
      for (const name of ["All", operation]) {
        const item = { id: fresh("item"), pk: "a" };
        if (operation !== "Create") await container.items.create(item);
        const { resource } = await write[operation](container, item, { preTriggerInclude: name });
        assert.deepEqual(content(resource), { ...item, stamp: operation });
        assert.deepEqual((await container.item(item.id, "a").read()).resource, resource);
      }
    }
    const plain = { id: fresh("item"), pk: "a" };
    assert.deepEqual(content((await container.items.create(plain)).resource), plain);
  });

  test("a trigger that does not fit is refused", async () => {
    const container = await prepared(
      ["creates", "Pre", "Create", STAMP],
      ["other", "Pre", "All", STAMP],
      ["after", "Post", "All", "function () {}"],
    );
    const item = { id: "1", pk: "a" };
    await container.items.create(item);
    const wrong = [
      ["Replace", { preTriggerInclude: "creates" }],
      ["Delete", { preTriggerInclude: "creates" }],
      ["Replace", { preTriggerInclude: "none" }],
      ["Replace", { postTriggerInclude: "none" }],
      ["Replace", { preTriggerInclude: "after" }],
      ["Replace", { postTriggerInclude: "other" }],
      ["Upsert", { preTriggerInclude: ["other", "creates"] }],
    ];
    for (const [operation, options] of wrong) {
      await refused(400, () => write[operation](container, { ...item, n: 1 }, options));
    }
    assert.deepEqual(content((await container.item("1", "a").read()).resource), item);
  });

  test("a trigger that throws stops the write", async () => {
    const container = await prepared(["before", "Pre", "All", FORBID], ["after", "Post", "All", FORBID]);
    await container.items.create({ id: "old", pk: "a" });
    for (const options of [{ preTriggerInclude: "before" }, { postTriggerInclude: "after" }]) {
      for (const operation of ["Create", "Replace", "Upsert", "Delete"]) {
        const item = { id: operation === "Create" ? "new" : "old", pk: "a", n: 1 };
        const message = "Exception = Error: not today";
        await refused(400, () => write[operation](container, item, options), { message });
      }
    }
    const left = await all(container.items.readAll());
    assert.deepEqual(left.map(content), [{ id: "old", pk: "a" }]);
  });

  test("a trigger before may change the id and not the key", async () => {
    const change = (to) => `function () { __.request.setBody(Object.assign(__.request.getBody(), ${to})); }`;
    const container = await prepared(
      ["rename", "Pre", "All", change("{ id: 'renamed' }")],
      ["move", "Pre", "All", change("{ pk: 'b' }")],
    );
    const { resource } = await container.items.create({ id: "1", pk: "a" }, { preTriggerInclude: "rename" });
    assert.equal(resource.id, "renamed");
    const move = () => container.items.create({ id: "2", pk: "a" }, { preTriggerInclude: "move" });
    await assert.rejects(move, { code: 400 });
    assert.deepEqual(await stored(container), ["renamed"]);
  });

  test("books whose authors exist are counted after they were written", async () => {
    const container = await prepared(
      ["requireAuthor", "Pre", "Create", scriptText("require_author")],
      ["countBook", "Post", "Create", scriptText("count_book")],
    );
    await container.items.create({ id: "ada", pk: "a", type: "author", name: "Ada", countOfBooks: 0 });
    const insert = (id, ...authors) => {
      const book = { id, pk: "a", type: "book", authors: authors.map((author) => ({ id: author })) };
      return container.items.create(book, { preTriggerInclude: "requireAuthor", postTriggerInclude: "countBook" });
    };
    const refusal = { substatus: 404, message: "the author nobody does not exist" };
    await refused(400, () => insert("bad", "ada", "nobody"), refusal);
    const results = await Promise.allSettled(["1", "2", "3", "4", "5"].map((id) => insert(id, "ada")));
    const failures = results.filter((result) => result.status === "rejected");
    assert.equal(failures.length, 2);
    for (const { reason } of failures) assert.match(reason.message, /the shelf of Ada is full/);
    assert.equal((await container.item("ada", "a").read()).resource.countOfBooks, 3);
    assert.equal((await stored(container)).length, 4);
  });
});
