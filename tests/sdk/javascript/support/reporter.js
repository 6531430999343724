// A quiet reporter: what failed with its reason, and one closing line.

export default async function* reporter(events) {
  let passed = 0;
  let failed = 0;
  const started = Date.now();
  for await (const { type, data } of events) {
    if (type === "test:stderr" || type === "test:stdout") yield data.message;
    if (data?.details?.type === "suite" || (type !== "test:pass" && type !== "test:fail")) continue;
    if (type === "test:pass") {
      passed += data.nesting > 0 || data.details?.type === "test" ? 1 : 0;
    } else {
      failed += 1;
      const { error } = data.details;
      yield `FAILED ${data.file ?? ""} ${data.name}\n${(error.cause ?? error).stack ?? error.message}\n`;
    }
  }
  yield `${passed} passed, ${failed} failed in ${((Date.now() - started) / 1000).toFixed(1)} s\n`;
}
