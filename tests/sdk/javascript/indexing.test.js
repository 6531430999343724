// Indexing policies: what they refuse, what they leave alone, what the metrics say; unique keys; changes of a policy.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { all, cases, ids, makeContainer, overBothSchemes, refused } from "./support/check.js";

const { definition, documents, queries, refusals, metrics, uniqueKeys } = cases("indexing");
const PROGRESS = "x-ms-documentdb-collection-index-transformation-progress";
const BUILD_MILLISECONDS_MAX = 300_000;

async function filled(database, more = {}) {
  const container = await makeContainer(database, { ...definition, ...more });
  for (const document of documents) await container.items.create(document);
  return container;
}

overBothSchemes((shared) => {
  let indexed;
  let ranges;
  before(async () => {
    indexed = await filled(shared.database);
    ranges = await filled(shared.database, { throughput: 30_000 });
  });

  describe("a policy changes no rows", () => {
    for (const one of queries) {
      test(one.name, async () => {
        const inOrder = (found) => (one.query.includes("ORDER BY") ? found : found.toSorted());
        for (const maxItemCount of [undefined, 1, 4]) {
          assert.deepEqual(ids(await all(indexed.items.query(one.query, { maxItemCount }))), one.ids);
          const planned = { maxItemCount, forceQueryPlan: true };
          assert.deepEqual(inOrder(ids(await all(indexed.items.query(one.query, planned)))), one.ids);
          assert.deepEqual(inOrder(ids(await all(ranges.items.query(one.query, { maxItemCount })))), one.ids);
        }
      });
    }
  });

  describe("orders without an index are refused", () => {
    for (const { name, query, message } of refusals) {
      test(name, async () => {
        for (const container of [indexed, ranges]) {
          await refused(400, () => container.items.query(query).fetchAll(), { message });
        }
        await refused(400, () => indexed.items.query(query, { partitionKey: "a" }).fetchAll(), { message });
      });
    }
  });

  describe("metrics name indexes", () => {
    for (const one of metrics) {
      test(one.name, async () => {
        const { indexMetrics } = await indexed.items.query(one.query, { populateIndexMetrics: true }).fetchNext();
        const { Utilized, Potential } = JSON.parse(indexMetrics);
        const single = ({ SingleIndexes }) => SingleIndexes.map(({ IndexSpec }) => IndexSpec);
        const composite = ({ CompositeIndexes }) => CompositeIndexes.map(({ IndexSpecs }) => IndexSpecs.join());
        for (const spec of one.utilized) assert.ok(single(Utilized).includes(spec), indexMetrics);
        for (const spec of one.potential) assert.ok(single(Potential).includes(spec), indexMetrics);
        for (const specs of one.utilizedComposite) {
          assert.ok(composite(Utilized).includes(specs.join()), indexMetrics);
        }
        for (const specs of one.potentialComposite) {
          assert.ok(composite(Potential).includes(specs.join()), indexMetrics);
        }
      });
    }
  });

  test("no metrics unless asked for", async () => {
    const response = await indexed.items.query("SELECT * FROM c").fetchNext();
    assert.equal(response.headers["x-ms-cosmos-index-utilization"], undefined);
  });

  test("unique keys", async () => {
    const container = await makeContainer(shared.database, { uniqueKeyPolicy: uniqueKeys.policy });
    assert.deepEqual((await container.read()).resource.uniqueKeyPolicy, uniqueKeys.policy);
    for (const { act, item, conflict } of uniqueKeys.writes) {
      const acts = {
        create: () => container.items.create(item),
        upsert: () => container.items.upsert(item),
        replace: () => container.item(item.id, item.pk).replace(item),
        delete: () => container.item(item.id, item.pk).delete(),
      };
      if (conflict) await refused(409, acts[act], { substatus: 3301, message: uniqueKeys.message });
      else await acts[act]();
    }
  });

  test("a changed policy comes into use", async () => {
    const container = await filled(shared.database);
    const order = "SELECT * FROM c ORDER BY c.age, c.name";
    await refused(400, () => container.items.query(order).fetchAll(), { message: "composite index" });
    const { resource } = await container.read();
    resource.indexingPolicy.compositeIndexes.push([{ path: "/age" }, { path: "/name" }]);
    await container.replace(resource);
    const deadline = Date.now() + BUILD_MILLISECONDS_MAX;
    for (;;) {
      const { headers } = await container.read({ populateQuotaInfo: true });
      assert.deepEqual(ids(await all(container.items.query("SELECT * FROM c WHERE c.age = 20"))), ["2", "4"]);
      if (Number(headers[PROGRESS]) === 100) break;
      assert.ok(Date.now() < deadline, "the index is not built");
      await sleep(50);
    }
    assert.deepEqual(ids(await all(container.items.query(order))), ["3", "2", "4", "6", "1", "5"]);
  });

  test("a container without an index", async () => {
    const container = await filled(shared.database, { indexingPolicy: { indexingMode: "none", automatic: false } });
    assert.deepEqual(ids(await all(container.items.query("SELECT * FROM c WHERE c.age = 20"))), ["2", "4"]);
    const query = "SELECT * FROM c ORDER BY c.age";
    await refused(400, () => container.items.query(query).fetchAll(), { message: "is excluded" });
  });
});
