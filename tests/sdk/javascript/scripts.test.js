// Stored procedures, triggers and user-defined functions as resources; running them is another matter.

import assert from "node:assert/strict";
import { test } from "node:test";
import { all, fresh, ids, overBothSchemes, refused } from "./support/check.js";

const KINDS = [
  { many: "storedProcedures", one: "storedProcedure", definition: { body: "function () {}" } },
  {
    many: "triggers",
    one: "trigger",
    definition: { body: "function () {}", triggerType: "Pre", triggerOperation: "All" },
  },
  { many: "userDefinedFunctions", one: "userDefinedFunction", definition: { body: "function (x) { return x; }" } },
];

overBothSchemes((shared) => {
  for (const { many, one, definition } of KINDS) {
    test(`the life of a ${one}`, async () => {
      const { scripts } = shared.container;
      const body = { id: fresh(one), ...definition };
      const created = await scripts[many].create(body);
      assert.equal(created.statusCode, 201);
      for (const [name, value] of Object.entries(body)) assert.equal(created.resource[name], value);
      const script = scripts[one](body.id);
      assert.deepEqual((await script.read()).resource, created.resource);
      await refused(409, () => scripts[many].create(body));
      const replaced = await script.replace({ ...body, body: "function () { return 1; }" });
      assert.equal(replaced.resource._rid, created.resource._rid);
      assert.notEqual(replaced.resource._etag, created.resource._etag);
      assert.ok(ids(await all(scripts[many].readAll())).includes(body.id));
      assert.equal((await script.delete()).statusCode, 204);
      await refused(404, () => script.read());
    });
  }
});
