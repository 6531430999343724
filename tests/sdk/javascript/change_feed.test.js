// The change feed: pulled from the beginning, from now, from a time and from a continuation, by key, by feed range and
// over the whole container, in both modes.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ChangeFeedMode, ChangeFeedPolicy, ChangeFeedRetentionTimeSpan, ChangeFeedStartFrom } from "@azure/cosmos";
import { content, ids, makeContainer, overBothSchemes, refused } from "./support/check.js";

const TREE = { paths: ["/key1", "/key2"], kind: "MultiHash", version: 2 };
/** Four ranges. */
const WIDE = { throughput: 20_000 };
const KEPT = { changeFeedPolicy: new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(10)) };
const COUNT = 24;
const NUMBERS = Array.from({ length: COUNT }, (_, number) => number);

const numbers = (items) => items.map((item) => item.number);
const sorted = (list) => [...list].sort((left, right) => left - right);
const from = (container, changeFeedStartFrom, options = {}) =>
  container.items.getChangeFeedIterator({ changeFeedStartFrom, ...options });

/** The pages up to the answer that there is nothing new, and the token of that answer. */
async function drain(iterator) {
  const pages = [];
  for (;;) {
    const response = await iterator.readNext();
    assert.ok(response.continuationToken && response.requestCharge > 0 && response.headers.etag);
    if (response.statusCode === 304) {
      assert.deepEqual(response.result, []);
      return { pages, items: pages.flat(), token: response.continuationToken };
    }
    assert.equal(response.statusCode, 200);
    assert.equal(response.count, response.result.length);
    pages.push(response.result);
  }
}

const read = async (...what) => (await drain(from(...what))).items;

/** Waits until the clock that stamps documents has reached a second of its own; gives a time between two of them. */
async function betweenSeconds() {
  await sleep(1100);
  const time = new Date();
  await sleep(1100);
  return time;
}

overBothSchemes((shared) => {
  for (const [name, definition, rangeCount] of [
    ["one range", {}, 1],
    ["four ranges", WIDE, 4],
  ]) {
    describe(`a container with ${name}`, () => {
      let filled;
      before(async () => {
        filled = await makeContainer(shared.database, definition);
        for (const number of NUMBERS) await filled.items.create({ id: `item-${number}`, pk: number % 6, number });
        assert.equal((await filled.getFeedRanges()).length, rangeCount);
      });

      for (const maxItemCount of [1, 5, 100]) {
        test(`everything from the beginning in pages of ${maxItemCount}`, async () => {
          const { pages, items } = await drain(from(filled, ChangeFeedStartFrom.Beginning(), { maxItemCount }));
          assert.deepEqual(sorted(numbers(items)), NUMBERS);
          assert.ok(pages.every((page) => page.length <= maxItemCount));
          // Within a key the order is that of the writes.
          for (let key = 0; key < 6; key++) {
            const ofKey = numbers(items.filter((item) => item.pk === key));
            assert.deepEqual(ofKey, sorted(ofKey));
          }
        });
      }

      test("an item is as it was written, with its commit", async () => {
        const [item] = await read(filled, ChangeFeedStartFrom.Beginning(0));
        const { _lsn: lsn, ...rest } = item;
        assert.ok(Number.isInteger(lsn) && lsn > 0);
        assert.deepEqual(rest, (await filled.item("item-0", 0).read()).resource);
      });

      test("a key has its own changes in the order of the writes", async () => {
        const found = await drain(from(filled, ChangeFeedStartFrom.Beginning(2), { maxItemCount: 3 }));
        assert.deepEqual(numbers(found.items), [2, 8, 14, 20]);
        assert.deepEqual(await read(filled, ChangeFeedStartFrom.Beginning("nobody")), []);
      });

      test("the feed ranges have every change once, and keys fall into one of them", async () => {
        const parts = [];
        for (const range of await filled.getFeedRanges()) {
          parts.push(await read(filled, ChangeFeedStartFrom.Beginning(range), { maxItemCount: 2 }));
        }
        assert.deepEqual(sorted(numbers(parts.flat())), NUMBERS);
        assert.ok(rangeCount === 1 || parts.filter((part) => part.length > 0).length > 1);
        for (let key = 0; key < 6; key++) {
          assert.equal(parts.filter((part) => part.some((item) => item.pk === key)).length, 1);
        }
      });

      for (const [scope, resource] of [
        ["the container", async () => undefined],
        ["a key", async () => 3],
        ["a feed range", async () => (await filled.getFeedRanges())[0]],
      ]) {
        test(`the feed of ${scope} goes on from every one of its tokens`, async () => {
          const start = ChangeFeedStartFrom.Beginning(await resource());
          const whole = await read(filled, start);
          const iterator = from(filled, start, { maxItemCount: 1 });
          const seen = [];
          for (;;) {
            const { result, statusCode, continuationToken } = await iterator.readNext();
            seen.push(...result);
            const rest = await read(filled, ChangeFeedStartFrom.Continuation(continuationToken));
            assert.deepEqual(sorted(numbers([...seen, ...rest])), sorted(numbers(whole)));
            if (statusCode === 304) break;
          }
        });
      }

      test("from now there is nothing, and then what comes", async () => {
        const container = await makeContainer(shared.database, definition);
        await container.items.create({ id: "before", pk: 1 });
        const everything = from(container, ChangeFeedStartFrom.Now());
        const one = from(container, ChangeFeedStartFrom.Now("k"));
        assert.deepEqual((await drain(everything)).items, []);
        assert.deepEqual((await drain(one)).items, []);
        for (const pk of ["k", "l", "m", "n"]) await container.items.create({ id: `of-${pk}`, pk });
        assert.deepEqual(ids((await drain(everything)).items).sort(), ["of-k", "of-l", "of-m", "of-n"]);
        assert.deepEqual(ids((await drain(one)).items), ["of-k"]);
        // A changed item comes again, a deleted one does not.
        await container.item("of-k", "k").replace({ id: "of-k", pk: "k", changed: true });
        await container.item("of-l", "l").delete();
        const { items } = await drain(everything);
        assert.deepEqual(items.map(({ id, changed }) => [id, changed]), [["of-k", true]]);
        assert.equal((await drain(one)).items.length, 1);
        assert.deepEqual((await drain(everything)).items, []);
      });

      test("from a time", async () => {
        const container = await makeContainer(shared.database, definition);
        for (const pk of [1, 2, 3]) await container.items.create({ id: `early-${pk}`, pk });
        const time = await betweenSeconds();
        for (const pk of [1, 2, 3]) await container.items.create({ id: `late-${pk}`, pk });
        assert.deepEqual(ids(await read(container, ChangeFeedStartFrom.Time(time))).sort(), [
          "late-1",
          "late-2",
          "late-3",
        ]);
        assert.deepEqual(ids(await read(container, ChangeFeedStartFrom.Time(time, 2))), ["late-2"]);
        assert.equal((await read(container, ChangeFeedStartFrom.Time(new Date(0)))).length, 6);
        // Its token holds the place, also before anything was seen.
        const iterator = from(container, ChangeFeedStartFrom.Time(new Date()));
        const { token } = await drain(iterator);
        await sleep(1100);
        await container.items.create({ id: "latest", pk: 1 });
        assert.deepEqual(ids((await drain(iterator)).items), ["latest"]);
        assert.deepEqual(ids(await read(container, ChangeFeedStartFrom.Continuation(token))), ["latest"]);
      });

      test("all versions and deletes", async () => {
        const container = await makeContainer(shared.database, { ...definition, ...KEPT, defaultTtl: -1 });
        assert.equal((await container.read()).resource.changeFeedPolicy.retentionDuration, 10);
        await container.items.create({ id: "before", pk: "b" });
        const options = { changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes, maxItemCount: 2 };
        const everything = from(container, ChangeFeedStartFrom.Now(), options);
        const ofKey = from(container, ChangeFeedStartFrom.Now("a"), options);
        const { token } = await drain(everything);
        await drain(ofKey);
        await container.items.create({ id: "1", pk: "a", n: 1 });
        await container.items.upsert({ id: "1", pk: "a", n: 2 });
        await container.item("1", "a").patch([{ op: "incr", path: "/n", value: 5 }]);
        await container.item("1", "a").delete();
        await container.items.create({ id: "2", pk: "c" });
        const changes = (await drain(ofKey)).items;
        assert.deepEqual(
          changes.map(({ metadata }) => metadata.operationType),
          ["create", "replace", "replace", "delete"],
        );
        assert.deepEqual(changes.slice(0, 3).map(({ current }) => content(current)), [
          { id: "1", pk: "a", n: 1 },
          { id: "1", pk: "a", n: 2 },
          { id: "1", pk: "a", n: 7 },
        ]);
        // Only for accounts that ask for them.
        assert.ok(changes.every(({ previous }) => previous === undefined));
        const [created, replaced, , deleted] = changes.map(({ metadata }) => metadata);
        assert.equal(replaced.previousImageLSN, created.lsn);
        assert.deepEqual([deleted.id, deleted.partitionKey], ["1", { pk: "a" }]);
        assert.ok(changes.every(({ metadata }) => Math.abs(metadata.crts - Date.now() / 1000) < 600));
        const resumed = from(container, ChangeFeedStartFrom.Continuation(token), options);
        for (const iterator of [everything, resumed]) {
          const { items, pages } = await drain(iterator);
          assert.deepEqual(items.filter(({ current }) => current?.id !== "2"), changes);
          assert.equal(items.length, 5);
          assert.ok(pages.every((page) => page.length <= 2));
        }
      });
    });
  }

  test("the feed of a prefix of a key", async () => {
    const tree = await makeContainer(shared.database, { partitionKey: TREE, ...WIDE });
    for (const number of NUMBERS) {
      await tree.items.create({ id: `item-${number}`, key1: String(number % 2), key2: number % 4, number });
    }
    const odd = NUMBERS.filter((number) => number % 2 === 1);
    const found = await drain(from(tree, ChangeFeedStartFrom.Beginning(["1"]), { maxItemCount: 5 }));
    assert.deepEqual(sorted(numbers(found.items)), odd);
    assert.deepEqual(
      numbers(await read(tree, ChangeFeedStartFrom.Beginning(["1", 3]))),
      NUMBERS.filter((number) => number % 4 === 3),
    );
    await tree.item("item-0", ["0", 0]).delete();
    await tree.items.upsert({ id: "item-1", key1: "1", key2: 1, number: 100 });
    assert.deepEqual(numbers(await read(tree, ChangeFeedStartFrom.Continuation(found.token))), [100]);
  });

  test("a page reads the ranges in turn", async () => {
    const wide = await makeContainer(shared.database, WIDE);
    for (const number of NUMBERS) await wide.items.create({ id: String(number), pk: number });
    const iterator = from(wide, ChangeFeedStartFrom.Beginning(), { maxItemCount: 1 });
    const range = async () => (await iterator.readNext()).headers["x-ms-documentdb-partitionkeyrangeid"];
    assert.notEqual(await range(), await range());
  });

  test("a batch stays together, however small the page", async () => {
    const container = await makeContainer(shared.database);
    const operations = ["1", "2", "3"].map((id) => ({ operationType: "Create", resourceBody: { id, pk: "a" } }));
    await container.items.batch(operations, "a");
    const { pages } = await drain(from(container, ChangeFeedStartFrom.Beginning("a"), { maxItemCount: 1 }));
    assert.deepEqual(pages.map(ids), [["1", "2", "3"]]);
  });

  test("what was not kept is refused, and where it cannot start", async () => {
    const options = { changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes };
    const kept = await makeContainer(shared.database, KEPT);
    const status = async (container, start) => {
      try {
        await from(container, start, options).readNext();
      } catch (error) {
        return error.code;
      }
    };
    assert.equal(await status(shared.container, ChangeFeedStartFrom.Now("a")), 400);
    assert.equal(await status(kept, ChangeFeedStartFrom.Beginning()), 400);
    assert.equal(await status(kept, ChangeFeedStartFrom.Time(new Date())), 400);
    assert.equal(await status(kept, ChangeFeedStartFrom.Now()), undefined);
  });

  test("a token of another container of the same name is not taken", async () => {
    const container = await makeContainer(shared.database);
    await container.items.create({ id: "1", pk: "a" });
    const { token } = await drain(from(container, ChangeFeedStartFrom.Beginning()));
    await container.delete();
    await shared.database.containers.create({ id: container.id, partitionKey: { paths: ["/pk"] } });
    const resumed = from(shared.database.container(container.id), ChangeFeedStartFrom.Continuation(token));
    await assert.rejects(() => resumed.readNext(), /not for the current container/);
  });

  // The older iterator, of one key, whose continuation is the etag.

  describe("the older iterator", () => {
    let container;
    before(async () => {
      container = await makeContainer(shared.database, WIDE);
      for (const number of NUMBERS) await container.items.create({ id: `item-${number}`, pk: number % 2, number });
    });

    test("from the beginning, in pages, and on from an etag", async () => {
      const options = { startFromBeginning: true, maxItemCount: 5 };
      const found = [];
      for await (const { result } of container.items.changeFeed(1, options).getAsyncIterator()) found.push(result);
      assert.deepEqual(
        numbers(found.flat()),
        NUMBERS.filter((number) => number % 2 === 1),
      );
      assert.deepEqual(
        found.map((page) => page.length),
        [5, 5, 2],
      );
      const first = await container.items.changeFeed(1, options).fetchNext();
      assert.deepEqual([first.statusCode, first.count], [200, 5]);
      const rest = await container.items.changeFeed(1, { continuation: first.continuation }).fetchNext();
      assert.deepEqual(numbers([...first.result, ...rest.result]), numbers(found.flat()));
    });

    test("new items, as they were written", async () => {
      const iterator = container.items.readChangeFeed("new");
      const nothing = await iterator.fetchNext();
      assert.deepEqual([nothing.statusCode, nothing.result, iterator.hasMoreResults], [304, [], false]);
      assert.ok(nothing.etag);
      const { resource } = await container.items.create({ id: "new", pk: "new" });
      const { result } = await iterator.fetchNext();
      delete result[0]._lsn;
      assert.deepEqual(result, [resource]);
      await container.items.upsert({ id: "new", pk: "new", changed: true });
      assert.equal((await iterator.fetchNext()).result[0].changed, true);
      assert.deepEqual((await iterator.fetchNext()).result, []);
    });

    test("from a time", async () => {
      await container.items.create({ id: "early", pk: "timed" });
      const startTime = await betweenSeconds();
      await container.items.create({ id: "late", pk: "timed" });
      assert.deepEqual(ids((await container.items.changeFeed("timed", { startTime }).fetchNext()).result), ["late"]);
    });

    test("a continuation that is none is refused", async () => {
      await refused(400, () => container.items.changeFeed(1, { continuation: '"junk"' }).fetchNext(), {
        message: "Invalid continuation",
      });
    });
  });
});
