// Transactional batches and bulk: many operations in one request, all or none, or each for itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import { OLD_ETAG, all, content, fresh, overBothSchemes } from "./support/check.js";

const statuses = (results) => results.map((result) => result.statusCode);

overBothSchemes((shared) => {
  const stored = async (pk) =>
    (await all(shared.container.items.query("SELECT VALUE c.id FROM c ORDER BY c.id", { partitionKey: pk }))).sort();
  const create = (body) => shared.container.items.create(body);

  test("a batch of every kind of operation", async () => {
    const pk = fresh("key");
    await create({ id: "old", pk, n: 1 });
    await create({ id: "gone", pk });
    const response = await shared.container.items.batch(
      [
        { operationType: "Create", resourceBody: { id: "new", pk } },
        { operationType: "Upsert", resourceBody: { id: "upserted", pk } },
        { operationType: "Replace", id: "old", resourceBody: { id: "old", pk, n: 5 } },
        {
          operationType: "Patch",
          id: "old",
          resourceBody: { condition: "from c where c.n = 5", operations: [{ op: "incr", path: "/n", value: 2 }] },
        },
        { operationType: "Read", id: "old" },
        { operationType: "Delete", id: "gone" },
      ],
      pk,
    );
    assert.equal(response.code, 200);
    assert.deepEqual(statuses(response.result), [201, 201, 200, 200, 200, 204]);
    assert.deepEqual(content(response.result[4].resourceBody), { id: "old", pk, n: 7 });
    assert.equal(response.result[4].eTag, response.result[3].eTag);
    assert.deepEqual(await stored(pk), ["new", "old", "upserted"]);
  });

  test("a failure in a batch undoes all of it", async () => {
    const pk = fresh("key");
    await create({ id: "there", pk });
    const response = await shared.container.items.batch(
      [
        { operationType: "Create", resourceBody: { id: "new", pk } },
        { operationType: "Delete", id: "there", ifMatch: OLD_ETAG },
        { operationType: "Read", id: "there" },
      ],
      pk,
    );
    assert.equal(response.code, 207);
    assert.deepEqual(statuses(response.result), [424, 412, 424]);
    assert.deepEqual(await stored(pk), ["there"]);
  });

  test("a batch has at most a hundred operations", async () => {
    const pk = fresh("key");
    const creates = Array.from({ length: 100 }, (_, number) => ({
      operationType: "Create",
      resourceBody: { id: String(number), pk },
    }));
    const response = await shared.container.items.batch(creates, pk);
    assert.deepEqual(new Set(statuses(response.result)), new Set([201]));
    assert.equal((await stored(pk)).length, 100);
  });

  test("operations in bulk succeed and fail each for itself", async () => {
    const [first, second] = [fresh("key"), fresh("key")];
    await create({ id: "there", pk: first, n: 1 });
    const response = await shared.container.items.executeBulkOperations([
      { operationType: "Create", partitionKey: first, resourceBody: { id: "new", pk: first } },
      { operationType: "Create", partitionKey: first, resourceBody: { id: "there", pk: first } },
      { operationType: "Upsert", partitionKey: second, resourceBody: { id: "new", pk: second } },
      { operationType: "Read", partitionKey: second, id: "none" },
      {
        operationType: "Patch",
        partitionKey: first,
        id: "there",
        resourceBody: { operations: [{ op: "incr", path: "/n", value: 1 }] },
      },
    ]);
    const results = response.map((one) => one.response?.statusCode ?? one.error?.code);
    assert.deepEqual(results, [201, 409, 201, 404, 200]);
    assert.deepEqual(await stored(first), ["new", "there"]);
    assert.deepEqual(await stored(second), ["new"]);
  });

  test("items of many partitions are made in bulk", async () => {
    const mark = fresh("mark");
    const creates = Array.from({ length: 250 }, (_, number) => {
      const pk = `${mark}-${number % 40}`;
      return { operationType: "Create", partitionKey: pk, resourceBody: { id: `${mark}-${number}`, pk, mark } };
    });
    const response = await shared.container.items.executeBulkOperations(creates);
    assert.deepEqual(new Set(response.map((one) => one.response?.statusCode ?? one.error)), new Set([201]));
    const query = "SELECT VALUE COUNT(1) FROM c WHERE c.mark = @mark";
    const parameters = [{ name: "@mark", value: mark }];
    assert.deepEqual(await all(shared.container.items.query({ query, parameters })), [250]);
  });

  test("the older way to send operations in bulk", async () => {
    const pk = fresh("key");
    const response = await shared.container.items.bulk([
      { operationType: "Create", resourceBody: { id: "1", pk } },
      { operationType: "Delete", id: "none", partitionKey: pk },
      { operationType: "Upsert", resourceBody: { id: "2", pk } },
      { operationType: "Create", resourceBody: { id: fresh("without a key") } },
    ]);
    assert.deepEqual(statuses(response), [201, 404, 201, 201]);
    assert.deepEqual(await stored(pk), ["1", "2"]);
  });

  test("a batch without operations is refused", async () => {
    // The client makes an error of its own from the answer.
    await assert.rejects(() => shared.container.items.batch([], "a"), /Batch request has no operations/);
  });
});
