package astrarium;

import static astrarium.Fixture.answered;
import static astrarium.Fixture.refused;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.cosmos.models.ClientEncryptionIncludedPath;
import com.azure.cosmos.models.ClientEncryptionPolicy;
import com.azure.cosmos.models.CosmosClientEncryptionKeyProperties;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.EncryptionKeyWrapMetadata;
import java.util.List;

/** Client encryption keys, and the container policy that names them: the server keeps both and encrypts nothing. */
class EncryptionKeyTest {
    private static final String ALGORITHM = "AEAD_AES_256_CBC_HMAC_SHA256";

    private static CosmosClientEncryptionKeyProperties key(String id, int... wrapped) {
        byte[] bytes = new byte[wrapped.length];
        for (int i = 0; i < wrapped.length; i++) {
            bytes[i] = (byte) wrapped[i];
        }
        var metadata = new EncryptionKeyWrapMetadata("provider", "name", "value", "RSA-OAEP");
        return new CosmosClientEncryptionKeyProperties(id, ALGORITHM, bytes, metadata);
    }

    @OverBothSchemes
    void life(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            var database = fixture.asynchronous();
            answered(201, database.createClientEncryptionKey(key("one", 1, 2, 255)).block());
            refused(409, () -> database.createClientEncryptionKey(key("one", 1)).block());
            var read = answered(200, database.getClientEncryptionKey("one").read().block()).getProperties();
            assertArrayEquals(new byte[] {1, 2, -1}, read.getWrappedDataEncryptionKey());
            assertEquals(ALGORITHM, read.getEncryptionAlgorithm());
            assertEquals("RSA-OAEP", read.getEncryptionKeyWrapMetadata().getAlgorithm());

            var replaced = answered(200, database.getClientEncryptionKey("one").replace(key("one", 9)).block()).getProperties();
            assertArrayEquals(new byte[] {9}, replaced.getWrappedDataEncryptionKey());
            database.createClientEncryptionKey(key("two", 2)).block();
            var ids = fixture.database.readAllClientEncryptionKeys().stream().map(one -> one.getId()).sorted().toList();
            assertEquals(List.of("one", "two"), ids);
            refused(404, () -> database.getClientEncryptionKey("three").read().block());
        }
    }

    @OverBothSchemes
    void policy(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            fixture.asynchronous().createClientEncryptionKey(key("one", 1)).block();
            var path = new ClientEncryptionIncludedPath()
                .setPath("/secret")
                .setClientEncryptionKeyId("one")
                .setEncryptionType("Deterministic")
                .setEncryptionAlgorithm(ALGORITHM);
            var properties = new CosmosContainerProperties("secrets", "/pk");
            properties.setClientEncryptionPolicy(new ClientEncryptionPolicy(List.of(path), 1));
            var received = fixture.container(properties).read().getProperties().getClientEncryptionPolicy();
            assertEquals(1, received.getPolicyFormatVersion());
            assertEquals("/secret", received.getIncludedPaths().get(0).getPath());
            assertEquals("one", received.getIncludedPaths().get(0).getClientEncryptionKeyId());
        }
    }
}
