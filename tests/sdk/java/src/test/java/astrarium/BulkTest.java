package astrarium;

import static astrarium.Fixture.STALE;
import static astrarium.Fixture.document;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBulkItemRequestOptions;
import com.azure.cosmos.models.CosmosBulkOperationResponse;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosBulkPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;

/** Bulk: many operations of many partitions, each on its own, in as few requests as the SDK likes. */
class BulkTest {
    private static final PartitionKey KEY = new PartitionKey("key-0");

    private static ObjectNode item(int number) {
        return document(Map.of("id", "id-" + number, "pk", "key-" + number % 7, "n", number));
    }

    private static PartitionKey key(int number) {
        return new PartitionKey("key-" + number % 7);
    }

    private static CosmosPatchOperations increment() {
        return CosmosPatchOperations.create().increment("/n", 1);
    }

    /** Statuses by what the operations were given as context. */
    private static Map<String, Integer> run(CosmosContainer container, List<CosmosItemOperation> operations) {
        Map<String, Integer> statuses = new TreeMap<>();
        for (CosmosBulkOperationResponse<Object> response : container.<Object>executeBulkOperations(operations)) {
            assertNull(response.getException(), () -> response.getException().toString());
            assertTrue(response.getResponse().getRequestCharge() > 0);
            statuses.put(response.getOperation().getContext(), response.getResponse().getStatusCode());
        }
        return statuses;
    }

    private static int count(CosmosContainer container) {
        return container.queryItems("SELECT VALUE COUNT(1) FROM c", new CosmosQueryRequestOptions(), Integer.class).iterator().next();
    }

    @OverBothSchemes
    void overSeveralRanges(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            var throughput = ThroughputProperties.createManualThroughput(18_000);
            fixture.database.createContainer(new CosmosContainerProperties("items", "/pk"), throughput);
            CosmosContainer container = fixture.database.getContainer("items");
            List<CosmosItemOperation> operations = new ArrayList<>();
            IntStream.range(0, 500).forEach(number ->
                operations.add(CosmosBulkOperations.getCreateItemOperation(item(number), key(number), "create-" + number)));
            var statuses = run(container, operations);
            assertEquals(500, statuses.size());
            assertTrue(statuses.values().stream().allMatch(status -> status == 201), statuses::toString);
            assertEquals(500, count(container));
        }
    }

    @OverBothSchemes
    void everyKindOfOperation(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            IntStream.range(0, 7).forEach(number -> container.createItem(item(number)));
            var statuses = run(container, List.of(
                CosmosBulkOperations.getCreateItemOperation(item(7), key(7), "create"),
                CosmosBulkOperations.getUpsertItemOperation(item(8), key(8), "upsert new"),
                CosmosBulkOperations.getUpsertItemOperation(item(1).put("n", 10), key(1), "upsert"),
                CosmosBulkOperations.getReplaceItemOperation("id-2", item(2).put("n", 20), key(2), "replace"),
                CosmosBulkOperations.getPatchItemOperation("id-3", key(3), increment(), "patch"),
                CosmosBulkOperations.getReadItemOperation("id-4", key(4), "read"),
                CosmosBulkOperations.getDeleteItemOperation("id-5", key(5), "delete")));
            assertEquals(Map.of("create", 201, "upsert new", 201, "upsert", 200, "replace", 200, "patch", 200, "read", 200, "delete", 204), statuses);
            assertEquals(8, count(container));
            assertEquals(4, container.readItem("id-3", key(3), ObjectNode.class).getItem().get("n").asInt());
        }
    }

    @OverBothSchemes
    void failuresAreAloneAndTheRestHappens(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            container.createItem(item(0));
            var stale = new CosmosBulkItemRequestOptions().setIfMatchETag(STALE);
            var condition = new CosmosBulkPatchItemRequestOptions().setFilterPredicate("from c where c.n = 9");
            var statuses = run(container, List.of(
                CosmosBulkOperations.getCreateItemOperation(item(7), KEY, "create"),
                CosmosBulkOperations.getCreateItemOperation(item(0), KEY, "conflict"),
                CosmosBulkOperations.getReplaceItemOperation("id-0", item(0), KEY, stale, "replace, stale"),
                CosmosBulkOperations.getDeleteItemOperation("id-0", KEY, stale, "delete, stale"),
                CosmosBulkOperations.getPatchItemOperation("id-0", KEY, increment(), condition, "patch, condition"),
                CosmosBulkOperations.getPatchItemOperation("id-0", KEY, CosmosPatchOperations.create().remove("/none"), "patch, no target"),
                CosmosBulkOperations.getReadItemOperation("none", KEY, "read, missing"),
                CosmosBulkOperations.getCreateItemOperation(item(14), KEY, "create behind")));
            assertEquals(Map.of("create", 201, "conflict", 409, "replace, stale", 412, "delete, stale", 412, "patch, condition", 412,
                "patch, no target", 400, "read, missing", 404, "create behind", 201), statuses);
            assertEquals(3, count(container));
        }
    }
}
