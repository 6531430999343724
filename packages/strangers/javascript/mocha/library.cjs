// Mocha has its hooks as globals, as Jest does.
const { CosmosClient } = require("@azure/cosmos");
const { useServer } = require("astrarium");

const server = useServer();

it("useServer() finds Mocha's hooks", async () => {
  const client = new CosmosClient({ endpoint: server.endpoint, key: server.key });
  await client.databases.createIfNotExists({ id: "library" });
});
