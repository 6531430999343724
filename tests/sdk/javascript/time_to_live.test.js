// Time to live: what is accepted, and what expires when.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { KEY, makeContainer, overBothSchemes, refused } from "./support/check.js";

// Long enough that what is written is still there when it is looked at, also on a machine that does much else.
const SHORT = 10;
// The end of a test that hangs.
const DEADLINE_MILLISECONDS = 300_000;

const isThere = async (container, id) => (await container.item(id, "a").read()).statusCode === 200;

async function waitUntilGone(container, id) {
  const deadline = Date.now() + DEADLINE_MILLISECONDS;
  while (await isThere(container, id)) {
    assert.ok(Date.now() < deadline, `${id} is still there`);
    await sleep(100);
  }
}

overBothSchemes((shared) => {
  for (const ttl of [0, -2, 1.5, "10", null, true, 2147483648]) {
    test(`the time to live ${JSON.stringify(ttl)} of an item is refused`, async () => {
      const container = await makeContainer(shared.database, { defaultTtl: -1 });
      await refused(400, () => container.items.create({ id: "1", pk: "a", ttl }));
      assert.ok(!(await isThere(container, "1")));
    });
  }

  for (const ttl of [-1, 1000, 2147483647]) {
    test(`the time to live ${ttl} of an item is kept`, async () => {
      const container = await makeContainer(shared.database, { defaultTtl: -1 });
      await container.items.create({ id: "1", pk: "a", ttl });
      assert.equal((await container.item("1", "a").read()).resource.ttl, ttl);
    });
  }

  test("what expires and what stays", async () => {
    const own = await makeContainer(shared.database, { defaultTtl: -1 });
    const preset = await makeContainer(shared.database, { defaultTtl: SHORT });
    const off = await makeContainer(shared.database);
    for (const container of [own, preset, off]) {
      await container.items.create({ id: "plain", pk: "a" });
      await container.items.create({ id: "short", pk: "a", ttl: SHORT });
      await container.items.create({ id: "never", pk: "a", ttl: -1 });
      assert.ok(await isThere(container, "short"));
    }
    await waitUntilGone(own, "short");
    await waitUntilGone(preset, "plain");
    await waitUntilGone(preset, "short");
    const there = async (container) => Promise.all(["plain", "short", "never"].map((id) => isThere(container, id)));
    assert.deepEqual(await there(own), [true, false, true]);
    assert.deepEqual(await there(preset), [false, false, true]);
    assert.deepEqual(await there(off), [true, true, true]);
    await refused(404, () => own.item("short", "a").delete());
    assert.equal((await own.items.create({ id: "short", pk: "a" })).statusCode, 201);
    await off.replace({ id: off.id, partitionKey: { ...KEY }, defaultTtl: -1 });
    await waitUntilGone(off, "short");
  });
});
