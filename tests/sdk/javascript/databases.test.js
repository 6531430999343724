// Databases: life, lists, lookups and refusals.

import assert from "node:assert/strict";
import { test } from "node:test";
import { GUID, all, fresh, ids, makeContainer, overBothSchemes, pages, refused } from "./support/check.js";

const TOO_LONG = "Ensure to provide a unique non-empty string less than '255' characters.";

overBothSchemes((shared) => {
  test("a created database has the properties of the service", async () => {
    const id = fresh("db");
    const response = await shared.client.databases.create({ id });
    const { resource, headers } = response;
    assert.equal(response.statusCode, 201);
    assert.equal(resource.id, id);
    assert.equal(resource._self, `dbs/${resource._rid}/`);
    assert.equal(Buffer.from(resource._rid.replaceAll("-", "/"), "base64").length, 4);
    assert.deepEqual([resource._colls, resource._users], ["colls/", "users/"]);
    assert.equal(headers.etag, resource._etag);
    assert.match(response.activityId, GUID);
    assert.ok(response.requestCharge > 0);
    const read = await response.database.read();
    assert.equal(read.statusCode, 200);
    assert.deepEqual(read.resource, resource);
    assert.equal((await response.database.delete()).statusCode, 204);
    await refused(404, () => response.database.read());
    await refused(404, () => response.database.delete());
  });

  test("creating a name twice conflicts", async () => {
    await refused(409, () => shared.client.databases.create({ id: shared.database.id }), { substatus: 3206, message: "already exists" });
  });

  test("createIfNotExists creates once", async () => {
    const id = fresh("db");
    const first = await shared.client.databases.createIfNotExists({ id });
    const second = await shared.client.databases.createIfNotExists({ id });
    assert.deepEqual([first.statusCode, second.statusCode], [201, 200]);
    assert.deepEqual(first.resource, second.resource);
    await first.database.delete();
  });

  test("a recreated database has a new rid and nothing below", async () => {
    const id = fresh("db");
    const first = await shared.client.databases.create({ id });
    await makeContainer(first.database);
    await first.database.users.create({ id: "u" });
    await first.database.delete();
    const second = await shared.client.databases.create({ id });
    assert.notEqual(first.resource._rid, second.resource._rid);
    assert.deepEqual(await all(second.database.containers.readAll()), []);
    assert.deepEqual(await all(second.database.users.readAll()), []);
    await second.database.delete();
  });

  test("lists in pages of any size, and lookups", async () => {
    const names = [fresh("listed"), fresh("listed"), fresh("listed")];
    for (const id of names) await shared.client.databases.create({ id });
    const mine = (resources) => ids(resources).filter((id) => names.includes(id));
    assert.deepEqual(mine(await all(shared.client.databases.readAll())), names);
    for (const maxItemCount of [1, 2, 100]) {
      const listed = await pages(shared.client.databases.readAll({ maxItemCount }));
      assert.ok(listed.every((page) => page.length <= maxItemCount));
      assert.deepEqual(mine(listed.flat()), names);
    }
    const first = await shared.client.databases.readAll({ maxItemCount: 1 }).fetchNext();
    const rest = shared.client.databases.readAll({ maxItemCount: 1, continuationToken: first.continuationToken });
    assert.deepEqual(mine([...first.resources, ...(await all(rest))]), names);
    const query = "SELECT * FROM root r WHERE r.id=@id";
    const found = await all(shared.client.databases.query({ query, parameters: [{ name: "@id", value: names[1] }] }));
    assert.deepEqual(ids(found), [names[1]]);
    assert.deepEqual(
      await all(shared.client.databases.query({ query, parameters: [{ name: "@id", value: "none" }] })),
      [],
    );
    for (const id of names) await shared.client.database(id).delete();
  });

  test("a garbage continuation token is refused", async () => {
    const garbage = shared.client.databases.readAll({ continuationToken: "garbage" });
    await refused(400, () => garbage.fetchNext(), { message: "Invalid Continuation Token" });
  });

  for (const id of ["a".repeat(255), "with space", "colls", "dbs", "ÄÖÜ 日本語 🚀", "a%20b", "'\"", "@:;,!*()"]) {
    test(`the name ${id.slice(0, 20)} works`, async () => {
      const { database } = await shared.client.databases.create({ id });
      assert.equal((await database.read()).resource.id, id);
      const container = await makeContainer(database, { id });
      await container.items.create({ id: "1", pk: id });
      assert.equal((await container.item("1", id).read()).resource.pk, id);
      await database.delete();
      await refused(404, () => database.read());
    });
  }

  for (const id of ["", "a".repeat(256), "ü".repeat(256)]) {
    test(`a name of ${id.length} letters is refused`, async () => {
      await refused(400, () => shared.client.databases.create({ id }), { message: TOO_LONG });
    });
  }

  for (const id of ["tab\there", "line\nhere", "return\rhere"]) {
    test(`the name ${JSON.stringify(id)} is refused`, async () => {
      await refused(400, () => shared.client.databases.create({ id }));
    });
  }
});
