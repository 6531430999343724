package astrarium;

import static astrarium.Fixture.SOMEWHERE;
import static astrarium.Fixture.STALE;
import static astrarium.Fixture.document;
import static astrarium.Fixture.refused;
import static astrarium.Fixture.same;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchItemRequestOptions;
import com.azure.cosmos.models.CosmosBatchOperationResult;
import com.azure.cosmos.models.CosmosBatchPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.IntStream;

/** Transactional batches: every kind of operation, conditions, and all or nothing. */
class BatchTest {
    private static CosmosBatch batch() {
        return CosmosBatch.createCosmosBatch(SOMEWHERE);
    }

    private static CosmosBatchItemRequestOptions ifMatch(String etag) {
        return new CosmosBatchItemRequestOptions().setIfMatchETag(etag);
    }

    private static CosmosPatchOperations increment(long value) {
        return CosmosPatchOperations.create().increment("/value", value);
    }

    private static List<Integer> statuses(CosmosBatchResponse response) {
        return response.getResults().stream().map(CosmosBatchOperationResult::getStatusCode).toList();
    }

    /** The batch must fail with the status of one operation, whose place the others' 424 leave free. */
    private static void undone(CosmosContainer container, int status, CosmosBatch batch, int... expected) {
        CosmosBatchResponse response = container.executeCosmosBatch(batch);
        assertFalse(response.isSuccessStatusCode());
        assertEquals(status, response.getStatusCode(), response::getErrorMessage);
        assertEquals(IntStream.of(expected).boxed().toList(), statuses(response));
    }

    private static List<String> ids(CosmosContainer container) {
        var options = new CosmosQueryRequestOptions().setPartitionKey(SOMEWHERE);
        return container.queryItems("SELECT VALUE c.id FROM c ORDER BY c.id", options, String.class).stream().toList();
    }

    private static int value(CosmosContainer container, String id) {
        return container.readItem(id, SOMEWHERE, ObjectNode.class).getItem().get("value").asInt();
    }

    @OverBothSchemes
    void everyKindOfOperation(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            container.createItem(document("old", 1));
            container.createItem(document("gone", 1));
            CosmosBatch batch = batch();
            batch.createItemOperation(document("new", 1));
            batch.upsertItemOperation(document("upserted", 1));
            batch.upsertItemOperation(document("old", 2));
            batch.replaceItemOperation("old", document("old", 5));
            batch.patchItemOperation("old", increment(2));
            batch.readItemOperation("old");
            batch.deleteItemOperation("gone");
            CosmosBatchResponse response = container.executeCosmosBatch(batch);
            assertTrue(response.isSuccessStatusCode());
            assertEquals(200, response.getStatusCode());
            assertEquals(List.of(201, 201, 200, 200, 200, 200, 204), statuses(response));
            assertTrue(response.getRequestCharge() > 0);
            assertNotNull(response.getSessionToken());
            var results = response.getResults();
            same(document("old", 7), results.get(5).getItem(ObjectNode.class));
            assertEquals(results.get(4).getETag(), results.get(5).getETag());
            assertNull(results.get(6).getItem(ObjectNode.class));
            assertTrue(results.stream().allMatch(result -> result.getRequestCharge() > 0));
            assertEquals(List.of("new", "old", "upserted"), ids(container));
        }
    }

    @OverBothSchemes
    void aFailureUndoesAll(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            container.createItem(document("there", 1));
            CosmosBatch batch = batch();
            batch.createItemOperation(document("new", 1));
            batch.patchItemOperation("there", increment(8));
            batch.createItemOperation(document("there", 1));
            batch.deleteItemOperation("there");
            undone(container, 409, batch, 424, 424, 409, 424);
            assertEquals(List.of("there"), ids(container));
            assertEquals(1, value(container, "there"));
        }
    }

    @OverBothSchemes
    void operationsFailAsTheyDoAlone(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            container.createItem(document("there", 1));
            Map<Consumer<CosmosBatch>, Integer> failures = Map.ofEntries(
                Map.entry(batch -> batch.readItemOperation("none"), 404),
                Map.entry(batch -> batch.deleteItemOperation("none"), 404),
                Map.entry(batch -> batch.replaceItemOperation("none", document("none", 1)), 404),
                Map.entry(batch -> batch.patchItemOperation("none", increment(1)), 404),
                Map.entry(batch -> batch.createItemOperation(document(Map.of("id", "x", "pk", "elsewhere"))), 400),
                Map.entry(batch -> batch.patchItemOperation("there", CosmosPatchOperations.create().replace("/none", 1)), 400),
                Map.entry(batch -> batch.deleteItemOperation("there", ifMatch(STALE)), 412),
                Map.entry(batch -> batch.upsertItemOperation(document("there", 2), ifMatch(STALE)), 412),
                Map.entry(batch -> batch.replaceItemOperation("there", document("there", 2), ifMatch(STALE)), 412),
                Map.entry(batch -> batch.patchItemOperation("there", increment(1), new CosmosBatchPatchItemRequestOptions().setIfMatchETag(STALE)), 412),
                Map.entry(batch -> batch.patchItemOperation("there", increment(1), new CosmosBatchPatchItemRequestOptions().setFilterPredicate("from c where c['value'] = 9")), 412));
            failures.forEach((operation, status) -> {
                CosmosBatch batch = batch();
                batch.createItemOperation(document("before", 1));
                operation.accept(batch);
                batch.createItemOperation(document("behind", 1));
                undone(container, status, batch, 424, status, 424);
            });
            assertEquals(List.of("there"), ids(container));
            assertEquals(1, value(container, "there"));
        }
    }

    @OverBothSchemes
    void conditionsThatHold(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            String etag = container.createItem(document("1", 1)).getETag();
            CosmosBatch batch = batch();
            batch.replaceItemOperation("1", document("1", 2), ifMatch(etag));
            batch.patchItemOperation("1", increment(1), new CosmosBatchPatchItemRequestOptions().setFilterPredicate("from c where c['value'] = 2"));
            batch.readItemOperation("1", new CosmosBatchItemRequestOptions().setIfNoneMatchETag(etag));
            CosmosBatchResponse response = container.executeCosmosBatch(batch);
            assertEquals(List.of(200, 200, 200), statuses(response));
            assertEquals(3, response.getResults().get(2).getItem(ObjectNode.class).get("value").asInt());

            // What was not modified is no success, and undoes nothing.
            CosmosBatch unmodified = batch();
            unmodified.readItemOperation("1", new CosmosBatchItemRequestOptions().setIfNoneMatchETag(response.getResults().get(2).getETag()));
            unmodified.deleteItemOperation("1");
            assertEquals(List.of(304, 204), statuses(container.executeCosmosBatch(unmodified)));
            assertEquals(List.of(), ids(container));
        }
    }

    @OverBothSchemes
    void aHundredOperationsAreTheMost(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            CosmosBatch batch = batch();
            IntStream.range(0, 100).forEach(number -> batch.createItemOperation(document("id-" + number, number)));
            assertEquals(200, container.executeCosmosBatch(batch).getStatusCode());
            assertEquals(100, ids(container).size());
            CosmosBatch tooMany = batch();
            IntStream.range(100, 201).forEach(number -> tooMany.createItemOperation(document("id-" + number, number)));
            refused(400, () -> container.executeCosmosBatch(tooMany));
            CosmosBatch tooLarge = batch();
            tooLarge.createItemOperation(document("large", "x".repeat(2 << 20)));
            refused(413, () -> container.executeCosmosBatch(tooLarge));
            assertEquals(100, ids(container).size());
        }
    }

    @OverBothSchemes
    void transfersLoseNothing(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            container.createItem(document("from", 100));
            container.createItem(document("to", 100));
            IntStream.range(0, 30).parallel().forEach(number -> {
                CosmosBatch batch = batch();
                batch.patchItemOperation("from", increment(-1));
                batch.patchItemOperation("to", increment(1));
                assertEquals(200, container.executeCosmosBatch(batch).getStatusCode());
            });
            assertEquals(70, value(container, "from"));
            assertEquals(130, value(container, "to"));
        }
    }

    @OverBothSchemes
    void aBatchIsOfOnePartition(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            container.createItem(document(Map.of("id", "other", "pk", "elsewhere")));
            CosmosBatch batch = batch();
            batch.readItemOperation("other");
            undone(container, 404, batch, 404);
            CosmosBatch elsewhere = CosmosBatch.createCosmosBatch(new PartitionKey("elsewhere"));
            elsewhere.readItemOperation("other");
            assertEquals(List.of(200), statuses(container.executeCosmosBatch(elsewhere)));
        }
    }
}
