package astrarium;

import static astrarium.Fixture.SOMEWHERE;
import static astrarium.Fixture.answered;
import static astrarium.Fixture.document;
import static astrarium.Fixture.same;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.GatewayConnectionConfig;
import com.azure.cosmos.Http2ConnectionConfig;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;

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
}
