package astrarium;

import static astrarium.Fixture.STALE;
import static astrarium.Fixture.answered;
import static astrarium.Fixture.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosDatabaseRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;

/** The life of a database, and what the account answers to keys. */
class DatabaseTest {
    @OverBothSchemes
    void life(String scheme) throws Exception {
        CosmosClient client = Fixture.client(scheme);
        String id = "life of a dätabase " + scheme;
        CosmosDatabase database = client.getDatabase(id);
        refused(404, database::read);

        var created = answered(201, client.createDatabase(id)).getProperties();
        var read = answered(200, database.read()).getProperties();
        assertEquals(id, read.getId());
        assertEquals(created.getETag(), read.getETag());
        assertEquals(created.getResourceId(), read.getResourceId());
        assertEquals(created.getTimestamp(), read.getTimestamp());
        refused(409, () -> client.createDatabase(id));
        answered(200, client.createDatabaseIfNotExists(id));

        answered(204, database.delete());
        refused(404, database::delete);
        var again = answered(201, client.createDatabaseIfNotExists(id)).getProperties();
        assertNotEquals(created.getResourceId(), again.getResourceId(), "a resource id was given twice");
        database.delete();
    }

    @OverBothSchemes
    void conditions(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            String etag = fixture.database.read().getProperties().getETag();
            var unchanged = fixture.database.read(new CosmosDatabaseRequestOptions().setIfNoneMatchETag(etag));
            assertEquals(304, unchanged.getStatusCode());
            refused(412, () -> fixture.database.delete(new CosmosDatabaseRequestOptions().setIfMatchETag(STALE)));
            fixture.database.read();
        }
    }

    @OverBothSchemes
    void list(String scheme) throws Exception {
        try (Fixture one = Fixture.over(scheme); Fixture other = Fixture.over(scheme)) {
            var ids = one.client.readAllDatabases().stream().map(properties -> properties.getId()).toList();
            assertTrue(ids.contains(one.database.getId()) && ids.contains(other.database.getId()), ids::toString);
            // A lookup by one property is the one query that needs no SQL.
            String lookup = "SELECT * FROM root r WHERE r.id = '" + one.database.getId() + "'";
            var found = one.client.queryDatabases(lookup, new CosmosQueryRequestOptions()).stream().toList();
            assertEquals(1, found.size());
            assertEquals(one.database.getId(), found.get(0).getId());
        }
    }

    @Test
    void wrongKey() throws Exception {
        Server server = Server.shared();
        var stranger = Fixture.builder(server, "http").key("d3Jvbmcta2V5LW9mLXRoZS10ZXN0LXN1aXRlcw==");
        // The client reads the account when it is built, and wraps what it is told.
        Throwable failure = Assertions.assertThrows(RuntimeException.class, stranger::buildClient);
        while (!(failure instanceof CosmosException) && failure.getCause() != null) {
            failure = failure.getCause();
        }
        assertEquals(401, Assertions.assertInstanceOf(CosmosException.class, failure).getStatusCode());
    }
}
