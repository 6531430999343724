// Reading many items: pages, continuation tokens, order, key ranges and feed ranges, the conflicts feed.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { all, makeContainer, overBothSchemes, pages, refused } from "./support/check.js";

const COUNT = 25;
const NUMBERS = Array.from({ length: COUNT }, (_, number) => number);
const numbers = (items) => items.map((item) => item.number);

overBothSchemes((shared) => {
  let filled;
  before(async () => {
    filled = await makeContainer(shared.database);
    for (const number of NUMBERS) await filled.items.create({ id: `item-${number}`, pk: number % 5, number });
  });

  for (const maxItemCount of [1, 7, 25, 100]) {
    test(`pages of ${maxItemCount} have all items in insertion order`, async () => {
      const read = await pages(filled.items.readAll({ maxItemCount }));
      assert.deepEqual(numbers(read.flat()), NUMBERS);
      assert.ok(read.every((page) => page.length <= maxItemCount));
    });
  }

  test("everything at once", async () => {
    assert.deepEqual(numbers(await all(filled.items.readAll())), NUMBERS);
  });

  test("a feed goes on from its continuation token", async () => {
    const first = await filled.items.readAll({ maxItemCount: 7 }).fetchNext();
    assert.ok(first.continuationToken && first.continuationToken.length < 1024);
    const rest = await all(filled.items.readAll({ maxItemCount: 11, continuationToken: first.continuationToken }));
    assert.deepEqual(numbers([...first.resources, ...rest]), NUMBERS);
  });

  for (const key of [0, 1, 4]) {
    test(`the items of partition ${key}`, async () => {
      const expected = NUMBERS.filter((number) => number % 5 === key);
      for (const maxItemCount of [1, 2, 100]) {
        assert.deepEqual(numbers(await all(filled.items.readAll({ partitionKey: key, maxItemCount }))), expected);
      }
    });
  }

  test("an empty container has an empty feed", async () => {
    const container = await makeContainer(shared.database);
    assert.deepEqual(await all(container.items.readAll()), []);
  });

  test("a page tells its charge and its session", async () => {
    const { headers, requestCharge } = await filled.items.readAll({ maxItemCount: 10, partitionKey: 1 }).fetchNext();
    assert.ok(requestCharge > 0);
    assert.match(headers["x-ms-session-token"], /^0:-1#\d+$/);
  });

  test("one key range covers everything", async () => {
    const ranges = await all(filled.readPartitionKeyRanges());
    assert.deepEqual(
      ranges.map(({ id, minInclusive, maxExclusive }) => [id, minInclusive, maxExclusive]),
      [["0", "", "FF"]],
    );
    assert.equal((await filled.getFeedRanges()).length, 1);
  });

  test("the conflicts feed is empty", async () => {
    assert.deepEqual(await all(filled.conflicts.readAll()), []);
    assert.deepEqual(await all(filled.conflicts.query("SELECT * FROM c WHERE c.resourceType = 'document'")), []);
    // The SDK asks for `conflicts/missing/conflicts`, which is no address.
    await refused(400, () => filled.conflict("missing", "a").read());
    await refused(404, () => filled.conflict("missing", "a").delete());
  });
});
