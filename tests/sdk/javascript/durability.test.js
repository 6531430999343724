// What was acknowledged is there after the server was killed, and a client that was connected goes on.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import https from "node:https";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { PRIMARY_KEY, Server } from "./support/server.js";
import { all, ids, makeContainer, needsOneServer, refused } from "./support/check.js";

for (const scheme of ["http", "https"]) {
  describe(scheme, needsOneServer("the server is killed and started again on its folder"), () => {
    let folder;
    let server;
    let client;
    before(async () => {
      folder = await mkdtemp(path.join(os.tmpdir(), "astrarium-durable-"));
      server = await Server.start(path.join(folder, "data"));
      // This server has an authority of its own, which must outlive the kills as well.
      const agent =
        scheme === "https" ? new https.Agent({ keepAlive: true, ca: await server.certificate() }) : undefined;
      client = new CosmosClient({ endpoint: server.endpoint(scheme), key: PRIMARY_KEY, agent });
    });
    after(async () => {
      client.dispose();
      await server.stop();
      await rm(folder, { recursive: true });
    });

    const restart = async () => {
      await server.kill();
      await server.start();
    };

    test("everything survives a kill", async () => {
      const { database } = await client.databases.create({ id: "d", throughput: 600 });
      const container = await makeContainer(database, { defaultTtl: -1, maxThroughput: 2000 });
      const items = [];
      for (let number = 0; number < 30; number++) {
        items.push(
          (await container.items.create({ id: String(number), pk: number % 3, text: "ü".repeat(number) })).resource,
        );
      }
      await container.item("0", 0).delete();
      const { user } = await database.users.create({ id: "u" });
      const { resource: permission } = await user.permissions.create({
        id: "p",
        permissionMode: "All",
        resource: `dbs/d/colls/${container.id}`,
      });
      await container.scripts.triggers.create({
        id: "t",
        body: "function () {}",
        triggerType: "Post",
        triggerOperation: "All",
      });
      const before = [
        (await database.read()).resource,
        (await container.read()).resource,
        (await user.read()).resource,
      ];

      await restart();

      assert.deepEqual(
        [(await database.read()).resource, (await container.read()).resource, (await user.read()).resource],
        before,
      );
      for (const item of items.slice(1))
        assert.deepEqual((await container.item(item.id, item.pk).read()).resource, item);
      assert.equal((await container.item("0", 0).read()).statusCode, 404);
      assert.equal((await database.readOffer()).resource.content.offerThroughput, 600);
      assert.equal((await container.readOffer()).resource.content.offerAutopilotSettings.maxThroughput, 2000);
      assert.equal((await user.permission("p").read()).resource._rid, permission._rid);
      assert.deepEqual(ids(await all(container.scripts.triggers.readAll())), ["t"]);
      const later = (await container.items.create({ id: "0", pk: 0 })).resource;
      assert.ok(items.every((item) => item._rid !== later._rid && item._etag !== later._etag));
    });

    test("a kill in the middle of writes loses nothing acknowledged", async () => {
      const { database } = await client.databases.create({ id: "busy" });
      const container = await makeContainer(database);
      const acknowledged = [];
      let killed = false;
      const writer = async (name) => {
        for (let number = 0; !killed; number++) {
          const id = `${name}-${number}`;
          try {
            await container.items.upsert({ id, pk: name });
          } catch {
            return;
          }
          acknowledged.push([id, name]);
        }
      };
      const writers = ["a", "b", "c", "d"].map(writer);
      while (acknowledged.length < 100) await new Promise(setImmediate);
      await server.kill();
      killed = true;
      await server.start();
      await Promise.all(writers);
      for (const [id, pk] of acknowledged) assert.equal((await container.item(id, pk).read()).statusCode, 200);
    });

    test("a deleted container stays deleted", async () => {
      const { database } = await client.databases.create({ id: "deleted" });
      const container = await makeContainer(database);
      await container.delete();
      await restart();
      await refused(404, () => container.read());
      assert.deepEqual(await all(database.containers.readAll()), []);
    });
  });
}
