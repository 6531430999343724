package astrarium;

import static astrarium.Fixture.answered;
import static astrarium.Fixture.document;
import static astrarium.Fixture.refused;
import static astrarium.Fixture.same;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Partition keys of every kind, and items of the same id told apart by them. */
class PartitionKeyTest {
    /** A key and the document properties that it belongs to. */
    private record Case(PartitionKey key, Map<String, ?> properties) {}

    /** Gives every key an item of the same id, and expects each to be found by its own key only. */
    private static void check(CosmosContainer container, List<Case> cases) {
        List<ObjectNode> documents = new ArrayList<>();
        for (Case one : cases) {
            ObjectNode item = document(one.properties).put("id", "same").put("number", documents.size());
            documents.add(item);
            answered(201, container.createItem(item, one.key, new CosmosItemRequestOptions()));
            refused(409, () -> container.createItem(item, one.key, new CosmosItemRequestOptions()));
        }
        for (int i = 0; i < cases.size(); i++) {
            PartitionKey key = cases.get(i).key;
            ObjectNode item = documents.get(i);
            same(item, container.readItem("same", key, ObjectNode.class).getItem());
            // The SDK finds the key in the item by itself, as the server does.
            answered(200, container.upsertItem(item));
            answered(200, container.replaceItem(item, "same", key, new CosmosItemRequestOptions()));
        }
        for (Case one : cases) {
            answered(204, container.deleteItem("same", one.key, new CosmosItemRequestOptions()));
            refused(404, () -> container.readItem("same", one.key, ObjectNode.class));
        }
    }

    private static List<Case> scalars() {
        List<Case> cases = new ArrayList<>();
        for (Object value : List.of(
            "", "a", "A", " ", "5", "true", "null", "quote\" and \\ backslash", "percent %41", "Ωμέγα 鱀", "a\u0301", "á",
            "x".repeat(100), "x".repeat(101), "x".repeat(1024), 0, 1, -1, 0.1, 5, 1e300, 9007199254740991L, true, false)) {
            cases.add(new Case(new PartitionKey(value), Map.of("pk", value)));
        }
        Map<String, Object> none = new HashMap<>();
        none.put("pk", null);
        cases.add(new Case(new PartitionKeyBuilder().addNullValue().build(), none));
        cases.add(new Case(PartitionKey.NONE, Map.of()));
        return cases;
    }

    @OverBothSchemes
    void scalars(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            for (PartitionKeyDefinitionVersion version : PartitionKeyDefinitionVersion.values()) {
                var definition = new PartitionKeyDefinition().setPaths(List.of("/pk")).setVersion(version);
                check(fixture.container(new CosmosContainerProperties("version " + version, definition)), scalars());
            }
        }
    }

    @OverBothSchemes
    void nested(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            check(fixture.container(new CosmosContainerProperties("nested", "/address/zip")), List.of(
                new Case(new PartitionKey("10115"), Map.of("address", Map.of("zip", "10115"))),
                new Case(new PartitionKey(10115), Map.of("address", Map.of("zip", 10115))),
                new Case(PartitionKey.NONE, Map.of("address", "not an object"))));
        }
    }

    @OverBothSchemes
    void hierarchical(String scheme) throws Exception {
        var definition = new PartitionKeyDefinition()
            .setKind(PartitionKind.MULTI_HASH)
            .setVersion(PartitionKeyDefinitionVersion.V2)
            .setPaths(List.of("/tenant", "/user", "/session"));
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container(new CosmosContainerProperties("levels", definition));
            check(container, List.of(
                new Case(new PartitionKeyBuilder().add("a").add("b").add("c").build(), Map.of("tenant", "a", "user", "b", "session", "c")),
                new Case(new PartitionKeyBuilder().add("a").add("bc").add("").build(), Map.of("tenant", "a", "user", "bc", "session", "")),
                new Case(new PartitionKeyBuilder().add("a").add(1).add(true).build(), Map.of("tenant", "a", "user", 1, "session", true))));
            // A prefix of the key names many partitions, so an item cannot be addressed with it.
            PartitionKey prefix = new PartitionKeyBuilder().add("a").add("b").build();
            refused(400, () -> container.readItem("same", prefix, ObjectNode.class));
        }
    }
}
