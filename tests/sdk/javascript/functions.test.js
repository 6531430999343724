// User-defined functions in queries: every clause, any page size, one partition or all, one range or five.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { all, fresh, makeContainer, overBothSchemes, pages, refused } from "./support/check.js";

const FUNCTIONS = {
  tax: "function (income) { return income < 1000 ? income * 0.1 : income < 10000 ? income * 0.2 : income * 0.4; }",
  twice: "function (x) { return x * 2; }",
  is_even: "(n) => n % 2 === 0",
  kind: "function (x) { return x === null ? 'null' : Array.isArray(x) ? 'array' : typeof x; }",
  nothing: "function () {}",
  throws: "function () { throw new Error('no figures today'); }",
};
const INCOMES = [500, 1000, 2000, 5000, 10000, 12000, 20000, 50000];

overBothSchemes((shared) => {
  for (const throughput of [400, 30000]) {
    describe(`with ${throughput} units`, () => {
      let people;
      before(async () => {
        people = await makeContainer(shared.database, { throughput });
        for (const [id, body] of Object.entries(FUNCTIONS)) {
          await people.scripts.userDefinedFunctions.create({ id, body });
        }
        for (const [n, income] of INCOMES.entries()) {
          await people.items.create({ id: `${n}`, pk: `key ${n % 5}`, n, income });
        }
      });
      const query = (text, options) => all(people.items.query(text, options));

      for (const maxItemCount of [1, 3, undefined]) {
        test(`filters, projections, orders and aggregates in pages of ${maxItemCount ?? "any size"}`, async () => {
          const check = async (text, expected) => {
            const found = (await pages(people.items.query(text, { maxItemCount }))).flat();
            assert.deepEqual(text.includes("ORDER BY") ? found : found.sort((a, b) => a - b), expected, text);
          };
          await check("SELECT VALUE c.n FROM c WHERE udf.tax(c.income) > 3000", [4, 5, 6, 7]);
          await check("SELECT VALUE c.n FROM c WHERE udf.is_even(c.n) AND c.income >= 2000", [2, 4, 6]);
          await check("SELECT VALUE udf.twice(udf.twice(c.n)) FROM c WHERE NOT udf.is_even(c.n)", [4, 12, 20, 28]);
          await check("SELECT VALUE udf.twice(c.n) FROM c WHERE udf.tax(c.income) < 5000 ORDER BY c.n DESC", [
            10, 8, 6, 4, 2, 0,
          ]);
          await check("SELECT TOP 2 VALUE udf.twice(c.n) FROM c WHERE udf.is_even(c.n) ORDER BY c.n", [0, 4]);
          await check("SELECT VALUE SUM(udf.twice(c.n)) FROM c", [56]);
          await check("SELECT VALUE COUNT(1) FROM c WHERE udf.is_even(c.n)", [4]);
          await check("SELECT VALUE MAX(udf.twice(c.n)) FROM c", [14]);
        });
      }

      test("arguments and results of every type", async () => {
        const kinds = { string: "text", number: 1.5, boolean: true, null: null, array: [1], object: { a: 1 } };
        for (const [kind, value] of Object.entries(kinds)) {
          const text = { query: "SELECT VALUE udf.kind(@value) FROM c", parameters: [{ name: "@value", value }] };
          assert.deepEqual(await query(text, { partitionKey: "key 4" }), [kind]);
        }
        assert.deepEqual(await query("SELECT c.n, udf.nothing(c) AS nothing FROM c WHERE c.n = 4"), [{ n: 4 }]);
        // A function of what is missing is not called.
        assert.deepEqual(await query("SELECT VALUE udf.kind(c.missing) FROM c"), []);
      });

      test("a function that fails, or does not exist, fails its query alone", async () => {
        await refused(400, () => query("SELECT VALUE udf.throws(c) FROM c"), { message: "no figures today" });
        await refused(400, () => query("SELECT VALUE udf.none(c) FROM c"));
        assert.deepEqual(await query("SELECT VALUE COUNT(1) FROM c"), [8]);
      });
    });
  }

  test("a replaced function is the new one", async () => {
    const container = await makeContainer(shared.database);
    await container.items.create({ id: fresh("item"), pk: "a" });
    const give = async () => (await all(container.items.query("SELECT VALUE udf.f() FROM c")))[0];
    await container.scripts.userDefinedFunctions.create({ id: "f", body: "function () { return 1; }" });
    assert.equal(await give(), 1);
    const stored = container.scripts.userDefinedFunction("f");
    await stored.replace({ id: "f", body: "function () { return 2; }" });
    assert.equal(await give(), 2);
    await stored.delete();
    await refused(400, give);
  });
});
