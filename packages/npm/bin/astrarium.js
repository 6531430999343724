#!/usr/bin/env node
"use strict";

// Runs the program with the same arguments, streams and signals, and ends as it ends.
const { spawn } = require("node:child_process");
const { binary } = require("../lib/index.js");

let program;
try {
  program = binary();
} catch (error) {
  console.error(`astrarium: ${error.message}`);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`astrarium: ${program} could not be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
