package astrarium;

import static astrarium.Fixture.SOMEWHERE;
import static astrarium.Fixture.answered;
import static astrarium.Fixture.document;
import static astrarium.Fixture.refused;
import static astrarium.Fixture.same;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosAsyncUser;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosUser;
import com.azure.cosmos.models.CosmosPermissionProperties;
import com.azure.cosmos.models.CosmosPermissionRequestOptions;
import com.azure.cosmos.models.CosmosUserProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PermissionMode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;

/** Users, permissions, and clients that hold a resource token instead of a key. */
class UserTest {
    private static CosmosPermissionProperties permission(String id, PermissionMode mode, String container) {
        return new CosmosPermissionProperties().setId(id).setPermissionMode(mode).setContainerName(container);
    }

    @OverBothSchemes
    void users(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosUser user = fixture.database.getUser("ada");
            refused(404, user::read);
            var created = answered(201, fixture.database.createUser(new CosmosUserProperties().setId("ada"))).getProperties();
            refused(409, () -> fixture.database.createUser(new CosmosUserProperties().setId("ada")));
            assertEquals(created.getETag(), answered(200, user.read()).getProperties().getETag());

            answered(200, fixture.database.upsertUser(new CosmosUserProperties().setId("ada")));
            answered(201, fixture.database.upsertUser(new CosmosUserProperties().setId("grace")));
            var renamed = answered(200, user.replace(user.read().getProperties().setId("augusta"))).getProperties();
            assertNotEquals(created.getETag(), renamed.getETag());
            refused(404, user::read);
            var ids = fixture.database.readAllUsers().stream().map(CosmosUserProperties::getId).sorted().toList();
            assertEquals(List.of("augusta", "grace"), ids);
            var found = fixture.database.queryUsers("SELECT * FROM root r WHERE r.id = 'grace'").stream().toList();
            assertEquals(1, found.size());

            answered(204, fixture.database.getUser("augusta").delete());
            refused(404, fixture.database.getUser("augusta")::delete);
        }
    }

    @OverBothSchemes
    void permissions(String scheme) throws Exception {
        var none = new CosmosPermissionRequestOptions();
        try (Fixture fixture = Fixture.over(scheme)) {
            fixture.container("items");
            fixture.container("others");
            fixture.database.createUser(new CosmosUserProperties().setId("ada"));
            CosmosAsyncUser user = fixture.asynchronous().getUser("ada");
            var created = answered(201, user.createPermission(permission("reads", PermissionMode.READ, "items"), none).block());
            assertEquals(PermissionMode.READ, created.getProperties().getPermissionMode());
            assertEquals("items", created.getProperties().getContainerName());
            assertTrue(created.getProperties().getToken().startsWith("type=resource&ver=1"), created.getProperties().getToken());
            refused(409, () -> user.createPermission(permission("reads", PermissionMode.READ, "others"), none).block());

            // The SDK addresses a replace by the self link of what was read before.
            var read = answered(200, user.getPermission("reads").read(none).block()).getProperties();
            var replaced = user.getPermission("reads").replace(read.setPermissionMode(PermissionMode.ALL), none).block();
            assertEquals(PermissionMode.ALL, answered(200, replaced).getProperties().getPermissionMode());
            assertNotEquals(created.getProperties().getETag(), replaced.getProperties().getETag());
            answered(201, user.upsertPermission(permission("more", PermissionMode.READ, "others"), none).block());
            answered(200, user.upsertPermission(permission("more", PermissionMode.ALL, "others"), none).block());
            var ids = user.readAllPermissions().collectList().block().stream().map(CosmosPermissionProperties::getId).sorted().toList();
            assertEquals(List.of("more", "reads"), ids);

            answered(204, user.getPermission("reads").delete(none).block());
            refused(404, () -> user.getPermission("reads").read(none).block());
        }
    }

    /** A client with a resource token reads and writes what its permission covers, and nothing else. */
    @OverBothSchemes
    void resourceTokens(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = fixture.container("items");
            fixture.container("others");
            container.createItem(document("1", 1));
            container.createItem(document(Map.of("id", "1", "pk", "elsewhere")));
            try (CosmosClient reader = holder(fixture, scheme, permission("reads", PermissionMode.READ, "items"))) {
                CosmosContainer items = reader.getDatabase(fixture.database.getId()).getContainer("items");
                same(document("1", 1), items.readItem("1", SOMEWHERE, ObjectNode.class).getItem());
                refused(403, () -> items.createItem(document("2", 2)));
                refused(403, () -> items.upsertItem(document("1", 2)));
            }
            try (CosmosClient writer = holder(fixture, scheme, permission("writes", PermissionMode.ALL, "items"))) {
                CosmosContainer items = writer.getDatabase(fixture.database.getId()).getContainer("items");
                answered(201, items.createItem(document("3", 3)));
                same(document("3", 3), items.readItem("3", SOMEWHERE, ObjectNode.class).getItem());
            }
            var onePartition = permission("one", PermissionMode.ALL, "items").setResourcePartitionKey(SOMEWHERE);
            try (CosmosClient narrow = holder(fixture, scheme, onePartition)) {
                CosmosContainer items = narrow.getDatabase(fixture.database.getId()).getContainer("items");
                same(document("1", 1), items.readItem("1", SOMEWHERE, ObjectNode.class).getItem());
                refused(403, () -> items.readItem("1", new PartitionKey("elsewhere"), ObjectNode.class));
            }
        }
    }

    /**
     * A client that knows the token of one permission, of a user of its own, and no key.
     *
     * <p>The builder's other way, permissions(..), cannot be tested: it keeps tokens by name, then asks for one by the
     * container's rid, and gives up before it sends anything.
     */
    private static CosmosClient holder(Fixture fixture, String scheme, CosmosPermissionProperties permission) throws Exception {
        String name = "holder of " + permission.getId();
        fixture.database.createUser(new CosmosUserProperties().setId(name));
        var options = new CosmosPermissionRequestOptions();
        String token = fixture.asynchronous().getUser(name).createPermission(permission, options).block().getProperties().getToken();
        return new CosmosClientBuilder()
            .endpoint(Server.shared().endpoint(scheme))
            .resourceToken(token)
            .gatewayMode()
            .contentResponseOnWriteEnabled(true)
            .buildClient();
    }
}
