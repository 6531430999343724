// Stored procedures, triggers and user-defined functions as resources; running them is in the files of their own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { all, fresh, ids, makeContainer, overBothSchemes, refused } from "./support/check.js";

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

    test(`each ${one} is listed and found`, async () => {
      const { scripts } = await makeContainer(shared.database);
      const names = ["a", "b", "c", "d", "e"];
      for (const id of names) await scripts[many].create({ id, ...definition });
      assert.deepEqual(ids(await all(scripts[many].readAll({ maxItemCount: 2 }))), names);
      const query = { query: "SELECT * FROM r WHERE r.id = @id", parameters: [{ name: "@id", value: "d" }] };
      assert.deepEqual(ids(await all(scripts[many].query(query))), ["d"]);
    });

    test(`a ${one} that is a function of this program`, async () => {
      const { scripts } = shared.container;
      const body = { ...definition, id: fresh(one), body: function entry(x) { return x + 1; } };
      const { resource } = await scripts[many].create({ ...body });
      assert.equal(resource.body, body.body.toString());
    });

    test(`a ${one} that is no JavaScript is refused`, async () => {
      const { scripts } = shared.container;
      const broken = { id: fresh(one), ...definition, body: "function ( {" };
      const message = "Encountered exception while compiling Javascript. Exception = SyntaxError";
      await refused(400, () => scripts[many].create(broken), { substatus: 0xffff, message });
      await refused(404, () => scripts[one](broken.id).read());
    });
  }
});
