// The report: one line per test that did not pass at once, and at the very end what failed and why, since whoever looks at a
// run of a pipeline sees its last lines only.
import path from "node:path";

const LINES_MAX = 7;
const SHOWN_MAX = 3;
const plain = (text) => text.replace(/\u001b\[[0-9;]*m/g, "");

/** What was expected and what was there; the rest is in the log of the run above. */
function reason(result) {
  const errors = result?.errors ?? [];
  const text = plain(errors.map((error) => error.message ?? String(error.value)).join("\n")) || `ended as ${result?.status}`;
  const lines = text.split("\n").map((line) => line.trimEnd()).filter(Boolean);
  const at = errors.map((error) => /[^/\s(]+\.test\.js:\d+/.exec(error.stack ?? "")?.[0]).find(Boolean);
  return [...lines.slice(0, LINES_MAX), ...(at ? [`at ${at}`] : [])].map((line) => `      ${line.slice(0, 240)}`).join("\n");
}
const nameOf = (test) => `${path.basename(test.location.file)}:${test.location.line} ${test.title}`;

export default class Report {
  printsToStdio() { return true; }
  onBegin(config, suite) {
    this.suite = suite;
    this.began = Date.now();
    this.errors = [];
    console.log(`${suite.allTests().length} tests, ${config.workers} workers`);
  }
  onStdOut(chunk) { process.stdout.write(chunk); }
  onStdErr(chunk) { process.stderr.write(chunk); }
  onTestEnd(test, result) {
    if (result.status === test.expectedStatus || result.status === "skipped") return;
    const text = result.errors.map((error) => plain(error.stack ?? error.message ?? String(error.value))).join("\n");
    console.log(`${result.status}, try ${result.retry + 1}, ${(result.duration / 1000).toFixed(1)} s: ${nameOf(test)}\n${text}\n`);
  }
  onError(error) { this.errors.push(plain(error.stack ?? error.message ?? String(error.value))); }
  onEnd({ status }) {
    const of = { expected: [], skipped: [], flaky: [], unexpected: [] };
    for (const test of this.suite?.allTests() ?? []) of[test.outcome()].push(test);
    for (const test of of.skipped) console.log(`left out: ${nameOf(test)}: ${test.annotations.find((a) => a.type === "skip")?.description ?? "not run"}`);
    for (const test of of.flaky.slice(0, SHOWN_MAX)) console.log(`flaky, passed at try ${test.results.length}: ${nameOf(test)}\n${reason(test.results[0])}`);
    for (const error of this.errors) console.log(error);
    for (const test of of.unexpected.slice(0, SHOWN_MAX)) console.log(`why, of ${test.results.length} tries: ${nameOf(test)}\n${reason(test.results.at(-1))}`);
    for (const test of of.unexpected) console.log(`FAILED: ${nameOf(test)}`);
    for (const test of of.unexpected) console.log(`failed: tests/explorer/run ${path.basename(test.location.file)}:${test.location.line}`);
    const seconds = ((Date.now() - (this.began ?? Date.now())) / 1000).toFixed(0);
    console.log(`explorer: ${status}: ${of.expected.length} passed, ${of.unexpected.length} failed, ${of.flaky.length} flaky, ${of.skipped.length} skipped in ${seconds} s`);
  }
}
