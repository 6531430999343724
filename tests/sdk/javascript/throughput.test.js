// Throughput of containers and databases: manual, autoscale, shared, and moving between them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KEY, OLD_ETAG, fresh, ifMatch, makeContainer, overBothSchemes, refused } from "./support/check.js";

const MIGRATE = {
  autoscale: "x-ms-cosmos-migrate-offer-to-autopilot",
  manual: "x-ms-cosmos-migrate-offer-to-manual-throughput",
};

overBothSchemes((shared) => {
  const offerOf = async (target) => (await target.readOffer()).resource;
  const manual = async (target) => (await offerOf(target)).content.offerThroughput;
  const maximum = async (target) => (await offerOf(target)).content.offerAutopilotSettings?.maxThroughput;
  const replace = async (target, content, options) => {
    const offer = await offerOf(target);
    return shared.client.offer(offer.id).replace({ ...offer, content: { ...offer.content, ...content } }, options);
  };

  test("a container has four hundred by itself", async () => {
    const offer = await offerOf(shared.container);
    const { resource } = await shared.container.read();
    assert.equal(offer.content.offerThroughput, 400);
    assert.equal(offer.resource, resource._self);
    assert.equal(offer.offerResourceId, resource._rid);
    assert.equal(offer.offerVersion, "V2");
    assert.equal(offer._self, `offers/${offer.id}/`);
    const read = await shared.client.offer(offer.id).read();
    assert.deepEqual(read.resource, offer);
    assert.equal(read.headers["x-ms-offer-replace-pending"], "false");
    assert.ok(Number(read.headers["x-ms-cosmos-min-throughput"]) >= 400);
  });

  for (const throughput of [400, 1000, 10000]) {
    test(`manual throughput of ${throughput} is shown again`, async () => {
      assert.equal(await manual(await makeContainer(shared.database, { throughput })), throughput);
    });
  }

  for (const maxThroughput of [1000, 4000]) {
    test(`autoscale to ${maxThroughput} is shown again`, async () => {
      const container = await makeContainer(shared.database, { maxThroughput });
      assert.equal(await maximum(container), maxThroughput);
      assert.equal(await manual(container), maxThroughput / 10);
    });
  }

  for (const wrong of [
    { throughput: 100 },
    { throughput: 450 },
    { throughput: 1_000_100 },
    { maxThroughput: 100 },
    { maxThroughput: 1500 },
  ]) {
    test(`${JSON.stringify(wrong)} is refused`, async () => {
      await refused(400, () => makeContainer(shared.database, wrong));
    });
  }

  test("autoscale below the minimum names the minimum", async () => {
    const message = "Requested throughput -200 is less than required minimum throughput 1000";
    await refused(400, () => makeContainer(shared.database, { maxThroughput: -200 }), { message });
  });

  test("manual and autoscale together are refused", async () => {
    const body = { id: fresh("both"), partitionKey: { ...KEY }, maxThroughput: 4000 };
    await refused(400, () => shared.database.containers.create(body, { offerThroughput: 400 }));
  });

  test("manual throughput is replaced", async () => {
    const container = await makeContainer(shared.database);
    const response = await replace(container, { offerThroughput: 700 });
    assert.equal(response.statusCode, 200);
    assert.equal(response.resource.content.offerThroughput, 700);
    assert.equal(await manual(container), 700);
    for (const offerThroughput of [100, 450]) await refused(400, () => replace(container, { offerThroughput }));
    assert.equal(await manual(container), 700);
    await refused(412, () => replace(container, { offerThroughput: 800 }, ifMatch(OLD_ETAG)));
  });

  test("autoscale is replaced", async () => {
    const container = await makeContainer(shared.database, { maxThroughput: 4000 });
    await replace(container, { offerAutopilotSettings: { maxThroughput: 7000 } });
    assert.equal(await maximum(container), 7000);
    await refused(400, () => replace(container, { offerAutopilotSettings: { maxThroughput: 900 } }));
  });

  test("manual moves to autoscale and back, with the header only", async () => {
    const container = await makeContainer(shared.database);
    const autoscale = { offerThroughput: undefined, offerAutopilotSettings: { maxThroughput: 4000 } };
    await refused(400, () => replace(container, autoscale));
    await replace(container, {}, { initialHeaders: { [MIGRATE.autoscale]: "true" } });
    assert.ok((await maximum(container)) >= 1000);
    await replace(container, {}, { initialHeaders: { [MIGRATE.manual]: "true" } });
    assert.equal(await maximum(container), undefined);
    assert.ok((await manual(container)) >= 400);
  });

  test("a database has no throughput by itself", async () => {
    assert.equal(await offerOf(shared.database), undefined);
  });

  test("the throughput of a database is shared", async () => {
    const { database } = await shared.client.databases.create({ id: fresh("db"), throughput: 600 });
    assert.equal(await manual(database), 600);
    assert.equal(await offerOf(await makeContainer(database)), undefined);
    assert.equal(await manual(await makeContainer(database, { throughput: 500 })), 500);
    await replace(database, { offerThroughput: 800 });
    assert.equal(await manual(database), 800);
    await database.delete();
  });

  test("a database with autoscale", async () => {
    const { database } = await shared.client.databases.create({ id: fresh("db"), maxThroughput: 2000 });
    assert.equal(await maximum(database), 2000);
    await database.delete();
  });

  test("an offer goes with its container", async () => {
    const container = await makeContainer(shared.database);
    const offer = await offerOf(container);
    const listed = async () => (await shared.client.offers.readAll().fetchAll()).resources.map((one) => one.id);
    assert.ok((await listed()).includes(offer.id));
    await container.delete();
    await refused(404, () => shared.client.offer(offer.id).read());
    assert.ok(!(await listed()).includes(offer.id));
  });
});
