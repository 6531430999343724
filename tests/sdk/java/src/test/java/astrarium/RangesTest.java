package astrarium;

import static astrarium.Fixture.document;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Containers of several key ranges: the SDK's own routing, reads of many items and sessions over them. */
class RangesTest {
    private static final int COUNT = 40;

    private static String id(int number) {
        return "key " + number;
    }

    private static PartitionKey key(int number) {
        return new PartitionKey(id(number));
    }

    private static CosmosContainer spread(Fixture fixture) {
        var throughput = ThroughputProperties.createManualThroughput(30_000);
        fixture.database.createContainer(new CosmosContainerProperties("spread", "/pk"), throughput);
        CosmosContainer container = fixture.database.getContainer("spread");
        assertEquals(5, container.getFeedRanges().size());
        return container;
    }

    /** Writes an item of every key; gives the last session token of every range by the range's id. */
    private static Map<String, String> write(CosmosContainer container) {
        Map<String, String> tokens = new TreeMap<>();
        for (int number = 0; number < COUNT; number++) {
            var written = container.upsertItem(document(Map.of("id", id(number), "pk", id(number), "n", number)));
            String served = written.getResponseHeaders().get("x-ms-documentdb-partitionkeyrangeid");
            assertTrue(written.getSessionToken().startsWith(served + ":"), written.getSessionToken());
            tokens.put(served, written.getSessionToken());
        }
        return tokens;
    }

    @OverBothSchemes
    void everyOperationFindsItsRange(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = spread(fixture);
            assertEquals(5, write(container).size());
            for (int number = 0; number < COUNT; number++) {
                assertEquals(number, container.readItem(id(number), key(number), ObjectNode.class).getItem().get("n").asInt());
                container.deleteItem(id(number), key(number), new CosmosItemRequestOptions());
            }
        }
    }

    @OverBothSchemes
    void manyItemsOfAllRanges(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = spread(fixture);
            write(container);
            var wanted = IntStream.range(0, COUNT + 1)
                .mapToObj(number -> new CosmosItemIdentity(key(number), id(number)))
                .toList();
            var read = container.readMany(wanted, JsonNode.class).getResults();
            assertEquals(COUNT, read.size());
            var found = read.stream().map(item -> item.get("n").asInt()).collect(Collectors.toCollection(TreeSet::new));
            assertEquals(COUNT, found.size());
        }
    }

    @OverBothSchemes
    void sessionsOfAllRanges(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = spread(fixture);
            Map<String, String> tokens = write(container);
            for (int number = 0; number < COUNT; number++) {
                var read = container.readItem(id(number), key(number), ObjectNode.class);
                String home = read.getResponseHeaders().get("x-ms-documentdb-partitionkeyrangeid");
                assertEquals(tokens.get(home), read.getSessionToken());
                var options = new CosmosItemRequestOptions().setSessionToken(tokens.get(home));
                assertEquals(200, container.readItem(id(number), key(number), options, ObjectNode.class).getStatusCode());
            }
        }
    }
}
