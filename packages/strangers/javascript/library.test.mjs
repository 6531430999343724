// A project of somebody who installed the archives: the helper, the function and the command, with the official SDK.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { CosmosClient } from "@azure/cosmos";
import { binary, start, useServer } from "astrarium";

const server = useServer({ before, after });

test("the helper's server answers the SDK", async () => {
  const client = new CosmosClient({ endpoint: server.endpoint, key: server.key });
  const { database } = await client.databases.createIfNotExists({ id: "library" });
  const { container } = await database.containers.createIfNotExists({ id: "books", partitionKey: "/author" });
  await container.items.upsert({ id: "1", author: "Lem", title: "Solaris" });
  const { resources } = await container.items.query("SELECT VALUE c.title FROM c").fetchAll();
  assert.deepEqual(resources, ["Solaris"]);
});

// How soon one is ready is shown, and judged by the benches only: it depends on what else the machine does.
test("stop ends a server", async () => {
  const times = [];
  for (let round = 0; round < 5; round += 1) {
    const began = performance.now();
    const own = await start();
    times.push(performance.now() - began);
    await own.stop();
    await assert.rejects(fetch(own.endpoint));
  }
  console.log(`javascript: a server in ${Math.min(...times).toFixed(0)} ms, the slowest of 5 in ${Math.max(...times).toFixed(0)} ms`);
});

test("refusals are told", async () => {
  await assert.rejects(start({ args: ["--consistency", "whatever"] }), /--consistency/);
});

test("a process that forgets its server ends, and the server with it", async () => {
  const code = "import { start } from 'astrarium'; const s = await start(); console.log(s.endpoint);";
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code]);
  await gone(stdout.trim());
});

test("a killed parent leaves no server", async () => {
  const code = "import { start } from 'astrarium'; const s = await start(); console.log(s.endpoint); setInterval(() => {}, 1000);";
  const parent = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  const [endpoint] = await once(createInterface({ input: parent.stdout }), "line");
  parent.kill("SIGKILL");
  await gone(endpoint);
});

test("the command", async () => {
  const { stdout } = await promisify(execFile)("npx", ["--no-install", "astrarium", "--version"]);
  assert.match(stdout, /^astrarium /);
  assert.ok(existsSync(binary()) && binary().includes("node_modules"), binary());
  const { version } = JSON.parse(readFileSync("node_modules/astrarium/package.json", "utf8"));
  assert.equal(stdout.trim().split(" ")[1], version);
});

async function gone(endpoint) {
  for (const deadline = Date.now() + 20_000; Date.now() < deadline; await sleep(20)) {
    if (await fetch(endpoint).then(() => false, () => true)) {
      return;
    }
  }
  assert.fail(`the server at ${endpoint} outlived whoever started it`);
}
