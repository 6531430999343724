// Functions of the page that need no page: what they write is read by others.
import { execFileSync } from "node:child_process";
import { expect, test } from "@playwright/test";
import { segment, session, wire } from "../../explorer/src/api.ts";
import { TARGETS, programOf, shell } from "../../explorer/src/copyas.ts";
import { parse } from "../../explorer/src/json.ts";
import { actionOf, patchBody } from "../../explorer/src/patch.ts";

test.beforeAll(() => { session.value = { role: "read-write", expires: 0, account: { endpoint: "http://127.0.0.1:8081/" } }; });

const HOSTILE = ["plain", "it's", "$(id) `id` \\ \"", "a\nb", "\u001b[2J\u0007", "tab\there", "\u007f\u0085\u009b1m", "\u202eright to left", "'\n; id #\\'", "\\\n", "é😀\u0001"];

test("a word of the shell is one word, and shows whatever is in it", () => {
  for (const value of HOSTILE) {
    const word = shell(value);
    expect(word, value).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e]/);
    expect(execFileSync("bash", ["-c", `printf '%s|' ${word}`], { encoding: "utf8" })).toBe(`${value}|`);
  }
});

test("methods that strangers send stay words", () => {
  // All of these letters may stand in a method of HTTP.
  for (const method of ["GET|id", "x`id`", "a&id", "$HOME", "it's", "!x"]) {
    const program = programOf("curl", { method, path: "dbs" });
    expect(program).toContain(`-X ${shell(method)} `);
    const said = execFileSync("bash", ["-c", `curl() { printf '<%s>' "$@"; }\n${program}`], { encoding: "utf8", env: { ...process.env, COSMOS_KEY: "eA==" } });
    expect(said).toMatch(/^<-sS><-X>/);
    expect(said).toContain(`<-X><${method}><http://127.0.0.1:8081/dbs>`);
  }
  expect(programOf("curl", { method: "DELETE", path: "dbs/a" })).toContain("curl -sS -X DELETE 'http");
  expect(programOf("curl", { method: "DELETE", path: "dbs/a/colls/.." })).toContain("--path-as-is");
});

test("no program has anything in it that a terminal or an editor does not show", () => {
  for (const value of HOSTILE)
    for (const target of TARGETS)
      for (const request of [
        { method: "DELETE", path: `dbs/${value}/colls/${value}/docs/${value}` },
        { method: "POST", path: `dbs/${value}/colls/${value}/docs`, sql: value, parameters: JSON.stringify([{ name: value, value }, { name: "@o", value: { [value]: [value] } }]) },
        { method: value, path: `${value}/${value}/${value}` },
      ]) {
        const program = programOf(target, request);
        expect(program.replace(/[\n\t]/g, ""), `${target} ${JSON.stringify(request)}`).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e]/);
        // A line break of the request would be one more line than the same program has without.
        const tame = programOf(target, { method: /^\w+$/.test(request.method) ? request.method : "X", path: request.path.replaceAll(value, "v"), sql: request.sql && "v", parameters: request.parameters && JSON.stringify([{ name: "v", value: "v" }, { name: "@o", value: { v: ["v"] } }]) });
        expect(program.split("\n").length, program).toBe(tame.split("\n").length);
      }
});

test("dots have no path, and nothing is deleted without its etag", async () => {
  for (const id of [".", ".."]) expect(() => segment(id)).toThrow(/cannot address/);
  expect([segment("..."), segment("a/b"), segment("..a")]).toEqual(["...", "a%2Fb", "..a"]);
  await expect(wire("DELETE", "dbs/a")).rejects.toThrow(/without its etag/);
  await expect(wire("DELETE", "dbs/a", { headers: { "if-match": "" } })).rejects.toThrow(/without its etag/);
});

test("an address names one of the actions, or none", () => {
  expect([actionOf("incr"), actionOf(undefined), actionOf("constructor"), actionOf('set","path":"/id","value":1},{"op":"remove')]).toEqual(["incr", "set", "set", "set"]);
  const body = patchBody("set", ["a/b", 'c"'], "12345678901234567890");
  expect(body).toBe('{"operations":[{"op":"set","path":"/a~1b/c\\"","value":12345678901234567890}]}');
  parse(patchBody('x","y":"z', ["a"], "1"));
  expect(JSON.parse(patchBody('x","y":"z', ["a"], "1")).operations[0].op).toBe('x","y":"z');
});
