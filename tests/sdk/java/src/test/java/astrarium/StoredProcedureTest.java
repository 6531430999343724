package astrarium;

import static astrarium.Fixture.JSON;
import static astrarium.Fixture.SOMEWHERE;
import static astrarium.Fixture.answered;
import static astrarium.Fixture.document;
import static astrarium.Fixture.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.CosmosStoredProcedure;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosStoredProcedureRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureResponse;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** Stored procedures at work: parameters, results, log, errors, and transactions that happen whole or not at all. */
class StoredProcedureTest {
    /** The example of the modelling articles: a book is created and its author's count goes up. */
    private static final String ADD_BOOK = """
        function addBook(book, fails) {
            var collection = getContext().getCollection();
            var accepted = collection.createDocument(collection.getSelfLink(), book, function (error, created) {
                if (error) throw error;
                var query = { query: 'SELECT * FROM c WHERE c.id = @id', parameters: [{ name: '@id', value: created.author }] };
                collection.queryDocuments(collection.getSelfLink(), query, function (error, authors) {
                    if (error) throw error;
                    if (authors.length !== 1) throw new Error('No author ' + created.author + '.');
                    authors[0].countOfBooks = (authors[0].countOfBooks || 0) + 1;
                    collection.replaceDocument(authors[0]._self, authors[0], { etag: authors[0]._etag }, function (error, author) {
                        if (error) throw error;
                        if (fails) throw new Error('As was asked.');
                        getContext().getResponse().setBody({ book: created.id, count: author.countOfBooks });
                    });
                });
            });
            if (!accepted) throw new Error('Not accepted.');
        }
        """;

    private static final String BULK_DELETE = """
        function bulkDelete(query) {
            var collection = getContext().getCollection();
            var result = { deleted: 0, continuation: true };
            next();
            function next() {
                var accepted = collection.queryDocuments(collection.getSelfLink(), query, { pageSize: 7 }, function (error, found) {
                    if (error) throw error;
                    if (found.length === 0) result.continuation = false;
                    getContext().getResponse().setBody(result);
                    remove(found);
                });
                if (!accepted) getContext().getResponse().setBody(result);
            }
            function remove(found) {
                if (found.length === 0) { if (result.continuation) next(); return; }
                collection.deleteDocument(found[0]._self, {}, function (error) {
                    if (error) throw error;
                    result.deleted++;
                    found.shift();
                    remove(found);
                });
            }
        }
        """;

    private static CosmosStoredProcedureRequestOptions options() {
        return new CosmosStoredProcedureRequestOptions().setPartitionKey(SOMEWHERE);
    }

    private static CosmosStoredProcedure procedure(CosmosContainer container, String id, String body) {
        answered(201, container.getScripts().createStoredProcedure(new CosmosStoredProcedureProperties(id, body)));
        return container.getScripts().getStoredProcedure(id);
    }

    private static CosmosStoredProcedureResponse execute(CosmosStoredProcedure procedure, Object... parameters) {
        return answered(200, procedure.execute(Arrays.asList(parameters), options()));
    }

    private static Object result(CosmosStoredProcedureResponse response) throws Exception {
        return JSON.readValue(response.getResponseAsString(), Object.class);
    }

    private static CosmosException fails(CosmosStoredProcedure procedure, Object... parameters) {
        return refused(400, () -> procedure.execute(Arrays.asList(parameters), options()));
    }

    private static ObjectNode read(CosmosContainer container, String id) {
        return container.readItem(id, SOMEWHERE, ObjectNode.class).getItem();
    }

    @OverBothSchemes
    void parametersAndResults(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            var echo = procedure(container, "echo", "function () { getContext().getResponse().setBody([].slice.call(arguments)); }");
            List<Object> parameters = Arrays.asList(1, -2.5, "ä 鱀 \"'\\\n", true, null, List.of(1, List.of()), Map.of("a", Map.of("b", 1)));
            var response = answered(200, echo.execute(parameters, options()));
            assertEquals(parameters, result(response));
            assertFalse(response.getSessionToken().isEmpty());
            assertEquals(List.of(), result(answered(200, echo.execute(List.of(), options()))));
            assertEquals(List.of(), result(answered(200, echo.execute(null, options()))));

            assertEquals("text", result(execute(procedure(container, "text", "function () { getContext().getResponse().setBody('text'); }"))));
            assertEquals(5, result(execute(procedure(container, "number", "function (a, b) { getContext().getResponse().setBody(a + b); }"), 2, 3)));
            var nothing = execute(procedure(container, "nothing", "function () { }")).getResponseAsString();
            assertTrue(nothing == null || nothing.isEmpty() || nothing.equals("\"\""), nothing);
        }
    }

    @OverBothSchemes
    void theLogIsSentIfWanted(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            var logs = procedure(fixture.container("items"), "logs", "function (text) { console.log('first ' + text); console.log('ä'); }");
            var response = answered(200, logs.execute(List.of("a b"), options().setScriptLoggingEnabled(true)));
            String log = URLDecoder.decode(response.getScriptLog(), StandardCharsets.UTF_8);
            assertTrue(log.contains("first a b") && log.contains("ä"), log);
            var silent = answered(200, logs.execute(List.of("a b"), options()));
            assertTrue(silent.getScriptLog() == null || silent.getScriptLog().isEmpty(), silent.getScriptLog());
        }
    }

    @OverBothSchemes
    void aBookCountsForItsAuthor(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            container.createItem(document("author", "Ada"));
            var addBook = procedure(container, "addBook", ADD_BOOK);
            var book = document(Map.of("id", "book-1", "pk", "somewhere", "author", "author"));
            assertEquals(Map.of("book", "book-1", "count", 1), result(execute(addBook, book)));
            assertEquals(Map.of("book", "book-2", "count", 2), result(execute(addBook, book.deepCopy().put("id", "book-2"))));
            assertEquals(2, read(container, "author").get("countOfBooks").asInt());

            // Whatever fails, nothing of it has happened: a script's own throw, a missing author, a book that is there.
            var refusal = fails(addBook, book.deepCopy().put("id", "book-3"), true);
            assertTrue(refusal.getMessage().contains("As was asked."), refusal::getMessage);
            refusal = fails(addBook, book.deepCopy().put("id", "book-3").put("author", "nobody"));
            assertTrue(refusal.getMessage().contains("No author nobody."), refusal::getMessage);
            fails(addBook, book);
            refused(404, () -> read(container, "book-3"));
            assertEquals(2, read(container, "author").get("countOfBooks").asInt());
        }
    }

    @OverBothSchemes
    void noUpdateIsLost(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            container.createItem(document("author", "Ada"));
            var addBook = procedure(container, "addBook", ADD_BOOK);
            IntStream.range(0, 40).parallel().forEach(number -> execute(
                addBook, document(Map.of("id", "book-" + number, "pk", "somewhere", "author", "author"))));
            assertEquals(40, read(container, "author").get("countOfBooks").asInt());
        }
    }

    @OverBothSchemes
    void documentsAreDeletedInPages(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            for (int number = 0; number < 20; number++) {
                container.createItem(document("id-" + number, number));
            }
            container.createItem(document(Map.of("id", "other", "pk", "elsewhere")));
            var bulkDelete = procedure(container, "bulkDelete", BULK_DELETE);
            Object result = result(execute(bulkDelete, "SELECT * FROM c WHERE c['value'] > 1"));
            assertEquals(Map.of("deleted", 18, "continuation", false), result);
            assertEquals(1, read(container, "id-1").get("value").asInt());
            refused(404, () -> read(container, "id-2"));
            result = result(execute(bulkDelete, "SELECT * FROM c"));
            assertEquals(Map.of("deleted", 2, "continuation", false), result);
            answered(200, container.readItem("other", new PartitionKey("elsewhere"), ObjectNode.class));
        }
    }

    @OverBothSchemes
    void aScriptStaysInItsPartition(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            container.createItem(document("1", 1));
            container.createItem(document(Map.of("id", "2", "pk", "elsewhere")));
            var count = procedure(container, "count", """
                function () {
                    __.queryDocuments(__.getSelfLink(), 'SELECT VALUE c.id FROM c', function (error, ids) {
                        if (error) throw error;
                        getContext().getResponse().setBody(ids);
                    });
                }
                """);
            assertEquals(List.of("1"), result(execute(count)));
            var elsewhere = new CosmosStoredProcedureRequestOptions().setPartitionKey(new PartitionKey("elsewhere"));
            assertEquals(List.of("2"), result(answered(200, count.execute(List.of(), elsewhere))));
            var create = procedure(container, "create", "function (item) { __.createDocument(__.getSelfLink(), item); }");
            fails(create, document(Map.of("id", "3", "pk", "elsewhere")));
            refused(404, () -> container.readItem("3", new PartitionKey("elsewhere"), ObjectNode.class));
        }
    }

    @OverBothSchemes
    void errorsSayWhatHappened(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            var refusal = fails(procedure(container, "throws", "function throwing() {\n  throw new Error('so it goes');\n}"));
            assertTrue(refusal.getMessage().contains("Encountered exception while executing Javascript"), refusal::getMessage);
            assertTrue(refusal.getMessage().contains("so it goes"), refusal::getMessage);
            assertTrue(refusal.getMessage().contains("throws.js:2"), refusal::getMessage);
            fails(procedure(container, "aborts", "function () { getContext().abort(new Error('enough')); }"));
            fails(procedure(container, "unknown", "function () { nobodyKnows(); }"));
            // The number of an error is what the script makes of it, or what an operation was answered.
            var numbered = procedure(container, "numbered", "function (n) { throw new Error(n, 'numbered'); }");
            assertEquals(412, fails(numbered, 412).getSubStatusCode());
            var missing = procedure(container, "missing", "function () { __.readDocument(__.getAltLink() + '/docs/none', function (e) { throw e; }); }");
            assertEquals(404, fails(missing).getSubStatusCode());

            var scripts = container.getScripts();
            refused(400, () -> scripts.createStoredProcedure(new CosmosStoredProcedureProperties("broken", "function (")));
            refused(404, () -> scripts.getStoredProcedure("none").execute(List.of(), options()));
        }
    }

    @OverBothSchemes
    void anEndlessScriptIsEnded(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            var endless = procedure(container, "endless", """
                function () {
                    __.createDocument(__.getSelfLink(), { id: 'made', pk: 'somewhere' }, function () { for (;;) { } });
                }
                """);
            refused(408, () -> endless.execute(List.of(), options()));
            refused(404, () -> read(container, "made"));
        }
    }

    @OverBothSchemes
    void theLatestVersionRuns(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            var version = procedure(container, "version", "function () { __.response.setBody(1); }");
            assertEquals(1, result(execute(version)));
            version.replace(version.read().getProperties().setBody("function () { __.response.setBody(2); }"));
            assertEquals(2, result(execute(version)));
            answered(204, version.delete());
            refused(404, () -> version.execute(List.of(), options()));
            procedure(container, "version", "function () { __.response.setBody(3); }");
            assertEquals(3, result(execute(version)));
        }
    }
}
