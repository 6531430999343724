"use strict";

// Astrarium servers for tests and tools: started in milliseconds on a free port, gone without a trace.

const { spawn } = require("node:child_process");
const { createInterface } = require("node:readline");

/** The key that the service's emulator has, and a server that is told no other. */
const KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

const LOG_LINES_MAX = 1000;

/** Where the program is: what ASTRARIUM_BIN says, or the package of this platform. */
function binary() {
  if (process.env.ASTRARIUM_BIN) {
    return process.env.ASTRARIUM_BIN;
  }
  const name = `@astrarium/${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/bin/astrarium`);
  } catch {
    throw new Error(
      `the package ${name} is not installed: either there is none for this platform, or optional dependencies were left out ` +
        "(npm install --omit=optional). Set ASTRARIUM_BIN to where the program is.",
    );
  }
}

/** A running server, which ends with stop() or with this process, however that ends. */
class Server {
  #child;
  #ended;
  #log;

  constructor(child, ended, log, endpoint, key) {
    this.#child = child;
    this.#ended = ended;
    this.#log = log;
    this.endpoint = endpoint;
    this.key = key;
  }

  /** Endpoint and key in one text. */
  get connectionString() {
    return `AccountEndpoint=${this.endpoint};AccountKey=${this.key};`;
  }

  /** What the server has logged so far. */
  get log() {
    return this.#log.join("\n");
  }

  /** Ends the server in good order; kills it if that takes too long. */
  async stop(milliseconds = 10_000) {
    this.#child.ref();
    this.#child.stdin.end();
    const late = setTimeout(() => this.#child.kill("SIGKILL"), milliseconds);
    await this.#ended;
    clearTimeout(late);
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    await this.stop();
  }
}

/**
 * Starts a server on a free port of this machine, and waits until it is ready. Nothing is kept unless `data` names a folder; `args` are
 * those of `astrarium serve`. Fails with what the server said if it ends or is not ready in time.
 */
async function start({ data, key = KEY, args = [], milliseconds = 30_000 } = {}) {
  const storage = data === undefined ? ["--memory"] : ["--data", data];
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ASTRARIUM_")));
  env.ASTRARIUM_KEY = key;
  const words = ["serve", "--listen", "127.0.0.1:0", "--until-stdin-closes", ...storage, ...args];
  const child = spawn(binary(), words, { env, stdio: ["pipe", "pipe", "pipe"] });
  const log = [];
  const ended = new Promise((resolve) => child.once("close", resolve));
  // A server that is gone closes the pipe; that is no error of ours.
  child.stdin.on("error", () => {});
  const complaints = createInterface({ input: child.stderr });
  complaints.on("line", (line) => {
    log.push(line);
    log.splice(0, log.length - LOG_LINES_MAX);
  });
  const endpoint = await ready(child, ended, log, milliseconds);
  // The server must not keep a process alive that has nothing else to do.
  for (const handle of [child, child.stdin, child.stdout, child.stderr]) {
    handle.unref();
  }
  return new Server(child, ended, log, endpoint, key);
}

/** The endpoint that the server says it is ready at. */
async function ready(child, ended, log, milliseconds) {
  const late = setTimeout(() => child.kill("SIGKILL"), milliseconds);
  try {
    return await new Promise((resolve, reject) => {
      child.once("error", (error) => reject(new Error(`astrarium could not be started: ${error.message}`)));
      ended.then(() => reject(new Error(`astrarium did not start: ${log.join("\n") || "it ended without a word"}`)));
      createInterface({ input: child.stdout }).on("line", (line) => {
        const found = /AccountEndpoint=([^;]+);/.exec(line);
        if (found) {
          resolve(found[1]);
        }
      });
    });
  } finally {
    clearTimeout(late);
  }
}

/**
 * A server for the tests of one file: started before them and stopped after them, by the global hooks of the test runner (Jest, Mocha).
 * Vitest's are found by index.mjs; node:test's have to be given: `useServer({ before, after })`. Read its properties inside of tests.
 */
function useServer({ before, after, ...options } = {}) {
  const begin = before ?? globalThis.beforeAll ?? globalThis.before;
  const end = after ?? globalThis.afterAll ?? globalThis.after;
  if (typeof begin !== "function" || typeof end !== "function") {
    throw new Error(
      "no hooks of a test runner were found; pass them: useServer({ before, after }), in Vitest useServer({ before: beforeAll, after: afterAll })",
    );
  }
  let server;
  begin(async () => {
    server = await start(options);
  });
  end(async () => {
    await server?.stop();
  });
  const running = () => {
    if (!server) {
      throw new Error("the server is there only while tests run");
    }
    return server;
  };
  return {
    get endpoint() {
      return running().endpoint;
    },
    get key() {
      return running().key;
    },
    get connectionString() {
      return running().connectionString;
    },
    get log() {
      return running().log;
    },
  };
}

exports.KEY = KEY;
exports.Server = Server;
exports.binary = binary;
exports.start = start;
exports.useServer = useServer;
