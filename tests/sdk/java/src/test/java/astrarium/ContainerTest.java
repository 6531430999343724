package astrarium;

import static astrarium.Fixture.STALE;
import static astrarium.Fixture.answered;
import static astrarium.Fixture.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ChangeFeedPolicy;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.ComputedProperty;
import com.azure.cosmos.models.ConflictResolutionMode;
import com.azure.cosmos.models.ConflictResolutionPolicy;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosContainerRequestOptions;
import com.azure.cosmos.models.CosmosFullTextIndex;
import com.azure.cosmos.models.CosmosFullTextPath;
import com.azure.cosmos.models.CosmosFullTextPolicy;
import com.azure.cosmos.models.CosmosVectorDataType;
import com.azure.cosmos.models.CosmosVectorDistanceFunction;
import com.azure.cosmos.models.CosmosVectorEmbedding;
import com.azure.cosmos.models.CosmosVectorEmbeddingPolicy;
import com.azure.cosmos.models.CosmosVectorIndexSpec;
import com.azure.cosmos.models.ExcludedPath;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingMode;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.azure.cosmos.models.SpatialSpec;
import com.azure.cosmos.models.SpatialType;
import com.azure.cosmos.models.UniqueKey;
import com.azure.cosmos.models.UniqueKeyPolicy;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;

/**
 * The life of a container: its policies, what may be changed, its key ranges.
 *
 * <p>Unique keys are defined and echoed here; that they bind is tested with the index, which comes later.
 */
class ContainerTest {
    @OverBothSchemes
    void life(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.database.getContainer("a container");
            refused(404, container::read);
            var created = answered(201, fixture.database.createContainer("a container", "/pk")).getProperties();
            checkDefaults(created);
            refused(409, () -> fixture.database.createContainer("a container", "/pk"));
            answered(200, fixture.database.createContainerIfNotExists("a container", "/pk"));

            var read = answered(200, container.read()).getProperties();
            assertEquals(created.getResourceId(), read.getResourceId());
            assertEquals(created.getETag(), read.getETag());

            read.setDefaultTimeToLiveInSeconds(-1);
            var replaced = answered(200, container.replace(read)).getProperties();
            assertEquals(-1, replaced.getDefaultTimeToLiveInSeconds());
            assertEquals(created.getResourceId(), replaced.getResourceId());
            assertNotEquals(created.getETag(), replaced.getETag());

            answered(204, container.delete());
            refused(404, container::delete);
            var again = fixture.database.createContainer("a container", "/pk").getProperties();
            assertNotEquals(created.getResourceId(), again.getResourceId(), "a resource id was given twice");
        }
    }

    /** What the service fills in when a definition has only an id and a partition key. */
    private static void checkDefaults(CosmosContainerProperties properties) {
        assertEquals(List.of("/pk"), properties.getPartitionKeyDefinition().getPaths());
        assertEquals(PartitionKind.HASH, properties.getPartitionKeyDefinition().getKind());
        IndexingPolicy indexing = properties.getIndexingPolicy();
        assertEquals(IndexingMode.CONSISTENT, indexing.getIndexingMode());
        assertTrue(indexing.isAutomatic());
        assertEquals(List.of("/*"), indexing.getIncludedPaths().stream().map(IncludedPath::getPath).toList());
        assertEquals(List.of("/\"_etag\"/?"), indexing.getExcludedPaths().stream().map(ExcludedPath::getPath).toList());
        ConflictResolutionPolicy conflicts = properties.getConflictResolutionPolicy();
        assertEquals(ConflictResolutionMode.LAST_WRITER_WINS, conflicts.getMode());
        assertEquals("/_ts", conflicts.getConflictResolutionPath());
        assertNull(properties.getDefaultTimeToLiveInSeconds());
    }

    @OverBothSchemes
    void policies(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            var container = fixture.container(everyPolicy());
            var received = container.read().getProperties();
            assertEquals(List.of("/address/city"), received.getPartitionKeyDefinition().getPaths());
            assertEquals(3600, received.getDefaultTimeToLiveInSeconds());
            var keys = received.getUniqueKeyPolicy().getUniqueKeys().stream().map(UniqueKey::getPaths).toList();
            assertEquals(List.of(List.of("/email"), List.of("/name/first", "/name/last")), keys);
            assertEquals("/revision", received.getConflictResolutionPolicy().getConflictResolutionPath());
            var computed = received.getComputedProperties().iterator().next();
            assertEquals("lower", computed.getName());
            assertEquals("SELECT VALUE LOWER(c.name) FROM c", computed.getQuery());
            var retention = received.getChangeFeedPolicy().getRetentionDurationForAllVersionsAndDeletesPolicy();
            assertEquals(Duration.ofMinutes(10), retention);
            checkIndexing(received.getIndexingPolicy());
            var embedding = received.getVectorEmbeddingPolicy().getVectorEmbeddings().get(0);
            assertEquals("/embedding", embedding.getPath());
            assertEquals(8, embedding.getEmbeddingDimensions());
            assertEquals(CosmosVectorDistanceFunction.COSINE, embedding.getDistanceFunction());
            assertEquals("en-US", received.getFullTextPolicy().getDefaultLanguage());
            assertEquals("/text", received.getFullTextPolicy().getPaths().get(0).getPath());

            // What was read can be written back, and nothing of it changes.
            var replaced = answered(200, container.replace(received)).getProperties();
            checkIndexing(replaced.getIndexingPolicy());
            assertEquals(3600, replaced.getDefaultTimeToLiveInSeconds());
        }
    }

    private static void checkIndexing(IndexingPolicy indexing) {
        assertEquals(everyPolicy().getIndexingPolicy().getCompositeIndexes(), indexing.getCompositeIndexes());
        SpatialSpec spatial = indexing.getSpatialIndexes().get(0);
        assertEquals("/place/*", spatial.getPath());
        // The service indexes and echoes all four types, whichever are listed.
        assertEquals(new HashSet<>(Arrays.asList(SpatialType.values())), new HashSet<>(spatial.getSpatialTypes()));
        assertEquals("/embedding", indexing.getVectorIndexes().get(0).getPath());
        assertEquals("flat", indexing.getVectorIndexes().get(0).getType());
        assertEquals("/text", indexing.getCosmosFullTextIndexes().get(0).getPath());
        var excluded = indexing.getExcludedPaths().stream().map(ExcludedPath::getPath).toList();
        assertTrue(excluded.contains("/notes/?"), excluded::toString);
    }

    private static CosmosContainerProperties everyPolicy() {
        var uniqueKeys = new UniqueKeyPolicy().setUniqueKeys(List.of(
            new UniqueKey(List.of("/email")), new UniqueKey(List.of("/name/first", "/name/last"))));
        var vectors = new CosmosVectorEmbeddingPolicy();
        vectors.setCosmosVectorEmbeddings(List.of(new CosmosVectorEmbedding()
            .setPath("/embedding")
            .setDataType(CosmosVectorDataType.FLOAT32)
            .setEmbeddingDimensions(8)
            .setDistanceFunction(CosmosVectorDistanceFunction.COSINE)));
        var texts = new CosmosFullTextPolicy()
            .setDefaultLanguage("en-US")
            .setPaths(List.of(new CosmosFullTextPath().setPath("/text").setLanguage("en-US")));
        return new CosmosContainerProperties("every policy", "/address/city")
            .setDefaultTimeToLiveInSeconds(3600)
            .setUniqueKeyPolicy(uniqueKeys)
            .setConflictResolutionPolicy(ConflictResolutionPolicy.createLastWriterWinsPolicy("/revision"))
            .setComputedProperties(List.of(new ComputedProperty("lower", "SELECT VALUE LOWER(c.name) FROM c")))
            .setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)))
            .setVectorEmbeddingPolicy(vectors)
            .setFullTextPolicy(texts)
            .setIndexingPolicy(everyIndex());
    }

    private static IndexingPolicy everyIndex() {
        return new IndexingPolicy()
            .setIndexingMode(IndexingMode.CONSISTENT)
            .setAutomatic(true)
            .setIncludedPaths(List.of(new IncludedPath("/*")))
            .setExcludedPaths(List.of(new ExcludedPath("/notes/?"), new ExcludedPath("/embedding/*")))
            .setCompositeIndexes(List.of(List.of(
                new CompositePath().setPath("/name").setOrder(CompositePathSortOrder.ASCENDING),
                new CompositePath().setPath("/age").setOrder(CompositePathSortOrder.DESCENDING))))
            .setSpatialIndexes(List.of(new SpatialSpec().setPath("/place/*").setSpatialTypes(List.of(SpatialType.POINT))))
            .setVectorIndexes(List.of(new CosmosVectorIndexSpec().setPath("/embedding").setType("flat")))
            .setCosmosFullTextIndexes(List.of(new CosmosFullTextIndex().setPath("/text")));
    }

    @OverBothSchemes
    void hierarchicalKey(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            var definition = new PartitionKeyDefinition()
                .setKind(PartitionKind.MULTI_HASH)
                .setVersion(PartitionKeyDefinitionVersion.V2)
                .setPaths(List.of("/tenant", "/user", "/session"));
            var container = fixture.container(new CosmosContainerProperties("levels", definition));
            var received = container.read().getProperties().getPartitionKeyDefinition();
            assertEquals(PartitionKind.MULTI_HASH, received.getKind());
            assertEquals(PartitionKeyDefinitionVersion.V2, received.getVersion());
            assertEquals(List.of("/tenant", "/user", "/session"), received.getPaths());
        }
    }

    @OverBothSchemes
    void withoutIndex(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            var properties = new CosmosContainerProperties("no index", "/pk");
            properties.setIndexingPolicy(new IndexingPolicy().setIndexingMode(IndexingMode.NONE).setAutomatic(false));
            var received = fixture.container(properties).read().getProperties().getIndexingPolicy();
            assertEquals(IndexingMode.NONE, received.getIndexingMode());
            assertEquals(false, received.isAutomatic());
        }
    }

    @OverBothSchemes
    void refusals(String scheme) throws Exception {
        var onePathComposite = new IndexingPolicy()
            .setCompositeIndexes(List.of(List.of(new CompositePath().setPath("/a").setOrder(CompositePathSortOrder.ASCENDING))));
        var vectorWithoutEmbedding = new IndexingPolicy()
            .setVectorIndexes(List.of(new CosmosVectorIndexSpec().setPath("/embedding").setType("flat")));
        try (Fixture fixture = Fixture.over(scheme)) {
            for (CosmosContainerProperties bad : List.of(
                new CosmosContainerProperties("refused", "/pk/*"),
                new CosmosContainerProperties("refused", "pk"),
                new CosmosContainerProperties("refused", "/pk").setDefaultTimeToLiveInSeconds(0),
                new CosmosContainerProperties("refused", "/pk").setDefaultTimeToLiveInSeconds(-2),
                new CosmosContainerProperties("refused", "/pk").setIndexingPolicy(onePathComposite),
                new CosmosContainerProperties("refused", "/pk").setIndexingPolicy(vectorWithoutEmbedding))) {
                refused(400, () -> fixture.database.createContainer(bad));
            }
            refused(404, fixture.database.getContainer("refused")::read);
        }
    }

    @OverBothSchemes
    void replaceRefusals(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            var container = fixture.container("fixed");
            // The SDK addresses a replace by the self link of what was read before.
            var other = container.read().getProperties();
            other.getPartitionKeyDefinition().setPaths(List.of("/other"));
            refused(400, () -> container.replace(other));
            var unique = container.read().getProperties();
            unique.setUniqueKeyPolicy(new UniqueKeyPolicy().setUniqueKeys(List.of(new UniqueKey(List.of("/email")))));
            refused(400, () -> container.replace(unique));

            var current = container.read().getProperties();
            var stale = new CosmosContainerRequestOptions().setIfMatchETag(STALE);
            refused(412, () -> container.replace(current, stale));
            refused(412, () -> container.delete(stale));
            var ifChanged = new CosmosContainerRequestOptions().setIfNoneMatchETag(current.getETag());
            assertEquals(304, container.read(ifChanged).getStatusCode());
            var ifUnchanged = new CosmosContainerRequestOptions().setIfMatchETag(current.getETag());
            answered(200, container.replace(current, ifUnchanged));
            refused(412, () -> container.replace(current, ifUnchanged));
        }
    }

    @OverBothSchemes
    void list(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            List<String> expected = List.of("alpha", "beta", "gamma");
            expected.forEach(fixture::container);
            var ids = fixture.database.readAllContainers().stream().map(CosmosContainerProperties::getId).sorted().toList();
            assertEquals(expected, ids);
            // In pages, which the SDK asks for by continuation.
            int pages = 0;
            int count = 0;
            for (var page : fixture.database.readAllContainers().iterableByPage(1)) {
                pages += 1;
                count += page.getResults().size();
            }
            assertEquals(3, count);
            assertTrue(pages >= 3, "pages of one");
        }
    }

    @OverBothSchemes
    void quota(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            var read = fixture.container("quota").read(new CosmosContainerRequestOptions().setQuotaInfoEnabled(true));
            assertEquals(100, read.getIndexTransformationProgress());
            assertNotNull(read.getMaxResourceQuota());
            assertNotNull(read.getCurrentResourceQuotaUsage());
        }
    }

    /** The SDK reads the key ranges by rid, in a loop that ends with 304 only. */
    @OverBothSchemes
    void feedRanges(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            List<FeedRange> ranges = fixture.container("ranges").getFeedRanges();
            assertEquals(1, ranges.size());
            assertEquals(FeedRange.forFullRange().toString(), ranges.get(0).toString());
        }
    }

    /** On a server of one region nothing conflicts, but the feed is there. */
    @OverBothSchemes
    void conflicts(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            fixture.container("peaceful");
            var conflicts = fixture.asynchronous().getContainer("peaceful").readAllConflicts(null).collectList().block();
            assertEquals(List.of(), conflicts);
        }
    }
}
