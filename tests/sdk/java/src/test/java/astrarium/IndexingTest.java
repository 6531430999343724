package astrarium;

import static astrarium.Fixture.JSON;
import static astrarium.Fixture.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.ExcludedPath;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.UniqueKey;
import com.azure.cosmos.models.UniqueKeyPolicy;
import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.function.Executable;

/** Indexing policies: what they refuse, what they leave alone, what the metrics say; unique keys. */
class IndexingTest {
    private static final JsonNode CASES = cases();

    /** A throughput for which a container has five key ranges, and one for which it has one. */
    private static final int[] THROUGHPUTS = {400, 30_000};

    private static JsonNode cases() {
        try {
            return JSON.readTree(Path.of("..", "cases", "indexing.json").toFile());
        } catch (java.io.IOException unreadable) {
            throw new IllegalStateException(unreadable);
        }
    }

    private static List<String> texts(JsonNode list) {
        return StreamSupport.stream(list.spliterator(), false).map(JsonNode::asText).toList();
    }

    private static IndexingPolicy policy() {
        JsonNode policy = CASES.get("definition").get("indexingPolicy");
        List<IncludedPath> included = new ArrayList<>();
        policy.get("includedPaths").forEach(path -> included.add(new IncludedPath(path.get("path").asText())));
        List<ExcludedPath> excluded = new ArrayList<>();
        policy.get("excludedPaths").forEach(path -> excluded.add(new ExcludedPath(path.get("path").asText())));
        List<List<CompositePath>> composites = new ArrayList<>();
        for (JsonNode composite : policy.get("compositeIndexes")) {
            List<CompositePath> paths = new ArrayList<>();
            composite.forEach(path -> paths.add(new CompositePath()
                .setPath(path.get("path").asText())
                .setOrder(CompositePathSortOrder.valueOf(path.get("order").asText().toUpperCase(Locale.ROOT)))));
            composites.add(paths);
        }
        return new IndexingPolicy().setIncludedPaths(included).setExcludedPaths(excluded).setCompositeIndexes(composites);
    }

    private static CosmosContainer indexed(Fixture fixture, int throughput) {
        String id = "indexed-" + throughput;
        var properties = new CosmosContainerProperties(id, "/pk").setIndexingPolicy(policy());
        fixture.database.createContainer(properties, ThroughputProperties.createManualThroughput(throughput));
        CosmosContainer container = fixture.database.getContainer(id);
        CASES.get("documents").forEach(container::createItem);
        return container;
    }

    private static List<String> ids(CosmosContainer container, String query, int size) {
        List<String> ids = new ArrayList<>();
        container.queryItems(query, new CosmosQueryRequestOptions(), JsonNode.class)
            .iterableByPage(size)
            .forEach(page -> page.getResults().forEach(item -> ids.add(item.get("id").asText())));
        return ids;
    }

    @OverBothSchemes
    void aPolicyChangesNoRows(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            for (int throughput : THROUGHPUTS) {
                CosmosContainer container = indexed(fixture, throughput);
                for (JsonNode one : CASES.get("queries")) {
                    String query = one.get("query").asText();
                    for (int size : new int[] {100, 1, 4}) {
                        List<String> found = ids(container, query, size);
                        // Without an order, ranges come one after another.
                        List<String> shown = query.contains("ORDER BY") ? found : found.stream().sorted().toList();
                        assertEquals(texts(one.get("ids")), shown, query);
                    }
                }
            }
        }
    }

    /** In one range: refusals of several ranges at once reach the application as one failure of many parts. */
    @OverBothSchemes
    void ordersWithoutAnIndexAreRefused(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = indexed(fixture, THROUGHPUTS[0]);
            for (JsonNode one : CASES.get("refusals")) {
                var refusal = refused(400, () -> ids(container, one.get("query").asText(), 100));
                contains(refusal.getMessage(), one.get("message").asText());
            }
        }
    }

    /** The SDK decodes the header into its diagnostics. */
    @OverBothSchemes
    void metricsNameIndexes(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = indexed(fixture, THROUGHPUTS[0]);
            for (JsonNode one : CASES.get("metrics")) {
                var options = new CosmosQueryRequestOptions().setIndexMetricsEnabled(true);
                var pages = container.queryItems(one.get("query").asText(), options, JsonNode.class).iterableByPage();
                String diagnostics = pages.iterator().next().getCosmosDiagnostics().toString();
                for (String kind : List.of("utilized", "potential")) {
                    texts(one.get(kind)).forEach(spec -> contains(diagnostics, spec));
                    one.get(kind + "Composite").forEach(
                        specs -> specs.forEach(spec -> contains(diagnostics, spec.asText())));
                }
            }
        }
    }

    @OverBothSchemes
    void uniqueKeys(String scheme) throws Exception {
        JsonNode cases = CASES.get("uniqueKeys");
        List<UniqueKey> keys = new ArrayList<>();
        cases.get("policy").get("uniqueKeys").forEach(key -> keys.add(new UniqueKey(texts(key.get("paths")))));
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container(new CosmosContainerProperties("unique", "/pk")
                .setUniqueKeyPolicy(new UniqueKeyPolicy().setUniqueKeys(keys)));
            for (JsonNode write : cases.get("writes")) {
                Executable act = act(container, write.get("act").asText(), write.get("item"));
                if (write.path("conflict").asBoolean()) {
                    contains(refused(409, act).getMessage(), cases.get("message").asText());
                } else {
                    run(act);
                }
            }
        }
    }

    private static Executable act(CosmosContainer container, String name, JsonNode item) {
        String id = item.get("id").asText();
        var key = new PartitionKey(item.get("pk").asText());
        return switch (name) {
            case "create" -> () -> container.createItem(item);
            case "upsert" -> () -> container.upsertItem(item);
            case "replace" -> () -> container.replaceItem(item, id, key, new CosmosItemRequestOptions());
            default -> () -> container.deleteItem(id, key, new CosmosItemRequestOptions());
        };
    }

    private static void run(Executable act) {
        try {
            act.execute();
        } catch (Throwable failure) {
            throw new AssertionError(failure);
        }
    }

    private static void contains(String text, String piece) {
        assertTrue(text.contains(piece), () -> piece + " is not in " + text);
    }
}
