// Vitest in its default configuration, which has no global hooks.
import { CosmosClient } from "@azure/cosmos";
import { useServer } from "astrarium";
import { expect, test } from "vitest";

const server = useServer();

test("useServer() finds Vitest's hooks", async () => {
  const client = new CosmosClient({ endpoint: server.endpoint, key: server.key });
  const { database } = await client.databases.createIfNotExists({ id: "library" });
  expect(database.id).toBe("library");
});
