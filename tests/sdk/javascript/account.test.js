// The account, keys, sessions and the headers of responses.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { PRIMARY_KEY, READ_ONLY_KEY, SECONDARY_KEY } from "./support/server.js";
import { GUID, fresh, needsOneServer, overBothSchemes, refused } from "./support/check.js";

overBothSchemes((shared) => {
  const withClient = async (options, act) => {
    const client = new CosmosClient({ endpoint: shared.endpoint, ...options });
    try {
      await act(client, client.database(shared.database.id).container(shared.container.id));
    } finally {
      client.dispose();
    }
  };

  const alone = needsOneServer("several servers name each other");
  test("the account names the endpoint that the client used", alone, async () => {
    const { resource } = await shared.client.getDatabaseAccount();
    assert.equal(resource.consistencyPolicy, "Session");
    for (const places of [resource.writableLocations, resource.readableLocations]) {
      assert.deepEqual(
        places.map((place) => place.databaseAccountEndpoint),
        [`${shared.endpoint}/`],
      );
    }
    assert.equal(await shared.client.getWriteEndpoint(), `${shared.endpoint}/`);
  });

  test("a connection string works", async () => {
    const client = new CosmosClient(`AccountEndpoint=${shared.endpoint}/;AccountKey=${PRIMARY_KEY};`);
    assert.equal((await client.database(shared.database.id).read()).statusCode, 200);
    client.dispose();
  });

  test("the secondary key may do everything", async () => {
    await withClient({ key: SECONDARY_KEY }, async (client) => {
      const { database } = await client.databases.create({ id: fresh("db") });
      assert.equal((await database.delete()).statusCode, 204);
    });
  });

  test("the read-only key reads and writes nothing", async () => {
    await shared.container.items.upsert({ id: "1", pk: "a" });
    await withClient({ key: READ_ONLY_KEY }, async (client, container) => {
      assert.equal((await container.item("1", "a").read()).statusCode, 200);
      await refused(401, () => container.items.create({ id: "2", pk: "a" }));
      await refused(401, () => container.item("1", "a").delete());
      await refused(401, () => client.database(shared.database.id).delete());
    });
  });

  test("another key is unauthorized and the message shows what was signed", async () => {
    await withClient({ key: "AAAA" }, async (client) => {
      await refused(401, () => client.database(shared.database.id).read(), { message: "get\\n" });
    });
  });

  test("every response has its place, session, charge and activity", async () => {
    const body = { id: fresh("item"), pk: "a" };
    const item = shared.container.item(body.id, "a");
    const responses = [
      await shared.container.items.create(body),
      await item.read(),
      await shared.container.items.upsert(body),
      await item.replace(body),
      await item.delete(),
      await item.read(),
    ];
    const { resource } = await shared.container.read();
    const sequence = responses.map(({ statusCode, headers, requestCharge, activityId }) => {
      assert.equal(headers["x-ms-alt-content-path"], `dbs/${shared.database.id}/colls/${shared.container.id}`);
      // A client does not keep the session of an item that is not there.
      assert.equal(headers["x-ms-content-path"], statusCode === 404 ? undefined : resource._rid);
      assert.equal(headers["x-ms-documentdb-partitionkeyrangeid"], "0");
      assert.match(activityId, GUID);
      assert.ok(requestCharge > 0);
      assert.equal(headers["x-ms-session-token"], `0:-1#${headers.lsn}`);
      return Number(headers.lsn);
    });
    const first = sequence[0];
    assert.deepEqual(sequence, [first, first, first + 1, first + 2, first + 3, first + 3]);
    assert.equal(responses[1].requestCharge, 1);
    assert.ok(responses[0].requestCharge > 1);
  });

  test("a client keeps its session", async () => {
    const written = await shared.container.items.upsert({ id: "session", pk: "a" });
    const read = await shared.container
      .item("session", "a")
      .read({ sessionToken: written.headers["x-ms-session-token"] });
    assert.equal(read.headers["x-ms-session-token"], written.headers["x-ms-session-token"]);
    await refused(400, () => shared.container.item("session", "a").read({ sessionToken: "garbage" }), {
      message: "session token",
    });
  });

  for (const [consistencyLevel, status] of [
    ["Eventual", 200],
    ["ConsistentPrefix", 200],
    ["Session", 200],
    ["BoundedStaleness", 400],
    ["Strong", 400],
  ]) {
    test(`consistency ${consistencyLevel} is answered with ${status}`, async () => {
      await shared.container.items.upsert({ id: "1", pk: "a" });
      await withClient({ key: PRIMARY_KEY, consistencyLevel }, async (_client, container) => {
        const read = () => container.item("1", "a").read();
        if (status === 200) assert.equal((await read()).statusCode, 200);
        else await refused(status, read);
      });
    });
  }
});
