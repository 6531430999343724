// Containers of several key ranges: the SDK's own routing, feed ranges, bulk and sessions over them.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { all, fresh, makeContainer, overBothSchemes } from "./support/check.js";
import { PRIMARY_KEY } from "./support/server.js";

const KEYS = Array.from({ length: 40 }, (_, number) => `key ${number}`);
const sorted = (values) => [...values].sort();

overBothSchemes((shared) => {
  // The second hash is what this SDK asks for when nobody says which.
  for (const [throughput, count, version] of [
    [12_000, 2, 2],
    [30_000, 5, 2],
    [30_000, 5, undefined],
  ]) {
    describe(`${count} ranges of the ${version === undefined ? "first" : "second"} hash`, () => {
      let spread;
      let ranges;

      before(async () => {
        spread = await makeContainer(shared.database, { throughput, partitionKey: { paths: ["/pk"], version } });
        for (const key of KEYS) await spread.items.create({ id: key, pk: key, n: 1 });
        ranges = (await spread.readPartitionKeyRanges().fetchAll()).resources;
      });

      test("the ranges tile the space of keys", () => {
        assert.equal(ranges.length, count);
        assert.equal(ranges[0].minInclusive, "");
        assert.equal(ranges.at(-1).maxExclusive, "FF");
        for (let at = 1; at < count; at++) assert.equal(ranges[at].minInclusive, ranges[at - 1].maxExclusive);
      });

      test("every operation finds its range, and all ranges serve", async () => {
        const served = new Set();
        for (const key of KEYS) {
          const read = await spread.item(key, key).read();
          assert.equal(read.resource.n, 1);
          served.add(read.headers["x-ms-documentdb-partitionkeyrangeid"]);
          const id = fresh("item");
          await spread.items.upsert({ id, pk: key, n: 2 });
          const patched = await spread.item(id, key).patch([{ op: "incr", path: "/n", value: 4 }]);
          assert.equal(patched.resource.n, 6);
          await spread.item(id, key).delete();
          assert.equal((await spread.item(id, key).read()).statusCode, 404);
        }
        assert.deepEqual(sorted(served), sorted(ranges.map(({ id }) => id)));
      });

      for (const maxItemCount of [undefined, 1, 7]) {
        test(`a query over all of them in pages of ${maxItemCount}`, async () => {
          const query = "SELECT * FROM c WHERE c.id = c.pk ORDER BY c.id";
          const found = await all(spread.items.query(query, { maxItemCount }));
          assert.deepEqual(
            found.map(({ id }) => id),
            sorted(KEYS),
          );
          const unordered = await all(spread.items.query("SELECT * FROM c WHERE c.id = c.pk", { maxItemCount }));
          assert.deepEqual(sorted(unordered.map(({ id }) => id)), sorted(KEYS));
        });
      }

      test("the feed ranges are the ranges", async () => {
        const scopes = await spread.getFeedRanges();
        assert.deepEqual(
          scopes.map(({ minInclusive }) => minInclusive),
          ranges.map(({ minInclusive }) => minInclusive),
        );
      });

      test("bulk operations go to their ranges", async () => {
        const mark = fresh("mark");
        const operations = KEYS.flatMap((key) => [
          { operationType: "Create", partitionKey: key, resourceBody: { id: `${mark} ${key}`, pk: key, mark } },
          { operationType: "Read", partitionKey: key, id: key },
          { operationType: "Create", partitionKey: key, resourceBody: { id: key, pk: key } },
        ]);
        for (const send of ["executeBulkOperations", "bulk"]) {
          const response = await spread.items[send](operations);
          const results = response.map((one) => one.response?.statusCode ?? one.error?.code ?? one.statusCode);
          const first = send === "bulk" ? 409 : 201;
          assert.deepEqual(results, KEYS.flatMap(() => [first, 200, 409]));
        }
        const query = { query: "SELECT VALUE COUNT(1) FROM c WHERE c.mark = @mark", parameters: [{ name: "@mark", value: mark }] };
        assert.deepEqual(await all(spread.items.query(query)), [KEYS.length]);
      });

      test("a session has a position for every range, and another client may have it", async () => {
        // The client reads again without its token when it is told to be ahead: what it was told is kept here.
        let told = [];
        const note = async (context, _node, next) => {
          try {
            return await next(context);
          } catch (error) {
            told.push([error.code, error.substatus]);
            throw error;
          }
        };
        const plugins = [{ on: "request", plugin: note }];
        const client = new CosmosClient({ endpoint: shared.endpoint, key: PRIMARY_KEY, plugins });
        const other = client.database(shared.database.id).container(spread.id);
        const positions = new Map();
        for (const key of KEYS) {
          const { headers } = await spread.items.upsert({ id: key, pk: key, n: 1 });
          const [, range, lsn] = /^(\d+):-1#(\d+)$/.exec(headers["x-ms-session-token"]);
          assert.equal(range, headers["x-ms-documentdb-partitionkeyrangeid"]);
          positions.set(range, Number(lsn));
        }
        assert.equal(positions.size, count);
        const joined = [...positions].map(([range, lsn]) => `${range}:-1#${lsn}`).join(",");
        const homes = new Set();
        for (const key of KEYS) {
          const read = await other.item(key, key).read({ sessionToken: joined });
          const home = read.headers["x-ms-documentdb-partitionkeyrangeid"];
          // The client waits before it reads again: once for each range is enough.
          if (homes.has(home)) continue;
          homes.add(home);
          const ahead = (range) => `${range}:-1#${positions.get(range) + 1000}`;
          for (const range of positions.keys()) {
            told = [];
            const read = await other.item(key, key).read({ sessionToken: ahead(range) });
            assert.equal(read.statusCode, 200);
            // Of several servers the client asks each one before it reads without its token.
            assert.deepEqual(new Set(told.map(String)), new Set(range === home ? ["404,1002"] : []));
          }
        }
        client.dispose();
      });
    });
  }
});
