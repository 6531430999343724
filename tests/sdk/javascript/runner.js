// Starts a server, runs all tests against it in a process that trusts its certificate, and stops it.
//
// Node reads the additional certificates (NODE_EXTRA_CA_CERTS) when a process starts, so the server has to be there
// before the tests' process is. The exit code is that of the tests.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { Server } from "./support/server.js";

const folder = await mkdtemp(path.join(os.tmpdir(), "astrarium-javascript-"));
const server = await Server.start();
try {
  const certificate = path.join(folder, "authority.pem");
  await writeFile(certificate, await server.certificate());
  const environment = { ...process.env, NODE_EXTRA_CA_CERTS: certificate, ASTRARIUM_TEST_PORT: String(server.port) };
  const flags = ["--test", "--test-reporter=./support/reporter.js", ...process.argv.slice(2)];
  const tests = spawn(process.execPath, flags, { env: environment, stdio: "inherit" });
  // Ended from outside, the tests end first, and then what they used.
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => tests.kill(signal));
  const [code] = await once(tests, "exit");
  process.exitCode = code ?? 1;
} finally {
  await server.stop();
  await rm(folder, { recursive: true });
}
