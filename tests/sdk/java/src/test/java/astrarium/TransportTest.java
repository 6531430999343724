package astrarium;

import static astrarium.Fixture.SOMEWHERE;
import static astrarium.Fixture.answered;
import static astrarium.Fixture.document;
import static astrarium.Fixture.same;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.GatewayConnectionConfig;
import com.azure.cosmos.Http2ConnectionConfig;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** The SDK's other ways to connect. Its default, HTTP/1.1, is what all the other tests use. */
class TransportTest {
    @Test
    void http2() throws Exception {
        var config = new GatewayConnectionConfig().setHttp2ConnectionConfig(new Http2ConnectionConfig().setEnabled(true));
        try (Fixture fixture = Fixture.over("https");
            CosmosClient client = Fixture.builder(Server.shared(), "https").gatewayMode(config).buildClient()) {
            fixture.container("items");
            CosmosContainer items = client.getDatabase(fixture.database.getId()).getContainer("items");
            ObjectNode large = document("large", "x".repeat(1 << 20));
            answered(201, items.createItem(large));
            same(large, items.readItem("large", SOMEWHERE, ObjectNode.class).getItem());
        }
    }

    @Test
    void withoutEndpointDiscovery() throws Exception {
        try (Fixture fixture = Fixture.over("http");
            CosmosClient client = Fixture.builder(Server.shared(), "http").endpointDiscoveryEnabled(false).buildClient()) {
            fixture.container("items");
            CosmosContainer items = client.getDatabase(fixture.database.getId()).getContainer("items");
            answered(201, items.createItem(document("1", 1)));
        }
    }

    /** The SDK's default mode: refused at the first request about items, with what to write instead. */
    @Test
    void directModeIsToldToUseGatewayMode() throws Exception {
        try (Fixture fixture = Fixture.over("http");
            CosmosClient client = Fixture.builder(Server.shared(), "http").directMode().buildClient()) {
            fixture.container("items");
            CosmosContainer items = client.getDatabase(fixture.database.getId()).getContainer("items");
            toldToUseGatewayMode(() -> items.createItem(document("1", 1)));
            toldToUseGatewayMode(() -> items.readItem("1", SOMEWHERE, ObjectNode.class));
            toldToUseGatewayMode(() -> items
                .queryItems("SELECT * FROM c", new CosmosQueryRequestOptions(), ObjectNode.class)
                .stream()
                .count());
        }
    }

    private static void toldToUseGatewayMode(Executable call) {
        CosmosException refusal = assertTimeoutPreemptively(
            Duration.ofSeconds(30), () -> assertThrows(CosmosException.class, call));
        assertEquals(400, refusal.getStatusCode());
        assertTrue(refusal.getMessage().contains("CosmosClientBuilder.gatewayMode()"), refusal.getMessage());
    }
}
