package astrarium;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosResponse;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.function.Executable;

/** What the tests are written with: a database of their own on the shared server, documents, expectations. */
final class Fixture implements AutoCloseable {
    static final ObjectMapper JSON = new ObjectMapper();

    /** The partition that {@link #document} puts documents in. */
    static final PartitionKey SOMEWHERE = new PartitionKey("somewhere");

    /** An etag that no resource has. */
    static final String STALE = "\"00000000-0000-0000-0000-000000000000\"";

    private static final Map<String, CosmosClient> CLIENTS = new ConcurrentHashMap<>();
    private static final Map<String, CosmosAsyncClient> ASYNC_CLIENTS = new ConcurrentHashMap<>();
    private static final AtomicInteger COUNTER = new AtomicInteger();
    private static final List<String> SYSTEM_PROPERTIES = List.of("_rid", "_self", "_etag", "_attachments", "_ts");

    final CosmosClient client;
    final CosmosDatabase database;
    private final String scheme;

    private Fixture(String scheme) throws Exception {
        this.scheme = scheme;
        client = client(scheme);
        String id = "database-" + COUNTER.incrementAndGet();
        client.createDatabase(id);
        database = client.getDatabase(id);
    }

    /** What tests run over, each by itself. */
    static List<String> schemes() {
        return List.of(System.getenv().getOrDefault("ASTRARIUM_TEST_SCHEMES", "http,https").split(","));
    }

    static Fixture over(String scheme) throws Exception {
        return new Fixture(scheme);
    }

    /** A builder for the shared server, as an application would write it. */
    static CosmosClientBuilder builder(Server server, String scheme) {
        return new CosmosClientBuilder()
            .endpoint(server.endpoint(scheme))
            .key(Server.KEY)
            .gatewayMode()
            .contentResponseOnWriteEnabled(true);
    }

    /** The client of all tests of a scheme: making one costs more than most tests. */
    static CosmosClient client(String scheme) throws Exception {
        Server server = Server.shared();
        return CLIENTS.computeIfAbsent(scheme, any -> builder(server, scheme).buildClient());
    }

    /** The same database through the asynchronous client, which has calls that the other one lacks. */
    CosmosAsyncDatabase asynchronous() throws Exception {
        Server server = Server.shared();
        return ASYNC_CLIENTS
            .computeIfAbsent(scheme, any -> builder(server, scheme).buildAsyncClient())
            .getDatabase(database.getId());
    }

    /** Makes a container with the partition key /pk. */
    CosmosContainer container(String id) {
        return container(new CosmosContainerProperties(id, "/pk"));
    }

    CosmosContainer container(CosmosContainerProperties properties) {
        assertEquals(201, database.createContainer(properties).getStatusCode());
        return database.getContainer(properties.getId());
    }

    @Override
    public void close() {
        database.delete();
    }

    /** A document in the partition SOMEWHERE. */
    static ObjectNode document(String id, Object value) {
        return document(Map.of("id", id, "pk", "somewhere", "value", value));
    }

    static ObjectNode document(Map<String, ?> properties) {
        return JSON.valueToTree(properties);
    }

    /** The call must be refused with this status. */
    static CosmosException refused(int status, Executable call) {
        CosmosException refusal = assertThrows(CosmosException.class, call);
        assertEquals(status, refusal.getStatusCode(), refusal::getMessage);
        return refusal;
    }

    static CosmosException refused(int status, int substatus, Executable call) {
        CosmosException refusal = refused(status, call);
        assertEquals(substatus, refusal.getSubStatusCode(), refusal::getMessage);
        return refusal;
    }

    /** What the service sends with every answer. */
    static <R extends CosmosResponse<?>> R answered(int status, R response) {
        assertEquals(status, response.getStatusCode());
        assertTrue(response.getRequestCharge() > 0, "request charge");
        assertNotNull(response.getActivityId(), "activity id");
        return response;
    }

    /** What the service sends with every answer about an item. */
    static <T> CosmosItemResponse<T> answered(int status, CosmosItemResponse<T> response) {
        assertEquals(status, response.getStatusCode());
        assertTrue(response.getRequestCharge() > 0, "request charge");
        assertNotNull(response.getActivityId(), "activity id");
        assertNotNull(response.getSessionToken(), "session token");
        assertFalse(response.getSessionToken().isEmpty(), "session token");
        return response;
    }

    /** The document that was sent, with the system's own properties and nothing else. */
    static void same(ObjectNode sent, ObjectNode received) {
        assertNotNull(received, "no document");
        SYSTEM_PROPERTIES.forEach(name -> assertTrue(received.has(name), () -> "no " + name + " in " + received));
        assertEquals(sent, received.deepCopy().remove(SYSTEM_PROPERTIES));
    }
}
