// A quiet reporter: what failed or was left out with its reason, and one closing line.

import path from "node:path";
import { inspect } from "node:util";

/** The command that runs a test again, as `cargo xtask test` says it at its end. */
function repeat({ file = "", name }) {
  const pattern = `^${name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`.replaceAll("'", "'\\''");
  return `failed: tests/sdk/javascript/run '--test-name-pattern=${pattern}' ${path.basename(file)}\n`;
}

export default async function* reporter(events) {
  let passed = 0;
  let failed = 0;
  const again = [];
  const started = Date.now();
  for await (const { type, data } of events) {
    if (type === "test:stderr" || type === "test:stdout") {
      yield data.message;
    } else if (type === "test:pass" && data.skip !== undefined) {
      yield `left out: ${path.basename(data.file ?? "")} ${data.name}: ${data.skip}\n`;
    } else if (type === "test:pass" && data.details?.type !== "suite") {
      passed += 1;
    } else if (type === "test:fail") {
      const error = data.details?.error;
      // A suite fails with its tests, which are told by themselves.
      if (error?.failureType === "subtestsFailed") continue;
      failed += 1;
      const reason = error?.cause ?? error;
      again.push(repeat(data));
      yield `FAILED ${data.file ?? ""} ${data.name}\n${reason?.stack ?? inspect(reason)}\n`;
    }
  }
  yield* again;
  yield `${passed} passed, ${failed} failed in ${((Date.now() - started) / 1000).toFixed(1)} s\n`;
}
