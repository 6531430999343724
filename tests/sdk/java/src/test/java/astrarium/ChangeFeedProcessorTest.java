package astrarium;

import static astrarium.Fixture.document;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.models.ChangeFeedPolicy;
import com.azure.cosmos.models.ChangeFeedProcessorItem;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.azure.cosmos.models.ChangeFeedProcessorState;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** The change feed pushed by the SDK's processor, whose workers share the ranges by leases in a container of their own. */
class ChangeFeedProcessorTest {
    private static final Duration PATIENCE = Duration.ofMinutes(5);
    private static final int RANGES = 4;

    /** Watched by several workers: the container, and the one with the leases. */
    private record Feed(CosmosAsyncContainer source, CosmosAsyncContainer leases) {
        static Feed make(Fixture fixture, CosmosContainerProperties properties) throws Exception {
            CosmosAsyncDatabase database = fixture.asynchronous();
            database.createContainer(properties, ThroughputProperties.createManualThroughput(20_000)).block();
            database.createContainer("leases", "/id").block();
            return new Feed(database.getContainer(properties.getId()), database.getContainer("leases"));
        }

        static Feed make(Fixture fixture) throws Exception {
            return make(fixture, new CosmosContainerProperties("items", "/pk"));
        }

        /** The same containers through another client. */
        Feed through(CosmosAsyncClient client, Fixture fixture) {
            CosmosAsyncDatabase database = client.getDatabase(fixture.database.getId());
            return new Feed(database.getContainer(source.getId()), database.getContainer("leases"));
        }

        void write(int from, int to) {
            IntStream.range(from, to).forEach(number ->
                source.upsertItem(document(Map.of("id", "item-" + number, "pk", "key-" + number, "number", number))).block());
        }
    }

    /** A worker, and what it was given. */
    private static final class Worker {
        final Set<String> seen = ConcurrentHashMap.newKeySet();
        final List<ChangeFeedProcessorItem> items = new CopyOnWriteArrayList<>();
        final ChangeFeedProcessor processor;

        private Worker(ChangeFeedProcessorBuilder builder, boolean byRangeId) {
            processor = byRangeId
                ? builder.handleChanges(documents -> documents.forEach(this::take)).buildChangeFeedProcessor()
                : builder.handleLatestVersionChanges(changes -> changes.forEach(change -> take(change.getCurrent()))).buildChangeFeedProcessor();
        }

        private Worker(ChangeFeedProcessorBuilder builder) {
            processor = builder.handleAllVersionsAndDeletesChanges((List<ChangeFeedProcessorItem> changes) -> items.addAll(changes))
                .buildChangeFeedProcessor();
        }

        private void take(JsonNode document) {
            seen.add(document.get("id").asText());
        }

        Worker start() {
            processor.start().block(PATIENCE);
            return this;
        }

        void stop() {
            processor.stop().block(PATIENCE);
        }

        int lag() {
            return states().stream().mapToInt(ChangeFeedProcessorState::getEstimatedLag).sum();
        }

        List<ChangeFeedProcessorState> states() {
            return processor.getCurrentState().block(PATIENCE);
        }

        /** How many leases each worker has. */
        Map<String, Long> owners() {
            return states().stream().filter(state -> state.getHostName() != null)
                .collect(Collectors.groupingBy(ChangeFeedProcessorState::getHostName, Collectors.counting()));
        }
    }

    /** Impatient workers: their leases change hands within seconds. */
    private static ChangeFeedProcessorOptions options() {
        return new ChangeFeedProcessorOptions()
            .setLeaseAcquireInterval(Duration.ofMillis(500))
            .setLeaseRenewInterval(Duration.ofMillis(500))
            .setLeaseExpirationInterval(Duration.ofSeconds(4))
            .setFeedPollDelay(Duration.ofMillis(100))
            .setMaxItemCount(10);
    }

    private static ChangeFeedProcessorBuilder builder(Feed feed, String host, ChangeFeedProcessorOptions options) {
        return new ChangeFeedProcessorBuilder().hostName(host).feedContainer(feed.source()).leaseContainer(feed.leases()).options(options);
    }

    private static void until(String what, BooleanSupplier condition) throws InterruptedException {
        Instant deadline = Instant.now().plus(PATIENCE);
        while (!condition.getAsBoolean()) {
            assertTrue(Instant.now().isBefore(deadline), () -> "in vain waited for: " + what);
            Thread.sleep(100);
        }
    }

    /** Two workers share the ranges; one stops, the other takes them over; one is lost, and its leases run out. */
    private static void twoWorkers(String scheme, boolean byRangeId) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            Feed feed = Feed.make(fixture);
            feed.write(0, 40);
            Worker first = new Worker(builder(feed, "first", options().setStartFromBeginning(true)), byRangeId).start();
            until("the first worker to see everything", () -> first.seen.size() == 40);
            assertEquals(Map.of("first", (long) RANGES), first.owners());

            Relay relay = new Relay(Server.shared().port());
            CosmosAsyncClient client = Fixture.builder(Server.shared(), scheme)
                .endpoint(scheme + "://127.0.0.1:" + relay.port() + "/").buildAsyncClient();
            Worker second = new Worker(builder(feed.through(client, fixture), "second", options().setStartFromBeginning(true)), byRangeId).start();
            until("both workers to have half of the ranges", () -> first.owners().equals(Map.of("first", 2L, "second", 2L)));
            feed.write(40, 80);
            until("both workers to see the rest together", () -> union(first, second).size() == 80);
            assertTrue(second.seen.stream().anyMatch(id -> !first.seen.contains(id)), "the second worker had nothing to do");

            // It is lost, without a word.
            relay.close();
            feed.write(80, 120);
            until("the first worker to have the leases of the lost one", () -> first.owners().equals(Map.of("first", (long) RANGES)));
            until("nothing to be lost", () -> union(first, second).size() == 120);

            Worker third = new Worker(builder(feed, "third", options().setStartFromBeginning(true)), byRangeId).start();
            until("the third worker to have its half", () -> third.owners().equals(Map.of("first", 2L, "third", 2L)));
            first.stop();
            feed.write(120, 160);
            until("the third worker to go on alone", () -> union(first, second, third).size() == 160);
            until("no lag", () -> third.lag() == 0);
            // What was seen is not seen again: leases hold the place.
            assertFalse(third.seen.contains("item-0"));
            third.stop();
            client.close();
        }
    }

    private static Set<String> union(Worker... workers) {
        return List.of(workers).stream().flatMap(worker -> worker.seen.stream()).collect(Collectors.toSet());
    }

    @OverBothSchemes
    void twoWorkersByRangeId(String scheme) throws Exception {
        twoWorkers(scheme, true);
    }

    @OverBothSchemes
    void twoWorkersByKeyRange(String scheme) throws Exception {
        twoWorkers(scheme, false);
    }

    @OverBothSchemes
    void theEstimatorCountsWhatIsToCome(String scheme) throws Exception {
        for (boolean byRangeId : new boolean[] {true, false}) {
            try (Fixture fixture = Fixture.over(scheme)) {
                Feed feed = Feed.make(fixture);
                feed.write(0, 30);
                Worker worker = new Worker(builder(feed, "worker", options().setStartFromBeginning(true)), byRangeId).start();
                until("the worker to see everything", () -> worker.seen.size() == 30);
                until("no lag", () -> worker.lag() == 0);
                worker.stop();
                // A look that was under way when it stopped is still taken.
                Thread.sleep(1000);
                feed.write(100, 150);
                assertEquals(50, worker.lag());
                assertEquals(RANGES, worker.states().size());
                if (byRangeId) {
                    Map<String, Integer> lag = worker.processor.getEstimatedLag().block(PATIENCE);
                    assertEquals(50, lag.values().stream().mapToInt(Integer::intValue).sum(), lag::toString);
                }
                Worker again = new Worker(builder(feed, "again", options().setStartFromBeginning(true)), byRangeId).start();
                until("the rest", () -> again.seen.size() == 50);
                until("no lag", () -> again.lag() == 0);
                again.stop();
            }
        }
    }

    @OverBothSchemes
    void fromATimeAndFromNow(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            Feed feed = Feed.make(fixture);
            feed.write(0, 20);
            Thread.sleep(1100);
            Instant time = Instant.now();
            Thread.sleep(1100);
            feed.write(20, 40);
            Worker late = new Worker(builder(feed, "late", options().setStartTime(time).setLeasePrefix("late")), true).start();
            Worker latest = new Worker(builder(feed, "latest", options().setStartTime(time).setLeasePrefix("latest")), false).start();
            Worker fresh = new Worker(builder(feed, "fresh", options().setLeasePrefix("fresh")), false).start();
            until("what came after the time", () -> late.seen.size() == 20 && latest.seen.size() == 20);
            until("a lease on every range", () -> fresh.owners().equals(Map.of("fresh", (long) RANGES)));
            // The first look of a worker is what now means.
            until("the first look", () -> fresh.states().stream().allMatch(state -> state.getContinuationToken() != null));
            feed.write(40, 60);
            until("what is new", () -> late.seen.size() == 40 && latest.seen.size() == 40 && fresh.seen.size() == 20);
            assertFalse(late.seen.contains("item-19") || latest.seen.contains("item-19") || fresh.seen.contains("item-39"));
            List.of(late, latest, fresh).forEach(Worker::stop);
        }
    }

    @OverBothSchemes
    void allVersionsAndDeletes(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            var properties = new CosmosContainerProperties("items", "/pk");
            properties.setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
            Feed feed = Feed.make(fixture, properties);
            feed.write(100, 101);
            Worker worker = new Worker(builder(feed, "worker", options())).start();
            until("a lease on every range", () -> worker.owners().equals(Map.of("worker", (long) RANGES)));
            until("the first look", () -> worker.states().stream().allMatch(state -> state.getContinuationToken() != null));
            feed.write(0, 1);
            feed.write(0, 1);
            feed.source().deleteItem("item-0", new PartitionKey("key-0")).block();
            until("three changes", () -> worker.items.size() == 3);
            assertEquals(List.of("create", "replace", "delete"), worker.items.stream()
                .map(item -> item.getChangeFeedMetaData().getOperationType().toString().toLowerCase()).toList());
            assertNull(worker.items.get(2).getPrevious());
            var metadata = worker.items.get(1).getChangeFeedMetaData();
            assertEquals(worker.items.get(0).getChangeFeedMetaData().getLogSequenceNumber(), metadata.getPreviousLogSequenceNumber());
            assertTrue(Duration.between(metadata.getConflictResolutionTimestamp(), Instant.now()).abs().toMinutes() < 10);
            worker.stop();
        }
    }
}
