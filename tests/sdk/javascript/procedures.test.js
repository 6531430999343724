// Stored procedures at work: parameters, results, errors, transactions of one partition, going on where one ended.

import assert from "node:assert/strict";
import { test } from "node:test";
import { all, content, fresh, ids, makeContainer, overBothSchemes } from "./support/check.js";
import { procedure, refused, scriptText } from "./support/check.js";

const ECHO = "function (...given) { getContext().getResponse().setBody(given); }";
const CREATE = `
function create(names, key) {
  const collection = getContext().getCollection();
  for (const id of names) collection.createDocument(collection.getSelfLink(), { id, pk: key, n: 0 });
}`;
const EXECUTING = "Encountered exception while executing Javascript. Exception = ";

overBothSchemes((shared) => {
  const stored = async (partitionKey) =>
    ids(await all(shared.container.items.query("SELECT c.id FROM c ORDER BY c.id", { partitionKey })));
  const make = (body) => procedure(shared.container, body);

  test("parameters and results of every type", async () => {
    const echo = await make(ECHO);
    const lists = [
      [],
      ["text", "", 'quotes " and \\', "line\u2028separator \u0000", "käse 漢字 😀"],
      [0, -1, 1.5, 1e300, Number.MAX_SAFE_INTEGER],
      [true, false, null],
      [[], {}, [[1], [2, [3]]], { a: { b: [null, { c: 1 }] } }],
      ["x".repeat(100_000)],
    ];
    for (const list of lists) assert.deepEqual(await echo("a", ...list), list);
    const give = await make("function (value) { getContext().getResponse().setBody(value); }");
    for (const value of ["text", 0, -2.5, true, false, [1, [2]], { a: { b: null } }, "käse 😀"]) {
      assert.deepEqual(await give("a", value), value);
    }
  });

  test("a procedure written as a function of this program", async () => {
    const { resource } = await shared.container.scripts.storedProcedures.create({
      id: fresh("procedure"),
      body: function hello(name) {
        const context = getContext();
        context.getResponse().setBody(`Hello, ${name}`);
      },
    });
    const script = shared.container.scripts.storedProcedure(resource.id);
    const response = await script.execute("a", "World");
    assert.equal(response.statusCode, 200);
    assert.equal(response.resource, "Hello, World");
    assert.ok(response.requestCharge > 0);
    await script.replace({ id: resource.id, body: "function () { getContext().getResponse().setBody(2); }" });
    assert.equal((await script.execute("a")).resource, 2);
    await script.delete();
    await refused(404, () => script.execute("a"));
  });

  test("a result in pieces, and none", async () => {
    const none = await make("function () {}");
    assert.ok(!(await none("a")));
    const pieces = await make("function () { for (const n of [0, 1, 2]) __.response.appendValue('Body', n); }");
    assert.equal(await pieces("a"), "012");
  });

  test("the log", async () => {
    const { resource } = await shared.container.scripts.storedProcedures.create({
      id: fresh("procedure"),
      body: "function () { console.log('the %s is %s', 'answer', 42); getContext().getResponse().setBody(1); }",
    });
    const script = shared.container.scripts.storedProcedure(resource.id);
    const log = async (options) =>
      (await script.execute("a", [], options)).headers["x-ms-documentdb-script-log-results"];
    assert.equal(decodeURIComponent(await log({ enableScriptLogging: true })).trim(), "the answer is 42");
    assert.equal(await log({ enableScriptLogging: false }), undefined);
    assert.equal(await log({}), undefined);
  });

  test("errors", async () => {
    const cases = [
      ["function () { throw new Error('out of luck'); }", 0, "Error: out of luck"],
      ["function () { throw 'a text'; }", 0, "a text"],
      ["function () { throw new Error(404, 'no such shelf'); }", 404, "no such shelf"],
      ["function () { throw new Error(ErrorCodes.Conflict, 'twice'); }", 409, "twice"],
      ["function () { nothing.at.all; }", 0, "ReferenceError"],
      ["function () { getContext().abort(new Error('enough')); }", 0, "enough"],
      ["function () { __.readDocument(__.getAltLink() + '/docs/none'); }", 404, ""],
    ];
    for (const [body, substatus, fragment] of cases) {
      const run = await make(body);
      const error = await refused(400, () => run("a"), { substatus, message: EXECUTING });
      assert.ok(error.message.includes(fragment), error.message);
    }
  });

  test("all or nothing", async () => {
    const [create, pk] = [await make(CREATE), fresh("key")];
    await create(pk, ["a", "b"], pk);
    await refused(400, () => create(pk, ["c", "a", "d"], pk), { substatus: 409, message: EXECUTING });
    assert.deepEqual(await stored(pk), ["a", "b"]);
    const endings = ["throw new Error('no');", "getContext().abort('no');"];
    for (const ending of endings) {
      const run = await make(`
      function (key) {
        __.deleteDocument(__.getAltLink() + "/docs/a");
        __.upsertDocument(__.getSelfLink(), { id: "b", pk: key, n: 1 }, (error) => { ${ending} });
      }`);
      await refused(400, () => run(pk, pk));
      assert.deepEqual(await stored(pk), ["a", "b"]);
      assert.equal((await shared.container.item("b", pk).read()).resource.n, 0);
    }
  });

  test("an error that is caught undoes nothing", async () => {
    const pk = fresh("key");
    await shared.container.items.create({ id: "there", pk });
    const run = await make(`
    function (key) {
      const numbers = [];
      const note = (error) => { numbers.push(error ? error.number : 0); __.response.setBody(numbers); };
      __.createDocument(__.getSelfLink(), { id: "there", pk: key }, note);
      __.createDocument(__.getSelfLink(), { id: "new", pk: key }, note);
      __.readDocument(__.getAltLink() + "/docs/none", note);
      __.replaceDocument(__.getAltLink() + "/docs/there", { id: "there", pk: key }, { etag: '"old"' }, note);
    }`);
    assert.deepEqual(await run(pk, pk), [409, 0, 404, 412]);
    assert.deepEqual(await stored(pk), ["new", "there"]);
  });

  test("promises", async () => {
    const pk = fresh("key");
    const run = await make(`
    async function (key, count) {
      const create = (body) => new Promise((resolve, reject) => {
        const done = (error, made) => (error ? reject(error) : resolve(made));
        if (!__.createDocument(__.getSelfLink(), body, done)) reject(new Error("not accepted"));
      });
      const made = [];
      for (let number = 0; number < count; number++) made.push((await create({ id: String(number), pk: key })).id);
      try { await create({ id: "0", pk: key }); } catch (error) { made.push(error.number); }
      __.response.setBody(made);
    }`);
    assert.deepEqual(await run(pk, pk, 3), ["0", "1", "2", 409]);
    assert.deepEqual(await stored(pk), ["0", "1", "2"]);
  });

  test("only the partition of the request", async () => {
    const [mine, other] = [fresh("key"), fresh("key")];
    const create = await make(CREATE);
    await create(mine, ["1"], mine);
    await create(other, ["2", "3"], other);
    await assert.rejects(() => create(mine, ["4"], other), { code: 400 });
    const list = await make(`
    function () {
      __.queryDocuments(__.getSelfLink(), "SELECT VALUE c.id FROM c", (error, found) => {
        if (error) throw error;
        __.response.setBody(found);
      });
    }`);
    assert.deepEqual(await list(mine), ["1"]);
    assert.deepEqual(await list(fresh("key")), []);
    assert.deepEqual(await stored(other), ["2", "3"]);
  });

  test("partitions of every type, and none", async () => {
    const container = await makeContainer(shared.database);
    const create = await procedure(container, "function (item) { __.createDocument(__.getSelfLink(), item); }");
    for (const pk of [1, 1.5, true, null, "", undefined]) {
      const item = JSON.parse(JSON.stringify({ id: "1", pk }));
      await create(pk, item);
      assert.deepEqual(content((await container.item("1", pk).read()).resource), item);
    }
  });

  test("hierarchical keys", async () => {
    const container = await makeContainer(shared.database, {
      partitionKey: { paths: ["/a", "/b"], kind: "MultiHash", version: 2 },
    });
    const create = await procedure(container, "function (item) { __.createDocument(__.getSelfLink(), item); }");
    await create(["x", 1], { id: "1", a: "x", b: 1 });
    assert.equal((await container.item("1", ["x", 1]).read()).resource.b, 1);
    await assert.rejects(() => create(["x", 1], { id: "2", a: "x", b: 2 }), { code: 400 });
  });

  test("a bulk import goes on until all is there", async () => {
    const bulkImport = await make(scriptText("bulk_import"));
    for (const most of [undefined, 1, 7]) {
      const pk = fresh("key");
      const items = Array.from({ length: 20 }, (_, number) => ({ id: String(100 + number), pk }));
      let rest = items;
      while (rest.length > 0) {
        const made = await bulkImport(pk, rest, ...(most === undefined ? [] : [most]));
        assert.ok(made > 0 && made <= (most ?? rest.length));
        rest = rest.slice(made);
      }
      assert.deepEqual(await stored(pk), ids(items));
      await refused(400, () => bulkImport(pk, [{ id: "new", pk }, items[0]]), { substatus: 409 });
      assert.equal((await stored(pk)).length, 20);
    }
  });

  test("a bulk delete goes on until all is gone", async () => {
    const [create, bulkDelete] = [await make(CREATE), await make(scriptText("bulk_delete"))];
    for (const [page, most] of [[100], [3], [4, 6]]) {
      const pk = fresh("key");
      const names = Array.from({ length: 20 }, (_, number) => String(100 + number));
      await create(pk, names, pk);
      let [deleted, more] = [0, true];
      while (more) {
        const answer = await bulkDelete(pk, "SELECT * FROM c WHERE c.id >= '105'", page, ...(most ? [most] : []));
        deleted += answer.deleted;
        more = answer.more;
      }
      assert.equal(deleted, 15);
      assert.deepEqual(await stored(pk), names.slice(0, 5));
    }
  });

  test("many at once lose no update", async () => {
    const pk = fresh("key");
    await shared.container.items.create({ id: "counter", pk, n: 0 });
    const increment = await make(`
    function () {
      __.readDocument(__.getAltLink() + "/docs/counter", (error, item) => {
        if (error) throw error;
        item.n += 1;
        __.replaceDocument(item._self, item, { etag: item._etag });
        __.response.setBody(item.n);
      });
    }`);
    const seen = await Promise.all(Array.from({ length: 50 }, () => increment(pk)));
    assert.deepEqual(
      seen.toSorted((a, b) => a - b),
      Array.from({ length: 50 }, (_, number) => number + 1),
    );
    assert.equal((await shared.container.item("counter", pk).read()).resource.n, 50);
  });

  test("a procedure inserts a book and counts it, or nothing happens", async () => {
    const [insertBook, pk] = [await make(scriptText("insert_book")), fresh("key")];
    await shared.container.items.create({ id: "ada", pk, countOfBooks: 0 });
    const insert = (id, ...authors) => insertBook(pk, { id, pk, authors: authors.map((author) => ({ id: author })) });
    assert.equal((await insert("one", "ada")).id, "one");
    await refused(400, () => insert("two", "ada", "nobody"), { substatus: 404 });
    await refused(400, () => insert("one", "ada"), { substatus: 409 });
    await Promise.all(Array.from({ length: 20 }, (_, number) => insert(`more ${number}`, "ada")));
    assert.equal((await shared.container.item("ada", pk).read()).resource.countOfBooks, 21);
    assert.equal((await stored(pk)).length, 22);
  });
});
