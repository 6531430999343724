// Client encryption keys, encryption policies, and items that only their clients can read.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CosmosClient, EncryptionAlgorithm, EncryptionType, KeyEncryptionAlgorithm } from "@azure/cosmos";
import { PRIMARY_KEY } from "./support/server.js";
import { fresh, overBothSchemes, refused } from "./support/check.js";

/** Stands in for a key vault: wraps by turning every byte around. */
const resolver = {
  encryptionKeyResolverName: "TURN",
  wrapKey: async (_id, _algorithm, key) => Buffer.from(key.map((byte) => byte ^ 0xff)),
  unwrapKey: async (_id, _algorithm, key) => Buffer.from(key.map((byte) => byte ^ 0xff)),
};
const wrapped = (value) => ({
  type: resolver.encryptionKeyResolverName,
  name: "master",
  value,
  algorithm: KeyEncryptionAlgorithm.RSA_OAEP,
});

overBothSchemes((shared) => {
  let client;
  let database;
  before(() => {
    client = new CosmosClient({
      endpoint: shared.endpoint,
      key: PRIMARY_KEY,
      clientEncryptionOptions: { keyEncryptionKeyResolver: resolver },
    });
    database = client.database(shared.database.id);
  });
  after(() => client.dispose());

  const createKey = (id) =>
    database.createClientEncryptionKey(id, EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256, wrapped("v1"));
  const policy = (...paths) => ({
    policyFormatVersion: 2,
    includedPaths: paths.map(([path, clientEncryptionKeyId, encryptionType]) => ({
      path,
      clientEncryptionKeyId,
      encryptionType,
      encryptionAlgorithm: EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256,
    })),
  });

  test("the life of a key", async () => {
    const id = fresh("key");
    const created = await createKey(id);
    assert.equal(created.statusCode, 201);
    const read = await database.readClientEncryptionKey(id);
    assert.deepEqual(read.clientEncryptionKeyProperties, created.clientEncryptionKeyProperties);
    assert.deepEqual(read.clientEncryptionKeyProperties.encryptionKeyWrapMetadata, wrapped("v1"));
    await refused(409, () => createKey(id));
    const rewrapped = await database.rewrapClientEncryptionKey(id, wrapped("v2"));
    assert.equal(rewrapped.clientEncryptionKeyProperties.encryptionKeyWrapMetadata.value, "v2");
    assert.notEqual(rewrapped.clientEncryptionKeyProperties.etag, created.clientEncryptionKeyProperties.etag);
    await refused(404, () => database.readClientEncryptionKey(fresh("missing")));
  });

  test("an encrypted item is plain to its client and secret to others", async () => {
    const key = fresh("key");
    await createKey(key);
    const clientEncryptionPolicy = policy(
      ["/secret", key, EncryptionType.DETERMINISTIC],
      ["/hidden", key, EncryptionType.RANDOMIZED],
    );
    const created = await database.containers.create({
      id: fresh("encrypted"),
      partitionKey: { paths: ["/pk"] },
      clientEncryptionPolicy,
    });
    assert.deepEqual(created.resource.clientEncryptionPolicy, clientEncryptionPolicy);
    const container = created.container;
    await container.initializeEncryption();
    const body = { id: "1", pk: "a", secret: "word", hidden: { deep: [1, true] }, open: "text" };
    await container.items.create(structuredClone(body));
    const mine = (await container.item("1", "a").read()).resource;
    assert.deepEqual([mine.secret, mine.hidden, mine.open], [body.secret, body.hidden, body.open]);
    const others = (await shared.database.container(container.id).item("1", "a").read()).resource;
    assert.notEqual(others.secret, body.secret);
    assert.equal(others.open, body.open);
  });

  test("a policy with a key that is not there is refused", async () => {
    const clientEncryptionPolicy = policy(["/secret", "unknown", EncryptionType.DETERMINISTIC]);
    const body = { id: fresh("encrypted"), partitionKey: { paths: ["/pk"] }, clientEncryptionPolicy };
    const message = "ClientEncryptionKey with id '[unknown]' does not exist.";
    await refused(400, () => database.containers.create(body), { message });
  });
});
