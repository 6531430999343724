package astrarium;

import static astrarium.Fixture.SOMEWHERE;
import static astrarium.Fixture.STALE;
import static astrarium.Fixture.answered;
import static astrarium.Fixture.document;
import static astrarium.Fixture.refused;
import static astrarium.Fixture.same;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The life of an item: every write and read, conditions, refusals, odd ids, session tokens, time to live, lists.
 *
 * <p>The SDK lists items by a query only. SELECT * FROM c is a list; readAllItems and readMany, which
 * write conditions in SQL, are not tested here.
 */
class ItemTest {
    private static CosmosItemRequestOptions options() {
        return new CosmosItemRequestOptions();
    }

    private static ObjectNode read(CosmosContainer container, String id) {
        return answered(200, container.readItem(id, SOMEWHERE, ObjectNode.class)).getItem();
    }

    @OverBothSchemes
    void life(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            refused(404, () -> container.readItem("1", SOMEWHERE, ObjectNode.class));

            ObjectNode first = document("1", "first");
            var created = answered(201, container.createItem(first));
            same(first, created.getItem());
            assertEquals(created.getETag(), created.getItem().get("_etag").asText());
            refused(409, () -> container.createItem(first));
            var read = answered(200, container.readItem("1", SOMEWHERE, ObjectNode.class));
            assertEquals(created.getItem(), read.getItem());
            assertEquals(created.getETag(), read.getETag());

            ObjectNode second = document("1", "second");
            var replaced = answered(200, container.replaceItem(second, "1", SOMEWHERE, options()));
            same(second, replaced.getItem());
            assertNotEquals(created.getETag(), replaced.getETag());
            assertEquals(created.getItem().get("_rid"), replaced.getItem().get("_rid"));

            ObjectNode third = document("1", "third");
            same(third, answered(200, container.upsertItem(third)).getItem());
            answered(204, container.deleteItem("1", SOMEWHERE, options()));
            refused(404, () -> container.deleteItem("1", SOMEWHERE, options()));
            refused(404, () -> container.replaceItem(third, "1", SOMEWHERE, options()));
            same(first, answered(201, container.upsertItem(first)).getItem());
            // The SDK takes id and partition key out of the item itself.
            answered(204, container.deleteItem(first, options()));
        }
    }

    @OverBothSchemes
    void withoutContent(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            var minimal = options().setContentResponseOnWriteEnabled(false);
            ObjectNode item = document("1", 1);
            for (var response : List.of(
                answered(201, container.createItem(item, minimal)),
                answered(200, container.replaceItem(item, "1", SOMEWHERE, minimal)),
                answered(200, container.upsertItem(item, minimal)))) {
                assertNull(response.getItem());
                assertNotNull(response.getETag());
            }
        }
    }

    @OverBothSchemes
    void conditions(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            ObjectNode item = document("1", 1);
            String first = container.createItem(item).getETag();
            var stale = options().setIfMatchETag(STALE);
            refused(412, () -> container.replaceItem(item, "1", SOMEWHERE, stale));
            refused(412, () -> container.upsertItem(item, stale));
            refused(412, () -> container.deleteItem("1", SOMEWHERE, stale));

            var unchanged = container.readItem("1", SOMEWHERE, options().setIfNoneMatchETag(first), ObjectNode.class);
            answered(304, unchanged);
            assertNull(unchanged.getItem());
            String second = container.replaceItem(item, "1", SOMEWHERE, options().setIfMatchETag(first)).getETag();
            refused(412, () -> container.replaceItem(item, "1", SOMEWHERE, options().setIfMatchETag(first)));
            var changed = container.readItem("1", SOMEWHERE, options().setIfNoneMatchETag(first), ObjectNode.class);
            same(item, answered(200, changed).getItem());
            answered(204, container.deleteItem("1", SOMEWHERE, options().setIfMatchETag(second)));
            // On an item that is not there, the condition of an upsert has nothing to compare with.
            answered(201, container.upsertItem(item, stale));
        }
    }

    @OverBothSchemes
    void refusals(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            for (Map<String, ?> bad : List.of(
                Map.of("id", "", "pk", "somewhere"),
                Map.of("id", 1, "pk", "somewhere"),
                Map.of("id", "x".repeat(1024), "pk", "somewhere"),
                Map.of("id", "1", "pk", "somewhere", "ttl", 0))) {
                refused(400, () -> container.createItem(document(bad), SOMEWHERE, options()));
            }
            refused(413, () -> container.createItem(document("1", "x".repeat(2 << 20))));

            // The SDK reads the container again and retries once, then gives up with what it was told.
            ObjectNode elsewhere = document(Map.of("id", "1", "pk", "elsewhere"));
            refused(400, 1001, () -> container.createItem(elsewhere, SOMEWHERE, options()));
            container.createItem(document("1", 1));
            refused(400, 1001, () -> container.replaceItem(elsewhere, "1", SOMEWHERE, options()));
            refused(404, 0, () -> container.readItem("1", new PartitionKey("elsewhere"), ObjectNode.class));
            refused(404, () -> fixture.database.getContainer("absent").createItem(document("1", 1)));
        }
    }

    /**
     * Every id that the SDK can send. It composes characters in paths but not in signatures, so "a\\u0301" is not here. It
     * creates items with either slash in their ids, but refuses to make a path of the one and drops the other from it.
     */
    @OverBothSchemes
    void ids(String scheme) throws Exception {
        List<String> ids = List.of(
            "plain", "with space", " leading", "trailing ", "trailing  ", "%", "%20", "%2F", "%E9%B1%80", "a+b", "a&b=c", "a;b,c",
            "question?mark", "?", "hash#mark", "=.:~+-@()^${}[]!_", "'single' \"double\"", "tab\ttab", "line\nline",
            "carriage\rreturn", "Ωμέγα", "鱀", "ไทย", "हिन्दी", "عربى", "👩🏽‍🚀", "á", "docs", "dbs",
            "x".repeat(255), "é".repeat(511));
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            // All of them are there at once, so that two ids which are mixed up cannot pass.
            ids.forEach(id -> answered(201, container.createItem(document(id, id))));
            for (String id : ids) {
                same(document(id, id), read(container, id));
                ObjectNode changed = document(id, "changed " + id);
                answered(200, container.replaceItem(changed, id, SOMEWHERE, options()));
                same(changed, read(container, id));
            }
            for (String id : ids) {
                answered(204, container.deleteItem(id, SOMEWHERE, options()));
                refused(404, () -> container.readItem(id, SOMEWHERE, ObjectNode.class));
            }
        }
    }

    @OverBothSchemes
    void values(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            ObjectNode sent = document("1", Map.of(
                "true", true, "integer", 9007199254740991L, "negative", -1.5e-300, "big", Double.MAX_VALUE,
                "text", "\u0000 \" \\ / \u2028 👩🏽‍🚀", "empty", List.of(Map.of(), List.of(), ""), "", "no name", "a/b", 1));
            sent.putNull("null");
            same(sent, container.createItem(sent).getItem());
            same(sent, read(container, "1"));
            ObjectNode large = document("large", "x".repeat((2 << 20) - 1000));
            answered(201, container.createItem(large));
            same(large, read(container, "large"));
        }
    }

    @OverBothSchemes
    void sessionTokens(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            String first = container.createItem(document("1", 1)).getSessionToken();
            String second = container.upsertItem(document("1", 2)).getSessionToken();
            assertNotEquals(first, second);
            for (String token : List.of(first, second)) {
                var read = container.readItem("1", SOMEWHERE, options().setSessionToken(token), ObjectNode.class);
                assertEquals(second, read.getSessionToken());
                same(document("1", 2), read.getItem());
            }
        }
    }

    @OverBothSchemes
    void consistencyLevels(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            container.createItem(document("1", 1));
            for (ConsistencyLevel level : List.of(
                ConsistencyLevel.SESSION, ConsistencyLevel.CONSISTENT_PREFIX, ConsistencyLevel.EVENTUAL)) {
                var read = container.readItem("1", SOMEWHERE, options().setConsistencyLevel(level), ObjectNode.class);
                answered(200, read);
            }
            // Stronger than the account's level, which is Session.
            var strong = options().setConsistencyLevel(ConsistencyLevel.STRONG);
            refused(400, () -> container.readItem("1", SOMEWHERE, strong, ObjectNode.class));
        }
    }

    @OverBothSchemes
    void timeToLive(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            var properties = new CosmosContainerProperties("items", "/pk").setDefaultTimeToLiveInSeconds(-1);
            CosmosContainer container = fixture.container(properties);
            container.createItem(document("lasting", 1));
            container.createItem(document(Map.of("id", "brief", "pk", "somewhere", "ttl", 1)));
            Instant deadline = Instant.now().plus(Duration.ofMinutes(5));
            while (isThere(container, "brief")) {
                assertTrue(Instant.now().isBefore(deadline), "an item outlived its time");
                Thread.sleep(50);
            }
            answered(201, container.createItem(document("brief", 2)));
            same(document("lasting", 1), read(container, "lasting"));
        }
    }

    private static boolean isThere(CosmosContainer container, String id) {
        try {
            container.readItem(id, SOMEWHERE, ObjectNode.class);
            return true;
        } catch (CosmosException refusal) {
            assertEquals(404, refusal.getStatusCode());
            return false;
        }
    }

    @OverBothSchemes
    void deleteByPartitionKey(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            for (int number = 0; number < 10; number++) {
                container.createItem(document("item " + number, number));
            }
            ObjectNode elsewhere = document(Map.of("id", "item 0", "pk", "elsewhere"));
            container.createItem(elsewhere);
            assertEquals(200, container.deleteAllItemsByPartitionKey(SOMEWHERE, options()).getStatusCode());
            Instant deadline = Instant.now().plus(Duration.ofMinutes(5));
            for (int number = 0; number < 10; number++) {
                // The service may take its time, as it deletes in the background.
                while (isThere(container, "item " + number)) {
                    assertTrue(Instant.now().isBefore(deadline), "an item outlived its partition");
                    Thread.sleep(20);
                }
            }
            same(elsewhere, container.readItem("item 0", new PartitionKey("elsewhere"), ObjectNode.class).getItem());
        }
    }

    /** Lists of one partition and of the whole container, in pages of several sizes. */
    @OverBothSchemes
    void list(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            List<String> here = new ArrayList<>();
            List<String> everywhere = new ArrayList<>();
            for (int number = 0; number < 7; number++) {
                String id = "item " + number;
                container.createItem(document(id, number));
                container.createItem(document(Map.of("id", id, "pk", id)));
                here.add(id);
                everywhere.addAll(List.of(id, id));
            }
            for (int size : new int[] {1, 3, 7, 1000}) {
                assertEquals(here, ids(container, new CosmosQueryRequestOptions().setPartitionKey(SOMEWHERE), size));
                assertEquals(everywhere, ids(container, new CosmosQueryRequestOptions(), size));
            }
            var empty = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey("empty"));
            assertEquals(List.of(), ids(container, empty, 10));
        }
    }

    /** The ids of a list, as it comes; the service gives items in the order of their creation. */
    private static List<String> ids(CosmosContainer container, CosmosQueryRequestOptions options, int pageSize) {
        List<String> ids = new ArrayList<>();
        var items = container.queryItems("SELECT * FROM c", options, ObjectNode.class);
        for (FeedResponse<ObjectNode> page : items.iterableByPage(pageSize)) {
            assertTrue(page.getResults().size() <= pageSize, "size of a page");
            page.getResults().forEach(item -> ids.add(item.get("id").asText()));
        }
        return ids;
    }
}
