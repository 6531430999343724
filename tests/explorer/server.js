// Starts and stops the server under test: in memory, on a port of its own. The program is ASTRARIUM_BIN, or the release
// build of this repository.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import path from "node:path";
import { createHmac } from "node:crypto";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../../", import.meta.url));
const program = process.env.ASTRARIUM_BIN ?? path.join(repository, "target/release/astrarium");
const READY_MILLISECONDS_MAX = 300_000;
// What the servers log is for whoever looks into a failure, not for the output of the run.
const logs = path.join(process.env.EXPLORER_TEST_OUTPUT ?? fileURLToPath(new URL("results", import.meta.url)), "servers");
let servers = 0;

// Made for these tests and known to everybody who reads them.
export const KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/** Headers are ASCII: what is beyond is escaped, as JSON can. */
const keyHeader = (key) => JSON.stringify([key]).replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

export class Server {
  /** In a terminal, which `script` makes, a link to sign in with is printed. */
  static async start({ terminal = false, key = KEY } = {}) {
    const server = new Server();
    mkdirSync(logs, { recursive: true });
    server.log = path.join(logs, `${process.pid}-${++servers}.log`);
    const log = openSync(server.log, "w");
    const command = [program, "serve", "--listen", "127.0.0.1:0", "--memory", "--key", key];
    const inTerminal = ["script", "-qefc", `exec ${command.map((word) => `'${word}'`).join(" ")} 2>'${server.log}'`, "/dev/null"];
    const [name, ...words] = terminal ? inTerminal : command;
    server.process = spawn(name, words, { stdio: ["ignore", "pipe", log] });
    closeSync(log);
    server.ended = once(server.process, "exit");
    server.link = await server.printedAddress();
    server.pid = terminal ? Number(readFileSync(`/proc/${server.process.pid}/task/${server.process.pid}/children`, "utf8").trim()) : server.process.pid;
    server.origin = new URL(server.link).origin;
    return server;
  }

  /** Where the explorer is, in a terminal with a one-time sign-in link; printed when the server is ready. */
  printedAddress() {
    return new Promise((resolve, reject) => {
      let text = "";
      const late = setTimeout(() => reject(new Error(`no address was printed in time: ${text}`)), READY_MILLISECONDS_MAX);
      this.process.on("error", reject);
      this.process.on("exit", (code) => reject(new Error(`the server ended with code ${code}: ${text}${readFileSync(this.log, "utf8")}`)));
      this.process.stdout.on("data", (data) => {
        text += data;
        const link = /Explorer: (\S+)\s/.exec(text)?.[1];
        if (link) { clearTimeout(late); resolve(link); }
      });
    });
  }

  /** What the process has used so far; the tick of Linux is a hundredth of a second. */
  processorMilliseconds() {
    const fields = readFileSync(`/proc/${this.pid}/stat`, "utf8").split(") ")[1].split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  async stop() {
    this.process.kill("SIGTERM");
    await this.ended;
  }

  /** A request of the wire with the account's key, as another client would send it. */
  async wire(method, address, { body, headers = {} } = {}) {
    const steps = address.split("/").filter(Boolean);
    const single = steps.length % 2 === 0;
    const [type, link] = [single ? steps.at(-2) : steps.at(-1), (single ? steps : steps.slice(0, -1)).join("/")];
    const date = new Date().toUTCString();
    const payload = `${method.toLowerCase()}\n${type}\n${link}\n${date.toLowerCase()}\n\n`;
    const signature = createHmac("sha256", Buffer.from(KEY, "base64")).update(payload).digest("base64");
    const answer = await fetch(`${this.origin}/${steps.map(encodeURIComponent).join("/")}`, {
      method,
      headers: { authorization: encodeURIComponent(`type=master&ver=1.0&sig=${signature}`), "x-ms-date": date, "x-ms-version": "2020-07-15", "content-type": "application/json", ...headers },
      body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${address}: ${answer.status} ${text}`);
    return { text, headers: answer.headers, json: text ? JSON.parse(text) : null };
  }

  async database(id) {
    await this.wire("POST", "dbs", { body: { id } });
  }
  async container(database, id, key = "/pk", more = {}, headers = {}) {
    await this.wire("POST", `dbs/${database}/colls`, { body: { id, partitionKey: { paths: [key], kind: "Hash", version: 2 }, ...more }, headers });
  }
  async document(database, container, document, key) {
    return this.wire("POST", `dbs/${database}/colls/${container}/docs`, { body: document, headers: { "x-ms-documentdb-partitionkey": keyHeader(key), "x-ms-documentdb-is-upsert": "true" } });
  }
  async delete(database, container, id, key) {
    return this.wire("DELETE", `dbs/${database}/colls/${container}/docs/${id}`, { headers: { "x-ms-documentdb-partitionkey": keyHeader(key) } });
  }
  async read(database, container, id, key) {
    return this.wire("GET", `dbs/${database}/colls/${container}/docs/${id}`, { headers: { "x-ms-documentdb-partitionkey": keyHeader(key) } });
  }
}
