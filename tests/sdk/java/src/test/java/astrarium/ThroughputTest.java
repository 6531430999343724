package astrarium;

import static astrarium.Fixture.answered;
import static astrarium.Fixture.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.ThroughputResponse;
import java.util.function.Function;
import java.util.function.Supplier;

/** Throughput of databases and containers: read, replace, manual and autoscale, refusals. */
class ThroughputTest {
    private interface Check {
        void on(Supplier<ThroughputResponse> read, Function<ThroughputProperties, ThroughputResponse> replace);
    }

    /** Runs a check on a container and on a database that were made with the same throughput. */
    private static void onBoth(String scheme, ThroughputProperties throughput, Check check) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            fixture.database.createContainer("scaled", "/pk", throughput);
            CosmosContainer container = fixture.database.getContainer("scaled");
            check.on(container::readThroughput, container::replaceThroughput);

            String id = fixture.database.getId() + "-scaled";
            fixture.client.createDatabase(id, throughput);
            CosmosDatabase database = fixture.client.getDatabase(id);
            check.on(database::readThroughput, database::replaceThroughput);
            database.delete();
        }
    }

    private static ThroughputProperties manual(int throughput) {
        return ThroughputProperties.createManualThroughput(throughput);
    }

    private static ThroughputProperties autoscale(int maximum) {
        return ThroughputProperties.createAutoscaledThroughput(maximum);
    }

    @OverBothSchemes
    void manual(String scheme) throws Exception {
        onBoth(scheme, manual(400), (read, replace) -> {
            var before = answered(200, read.get());
            assertEquals(400, before.getProperties().getManualThroughput());
            assertEquals(0, before.getProperties().getAutoscaleMaxThroughput());
            assertEquals(400, before.getMinThroughput());
            assertFalse(before.isReplacePending());
            var after = answered(200, replace.apply(manual(1100)));
            assertEquals(1100, after.getProperties().getManualThroughput());
            assertNotEquals(before.getProperties().getETag(), after.getProperties().getETag());
            for (int bad : new int[] {0, 399, 450, 1_000_100}) {
                refused(400, () -> replace.apply(manual(bad)));
            }
            assertEquals(1100, read.get().getProperties().getManualThroughput());
        });
    }

    @OverBothSchemes
    void autoscale(String scheme) throws Exception {
        onBoth(scheme, autoscale(4000), (read, replace) -> {
            assertEquals(4000, answered(200, read.get()).getProperties().getAutoscaleMaxThroughput());
            assertEquals(10_000, answered(200, replace.apply(autoscale(10_000))).getProperties().getAutoscaleMaxThroughput());
            for (int bad : new int[] {500, 1500}) {
                refused(400, () -> replace.apply(autoscale(bad)));
            }
            assertEquals(10_000, read.get().getProperties().getAutoscaleMaxThroughput());
        });
    }

    @OverBothSchemes
    void absent(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            // The SDK makes this refusal itself, from an empty answer to its lookup.
            int status = refusedStatus(fixture.database::readThroughput);
            assertTrue(status == 400 || status == 404, "status " + status);
            // A container outside a database with throughput always has some.
            assertEquals(400, fixture.container("default").readThroughput().getProperties().getManualThroughput());
        }
    }

    private static int refusedStatus(Supplier<?> call) {
        try {
            call.get();
            return 200;
        } catch (com.azure.cosmos.CosmosException refusal) {
            return refusal.getStatusCode();
        }
    }

    @OverBothSchemes
    void refusedAtCreation(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            var properties = new CosmosContainerProperties("refused", "/pk");
            for (ThroughputProperties bad : new ThroughputProperties[] {manual(100), manual(450), autoscale(500), autoscale(1500)}) {
                refused(400, () -> fixture.database.createContainer(properties, bad));
            }
            refused(404, fixture.database.getContainer("refused")::read);
        }
    }

    @OverBothSchemes
    void sharedByContainers(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            String id = fixture.database.getId() + "-shared";
            fixture.client.createDatabase(id, manual(600));
            CosmosDatabase database = fixture.client.getDatabase(id);
            database.createContainer("sharing", "/pk");
            assertNotEquals(200, refusedStatus(database.getContainer("sharing")::readThroughput));
            assertEquals(600, database.readThroughput().getProperties().getManualThroughput());
            database.delete();
        }
    }
}
