package astrarium;

import static astrarium.Fixture.JSON;
import static astrarium.Fixture.SOMEWHERE;
import static astrarium.Fixture.document;
import static astrarium.Fixture.refused;
import static org.junit.jupiter.api.Assertions.assertAll;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosPermissionProperties;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosTriggerProperties;
import com.azure.cosmos.models.CosmosUserDefinedFunctionProperties;
import com.azure.cosmos.models.CosmosUserProperties;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKind;
import com.azure.cosmos.models.PermissionMode;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.TriggerOperation;
import com.azure.cosmos.models.TriggerType;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.function.Executable;

/**
 * Queries: the shared cases in any page size, tokens, refusals, scopes, metrics, charges, many items at once, and the
 * other resources.
 *
 * <p>The SDK asks the server how to run a query, sends every key range what the answer says, and merges what comes
 * back; so these tests also see that plans are right and that rewritten texts are understood.
 */
class QueryTest {
    /** What the SDK can go on with in another client. Of a group or a set it would have to keep everything seen. */
    private static final Set<String> RESUMABLE = Set.of("stream", "order", "window");

    private static final JsonNode CASES = cases();

    private static JsonNode cases() {
        try {
            return JSON.readTree(Path.of("..", "cases", "queries.json").toFile());
        } catch (java.io.IOException unreadable) {
            throw new IllegalStateException(unreadable);
        }
    }

    /** A throughput for which a container has five key ranges, and one for which it has one. */
    private static final int MANY = 30_000;
    private static final int ONE = 400;

    /** A container with the documents of the cases. */
    private static CosmosContainer people(Fixture fixture) {
        return people(fixture, ONE);
    }

    private static CosmosContainer people(Fixture fixture, int throughput) {
        List<List<CompositePath>> composites = new ArrayList<>();
        for (JsonNode composite : CASES.get("indexingPolicy").get("compositeIndexes")) {
            List<CompositePath> paths = new ArrayList<>();
            composite.forEach(path -> paths.add(new CompositePath()
                .setPath(path.get("path").asText())
                .setOrder(CompositePathSortOrder.valueOf(path.get("order").asText().toUpperCase(java.util.Locale.ROOT)))));
            composites.add(paths);
        }
        var policy = new IndexingPolicy().setCompositeIndexes(composites);
        var properties = new CosmosContainerProperties("people", "/pk").setIndexingPolicy(policy);
        fixture.database.createContainer(properties, ThroughputProperties.createManualThroughput(throughput));
        CosmosContainer container = fixture.database.getContainer("people");
        CASES.get("documents").forEach(item -> container.createItem(item));
        return container;
    }

    private static SqlQuerySpec query(JsonNode one) {
        List<SqlParameter> parameters = new ArrayList<>();
        one.path("parameters").fields().forEachRemaining(
            parameter -> parameters.add(new SqlParameter(parameter.getKey(), parameter.getValue())));
        return new SqlQuerySpec(one.get("query").asText(), parameters);
    }

    private static CosmosQueryRequestOptions scope(JsonNode one) {
        var options = new CosmosQueryRequestOptions();
        return one.has("partition") ? options.setPartitionKey(new PartitionKey(one.get("partition").asText())) : options;
    }

    private static List<JsonNode> queries() {
        return queries("java");
    }

    /** The cases that a runner can run. */
    private static List<JsonNode> queries(String runner) {
        return StreamSupport.stream(CASES.get("queries").spliterator(), false)
            .filter(one -> !one.path("not_in").toString().contains('"' + runner + '"'))
            .toList();
    }

    private static <T> List<T> pages(Iterable<FeedResponse<T>> pages) {
        List<T> rows = new ArrayList<>();
        pages.forEach(page -> rows.addAll(page.getResults()));
        return rows;
    }

    private static List<JsonNode> rows(
        CosmosContainer container, SqlQuerySpec query, CosmosQueryRequestOptions options, int size) {
        return pages(container.queryItems(query, options, JsonNode.class).iterableByPage(size));
    }

    private static List<String> ids(Iterable<JsonNode> rows) {
        return StreamSupport.stream(rows.spliterator(), false).map(JsonNode::asText).toList();
    }

    /** A row as text: members sorted, numbers in one form, without the properties that the server adds. */
    private static String text(JsonNode row) {
        if (row.isObject()) {
            List<String> members = new ArrayList<>();
            row.fields().forEachRemaining(member -> {
                if (!Set.of("_rid", "_self", "_etag", "_attachments", "_ts").contains(member.getKey())) {
                    members.add(member.getKey() + ": " + text(member.getValue()));
                }
            });
            members.sort(Comparator.naturalOrder());
            return members.toString();
        }
        if (row.isArray()) {
            return StreamSupport.stream(row.spliterator(), false).map(QueryTest::text).toList().toString();
        }
        return row.isNumber() ? Double.toString(row.asDouble()) : row.toString();
    }

    private static void check(JsonNode one, List<JsonNode> rows) {
        List<JsonNode> expected = new ArrayList<>();
        one.path("rows").forEach(expected::add);
        for (JsonNode id : one.path("ids")) {
            CASES.get("documents").forEach(item -> {
                if (item.get("id").equals(id)) {
                    expected.add(item);
                }
            });
        }
        Function<List<JsonNode>, List<String>> texts = list -> {
            var sorted = list.stream().map(QueryTest::text);
            return (one.path("ordered").asBoolean() ? sorted : sorted.sorted()).toList();
        };
        assertEquals(texts.apply(expected), texts.apply(rows), one.get("name").asText());
    }

    /** Runs something for every case, and tells of all that fail. */
    private static void forEach(Iterable<JsonNode> cases, java.util.function.Consumer<JsonNode> act) {
        assertAll(StreamSupport.stream(cases.spliterator(), false).map(one -> (Executable) () -> {
            try {
                act.accept(one);
            } catch (CosmosException refusal) {
                throw new AssertionError(one.get("name").asText() + ": " + refusal.getShortMessage(), refusal);
            }
        }));
    }

    @OverBothSchemes
    void answers(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = people(fixture);
            forEach(queries(), one -> {
                for (int size : new int[] {100, 1, 4}) {
                    check(one, rows(container, query(one), scope(one), size));
                }
            });
        }
    }

    @OverBothSchemes
    void answersOfSeveralRanges(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = people(fixture, MANY);
            assertEquals(5, container.getFeedRanges().size());
            var sent = queries().stream().filter(queries("java-ranges")::contains).toList();
            forEach(sent, one -> {
                for (int size : new int[] {100, 2}) {
                    check(one, rows(container, query(one), scope(one), size));
                }
            });
        }
    }

    @OverBothSchemes
    void tokens(String scheme) throws Exception {
        tokens(scheme, ONE, queries());
    }

    @OverBothSchemes
    void tokensOfSeveralRanges(String scheme) throws Exception {
        tokens(scheme, MANY, queries("java-ranges"));
    }

    private static void tokens(String scheme, int throughput, List<JsonNode> sendable) throws Exception {
        try (Fixture fixture = Fixture.over(scheme);
            CosmosClient other = Fixture.builder(Server.shared(), scheme).buildClient()) {
            CosmosContainer container = people(fixture, throughput);
            CosmosContainer again = other.getDatabase(fixture.database.getId()).getContainer(container.getId());
            // In an ordered join, the SDK goes on with all rows of an item of which one was read.
            var resumable = sendable.stream()
                .filter(queries()::contains)
                .filter(one -> RESUMABLE.contains(one.get("kind").asText()))
                .filter(one -> !one.get("name").asText().equals("order of a join"))
                .filter(one -> one.path("rows").size() + one.path("ids").size() > 3)
                .toList();
            forEach(resumable, one -> {
                var first = container.queryItems(query(one), scope(one), JsonNode.class).iterableByPage(3).iterator().next();
                List<JsonNode> rows = new ArrayList<>(first.getResults());
                String token = first.getContinuationToken();
                assertNotNull(token, "no token");
                var rest = again.queryItems(query(one), scope(one), JsonNode.class).iterableByPage(token, 2);
                rows.addAll(pages(rest));
                check(one, rows);
            });
            refused(400, () -> pages(container
                .queryItems("SELECT * FROM c", new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey("north")), JsonNode.class)
                .iterableByPage("garbage", 2)));
        }
    }

    @OverBothSchemes
    void refusals(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = people(fixture);
            var partition = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey("north"));
            forEach(CASES.get("refusals"), one -> {
                for (var options : List.of(new CosmosQueryRequestOptions(), partition)) {
                    String message = refused(400, () -> rows(container, query(one), options, 10)).getShortMessage();
                    contains(message, one.get("message").asText());
                    if (one.has("code")) {
                        contains(message, "\"code\":" + one.get("code").asText());
                    }
                    if (one.has("start")) {
                        contains(message, "\"location\":{\"start\":" + one.get("start") + ",\"end\":" + one.get("end") + "}");
                    }
                }
            });
        }
    }

    private static void contains(String text, String fragment) {
        assertTrue(text.contains(fragment), () -> fragment + " is not in " + text);
    }

    /** Feed ranges, and prefixes of hierarchical keys. */
    @OverBothSchemes
    void scopes(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = people(fixture);
            var ordered = new SqlQuerySpec("SELECT VALUE c.id FROM c ORDER BY c.id");
            List<String> found = new ArrayList<>();
            for (var range : container.getFeedRanges()) {
                found.addAll(ids(rows(container, ordered, new CosmosQueryRequestOptions().setFeedRange(range), 5)));
            }
            assertEquals(IntStream.rangeClosed(1, 12).mapToObj("%02d"::formatted).toList(), found);

            var definition = new PartitionKeyDefinition().setKind(PartitionKind.MULTI_HASH);
            definition.setPaths(List.of("/tenant", "/user"));
            CosmosContainer levels = fixture.container(new CosmosContainerProperties("levels", definition));
            for (var key : List.of(List.of("t1", "u1"), List.of("t1", "u2"), List.of("t2", "u1"))) {
                levels.createItem(document(Map.of("id", key.get(0) + key.get(1), "tenant", key.get(0), "user", key.get(1))));
            }
            for (int size : new int[] {1, 10}) {
                Function<PartitionKeyBuilder, List<String>> of = key ->
                    ids(rows(levels, ordered, new CosmosQueryRequestOptions().setPartitionKey(key.build()), size));
                assertEquals(List.of("t1u1", "t1u2"), of.apply(new PartitionKeyBuilder().add("t1")));
                assertEquals(List.of("t2u1"), of.apply(new PartitionKeyBuilder().add("t2")));
                assertEquals(List.of("t1u2"), of.apply(new PartitionKeyBuilder().add("t1").add("u2")));
                assertEquals(List.of(), of.apply(new PartitionKeyBuilder().add("t3")));
            }
        }
    }

    @OverBothSchemes
    void metrics(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = people(fixture);
            var options = new CosmosQueryRequestOptions().setQueryMetricsEnabled(true).setIndexMetricsEnabled(true);
            var pages = container.queryItems("SELECT * FROM c WHERE c.team = 'red'", options, JsonNode.class).iterableByPage(2);
            int count = 0;
            for (var page : pages) {
                count += page.getResults().size();
                assertTrue(page.getRequestCharge() > 0, "request charge");
                assertNotNull(page.getActivityId(), "activity id");
                String diagnostics = page.getCosmosDiagnostics().toString();
                contains(diagnostics, "retrievedDocumentCount");
                contains(diagnostics, "UtilizedSingleIndexes");
            }
            assertEquals(4, count);
        }
    }

    @OverBothSchemes
    void advice(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = people(fixture);
            String query = "SELECT VALUE c.id FROM c WHERE CONTAINS(c.name, 'a')";
            var options = new CosmosQueryRequestOptions().setQueryAdviceEnabled(true);
            var first = container.queryItems(query, options, JsonNode.class).iterableByPage(1).iterator().next();
            contains(first.getQueryAdvice(), "QA1002");
            var silent = container.queryItems(query, new CosmosQueryRequestOptions(), JsonNode.class).iterableByPage(1);
            assertEquals(null, silent.iterator().next().getQueryAdvice());
        }
    }

    @OverBothSchemes
    void charges(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("many");
            for (int number = 0; number < 60; number++) {
                container.createItem(document("item " + number, "x".repeat(500)).put("number", number));
            }
            for (String query : List.of(
                "SELECT * FROM c", "SELECT * FROM c WHERE c.number >= 20", "SELECT * FROM c ORDER BY c.number DESC")) {
                var options = new CosmosQueryRequestOptions().setPartitionKey(SOMEWHERE);
                Function<Integer, Double> charge = size -> container.queryItems(query, options, JsonNode.class)
                    .streamByPage(size)
                    .mapToDouble(FeedResponse::getRequestCharge)
                    .sum();
                double whole = charge.apply(1000);
                assertEquals(whole, charge.apply(10), 0.1 * whole, query);
            }
        }
    }

    @OverBothSchemes
    void manyItems(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = people(fixture);
            List<CosmosItemIdentity> wanted = new ArrayList<>();
            CASES.get("documents").forEach(item -> wanted.add(
                new CosmosItemIdentity(new PartitionKey(item.get("pk").asText()), item.get("id").asText())));
            wanted.add(new CosmosItemIdentity(new PartitionKey("north"), "99"));
            wanted.add(new CosmosItemIdentity(new PartitionKey("south"), "01"));
            var read = container.readMany(wanted, JsonNode.class);
            check(CASES.get("queries").get(0), read.getResults());
            assertTrue(read.getRequestCharge() > 0, "request charge");

            var north = container.readAllItems(new PartitionKey("north"), ObjectNode.class).iterableByPage(2);
            assertEquals(List.of("01", "04", "06", "09", "12"),
                pages(north).stream().map(item -> item.get("id").asText()).toList());
        }
    }

    @OverBothSchemes
    void otherResources(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            String id = fixture.database.getId();
            var byId = new SqlQuerySpec("SELECT * FROM r WHERE r.id = @id", new SqlParameter("@id", id));
            var databases = fixture.client.queryDatabases(byId, new CosmosQueryRequestOptions()).stream();
            assertEquals(List.of(id), databases.map(database -> database.getId()).toList());

            List.of("b", "c", "a").forEach(fixture::container);
            String ordered = "SELECT * FROM r WHERE r.id != 'b' ORDER BY r.id DESC";
            var containers = fixture.database.queryContainers(ordered).stream();
            assertEquals(List.of("c", "a"), containers.map(container -> container.getId()).toList());
            refused(400, () -> fixture.database.queryContainers("SELECT * FROM c WHERE").stream().toList());

            var database = fixture.asynchronous();
            for (String user : List.of("b", "c", "a")) {
                database.createUser(new CosmosUserProperties().setId(user)).block();
            }
            var users = database.queryUsers(ordered).toStream();
            assertEquals(List.of("c", "a"), users.map(user -> user.getId()).toList());
            var user = database.getUser("a");
            var permission = new CosmosPermissionProperties().setId("p").setPermissionMode(PermissionMode.READ);
            user.createPermission(permission.setContainerName("a"), null).block();
            var permissions = user.queryPermissions("SELECT * FROM p WHERE p.id = 'p'", null).toStream();
            assertEquals(List.of("p"), permissions.map(one -> one.getId()).toList());

            var scripts = database.getContainer("a").getScripts();
            for (String name : List.of("b", "c", "a")) {
                scripts.createStoredProcedure(new CosmosStoredProcedureProperties(name, "function () {}")).block();
                scripts.createUserDefinedFunction(new CosmosUserDefinedFunctionProperties(name, "function () {}")).block();
                scripts.createTrigger(new CosmosTriggerProperties(name, "function () {}")
                    .setTriggerType(TriggerType.PRE)
                    .setTriggerOperation(TriggerOperation.ALL)).block();
            }
            assertEquals(List.of("c", "a"),
                scripts.queryStoredProcedures(ordered, null).toStream().map(one -> one.getId()).toList());
            assertEquals(List.of("c", "a"),
                scripts.queryUserDefinedFunctions(ordered, null).toStream().map(one -> one.getId()).toList());
            assertEquals(List.of("c", "a"), scripts.queryTriggers(ordered, null).toStream().map(one -> one.getId()).toList());
        }
    }
}
