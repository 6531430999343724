// Queries: the shared cases in any page size and through query plans, tokens, refusals, scopes, metrics, charges, and
// the other resources.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { all, cases, content, fresh, ids, makeContainer, overBothSchemes, pages, refused } from "./support/check.js";
import { PRIMARY_KEY } from "./support/server.js";

const { indexingPolicy, documents, queries, refusals } = cases("queries");
const byId = new Map(documents.map((document) => [document.id, document]));
const answer = ({ rows, ids }) => rows ?? ids.map((id) => byId.get(id));
const run = (runner) => queries.filter(({ not_in }) => !not_in?.includes(runner));
// Over all partitions the SDK merges rows itself, also those of one range.
const runnable = run("javascript").filter(({ not_in }) => !not_in?.includes("javascript-plan"));

const specification = ({ query, parameters = {} }) => ({
  query,
  parameters: Object.entries(parameters).map(([name, value]) => ({ name, value })),
});

/** Rows as texts with sorted members, without the properties that the server adds. */
function texts(rows) {
  const sorted = (_name, value) =>
    value !== null && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)))
      : value;
  const plain = (row) => (row !== null && typeof row === "object" && !Array.isArray(row) ? content(row) : row);
  return rows.map((row) => JSON.stringify(plain(row), sorted));
}

function checkRows(one, rows) {
  const [actual, expected] = [texts(rows), texts(answer(one))];
  if (!one.ordered) [actual, expected].forEach((list) => list.sort());
  assert.deepEqual(actual, expected);
}

overBothSchemes((shared) => {
  let people;
  before(async () => {
    people = await makeContainer(shared.database, { indexingPolicy });
    for (const document of documents) await people.items.create(document);
  });

  const query = (one, options = {}) =>
    people.items.query(specification(one), { partitionKey: one.partition, ...options });

  describe("the shared cases", () => {
    for (const one of runnable) {
      test(one.name, async () => {
        const whole = await all(query(one));
        checkRows(one, whole);
        for (const maxItemCount of [1, 4]) {
          const read = await pages(query(one, { maxItemCount }));
          assert.ok(read.every((page) => page.length <= maxItemCount));
          assert.deepEqual(read.flat(), whole);
        }
      });
    }
  });

  test("how a query runs comes as rows", async () => {
    const ranges = await makeContainer(shared.database, { throughput: 30_000 });
    for (const document of documents) await ranges.items.create(document);
    for (const container of [people, ranges]) {
      for (const text of ["SELECT * FROM c ORDER BY c.id", "SELECT VALUE COUNT(1) FROM c", "SELECT DISTINCT c.pk FROM c"]) {
        for (const options of [{ partitionKey: documents[0].pk }, {}, { forceQueryPlan: true }]) {
          const explained = { initialHeaders: { "x-astrarium-explain": "1" }, ...options };
          const rows = await all(container.items.query(text, explained));
          assert.ok(rows.length > 0 && rows.every(({ plan }) => plan.includes("first page:")), text);
        }
      }
    }
  });

  // With a plan the SDK asks whole ranges, also for a partition.
  describe("the shared cases, with a query plan", () => {
    for (const one of run("javascript-plan").filter(({ partition }) => partition === undefined)) {
      test(one.name, async () => {
        for (const maxItemCount of [undefined, 1, 4]) {
          checkRows(one, await all(query(one, { maxItemCount, forceQueryPlan: true })));
        }
      });
    }
  });

  describe("the shared cases, in several key ranges", () => {
    let ranges;
    before(async () => {
      ranges = await makeContainer(shared.database, { indexingPolicy, throughput: 30_000 });
      assert.equal((await all(ranges.readPartitionKeyRanges())).length, 5);
      for (const document of documents) await ranges.items.create(document);
    });
    for (const one of run("javascript-ranges")) {
      test(one.name, async () => {
        for (const maxItemCount of [undefined, 1, 4]) {
          const options = { partitionKey: one.partition, maxItemCount };
          checkRows(one, await all(ranges.items.query(specification(one), options)));
        }
      });
    }
  });

  describe("going on from a token in another client", () => {
    // What the SDK merges has no token.
    const streamed = ({ kind, partition }) => partition !== undefined || kind === "stream";
    for (const one of runnable.filter((one) => streamed(one) && answer(one).length > 3)) {
      test(one.name, async () => {
        const first = await query(one, { maxItemCount: 3 }).fetchNext();
        const { continuationToken } = first;
        assert.ok(continuationToken && continuationToken.length < 4096);
        const client = new CosmosClient({ endpoint: shared.endpoint, key: PRIMARY_KEY });
        const again = client.database(shared.database.id).container(people.id).items;
        const options = { partitionKey: one.partition, maxItemCount: 2, continuationToken };
        checkRows(one, [...first.resources, ...(await all(again.query(specification(one), options)))]);
        client.dispose();
      });
    }
  });

  // The SDK makes a token of its own from those of the ranges, and asks them for what comes after the last row: with
  // filters that fit one path with values of one type, in queries without joins.
  describe("going on from a token, with a query plan", () => {
    const ordered = ["order by text", "order by numbers, falling", "equal keys in the order of creation"];
    const resumable = ({ name, kind, partition }) =>
      partition === undefined && (kind === "stream" || ordered.includes(name));
    for (const one of run("javascript-plan").filter((one) => resumable(one) && answer(one).length > 3)) {
      test(one.name, async () => {
        const options = { enableQueryControl: true, maxItemCount: 3 };
        const first = await query(one, options).fetchNext();
        const rest = await all(query(one, { ...options, continuationToken: first.continuationToken }));
        checkRows(one, [...first.resources, ...rest]);
      });
    }
  });

  describe("refusals", () => {
    for (const one of refusals) {
      test(one.name, async () => {
        for (const partition of [undefined, "north"]) {
          const error = await refused(400, () => all(query({ ...one, partition })), { message: one.message });
          if (one.code !== undefined) assert.ok(error.message.includes(`"code":${one.code}`), error.message);
          if (one.start !== undefined) {
            assert.ok(error.message.includes(`"location":{"start":${one.start},"end":${one.end}}`), error.message);
          }
        }
      });
    }
  });

  test("many queries at once", async () => {
    const answers = await Promise.all(runnable.map((one) => all(query(one, { maxItemCount: 5 }))));
    runnable.forEach((one, number) => checkRows(one, answers[number]));
  });

  for (const token of ["garbage", "[]", '{"token":"x","range":{"min":"","max":"FF"}}']) {
    for (const partitionKey of [undefined, "north"]) {
      test(`the token ${token} is refused ${partitionKey ? "in a partition" : "everywhere"}`, async () => {
        const options = { partitionKey, continuationToken: token };
        const act = () => people.items.query("SELECT * FROM c", options).fetchNext();
        await refused(400, act, { message: "Invalid Continuation Token" });
      });
    }
  }

  test("a token belongs to its query", async () => {
    const page = await people.items.query("SELECT * FROM c WHERE c.level > 1", { maxItemCount: 1 }).fetchNext();
    const options = { continuationToken: page.continuationToken };
    await refused(400, () => people.items.query("SELECT * FROM c WHERE c.level > 2", options).fetchNext());
  });

  test("an iterator goes page by page, by itself, and again from the start", async () => {
    const iterator = people.items.query("SELECT VALUE c.id FROM c ORDER BY c.id", { maxItemCount: 5 });
    const read = [];
    for await (const { resources } of iterator.getAsyncIterator()) read.push(resources);
    assert.deepEqual(
      read.map((page) => page.length),
      [5, 5, 2],
    );
    assert.equal(iterator.hasMoreResults(), false);
    iterator.reset();
    assert.deepEqual(await all(iterator), read.flat());
  });

  test("every page has its headers", async () => {
    const options = { partitionKey: "north", maxItemCount: 2 };
    const iterator = people.items.query("SELECT * FROM c ORDER BY c.name", options);
    while (iterator.hasMoreResults()) {
      const { resources, headers, requestCharge, activityId } = await iterator.fetchNext();
      assert.equal(Number(headers["x-ms-item-count"]), resources.length);
      assert.ok(requestCharge > 0 && activityId);
      assert.match(headers["x-ms-session-token"], /^0:/);
    }
  });

  describe("what a query costs", () => {
    let many;
    before(async () => {
      many = await makeContainer(shared.database);
      const text = "x".repeat(500);
      for (let number = 0; number < 60; number++)
        await many.items.create({ id: `item-${number}`, pk: number % 4, number, text });
    });
    for (const text of [
      "SELECT * FROM c",
      "SELECT * FROM c WHERE c.number >= 20",
      "SELECT * FROM c ORDER BY c.number DESC",
      "SELECT c.id FROM c ORDER BY c.id OFFSET 5 LIMIT 50",
    ]) {
      test(`the pages of ${text} cost what the whole costs`, async () => {
        // Not -1: where it merges, this SDK takes the page size for a number of rows and never ends.
        const whole = await many.items.query(text, { maxItemCount: 1000 }).fetchAll();
        const parts = await many.items.query(text, { maxItemCount: 10 }).fetchAll();
        assert.deepEqual(parts.resources, whole.resources);
        // Each page is rounded by itself.
        const told = `${parts.requestCharge} and ${whole.requestCharge}`;
        assert.ok(Math.abs(parts.requestCharge - whole.requestCharge) <= whole.requestCharge * 0.1, told);
      });
    }
  });

  test("metrics come when asked for", async () => {
    const text = "SELECT * FROM c WHERE c.team = 'red'";
    const { headers } = await people.items.query(text, { populateQueryMetrics: true }).fetchNext();
    // The SDK has read the header, by range.
    const metrics = Object.values(headers["x-ms-documentdb-query-metrics"])[0];
    assert.equal(metrics.outputDocumentCount, 4);
    assert.ok(metrics.retrievedDocumentCount >= 4 && metrics.retrievedDocumentSize > 0);
    const without = await people.items.query(text).fetchNext();
    assert.equal(without.headers["x-ms-documentdb-query-metrics"], undefined);
  });

  test("index metrics come when asked for", async () => {
    const text = "SELECT * FROM c WHERE c.team = 'red' ORDER BY c.level";
    const { indexMetrics } = await people.items.query(text, { populateIndexMetrics: true }).fetchNext();
    const { Utilized, Potential } = JSON.parse(indexMetrics);
    for (const { SingleIndexes, CompositeIndexes } of [Utilized, Potential]) {
      assert.ok(Array.isArray(SingleIndexes) && Array.isArray(CompositeIndexes));
    }
  });

  test("a query of one key range", async () => {
    const [{ id }] = await all(people.readPartitionKeyRanges());
    const headers = { "x-ms-documentdb-partitionkeyrangeid": id };
    const found = await all(people.items.query("SELECT VALUE c.id FROM c", { initialHeaders: headers }));
    assert.deepEqual(found.sort(), [...byId.keys()]);
  });

  test("the prefix of a hierarchical key", async () => {
    const partitionKey = { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 };
    const container = await makeContainer(shared.database, { partitionKey });
    const keys = [
      ["t1", "u1"],
      ["t1", "u2"],
      ["t2", "u1"],
      ["t2", null],
    ];
    for (const [number, [tenant, user]] of keys.entries())
      await container.items.create({ id: String(number), tenant, user });
    for (const [key, expected] of [
      [["t1"], ["0", "1"]],
      [["t2"], ["2", "3"]],
      [["t2", null], ["3"]],
      [["t1", "u2"], ["1"]],
      [["t3"], []],
    ]) {
      for (const maxItemCount of [1, 10]) {
        const options = { partitionKey: key, maxItemCount };
        assert.deepEqual(await all(container.items.query("SELECT VALUE c.id FROM c ORDER BY c.id", options)), expected);
        const count = await all(container.items.query("SELECT VALUE COUNT(1) FROM c", options));
        assert.deepEqual(count, [expected.length]);
      }
    }
  });

  test("readAll of one partition", async () => {
    assert.deepEqual(ids(await all(people.items.readAll({ partitionKey: "north" }))), ["01", "04", "06", "09", "12"]);
  });

  // Other resources

  const by = (id, text) => ({ query: text, parameters: [{ name: "@id", value: id }] });

  test("queries over databases", async () => {
    const { id } = shared.database;
    const databases = shared.client.databases;
    assert.deepEqual(ids(await all(databases.query(by(id, "SELECT * FROM root r WHERE r.id = @id")))), [id]);
    assert.deepEqual(await all(databases.query(by(id, "SELECT VALUE d.id FROM d WHERE d.id = @id"))), [id]);
    assert.deepEqual(await all(databases.query("SELECT * FROM d WHERE d.id = 'missing'")), []);
    const act = () => all(databases.query("SELECT * FROM d WHERE"));
    await refused(400, act, { message: "Syntax error, unexpected end-of-file." });
  });

  test("queries over containers", async () => {
    const { database } = await shared.client.databases.create({ id: fresh("database") });
    const names = ["container-0", "container-1", "container-2", "container-3", "container-4"];
    for (const id of names) await database.containers.create({ id, partitionKey: "/pk" });
    const ordered = database.containers.query("SELECT * FROM c ORDER BY c.id DESC", { maxItemCount: 2 });
    assert.deepEqual(ids(await all(ordered)), [...names].reverse());
    const read = await pages(database.containers.query("SELECT VALUE c.id FROM c", { maxItemCount: 2 }));
    assert.deepEqual(read.flat().sort(), names);
    assert.ok(read.every((page) => page.length <= 2));
    await database.delete();
  });

  test("queries over users and permissions", async () => {
    const { user } = await shared.database.users.create({ id: fresh("user") });
    for (const [id, permissionMode] of [
      ["read", "Read"],
      ["write", "All"],
    ])
      await user.permissions.create({ id, permissionMode, resource: `${shared.container.url}/docs/${id}` });
    const users = shared.database.users.query(by(user.id, "SELECT * FROM u WHERE u.id = @id"));
    assert.deepEqual(ids(await all(users)), [user.id]);
    const found = await all(user.permissions.query("SELECT * FROM p WHERE p.permissionMode = 'All'"));
    assert.deepEqual(ids(found), ["write"]);
  });

  test("queries over scripts", async () => {
    const { scripts } = shared.container;
    const names = ["one", "three", "two"];
    for (const [kind, more] of [
      [scripts.storedProcedures, {}],
      [scripts.triggers, { triggerType: "Pre", triggerOperation: "All" }],
      [scripts.userDefinedFunctions, {}],
    ]) {
      for (const id of names) await kind.create({ id, body: "function () {}", ...more });
      assert.deepEqual(ids(await all(kind.query(by("two", "SELECT * FROM s WHERE s.id = @id")))), ["two"]);
      const ordered = kind.query("SELECT VALUE s.id FROM s ORDER BY s.id DESC", { maxItemCount: 1 });
      assert.deepEqual(await all(ordered), [...names].reverse());
    }
  });

  test("queries over offers", async () => {
    const { resource } = await shared.database.containers.create(
      { id: fresh("container"), partitionKey: "/pk" },
      { offerThroughput: 700 },
    );
    const offers = shared.client.offers.query(by(resource._rid, "SELECT * FROM o WHERE o.offerResourceId = @id"));
    const [offer] = await all(offers);
    assert.equal(offer.content.offerThroughput, 700);
  });

  test("queries over conflicts", async () => {
    assert.deepEqual(await all(people.conflicts.query("SELECT * FROM c")), []);
  });
});
