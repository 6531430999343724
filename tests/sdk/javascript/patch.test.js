// Patch: parts of an item are changed, all of them or none.

import assert from "node:assert/strict";
import { test } from "node:test";
import { OLD_ETAG, content, fresh, ifMatch, overBothSchemes, refused } from "./support/check.js";

overBothSchemes((shared) => {
  const create = async () => {
    const body = { id: fresh("item"), pk: fresh("key"), n: 1, list: [1, 2], inner: { x: "y" } };
    const { resource } = await shared.container.items.create(body);
    return { resource, item: shared.container.item(body.id, body.pk) };
  };

  test("every kind of operation", async () => {
    const { resource, item } = await create();
    const patched = await item.patch([
      { op: "add", path: "/list/1", value: 9 },
      { op: "set", path: "/new", value: { a: null } },
      { op: "replace", path: "/inner/x", value: "z" },
      { op: "incr", path: "/n", value: 2.5 },
      { op: "move", from: "/inner/x", path: "/moved" },
      { op: "remove", path: "/list/0" },
    ]);
    assert.equal(patched.statusCode, 200);
    const expected = { ...content(resource), n: 3.5, list: [9, 2], inner: {}, new: { a: null }, moved: "z" };
    assert.deepEqual(content(patched.resource), expected);
    assert.notEqual(patched.etag, resource._etag);
    assert.deepEqual((await item.read()).resource, patched.resource);
  });

  test("a refused patch changes nothing", async () => {
    const { resource, item } = await create();
    const operations = [
      { op: "set", path: "/n", value: 7 },
      { op: "remove", path: "/none" },
    ];
    await refused(400, () => item.patch(operations), { message: "For Operation(2)" });
    await refused(400, () => item.patch([{ op: "set", path: "/pk", value: "x" }]), { message: "partition key" });
    assert.deepEqual((await item.read()).resource, resource);
  });

  test("a missing item is not found", async () => {
    const missing = shared.container.item(fresh("missing"), "a");
    await refused(404, () => missing.patch([{ op: "set", path: "/n", value: 1 }]));
  });

  test("conditions", async () => {
    const { resource, item } = await create();
    const operations = [{ op: "incr", path: "/n", value: 1 }];
    await refused(412, () => item.patch({ condition: "from c where c.n = 2", operations }));
    await refused(412, () => item.patch(operations, ifMatch(OLD_ETAG)));
    const first = await item.patch({ condition: "from c where c.n = 1", operations });
    assert.equal(first.resource.n, 2);
    await refused(412, () => item.patch(operations, ifMatch(resource._etag)));
    assert.equal((await item.patch(operations, ifMatch(first.etag))).resource.n, 3);
  });

  test("increments at once all count", async () => {
    const { item } = await create();
    const increment = () => item.patch([{ op: "incr", path: "/n", value: 1 }]);
    await Promise.all(Array.from({ length: 30 }, increment));
    assert.equal((await item.read()).resource.n, 31);
  });
});
