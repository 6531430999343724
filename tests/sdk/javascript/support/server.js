// Starts, kills and restarts the server under test.
//
// One Server is one process on a port of its own and, unless it keeps everything in memory, one folder. The program is
// ASTRARIUM_BIN, or the release build of this repository.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../../../../", import.meta.url));
const program = process.env.ASTRARIUM_BIN ?? path.join(repository, "target/release/astrarium");
const READY_MILLISECONDS_MAX = 300_000;

// Made for these tests and known to everybody who reads them.
export const PRIMARY_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
export const SECONDARY_KEY = "c2Vjb25kYXJ5LWtleS1vZi10aGUtZW5kLXRvLWVuZC10ZXN0cw==";
export const READ_ONLY_KEY = "cmVhZC1vbmx5LWtleS1vZi10aGUtZW5kLXRvLWVuZC10ZXN0cy4=";

export class Server {
  /** Without a folder the server keeps everything in memory. */
  static async start(folder) {
    const server = new Server();
    server.port = await freePort();
    server.storage = folder === undefined ? ["--memory"] : ["--data", folder];
    await server.start();
    return server;
  }

  endpoint(scheme) {
    return `${scheme}://localhost:${this.port}`;
  }

  async start() {
    const keys = ["--key", PRIMARY_KEY, "--secondary-key", SECONDARY_KEY, "--read-only-key", READ_ONLY_KEY];
    const flags = ["serve", "--listen", `127.0.0.1:${this.port}`, ...keys, ...this.storage];
    this.process = spawn(program, flags, { stdio: ["ignore", "ignore", "inherit"] });
    this.ended = once(this.process, "exit");
    const deadline = Date.now() + READY_MILLISECONDS_MAX;
    while (!(await this.isReady())) {
      if (this.process.exitCode !== null) throw new Error(`the server ended with code ${this.process.exitCode}`);
      if (Date.now() > deadline) throw new Error("the server was not ready in time");
      await sleep(20);
    }
  }

  async isReady() {
    try {
      const answer = await fetch(`http://127.0.0.1:${this.port}/ready`);
      await answer.arrayBuffer();
      return answer.ok;
    } catch {
      return false;
    }
  }

  /** The certificate authority that clients of this server trust. */
  async certificate() {
    const answer = await fetch(`http://127.0.0.1:${this.port}/_explorer/emulator.pem`);
    if (!answer.ok) throw new Error(`no certificate: ${answer.status}`);
    return answer.text();
  }

  /** SIGKILL: the process gets no chance to write anything more. */
  async kill() {
    this.process.kill("SIGKILL");
    await this.ended;
  }

  /** SIGTERM, as an operator would. */
  async stop() {
    this.process.kill("SIGTERM");
    await this.ended;
  }
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}
