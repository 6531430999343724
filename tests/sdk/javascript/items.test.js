// Items: create, read, replace, upsert, delete; conditions, sizes, bodies and ids.

import assert from "node:assert/strict";
import { test } from "node:test";
import { OLD_ETAG, cases, content, fresh, ifMatch, ifNoneMatch, overBothSchemes, refused } from "./support/check.js";

const { scripts, odd } = cases("item_ids");
const MEBIBYTE = 1 << 20;

/** An item whose JSON has this many bytes. */
function ofSize(size) {
  const item = { id: fresh("large"), pk: "large", text: "" };
  return { ...item, text: "x".repeat(size - JSON.stringify(item).length) };
}

overBothSchemes((shared) => {
  const create = async (more = {}) =>
    (await shared.container.items.create({ id: fresh("item"), pk: fresh("key"), ...more })).resource;
  const reference = ({ id, pk }) => shared.container.item(id, pk);

  test("a created item has the properties of the service", async () => {
    const body = { id: fresh("item"), pk: "a", nested: { list: [1, 2.5, null, true, "ü"] } };
    const response = await shared.container.items.create(body);
    const { resource } = response;
    const owner = (await shared.container.read()).resource;
    assert.equal(response.statusCode, 201);
    assert.deepEqual(content(resource), body);
    assert.deepEqual(Object.keys(resource).slice(-5), ["_rid", "_self", "_etag", "_attachments", "_ts"]);
    assert.equal(Buffer.from(resource._rid.replaceAll("-", "/"), "base64").length, 16);
    assert.equal(resource._self, `${owner._self}docs/${resource._rid}/`);
    assert.equal(response.etag, resource._etag);
    const read = await reference(body).read();
    assert.equal(read.statusCode, 200);
    assert.deepEqual(read.resource, resource);
  });

  test("creating an id twice conflicts, in one partition only", async () => {
    const item = await create();
    await refused(409, () => shared.container.items.create({ id: item.id, pk: item.pk }), {
      message: "already exists",
    });
    await shared.container.items.create({ id: item.id, pk: "another" });
    assert.deepEqual((await reference(item).read()).resource, item);
  });

  test("a missing item is not found", async () => {
    const missing = reference({ id: fresh("missing"), pk: "a" });
    const read = await missing.read();
    assert.equal(read.statusCode, 404);
    assert.equal(read.resource, undefined);
    await refused(404, () => missing.replace({ id: missing.id, pk: "a" }));
    const error = await refused(404, () => missing.delete());
    assert.ok(error.headers["x-ms-session-token"]);
  });

  test("replace changes content and etag and keeps the rid", async () => {
    const item = await create({ value: 1 });
    const response = await reference(item).replace({ id: item.id, pk: item.pk, value: 2 });
    assert.equal(response.statusCode, 200);
    assert.deepEqual(content(response.resource), { id: item.id, pk: item.pk, value: 2 });
    assert.equal(response.resource._rid, item._rid);
    assert.notEqual(response.resource._etag, item._etag);
  });

  test("replace may change the id", async () => {
    const item = await create({ value: 1 });
    const taken = await create({ pk: item.pk, value: 2 });
    await refused(409, () => reference(item).replace({ id: taken.id, pk: item.pk }));
    const id = fresh("other");
    const response = await reference(item).replace({ id, pk: item.pk, value: 3 });
    assert.deepEqual([response.statusCode, response.resource.id, response.resource._rid], [200, id, item._rid]);
    assert.equal((await reference(item).read()).statusCode, 404);
    assert.equal((await reference({ id, pk: item.pk }).read()).resource.value, 3);
  });

  test("upsert creates and then replaces", async () => {
    const body = { id: fresh("item"), pk: "a", value: 1 };
    const created = await shared.container.items.upsert(body);
    const replaced = await shared.container.items.upsert({ ...body, value: 2 });
    assert.deepEqual([created.statusCode, replaced.statusCode], [201, 200]);
    assert.equal(created.resource._rid, replaced.resource._rid);
    assert.equal((await reference(body).read()).resource.value, 2);
  });

  test("a deleted item is gone and its id free", async () => {
    const item = await create();
    const response = await reference(item).delete();
    assert.equal(response.statusCode, 204);
    assert.equal((await reference(item).read()).statusCode, 404);
    const again = await shared.container.items.create({ id: item.id, pk: item.pk });
    assert.notEqual(again.resource._rid, item._rid);
  });

  test("replace and delete only if the etag is current", async () => {
    const item = await create();
    const body = { id: item.id, pk: item.pk, value: 2 };
    await refused(412, () => reference(item).replace(body, ifMatch(OLD_ETAG)));
    const { etag } = await reference(item).replace(body, ifMatch(item._etag));
    const error = await refused(412, () => reference(item).delete(ifMatch(item._etag)));
    assert.ok(error.headers["x-ms-session-token"]);
    assert.equal((await reference(item).delete(ifMatch(etag))).statusCode, 204);
  });

  test("upsert heeds the etag only of an item that exists", async () => {
    const body = { id: fresh("item"), pk: "a" };
    assert.equal((await shared.container.items.upsert(body, ifMatch(OLD_ETAG))).statusCode, 201);
    await refused(412, () => shared.container.items.upsert(body, ifMatch(OLD_ETAG)));
    assert.equal((await shared.container.items.upsert(body, ifMatch("*"))).statusCode, 200);
  });

  test("a read of what is known is not modified", async () => {
    const item = await create();
    const known = await reference(item).read(ifNoneMatch(item._etag));
    assert.equal(known.statusCode, 304);
    assert.equal(known.etag, item._etag);
    assert.ok(known.headers["x-ms-session-token"] && known.requestCharge > 0);
    assert.equal((await reference(item).read(ifNoneMatch(OLD_ETAG))).statusCode, 200);
  });

  test("of many writers with one etag exactly one wins", async () => {
    const item = await create();
    const write = (winner) =>
      reference(item)
        .replace({ id: item.id, pk: item.pk, winner }, ifMatch(item._etag))
        .then(
          () => winner,
          (error) => error.code,
        );
    const outcomes = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(write));
    const winners = outcomes.filter((outcome) => outcome !== 412);
    assert.equal(winners.length, 1);
    assert.equal((await reference(item).read()).resource.winner, winners[0]);
  });

  test("the SDK makes an id, and without one the service refuses", async () => {
    const { resource } = await shared.container.items.create({ pk: "a" });
    assert.equal((await reference(resource).read()).resource._rid, resource._rid);
    await refused(400, () => shared.container.items.create({ pk: "a" }, { disableAutomaticIdGeneration: true }));
  });

  const values = [
    0,
    -1,
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
    0.1,
    1e300,
    5e-324,
    Number.MAX_VALUE,
    1e21,
    123456789012345680000,
    "",
    "\u0000\u001f\u007f\u2028\ufeff",
    "😀",
    '"\\/\b\f\n\r\t',
    [],
    {},
    [[]],
    { "": "" },
    { a: { b: [null, false] } },
    null,
    true,
  ];
  for (const value of values) {
    test(`the value ${JSON.stringify(value).slice(0, 30)} comes back as it went`, async () => {
      const body = { id: fresh("item"), pk: "values", value };
      assert.deepEqual(content((await shared.container.items.create(body)).resource), body);
      assert.deepEqual(content((await reference(body).read()).resource), body);
    });
  }

  test("properties keep their order and names", async () => {
    const body = JSON.parse(
      `{"id": "${fresh("item")}", "z": 0, "a": 1, "$v": 2, "ü": 3, "a b": 4, "a.b": 5, "constructor": 6, "pk": "order"}`,
    );
    await shared.container.items.create(body);
    const read = content((await reference(body).read()).resource);
    assert.deepEqual(Object.keys(read), Object.keys(body));
    assert.deepEqual(read, body);
  });

  test("nesting has a limit", async () => {
    const nested = (depth) => ({
      id: fresh("item"),
      pk: "a",
      value: JSON.parse("[".repeat(depth) + "]".repeat(depth)),
    });
    await shared.container.items.create(nested(100));
    await refused(400, () => shared.container.items.create(nested(200)));
  });

  test("an item of two mebibytes is taken and one byte more is not", async () => {
    const largest = ofSize(2 * MEBIBYTE);
    await shared.container.items.create(largest);
    assert.deepEqual(content((await reference(largest).read()).resource), largest);
    const message = "Request size is too large";
    await refused(413, () => shared.container.items.create(ofSize(2 * MEBIBYTE + 1)), { message });
    await refused(413, () => shared.container.items.upsert(ofSize(2 * MEBIBYTE + 1)), { message });
    await refused(413, () => shared.container.items.create(ofSize(6 * MEBIBYTE)), { message });
  });

  for (const [name, id] of [...odd.map((one) => [one.name, one.id]), ...Object.entries(scripts)]) {
    test(`an id with ${name} lives a whole life`, async () => {
      const body = { id, pk: `ids of ${name}`, value: 1 };
      const created = await shared.container.items.create(body);
      assert.deepEqual(content(created.resource), body);
      assert.deepEqual((await reference(body).read()).resource, created.resource);
      assert.equal((await reference(body).replace({ ...body, value: 2 })).resource.value, 2);
      assert.equal((await shared.container.items.upsert({ ...body, value: 3 })).resource.value, 3);
      await refused(409, () => shared.container.items.create(body));
      assert.equal((await reference(body).delete()).statusCode, 204);
      assert.equal((await reference(body).read()).statusCode, 404);
    });
  }

  for (const id of ["a".repeat(1023), "ü".repeat(511)]) {
    test(`an id of ${Buffer.byteLength(id)} bytes works`, async () => {
      await shared.container.items.create({ id, pk: "long" });
      assert.equal((await reference({ id, pk: "long" }).read()).resource.id, id);
    });
  }

  for (const id of ["a".repeat(1024), "ü".repeat(600)]) {
    test(`an id of ${Buffer.byteLength(id)} bytes is refused`, async () => {
      const message = "Ensure to provide a unique non-empty string less than '1024' characters.";
      await refused(400, () => shared.container.items.create({ id, pk: "a" }), { message });
    });
  }
});
