// What "Copy as" gives is put into a file and run, with the SDK that the tests of that language have installed before
// (tests/sdk/<language>/run); where it is not there, the test says so and is skipped. C# is looked at as text only.
import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { KEY } from "./server.js";
import { expect, test, unique } from "./fixture.js";

const sdks = process.env.EXPLORER_SDKS ?? fileURLToPath(new URL("../sdk", import.meta.url));
// A compiler on a busy machine takes its time.
const RUN_MILLISECONDS_MAX = 600_000;
const run = async (program, args, cwd, environment = {}) =>
  (await promisify(execFile)(program, args, { cwd, timeout: RUN_MILLISECONDS_MAX, env: { ...process.env, COSMOS_KEY: KEY, ...environment } })).stdout;
const installed = async (program, ...args) => run(program, args, os.tmpdir()).then(() => true, () => false);

// What Maven resolved for the suite of that language; whatever else is in its folder does not matter.
const classPath = path.join(sdks, "java/target/classpath.txt");

const python = path.join(sdks, "python/.venv/bin/python");
const packages = path.join(sdks, "javascript/node_modules");
const LANGUAGES = {
  Python: {
    missing: async () => !existsSync(path.join(sdks, "python/.venv/installed.txt")) && "tests/sdk/python/run has not made its environment",
    run: async (folder, text) => { writeFileSync(path.join(folder, "request.py"), text); return run(python, ["-B", "request.py"], folder); },
  },
  JavaScript: {
    missing: async () => !existsSync(path.join(packages, ".installed-lock.json")) && "tests/sdk/javascript/run has not installed its packages",
    run: async (folder, text) => { writeFileSync(path.join(folder, "request.mjs"), text); symlinkSync(packages, path.join(folder, "node_modules")); return run("node", ["request.mjs"], folder); },
  },
  Go: {
    // Nothing is downloaded here: what tests/sdk/go/run needed is in the cache, or the test is skipped.
    missing: async () => !(await installed("go", "version")) ? "go is not installed" : !(await run("go", ["list", "-deps", "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"], path.join(sdks, "go"), { GOPROXY: "off" }).catch(() => "")) && "tests/sdk/go/run has not downloaded its modules",
    run: async (folder, text) => {
      for (const name of ["go.mod", "go.sum"]) copyFileSync(path.join(sdks, "go", name), path.join(folder, name));
      writeFileSync(path.join(folder, "main.go"), text);
      return run("go", ["run", "."], folder, { GOPROXY: "off" });
    },
  },
  Java: {
    missing: async () => !(await installed("java", "-version")) ? "java is not installed" : !existsSync(classPath) && "tests/sdk/java/run has not resolved its packages",
    run: async (folder, text) => { writeFileSync(path.join(folder, "Request.java"), text); return run("java", ["-cp", readFileSync(classPath, "utf8").trim(), "Request.java"], folder); },
  },
};

const SQL = 'SELECT c.id, c.text\nFROM c WHERE c.pk = @pk AND c.n = @n AND c.yes = @yes AND c.nothing = @nothing AND c.inner = @inner AND c.text != "\\u0041\\"$x\'"';
const VALUES = { pk: `it's "quoted" \\ $HOME \`x\` é`, n: 7.5, yes: true, nothing: null, inner: { list: [1, null, false, "z"] } };

for (const [language, { missing, run }] of Object.entries(LANGUAGES)) {
  test(`a query copied as ${language} runs, whatever is in its parameters`, async ({ page, server, open }, info) => {
    const absent = await missing();
    test.skip(!!absent, String(absent));
    const name = unique("copied");
    await server.database(name);
    await server.container(name, "c");
    await server.document(name, "c", { id: "found", ...VALUES, text: "plain" }, VALUES.pk);
    await server.document(name, "c", { id: "other", ...VALUES, n: 8, text: "plain" }, VALUES.pk);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await open(`#/query/${name}/c?${new URLSearchParams({ sql: SQL, parameters: JSON.stringify(Object.entries(VALUES).map(([key, value]) => ({ name: `@${key}`, value: JSON.stringify(value) }))) })}`);
    await expect(page.getByRole("textbox", { name: "Query text" })).toBeVisible();
    await page.getByRole("button", { name: "Copy as" }).click();
    await page.getByRole("menuitem", { name: `Copy as ${language}`, exact: true }).click();
    await expect(page.getByText(`Program for ${language} copied.`)).toBeVisible();
    const program = await page.evaluate(() => navigator.clipboard.readText());
    expect(program).not.toContain(KEY);
    const folder = info.outputPath("program");
    mkdirSync(folder, { recursive: true });
    const printed = await run(folder, program);
    expect(printed).toContain("found");
    expect(printed).not.toContain("other");
  });
}
