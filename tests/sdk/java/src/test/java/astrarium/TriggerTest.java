package astrarium;

import static astrarium.Fixture.SOMEWHERE;
import static astrarium.Fixture.answered;
import static astrarium.Fixture.document;
import static astrarium.Fixture.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosTriggerProperties;
import com.azure.cosmos.models.TriggerOperation;
import com.azure.cosmos.models.TriggerType;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** Triggers that requests name: before a write, after it, both, and what they refuse. */
class TriggerTest {
    /** Completes what is about to be written. */
    private static final String COMPLETE = """
        function complete() {
            var request = getContext().getRequest();
            var item = request.getBody();
            if (item.refused) throw new Error('This item is refused.');
            item.completed = (item.completed || '') + request.getOperationType();
            if (item.rename) item.id = item.rename;
            request.setBody(item);
        }
        """;

    /** Keeps the sum of all values in an item of its own. */
    private static final String ADD_UP = """
        function addUp() {
            var collection = getContext().getCollection();
            var item = getContext().getResponse().getBody();
            collection.readDocument(collection.getAltLink() + '/docs/sum', function (error, sum) {
                if (error) throw error;
                sum.value += item.value;
                collection.replaceDocument(sum._self, sum, function (error) {
                    if (error) throw error;
                    if (item.value > 100) throw new Error('Too much.');
                });
            });
        }
        """;

    private static void trigger(CosmosContainer container, String id, String body, TriggerType type, TriggerOperation operation) {
        var properties = new CosmosTriggerProperties(id, body).setTriggerType(type).setTriggerOperation(operation);
        answered(201, container.getScripts().createTrigger(properties));
    }

    private static CosmosItemRequestOptions before(String... ids) {
        return new CosmosItemRequestOptions().setPreTriggerInclude(List.of(ids));
    }

    private static CosmosItemRequestOptions after(String... ids) {
        return new CosmosItemRequestOptions().setPostTriggerInclude(List.of(ids));
    }

    private static ObjectNode read(CosmosContainer container, String id) {
        return container.readItem(id, SOMEWHERE, ObjectNode.class).getItem();
    }

    /** The SDK creates triggers of such names, and asks for them as it is told. */
    @OverBothSchemes
    void names(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            for (String id : List.of("with space", "tab\ttab", "line\nline", "carriage\rreturn", "%20", "ü")) {
                trigger(container, id, COMPLETE, TriggerType.PRE, TriggerOperation.ALL);
                assertEquals(id, container.getScripts().getTrigger(id).read().getProperties().getId());
                answered(204, container.getScripts().getTrigger(id).delete());
            }
        }
    }

    @OverBothSchemes
    void beforeAWrite(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            trigger(container, "complete", COMPLETE, TriggerType.PRE, TriggerOperation.ALL);
            var created = answered(201, container.createItem(document("1", 1), SOMEWHERE, before("complete"))).getItem();
            assertEquals("Create", created.get("completed").asText());
            assertEquals(created, read(container, "1"));
            var replaced = answered(200, container.replaceItem(created, "1", SOMEWHERE, before("complete"))).getItem();
            assertEquals("CreateReplace", replaced.get("completed").asText());
            var upserted = answered(200, container.upsertItem(replaced, SOMEWHERE, before("complete"))).getItem();
            assertEquals("CreateReplaceUpsert", upserted.get("completed").asText());
            // Nothing runs unless the request names it.
            assertFalse(container.createItem(document("2", 2)).getItem().has("completed"));

            answered(201, container.createItem(document("3", 3).put("rename", "4"), SOMEWHERE, before("complete")));
            assertEquals(3, read(container, "4").get("value").asInt());
            refused(404, () -> read(container, "3"));

            var refusal = refused(400, () -> container.createItem(document("5", 5).put("refused", true), SOMEWHERE, before("complete")));
            assertTrue(refusal.getMessage().contains("This item is refused."), refusal::getMessage);
            refused(404, () -> read(container, "5"));
        }
    }

    @OverBothSchemes
    void afterAWrite(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            trigger(container, "addUp", ADD_UP, TriggerType.POST, TriggerOperation.CREATE);
            container.createItem(document("sum", 0));
            answered(201, container.createItem(document("1", 30), SOMEWHERE, after("addUp")));
            answered(201, container.createItem(document("2", 12), SOMEWHERE, after("addUp")));
            assertEquals(42, read(container, "sum").get("value").asInt());

            // Its throw undoes the write and what it has written itself.
            refused(400, () -> container.createItem(document("3", 101), SOMEWHERE, after("addUp")));
            refused(404, () -> read(container, "3"));
            assertEquals(42, read(container, "sum").get("value").asInt());
            // A write that fails runs no trigger.
            refused(409, () -> container.createItem(document("2", 5), SOMEWHERE, after("addUp")));
            assertEquals(42, read(container, "sum").get("value").asInt());
        }
    }

    @OverBothSchemes
    void beforeAndAfter(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            trigger(container, "complete", COMPLETE, TriggerType.PRE, TriggerOperation.CREATE);
            trigger(container, "addUp", ADD_UP, TriggerType.POST, TriggerOperation.ALL);
            container.createItem(document("sum", 0));
            var both = before("complete").setPostTriggerInclude(List.of("addUp"));
            assertEquals("Create", answered(201, container.createItem(document("1", 7), SOMEWHERE, both)).getItem().get("completed").asText());
            assertEquals(7, read(container, "sum").get("value").asInt());
            refused(400, () -> container.createItem(document("2", 101), SOMEWHERE, both));
            refused(404, () -> read(container, "2"));
        }
    }

    @OverBothSchemes
    void deletes(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            trigger(container, "guard", "function () { throw new Error(getContext().getRequest().getOperationType()); }", TriggerType.PRE, TriggerOperation.DELETE);
            trigger(container, "note", """
                function () {
                    __.createDocument(__.getSelfLink(), { id: 'note', pk: 'somewhere' }, function (error) { if (error) throw error; });
                }
                """, TriggerType.POST, TriggerOperation.DELETE);
            container.createItem(document("1", 1));
            var refusal = refused(400, () -> container.deleteItem("1", SOMEWHERE, before("guard")));
            assertTrue(refusal.getMessage().contains("Delete"), refusal::getMessage);
            assertEquals(1, read(container, "1").get("value").asInt());
            answered(204, container.deleteItem("1", SOMEWHERE, after("note")));
            assertEquals("note", read(container, "note").get("id").asText());
        }
    }

    @OverBothSchemes
    void whatCannotBeNamed(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            trigger(container, "complete", COMPLETE, TriggerType.PRE, TriggerOperation.REPLACE);
            trigger(container, "other", COMPLETE, TriggerType.PRE, TriggerOperation.ALL);
            var item = document("1", 1);
            // Not there, of the other kind, for another operation, too many.
            refused(400, () -> container.createItem(item, SOMEWHERE, before("none")));
            refused(400, () -> container.createItem(item, SOMEWHERE, after("other")));
            refused(400, () -> container.createItem(item, SOMEWHERE, before("complete")));
            refused(400, () -> container.createItem(item, SOMEWHERE, before("other", "complete")));
            refused(404, () -> read(container, "1"));
            answered(201, container.createItem(item, SOMEWHERE, before("other")));
        }
    }
}
