package astrarium;

import static astrarium.Fixture.SOMEWHERE;
import static astrarium.Fixture.answered;
import static astrarium.Fixture.document;
import static astrarium.Fixture.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosUserProperties;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;

/** The server is killed with -9 and started again on the same folder and port; the same client goes on. */
class DurabilityTest {
    @TempDir
    Path folder;

    @OverBothSchemes
    void killAndRestart(String scheme) throws Exception {
        try (Server server = Server.durable(folder.resolve(scheme));
            CosmosClient client = Fixture.builder(server, scheme).buildClient()) {
            client.createDatabase("durable");
            CosmosDatabase database = client.getDatabase("durable");
            database.createContainer("items", "/pk", ThroughputProperties.createManualThroughput(700));
            database.createUser(new CosmosUserProperties().setId("ada"));
            CosmosContainer container = database.getContainer("items");
            container.getScripts().createStoredProcedure(new CosmosStoredProcedureProperties("one", "function () {}"));
            var definition = container.read().getProperties();
            var kept = container.createItem(document("kept", 1));
            container.createItem(document("deleted", 1));
            container.deleteItem("deleted", SOMEWHERE, new CosmosItemRequestOptions());

            server.restart();
            var read = container.readItem("kept", SOMEWHERE, ObjectNode.class);
            assertEquals(kept.getItem(), answered(200, read).getItem());
            refused(404, () -> container.readItem("deleted", SOMEWHERE, ObjectNode.class));
            assertEquals(definition.getETag(), container.read().getProperties().getETag());
            assertEquals(700, container.readThroughput().getProperties().getManualThroughput());
            answered(200, database.getUser("ada").read());
            answered(200, container.getScripts().getStoredProcedure("one").read());

            var unchanged = new CosmosItemRequestOptions().setIfMatchETag(kept.getETag());
            var replaced = container.replaceItem(document("kept", 2), "kept", SOMEWHERE, unchanged);
            assertNotEquals(kept.getSessionToken(), answered(200, replaced).getSessionToken());
            var later = answered(201, container.createItem(document("later", 1)));
            assertNotEquals(kept.getItem().get("_rid"), later.getItem().get("_rid"), "a resource id was given twice");
        }
    }
}
