// Users and permissions, and clients that have nothing but resource tokens.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { CosmosClient, PermissionMode } from "@azure/cosmos";
import { all, fresh, ids, makeContainer, overBothSchemes, pages, refused } from "./support/check.js";

const EXPIRY_SECONDS_MIN = 10;
const linkOf = (container) => `dbs/${container.database.id}/colls/${container.id}`;

overBothSchemes((shared) => {
  const clients = [];
  let guarded;
  before(async () => {
    guarded = await makeContainer(shared.database);
    for (const pk of ["a", "b"]) await guarded.items.create({ id: "1", pk });
  });
  after(() => clients.forEach((client) => client.dispose()));

  /** The token of a new permission of a new user. */
  const tokenOf = async (resource, permissionMode, more = {}, options = {}) => {
    const { user } = await shared.database.users.create({ id: fresh("holder") });
    return (await user.permissions.create({ id: fresh("p"), permissionMode, resource, ...more }, options)).resource
      ._token;
  };

  /** A container as a client sees it that has this token and nothing else. */
  const seenWith = (token, container = guarded) => {
    const client = new CosmosClient({ endpoint: shared.endpoint, resourceTokens: { [linkOf(container)]: token } });
    clients.push(client);
    return client.database(container.database.id).container(container.id);
  };

  test("the life of a user", async () => {
    const id = fresh("user");
    const created = await shared.database.users.create({ id });
    assert.equal(created.statusCode, 201);
    assert.equal(created.resource._permissions, "permissions/");
    await refused(409, () => shared.database.users.create({ id }));
    const renamed = await created.user.replace({ id: `${id}-new` });
    assert.equal(renamed.resource._rid, created.resource._rid);
    await refused(404, () => created.user.read());
    assert.equal((await shared.database.users.upsert({ id: `${id}-new` })).statusCode, 200);
    assert.equal((await shared.database.users.upsert({ id })).statusCode, 201);
    assert.deepEqual(
      ids(await all(shared.database.users.readAll())).filter((one) => one.startsWith(id)),
      [`${id}-new`, id],
    );
    const listed = await pages(shared.database.users.readAll({ maxItemCount: 1 }));
    assert.ok(listed.every((page) => page.length <= 1));
    const query = { query: "SELECT * FROM root r WHERE r.id=@id", parameters: [{ name: "@id", value: id }] };
    assert.deepEqual(ids(await all(shared.database.users.query(query))), [id]);
    assert.equal((await shared.database.user(id).delete()).statusCode, 204);
    await refused(404, () => shared.database.user(id).read());
  });

  test("the life of a permission", async () => {
    const { user } = await shared.database.users.create({ id: fresh("user") });
    const body = { id: "p", permissionMode: PermissionMode.Read, resource: linkOf(guarded) };
    const created = await user.permissions.create(body);
    assert.equal(created.statusCode, 201);
    // The SDK writes the mode in small letters.
    const modeOf = ({ resource }) => resource.permissionMode.toLowerCase();
    assert.equal(modeOf(created), "read");
    assert.equal(created.resource.resource, body.resource);
    assert.match(created.resource._token, /^type=resource&ver=1/);
    await refused(409, () => user.permissions.create(body));
    const replaced = await user.permission("p").replace({ ...body, permissionMode: PermissionMode.All });
    assert.equal(modeOf(replaced), "all");
    assert.equal((await user.permissions.upsert(body)).statusCode, 200);
    assert.equal(modeOf(await user.permission("p").read()), "read");
    const listed = await all(user.permissions.readAll());
    assert.deepEqual(ids(listed), ["p"]);
    assert.ok(listed[0]._token);
    assert.equal((await user.permission("p").delete()).statusCode, 204);
    await refused(404, () => user.permission("p").read());
  });

  test("bad permissions are refused", async () => {
    const { user } = await shared.database.users.create({ id: fresh("user") });
    const resource = linkOf(guarded);
    await refused(400, () => user.permissions.create({ id: "p", permissionMode: "Write", resource }));
    await refused(400, () => user.permissions.create({ id: "p", permissionMode: "Read" }));
    for (const resourceTokenExpirySeconds of [1, 9, 86401]) {
      await refused(400, () =>
        user.permissions.create({ id: "p", permissionMode: "Read", resource }, { resourceTokenExpirySeconds }),
      );
    }
    assert.deepEqual(await all(user.permissions.readAll()), []);
  });

  test("a reader reads and writes nothing", async () => {
    const container = seenWith(await tokenOf(linkOf(guarded), "Read"));
    assert.equal((await container.read()).resource.id, guarded.id);
    assert.equal((await container.item("1", "a").read()).resource.pk, "a");
    await refused(403, () => container.items.create({ id: "2", pk: "a" }));
    await refused(403, () => container.items.upsert({ id: "1", pk: "a", changed: true }));
    await refused(403, () => container.item("1", "a").replace({ id: "1", pk: "a", changed: true }));
    await refused(403, () => container.item("1", "a").delete());
    assert.equal((await guarded.item("1", "a").read()).resource.changed, undefined);
  });

  test("a writer writes", async () => {
    const container = seenWith(await tokenOf(linkOf(guarded), "All"));
    const id = fresh("item");
    assert.equal((await container.items.create({ id, pk: "w" })).statusCode, 201);
    assert.equal((await container.items.upsert({ id, pk: "w", value: 1 })).statusCode, 200);
    assert.equal((await container.item(id, "w").delete()).statusCode, 204);
  });

  test("a token is for its container only", async () => {
    const other = await makeContainer(shared.database);
    await other.items.create({ id: "1", pk: "a" });
    const intruder = seenWith(await tokenOf(linkOf(guarded), "All"), other);
    await refused(403, () => intruder.item("1", "a").read());
    await refused(403, () => intruder.items.create({ id: "2", pk: "a" }));
    await refused(403, () => intruder.delete());
    assert.equal((await other.item("1", "a").read()).statusCode, 200);
  });

  test("a token of one partition opens that partition only", async () => {
    const container = seenWith(await tokenOf(linkOf(guarded), "All", { resourcePartitionKey: ["a"] }));
    assert.equal((await container.item("1", "a").read()).resource.pk, "a");
    await container.items.upsert({ id: "mine", pk: "a" });
    await refused(403, () => container.item("1", "b").read());
    await refused(403, () => container.items.create({ id: "2", pk: "b" }));
  });

  test("a feed of permissions is a credential", async () => {
    const { user } = await shared.database.users.create({ id: fresh("user") });
    await user.permissions.create({ id: "p", permissionMode: "Read", resource: linkOf(guarded) });
    const client = new CosmosClient({
      endpoint: shared.endpoint,
      permissionFeed: await all(user.permissions.readAll()),
    });
    clients.push(client);
    const container = client.database(shared.database.id).container(guarded.id);
    assert.equal((await container.item("1", "a").read()).resource.pk, "a");
  });

  test("a token dies with its container", async () => {
    const container = await makeContainer(shared.database);
    const held = seenWith(await tokenOf(linkOf(container), "All"), container);
    await held.items.create({ id: "1", pk: "a" });
    await container.delete();
    await (await makeContainer(shared.database, { id: container.id })).items.create({ id: "1", pk: "a" });
    await refused(403, () => held.item("1", "a").read());
  });

  test("a token expires", async () => {
    const options = { resourceTokenExpirySeconds: EXPIRY_SECONDS_MIN };
    const container = seenWith(await tokenOf(linkOf(guarded), "Read", {}, options));
    assert.equal((await container.item("1", "a").read()).statusCode, 200);
    await sleep((EXPIRY_SECONDS_MIN + 1) * 1000);
    await refused(403, () => container.item("1", "a").read());
  });
});
