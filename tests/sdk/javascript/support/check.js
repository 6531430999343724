// Short words for what the tests say again and again.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { PRIMARY_KEY } from "./server.js";

const SYSTEM_PROPERTIES = ["_rid", "_self", "_etag", "_ts", "_attachments"];
export const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
export const KEY = { paths: ["/pk"], kind: "Hash", version: 2 };
/** For tests that make no sense where several servers take the place of one, as ASTRARIUM_TEST_SERVERS tells. */
export const needsOneServer = (reason) => ({ skip: process.env.ASTRARIUM_TEST_SERVERS !== undefined && reason });
const SCHEMES = (process.env.ASTRARIUM_TEST_SCHEMES ?? "http,https").split(",");
export const OLD_ETAG = '"00000000-0000-0000-0000-000000000000"';

export const cases = (name) => JSON.parse(readFileSync(new URL(`../../cases/${name}.json`, import.meta.url), "utf8"));

/** One of the scripts that the suites of all languages share. */
export const scriptText = (name) => readFileSync(new URL(`../../cases/scripts/${name}.js`, import.meta.url), "utf8");

let number = 0;
/** A name that no other test has. */
export const fresh = (prefix) => `${prefix}-${++number}-${randomUUID().slice(0, 8)}`;

export function endpoint(scheme) {
  const port = process.env.ASTRARIUM_TEST_PORT;
  if (port === undefined) throw new Error("start the tests with tests/sdk/javascript/run");
  return `${scheme}://localhost:${port}`;
}

/**
 * Declares the tests of a file for each scheme, which are http and https unless asked otherwise. `declare` gets what
 * they share: a client, a database of their own and a container with the partition key /pk, which are there when the
 * tests run.
 */
export function overBothSchemes(declare) {
  for (const scheme of SCHEMES) {
    describe(scheme, () => {
      const shared = { scheme, endpoint: endpoint(scheme) };
      before(async () => {
        shared.client = new CosmosClient({ endpoint: shared.endpoint, key: PRIMARY_KEY });
        shared.database = (await shared.client.databases.create({ id: fresh("database") })).database;
        shared.container = await makeContainer(shared.database);
      });
      after(async () => {
        await shared.database.delete();
        shared.client.dispose();
      });
      declare(shared);
    });
  }
}

export async function makeContainer(database, definition = {}) {
  const body = { id: fresh("container"), partitionKey: structuredClone(KEY), ...structuredClone(definition) };
  return (await database.containers.create(body)).container;
}

/** The act ends in an error of the service with this status, substatus and piece of text; gives the error. */
export async function refused(status, act, { substatus = 0, message = "" } = {}) {
  let error;
  let response;
  try {
    response = await act();
  } catch (thrown) {
    error = thrown;
  }
  if (error === undefined) {
    // A read of a missing item is not thrown but told.
    assert.equal(response?.statusCode, status, "the service did not refuse it");
    return response;
  }
  assert.equal(error.code, status, error.stack);
  assert.equal(Number(error.substatus ?? 0), substatus, error.message);
  assert.ok(error.message.includes(message), `"${message}" is not in: ${error.message}`);
  assert.ok(error.body.code && error.body.message);
  assert.match(error.headers["x-ms-activity-id"], GUID);
  assert.ok(Number(error.headers["x-ms-request-charge"]) >= 0);
  return error;
}

/** An item without the properties that the server adds. */
export const content = (resource) =>
  Object.fromEntries(Object.entries(resource).filter(([name]) => !SYSTEM_PROPERTIES.includes(name)));

export const ids = (resources) => resources.map((resource) => resource.id);

/** All pages of an iterator, as lists. */
export async function pages(iterator) {
  const all = [];
  while (iterator.hasMoreResults()) {
    const { resources } = await iterator.fetchNext();
    if (resources !== undefined) all.push(resources);
  }
  return all;
}

export const all = async (iterator) => (await iterator.fetchAll()).resources;

export const ifMatch = (condition) => ({ accessCondition: { type: "IfMatch", condition } });
export const ifNoneMatch = (condition) => ({ accessCondition: { type: "IfNoneMatch", condition } });

/** Stores a procedure under a name of its own; gives a function that runs it in the partition of a key. */
export async function procedure(container, body) {
  const { resource } = await container.scripts.storedProcedures.create({ id: fresh("procedure"), body });
  const stored = container.scripts.storedProcedure(resource.id);
  return async (key, ...parameters) => (await stored.execute(key, parameters)).resource;
}
