// Partition keys of every kind: values, paths, hashes, hierarchies, deletion by key.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { PartitionKeyBuilder } from "@azure/cosmos";
import { cases, content, makeContainer, overBothSchemes, refused } from "./support/check.js";

const { values, undefined: undefinedValues } = cases("partition_keys");
const MISMATCH =
  "Partition key provided either doesn't correspond to definition in the collection or doesn't match " +
  "partition key field values specified in the document.";
const DIFFERS = "PartitionKey extracted from document doesn't match the one specified in the header.";

overBothSchemes((shared) => {
  for (const version of [1, 2]) {
    describe(`hash ${version}`, () => {
      let container;
      before(async () => {
        container = await makeContainer(shared.database, { partitionKey: { paths: ["/pk"], kind: "Hash", version } });
        for (const { name, item } of values) await container.items.create({ id: "same", name, ...item });
      });
      for (const { name, item, key } of values) {
        test(`${name} finds its item`, async () => {
          assert.equal((await container.item("same", key).read()).resource.name, name);
        });
        test(`${name} is a partition of its own`, async () => {
          const replaced = await container.item("same", key).replace({ id: "same", name, ...item, touched: true });
          assert.equal(replaced.statusCode, 200);
          const others = values.filter((other) => other.name !== name);
          for (const other of others) {
            assert.equal((await container.item("same", other.key).read()).resource.name, other.name);
          }
        });
      }
    });
  }

  for (const { name, item } of undefinedValues) {
    test(`an item with ${name} at the path has the undefined key`, async () => {
      const container = await makeContainer(shared.database);
      const created = await container.items.create({ id: "1", ...item });
      assert.deepEqual(content(created.resource), { id: "1", ...item });
      assert.deepEqual((await container.item("1", undefined).read()).resource, created.resource);
      assert.equal((await container.item("1", null).read()).statusCode, 404);
      assert.equal((await container.item("1", "").read()).statusCode, 404);
      assert.equal((await container.item("1", undefined).delete()).statusCode, 204);
    });
  }

  const paths = [
    ["/a/b/c", { a: { b: { c: "deep" } } }, "deep"],
    ["/a/b", { a: { b: null } }, null],
    ['/"first-name"', { "first-name": "Ada" }, "Ada"],
    ['/"a/b"/c', { "a/b": { c: 7 } }, 7],
    ["/ünï", { ünï: "x" }, "x"],
    ["/id", {}, "1"],
  ];
  for (const [path, item, key] of paths) {
    test(`the path ${path}`, async () => {
      const container = await makeContainer(shared.database, {
        partitionKey: { paths: [path], kind: "Hash", version: 2 },
      });
      await container.items.create({ id: "1", ...item });
      assert.deepEqual(content((await container.item("1", key).read()).resource), { id: "1", ...item });
      assert.equal((await container.item("1", undefined).read()).statusCode, 404);
    });
  }

  test("a key that is not the item's is refused", async () => {
    await shared.container.items.create({ id: "moved", pk: "a" });
    const act = () => shared.container.item("moved", "a").replace({ id: "moved", pk: "b" });
    await refused(400, act, { substatus: 1001, message: DIFFERS });
    assert.equal((await shared.container.item("moved", "a").read()).resource.pk, "a");
  });

  test("a key of two kibibytes works and a longer one does not", async () => {
    await shared.container.items.create({ id: "1", pk: "k".repeat(2048) });
    await refused(400, () => shared.container.items.create({ id: "1", pk: "k".repeat(2049) }));
  });

  describe("hierarchies", () => {
    const keys = [
      ["t1", "u1", 1],
      ["t1", "u1", 2],
      ["t1", "u2", 1],
      ["t2", "u1", true],
      ["t2", null, "s"],
      [5, "u", ""],
    ];
    let container;
    before(async () => {
      const partitionKey = { paths: ["/tenant", "/user/name", "/session"], kind: "MultiHash", version: 2 };
      container = await makeContainer(shared.database, { partitionKey });
      for (const [tenant, name, session] of keys)
        await container.items.create({ id: "same", tenant, user: { name }, session });
    });

    for (const key of keys) {
      test(`${JSON.stringify(key)} finds its item`, async () => {
        const { resource } = await container.item("same", key).read();
        assert.deepEqual([resource.tenant, resource.user.name, resource.session], key);
      });
    }

    test("a missing level is undefined and has a key", async () => {
      await container.items.create({ id: "short", tenant: "t1", session: 9 });
      const key = new PartitionKeyBuilder().addValue("t1").addNoneValue().addValue(9).build();
      assert.equal((await container.item("short", key).read()).resource.session, 9);
    });

    for (const key of [["t1"], ["t1", "u1"], ["t1", "u1", 1, "more"]]) {
      test(`${key.length} levels are no key of one item`, async () => {
        await refused(400, () => container.item("same", key).delete(), { substatus: 1001, message: MISMATCH });
      });
    }
  });

  for (const key of ["text", 5, true, null, ""]) {
    test(`deleting the partition ${JSON.stringify(key)} deletes exactly its items`, async () => {
      const container = await makeContainer(shared.database);
      for (let number = 0; number < 4; number++)
        await container.items.create({ id: String(number), pk: number % 2 ? key : "stays" });
      const response = await container.deleteAllItemsForPartitionKey(key);
      assert.equal(response.statusCode, 200);
      for (const [id, pk, status] of [
        ["0", "stays", 200],
        ["1", key, 404],
        ["2", "stays", 200],
        ["3", key, 404],
      ]) {
        assert.equal((await container.item(id, pk).read()).statusCode, status);
      }
      await container.items.create({ id: "1", pk: key });
    });
  }
});
