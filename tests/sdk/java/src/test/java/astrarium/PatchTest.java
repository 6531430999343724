package astrarium;

import static astrarium.Fixture.JSON;
import static astrarium.Fixture.SOMEWHERE;
import static astrarium.Fixture.STALE;
import static astrarium.Fixture.answered;
import static astrarium.Fixture.refused;
import static astrarium.Fixture.same;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** Patch: parts of an item are changed, all of them or none. */
class PatchTest {
    private static final String ITEM = """
        {"id": "1", "pk": "somewhere", "n": 1, "list": [1, 2], "inner": {"x": "y"}, "a/b": 0, "t~n": 0}
        """;

    private static CosmosPatchOperations operations() {
        return CosmosPatchOperations.create();
    }

    private static CosmosPatchItemRequestOptions options() {
        return new CosmosPatchItemRequestOptions();
    }

    private static CosmosContainer filled(Fixture fixture) throws Exception {
        CosmosContainer container = fixture.container("items");
        container.createItem(JSON.readTree(ITEM));
        return container;
    }

    private static CosmosItemResponse<ObjectNode> patch(CosmosContainer container, CosmosPatchOperations operations) {
        return answered(200, container.patchItem("1", SOMEWHERE, operations, ObjectNode.class));
    }

    private static ObjectNode read(CosmosContainer container) {
        return container.readItem("1", SOMEWHERE, ObjectNode.class).getItem();
    }

    @OverBothSchemes
    void everyKindOfOperation(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = filled(fixture);
            ObjectNode before = read(container);
            var patched = patch(container, operations()
                .add("/list/1", 9)
                .add("/list/-", 10)
                .set("/new", new LinkedHashMap<>(Map.of("a", List.of())))
                .replace("/inner/x", "z")
                .increment("/n", 2.5)
                .increment("/count", 1)
                .move("/inner/x", "/moved")
                .remove("/list/0")
                .increment("/a~1b", -1)
                .set("/t~0n", "ä 鱀"));
            var expected = (ObjectNode) JSON.readTree("""
                {"id": "1", "pk": "somewhere", "n": 3.5, "list": [9, 2, 10], "inner": {}, "a/b": -1, "t~n": "ä 鱀",
                 "new": {"a": []}, "count": 1, "moved": "z"}
                """);
            same(expected, patched.getItem());
            assertEquals(patched.getItem(), read(container));
            assertEquals(patched.getETag(), patched.getItem().get("_etag").asText());
            assertNotEquals(before.get("_etag"), patched.getItem().get("_etag"));
            assertEquals(before.get("_rid"), patched.getItem().get("_rid"));
            String sql = "SELECT VALUE c.id FROM c WHERE c.moved = 'z' AND c.n = 3.5 AND ARRAY_CONTAINS(c.list, 9)";
            assertEquals(List.of("1"), container.queryItems(sql, new CosmosQueryRequestOptions(), String.class).stream().toList());
        }
    }

    @OverBothSchemes
    void arraysAndNull(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = filled(fixture);
            // Add inserts, set and replace overwrite; the place behind the last one appends.
            ObjectNode item = patch(container, operations().add("/list/0", 0).set("/list/1", 5).add("/list/3", 7).replace("/list/2", 6)).getItem();
            assertEquals(JSON.readTree("[0, 5, 6, 7]"), item.get("list"));
            item = patch(container, operations().set("/none", null).replace("/inner", Arrays.asList(1, null))).getItem();
            assertTrue(item.get("none").isNull());
            assertEquals(JSON.readTree("[1, null]"), item.get("inner"));
            item = patch(container, operations().move("/list/0", "/inner/-").add("/inner/1", Map.of("deep", List.of(1)))
                .increment("/inner/1/deep/0", 41)).getItem();
            assertEquals(JSON.readTree("[1, {\"deep\": [42]}, null, 0]"), item.get("inner"));
        }
    }

    @OverBothSchemes
    void aRefusedPatchChangesNothing(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = filled(fixture);
            ObjectNode before = read(container);
            CosmosPatchOperations eleven = operations();
            IntStream.range(0, 11).forEach(number -> eleven.increment("/n", 1));
            List<CosmosPatchOperations> refusals = List.of(
                operations().replace("/none", 1),
                operations().remove("/none"),
                operations().move("/none", "/other"),
                operations().move("/inner", "/inner/x"),
                operations().add("/list/9", 1),
                operations().add("/x/y", 1),
                operations().increment("/inner", 1),
                operations().set("/_ts", 1),
                operations().set("/id", "2"),
                operations().set("/pk", "elsewhere"),
                operations().set("/n", 7).remove("/none"),
                eleven,
                operations());
            for (CosmosPatchOperations refused : refusals) {
                refused(400, () -> container.patchItem("1", SOMEWHERE, refused, ObjectNode.class));
            }
            assertEquals(before, read(container));
            refused(404, () -> container.patchItem("none", SOMEWHERE, operations().set("/n", 1), ObjectNode.class));
        }
    }

    @OverBothSchemes
    void conditions(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = filled(fixture);
            String etag = read(container).get("_etag").asText();
            CosmosPatchOperations increment = operations().increment("/n", 1);
            var selected = options().setFilterPredicate("FROM c WHERE c.n = 1 AND c.inner.x = 'y'");
            var patched = answered(200, container.patchItem("1", SOMEWHERE, increment, selected, ObjectNode.class));
            assertEquals(2, patched.getItem().get("n").asInt());
            refused(412, () -> container.patchItem("1", SOMEWHERE, increment, selected, ObjectNode.class));
            var broken = options().setFilterPredicate("from c where");
            refused(400, () -> container.patchItem("1", SOMEWHERE, increment, broken, ObjectNode.class));

            for (String old : List.of(etag, STALE)) {
                var stale = options();
                stale.setIfMatchETag(old);
                refused(412, () -> container.patchItem("1", SOMEWHERE, increment, stale, ObjectNode.class));
            }
            var present = options();
            present.setIfMatchETag(patched.getETag());
            assertEquals(3, container.patchItem("1", SOMEWHERE, increment, present, ObjectNode.class).getItem().get("n").asInt());
        }
    }

    @OverBothSchemes
    void withoutContent(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = filled(fixture);
            var quiet = options();
            quiet.setContentResponseOnWriteEnabled(false);
            var answer = answered(200, container.patchItem("1", SOMEWHERE, operations().set("/n", 5), quiet, ObjectNode.class));
            assertNull(answer.getItem());
            assertEquals(5, read(container).get("n").asInt());
        }
    }

    @OverBothSchemes
    void noIncrementIsLost(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = filled(fixture);
            IntStream.range(0, 50).parallel().forEach(number -> patch(container, operations().increment("/n", 1)));
            assertEquals(51, read(container).get("n").asInt());
        }
    }
}
