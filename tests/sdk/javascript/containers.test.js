// Containers: life, every policy, what replace may change, refusals.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  KEY,
  OLD_ETAG,
  all,
  cases,
  fresh,
  ids,
  ifMatch,
  makeContainer,
  overBothSchemes,
  pages,
  refused,
} from "./support/check.js";

const { accepted, refused: refusedCases, replaced } = cases("container_policies");

overBothSchemes((shared) => {
  for (const { name, definition, stored } of accepted) {
    test(`accepted and shown again: ${name}`, async () => {
      const body = { id: fresh("policies"), partitionKey: structuredClone(KEY), ...structuredClone(definition) };
      const created = await shared.database.containers.create(body);
      assert.equal(created.statusCode, 201);
      for (const [member, value] of Object.entries(stored ?? definition)) {
        assert.deepEqual(created.resource[member], value);
      }
      assert.deepEqual((await created.container.read()).resource, created.resource);
      await created.container.delete();
    });
  }

  for (const { name, definition, message } of refusedCases) {
    test(`refused: ${name}`, async () => {
      const id = fresh("policies");
      const body = { id, partitionKey: structuredClone(KEY), ...structuredClone(definition) };
      await refused(400, () => shared.database.containers.create(body), { message });
      await refused(404, () => shared.database.container(id).read());
    });
  }

  for (const { name, from, to, stored, absent = [], refused: message } of replaced) {
    test(`replace: ${name}`, async () => {
      const container = await makeContainer(shared.database, from);
      const before = (await container.read()).resource;
      const body = { id: container.id, partitionKey: structuredClone(KEY), ...structuredClone(to) };
      if (message !== undefined) {
        await refused(400, () => container.replace(body), { message });
        assert.deepEqual((await container.read()).resource, before);
        return;
      }
      const { resource } = await container.replace(body);
      for (const [member, value] of Object.entries(stored ?? to)) assert.deepEqual(resource[member], value);
      for (const member of absent) assert.ok(!(member in resource));
      assert.equal(resource._rid, before._rid);
      assert.notEqual(resource._etag, before._etag);
      assert.deepEqual((await container.read()).resource, resource);
    });
  }

  test("a created container has the properties of the service", async () => {
    const response = await shared.database.containers.create({ id: fresh("container"), partitionKey: { ...KEY } });
    const owner = (await shared.database.read()).resource;
    const { resource, headers } = response;
    assert.equal(resource._self, `${owner._self}colls/${resource._rid}/`);
    assert.equal(Buffer.from(resource._rid.replaceAll("-", "/"), "base64").length, 8);
    for (const name of ["docs", "sprocs", "triggers", "udfs", "conflicts"])
      assert.equal(resource[`_${name}`], `${name}/`);
    assert.deepEqual(resource.partitionKey, KEY);
    assert.equal(headers.etag, resource._etag);
    assert.equal(headers["x-ms-alt-content-path"], `dbs/${shared.database.id}`);
    assert.equal(headers["x-ms-content-path"], owner._rid);
  });

  test("a partition key given as a path has the first hash", async () => {
    const { resource, container } = await shared.database.containers.create({ id: fresh("path"), partitionKey: "/pk" });
    assert.deepEqual(resource.partitionKey.paths, ["/pk"]);
    assert.ok([undefined, 1].includes(resource.partitionKey.version));
    await container.items.create({ id: "1", pk: "a" });
    assert.equal((await container.item("1", "a").read()).resource.pk, "a");
  });

  test("without a partition key there is the SDK's own", async () => {
    const { resource, container } = await shared.database.containers.create({ id: fresh("none") });
    assert.deepEqual(resource.partitionKey.paths, ["/_partitionKey"]);
    await container.items.create({ id: "1" });
    assert.equal((await container.item("1", undefined).read()).resource.id, "1");
  });

  test("creating a name twice conflicts", async () => {
    await refused(409, () => shared.database.containers.create({ id: shared.container.id, partitionKey: { ...KEY } }));
  });

  test("createIfNotExists creates once", async () => {
    const id = fresh("container");
    const first = await shared.database.containers.createIfNotExists({ id, partitionKey: "/pk" });
    const second = await shared.database.containers.createIfNotExists({ id, partitionKey: "/other" });
    assert.deepEqual([first.statusCode, second.statusCode], [201, 200]);
    assert.deepEqual(first.resource, second.resource);
  });

  test("a recreated container has a new rid and no items", async () => {
    const container = await makeContainer(shared.database);
    const first = (await container.read()).resource;
    await container.items.create({ id: "1", pk: "a" });
    assert.equal((await container.delete()).statusCode, 204);
    await refused(404, () => container.read());
    await refused(404, () => container.delete());
    const again = await makeContainer(shared.database, { id: container.id });
    assert.notEqual((await again.read()).resource._rid, first._rid);
    await refused(404, () => again.item("1", "a").read());
    await again.items.create({ id: "2", pk: "a" });
    assert.equal((await again.item("2", "a").read()).statusCode, 200);
  });

  test("what is below a missing container is not found", async () => {
    const missing = shared.database.container(fresh("missing"));
    await refused(404, () => missing.items.create({ id: "1", pk: "a" }));
    await refused(404, () => missing.item("1", "a").read());
    await refused(404, () => all(missing.conflicts.readAll()), { substatus: 1003 });
    await refused(404, () => all(missing.readPartitionKeyRanges()), { substatus: 1003 });
    await refused(404, () => all(missing.scripts.storedProcedures.readAll()), { substatus: 1003 });
  });

  test("lists in pages, and lookups", async () => {
    const { database } = await shared.client.databases.create({ id: fresh("db") });
    const names = [fresh("listed"), fresh("listed"), fresh("listed")];
    for (const id of names) await makeContainer(database, { id });
    assert.deepEqual(ids(await all(database.containers.readAll())), names);
    const listed = await pages(database.containers.readAll({ maxItemCount: 2 }));
    assert.deepEqual(listed.map(ids), [names.slice(0, 2), names.slice(2)]);
    const query = { query: "SELECT * FROM root r WHERE r.id=@id", parameters: [{ name: "@id", value: names[2] }] };
    assert.deepEqual(ids(await all(database.containers.query(query))), [names[2]]);
    await database.delete();
  });

  for (const id of ["", "a".repeat(256)]) {
    test(`a name of ${id.length} letters is refused`, async () => {
      const message = "Ensure to provide a unique non-empty string less than '255' characters.";
      await refused(400, () => shared.database.containers.create({ id, partitionKey: { ...KEY } }), { message });
    });
  }

  test("replace and delete only if the etag is current", async () => {
    const container = await makeContainer(shared.database);
    const { resource } = await container.read();
    const body = { id: container.id, partitionKey: { ...KEY }, defaultTtl: 60 };
    await refused(412, () => container.replace(body, ifMatch(OLD_ETAG)));
    const replaced = await container.replace(body, ifMatch(resource._etag));
    await refused(412, () => container.delete(ifMatch(resource._etag)));
    assert.equal((await container.delete(ifMatch(replaced.etag))).statusCode, 204);
  });

  test("replacing a missing container is not found", async () => {
    const id = fresh("missing");
    await refused(404, () => shared.database.container(id).replace({ id, partitionKey: { ...KEY } }));
  });

  test("a read tells quota and usage if asked", async () => {
    const { headers } = await shared.container.read({ populateQuotaInfo: true });
    assert.equal(headers["x-ms-documentdb-collection-index-transformation-progress"], "100");
    assert.match(headers["x-ms-resource-quota"], /collectionSize=10485760;/);
    assert.match(headers["x-ms-resource-usage"], /documentsCount=\d+;/);
  });
});
