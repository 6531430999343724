import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import astrarium.junit5.AstrariumExtension;
import astrarium.junit5.AstrariumServer;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.util.Map;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The extension, the class and the packed program, with the official SDK. */
@ExtendWith(AstrariumExtension.class)
class LibraryTest {
    @Test
    void theServerAnswersTheSdk(AstrariumServer server) {
        try (CosmosClient client =
                new CosmosClientBuilder().endpoint(server.endpoint()).key(server.key()).gatewayMode().buildClient()) {
            client.createDatabaseIfNotExists("library");
            client.getDatabase("library").createContainerIfNotExists("books", "/author");
            CosmosContainer books = client.getDatabase("library").getContainer("books");
            Map<String, String> book = Map.of("id", "1", "author", "Lem", "title", "Solaris");
            books.upsertItem(book, new PartitionKey("Lem"), new CosmosItemRequestOptions());
            Map<?, ?> read = books.readItem("1", new PartitionKey("Lem"), Map.class).getItem();
            assertEquals("Solaris", read.get("title"));
        }
    }

    /** How soon one is ready is shown, and judged by the benches only: it depends on what else the machine does. */
    @Test
    void closeEndsAServer() {
        long least = Long.MAX_VALUE;
        long most = 0;
        for (int round = 0; round < 5; round++) {
            long began = System.nanoTime();
            AstrariumServer own = AstrariumServer.start();
            long time = (System.nanoTime() - began) / 1_000_000;
            least = Math.min(least, time);
            most = Math.max(most, time);
            own.close();
            URI endpoint = URI.create(own.endpoint());
            assertThrows(IOException.class, () -> new Socket(endpoint.getHost(), endpoint.getPort()).close());
        }
        System.out.println("java: a server in " + least + " ms, the slowest of 5 in " + most + " ms");
    }

    @Test
    void refusalsAreTold() {
        IllegalStateException told =
                assertThrows(IllegalStateException.class, () -> AstrariumServer.start("--consistency", "whatever"));
        assertTrue(told.getMessage().contains("--consistency"), told.getMessage());
    }

    @Test
    void theProgramIsThatOfTheJar() {
        assertTrue(AstrariumServer.binary().contains("astrarium-"), AstrariumServer.binary());
    }

    /** A nested class has the server of the class around it. */
    @Nested
    class Inner {
        @Test
        void isTheSame(AstrariumServer server) throws IOException {
            URI endpoint = URI.create(server.endpoint());
            new Socket(endpoint.getHost(), endpoint.getPort()).close();
        }
    }
}
