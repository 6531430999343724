package astrarium;

import static astrarium.Fixture.document;
import static astrarium.Fixture.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ChangeFeedPolicy;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.io.TempDir;

/** The change feed pulled by the application: starts, scopes, pages, continuations, both modes. */
class ChangeFeedTest {
    private static final int COUNT = 24;

    @TempDir
    Path folder;

    private static PartitionKey key(int number) {
        return new PartitionKey("key-" + number % 6);
    }

    private static ObjectNode item(int number) {
        return document(Map.of("id", "item-" + number, "pk", "key-" + number % 6, "number", number));
    }

    /** A container of one range or of four. */
    private static CosmosContainer container(Fixture fixture, CosmosContainerProperties properties, int ranges) {
        var throughput = ThroughputProperties.createManualThroughput(ranges == 1 ? 400 : 20_000);
        fixture.database.createContainer(properties, throughput);
        CosmosContainer container = fixture.database.getContainer(properties.getId());
        assertEquals(ranges, container.getFeedRanges().size());
        return container;
    }

    private static CosmosContainer filled(Fixture fixture, String id, int ranges) {
        CosmosContainer container = container(fixture, new CosmosContainerProperties(id, "/pk"), ranges);
        IntStream.range(0, COUNT).forEach(number -> container.createItem(item(number)));
        return container;
    }

    /** What a reader found until there was nothing new, and where he goes on. */
    private record Read(List<List<ObjectNode>> pages, List<String> continuations) {
        List<ObjectNode> items() {
            return pages.stream().flatMap(List::stream).toList();
        }

        List<Integer> numbers() {
            return items().stream().map(item -> item.get("number").asInt()).toList();
        }

        List<String> ids() {
            return items().stream().map(item -> item.get("id").asText()).toList();
        }

        String continuation() {
            return continuations.get(continuations.size() - 1);
        }
    }

    private static Read read(CosmosContainer container, CosmosChangeFeedRequestOptions options) {
        List<List<ObjectNode>> pages = new ArrayList<>();
        List<String> continuations = new ArrayList<>();
        for (var page : container.queryChangeFeed(options, ObjectNode.class).iterableByPage()) {
            assertTrue(page.getRequestCharge() > 0, "request charge");
            assertNotNull(page.getContinuationToken(), "continuation");
            continuations.add(page.getContinuationToken());
            if (!page.getResults().isEmpty()) {
                pages.add(page.getResults());
            }
        }
        return new Read(pages, continuations);
    }

    private static CosmosChangeFeedRequestOptions beginning(FeedRange range) {
        return CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range);
    }

    private static CosmosChangeFeedRequestOptions now(FeedRange range) {
        return CosmosChangeFeedRequestOptions.createForProcessingFromNow(range);
    }

    private static CosmosChangeFeedRequestOptions continuation(String token) {
        return CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(token);
    }

    private static List<Integer> all() {
        return IntStream.range(0, COUNT).boxed().toList();
    }

    private static List<Integer> sorted(List<Integer> numbers) {
        return numbers.stream().sorted().toList();
    }

    @OverBothSchemes
    void fromTheBeginning(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            for (int ranges : new int[] {1, 4}) {
                CosmosContainer container = filled(fixture, "ranges-" + ranges, ranges);
                for (int size : new int[] {1, 5, 100}) {
                    Read read = read(container, beginning(FeedRange.forFullRange()).setMaxItemCount(size));
                    assertEquals(all(), sorted(read.numbers()));
                    assertTrue(read.pages().stream().allMatch(page -> page.size() <= size));
                }
                assertTrue(read(container, beginning(FeedRange.forFullRange())).items().get(0).get("_lsn").isIntegralNumber());
                Read ofKey = read(container, beginning(FeedRange.forLogicalPartition(key(2))).setMaxItemCount(3));
                assertEquals(List.of(2, 8, 14, 20), ofKey.numbers());
                List<Integer> parts = new ArrayList<>();
                for (FeedRange range : container.getFeedRanges()) {
                    parts.addAll(read(container, beginning(range).setMaxItemCount(2)).numbers());
                    // A feed range may be kept as text.
                    assertEquals(read(container, beginning(range)).ids(), read(container, beginning(FeedRange.fromString(range.toString()))).ids());
                }
                assertEquals(all(), sorted(parts));
            }
        }
    }

    @OverBothSchemes
    void onFromEveryContinuation(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = filled(fixture, "items", 4);
            for (FeedRange scope : List.of(FeedRange.forFullRange(), FeedRange.forLogicalPartition(key(1)), container.getFeedRanges().get(0))) {
                List<Integer> whole = sorted(read(container, beginning(scope)).numbers());
                List<Integer> seen = new ArrayList<>();
                for (var page : container.queryChangeFeed(beginning(scope).setMaxItemCount(3), ObjectNode.class).iterableByPage()) {
                    page.getResults().forEach(item -> seen.add(item.get("number").asInt()));
                    List<Integer> together = new ArrayList<>(seen);
                    together.addAll(read(container, continuation(page.getContinuationToken())).numbers());
                    assertEquals(whole, sorted(together));
                }
            }
        }
    }

    @OverBothSchemes
    void fromNow(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            for (int ranges : new int[] {1, 4}) {
                CosmosContainer container = filled(fixture, "ranges-" + ranges, ranges);
                Read everything = read(container, now(FeedRange.forFullRange()));
                Read ofKey = read(container, now(FeedRange.forLogicalPartition(key(1))));
                assertEquals(List.of(), everything.items());
                assertEquals(List.of(), ofKey.items());
                container.createItem(item(25));
                container.createItem(item(26));
                container.upsertItem(item(1).put("number", 100));
                container.deleteItem("item-2", key(2), new CosmosItemRequestOptions());
                Read later = read(container, continuation(everything.continuation()));
                assertEquals(List.of(25, 26, 100), sorted(later.numbers()));
                assertEquals(List.of(25, 100), read(container, continuation(ofKey.continuation())).numbers());
                assertEquals(List.of(), read(container, continuation(later.continuation())).items());
            }
        }
    }

    @OverBothSchemes
    void fromATime(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = filled(fixture, "items", 4);
            Thread.sleep(1100);
            Instant time = Instant.now();
            Thread.sleep(1100);
            IntStream.range(COUNT, COUNT + 6).forEach(number -> container.createItem(item(number)));
            var whole = CosmosChangeFeedRequestOptions.createForProcessingFromPointInTime(time, FeedRange.forFullRange());
            assertEquals(List.of(24, 25, 26, 27, 28, 29), sorted(read(container, whole).numbers()));
            var ofKey = CosmosChangeFeedRequestOptions.createForProcessingFromPointInTime(time, FeedRange.forLogicalPartition(key(3)));
            assertEquals(List.of(27), read(container, ofKey).numbers());
            var always = CosmosChangeFeedRequestOptions.createForProcessingFromPointInTime(Instant.EPOCH, FeedRange.forFullRange());
            assertEquals(COUNT + 6, read(container, always).items().size());
        }
    }

    @OverBothSchemes
    void allVersionsAndDeletes(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            for (int ranges : new int[] {1, 4}) {
                var properties = new CosmosContainerProperties("ranges-" + ranges, "/pk");
                properties.setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
                CosmosContainer container = container(fixture, properties, ranges);
                assertEquals(Duration.ofMinutes(10),
                    container.read().getProperties().getChangeFeedPolicy().getRetentionDurationForAllVersionsAndDeletesPolicy());
                Read start = read(container, now(FeedRange.forFullRange()).allVersionsAndDeletes());
                assertEquals(List.of(), start.items());
                container.createItem(item(1));
                container.upsertItem(item(1).put("number", 2));
                container.deleteItem("item-1", key(1), new CosmosItemRequestOptions());
                List<ObjectNode> changes = read(container, continuation(start.continuation()).allVersionsAndDeletes()).items();
                assertEquals(List.of("create", "replace", "delete"),
                    changes.stream().map(change -> change.at("/metadata/operationType").asText()).toList());
                assertEquals(List.of(1, 2), changes.stream().limit(2).map(change -> change.at("/current/number").asInt()).toList());
                assertTrue(changes.stream().allMatch(change -> change.at("/previous/number").isMissingNode()), "previous images are for accounts that ask");
                assertEquals("item-1", changes.get(2).at("/metadata/id").asText());
                assertEquals(changes.get(0).at("/metadata/lsn"), changes.get(1).at("/metadata/previousImageLSN"));
                // The same container in the other mode: nothing is left.
                assertEquals(List.of(), read(container, beginning(FeedRange.forFullRange())).items());
            }
            CosmosContainer plain = fixture.container("plain");
            refused(400, () -> read(plain, now(FeedRange.forFullRange()).allVersionsAndDeletes()));
        }
    }

    @OverBothSchemes
    void aContinuationOutlivesAKill(String scheme) throws Exception {
        try (Server server = Server.durable(folder.resolve(scheme));
            CosmosClient client = Fixture.builder(server, scheme).buildClient()) {
            client.createDatabase("durable");
            client.getDatabase("durable").createContainer("items", "/pk", ThroughputProperties.createManualThroughput(20_000));
            CosmosContainer container = client.getDatabase("durable").getContainer("items");
            IntStream.range(0, COUNT).forEach(number -> container.createItem(item(number)));
            var pages = container.queryChangeFeed(beginning(FeedRange.forFullRange()).setMaxItemCount(2), ObjectNode.class).iterableByPage();
            var first = pages.iterator().next();
            String end = read(container, beginning(FeedRange.forFullRange())).continuation();

            server.restart();
            List<Integer> together = new ArrayList<>(first.getResults().stream().map(item -> item.get("number").asInt()).toList());
            together.addAll(read(container, continuation(first.getContinuationToken())).numbers());
            assertEquals(all(), sorted(together));
            assertEquals(List.of(), read(container, continuation(end)).items());
            container.createItem(item(99));
            assertEquals(List.of(99), read(container, continuation(end)).numbers());
        }
    }
}
