package astrarium;

import java.io.IOException;
import java.io.OutputStream;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/**
 * The server under test, started from its binary and stopped by kill -9.
 *
 * <p>The binary is ASTRARIUM_BIN, by default target/release/astrarium of this repository. Every server listens on a
 * free port of its own, and its certificate authority is added to the trust store of this process, which is how an
 * application makes this SDK accept the server over https.
 */
final class Server implements AutoCloseable {
    /** The key that every emulator of the service has. */
    static final String KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

    private static final Duration READY_TIMEOUT = Duration.ofMinutes(5);
    private static final char[] STORE_PASSWORD = "changeit".toCharArray();
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static Path trustStore;
    private static Server shared;

    private final int port;
    private final List<String> storage;
    private Process process;

    private Server(int port, List<String> storage) {
        this.port = port;
        this.storage = storage;
    }

    /** The server of all tests that do not kill theirs. */
    static synchronized Server shared() throws Exception {
        if (shared == null) {
            shared = start(List.of("--memory"));
            Runtime.getRuntime().addShutdownHook(new Thread(shared::kill));
        }
        return shared;
    }

    /** A server whose data outlives it in the folder. */
    static Server durable(Path folder) throws Exception {
        return start(List.of("--data", folder.toString()));
    }

    /** Where clients find it; the scheme is http or https. */
    String endpoint(String scheme) {
        return scheme + "://127.0.0.1:" + port + "/";
    }

    int port() {
        return port;
    }

    /** Ends the process as a power failure would. */
    void kill() {
        process.destroyForcibly();
        try {
            process.waitFor();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Kills it and starts it again on the same folder and port. */
    void restart() throws Exception {
        kill();
        launch();
    }

    @Override
    public void close() {
        kill();
    }

    private static Server start(List<String> storage) throws Exception {
        int port;
        try (ServerSocket probe = new ServerSocket(0)) {
            port = probe.getLocalPort();
        }
        Server server = new Server(port, storage);
        server.launch();
        server.trust();
        return server;
    }

    private void launch() throws Exception {
        List<String> command = new ArrayList<>(List.of(binary().toString(), "serve", "--listen", "127.0.0.1:" + port));
        command.addAll(storage);
        process = new ProcessBuilder(command)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
        Instant deadline = Instant.now().plus(READY_TIMEOUT);
        while (!isReady()) {
            if (!process.isAlive() || Instant.now().isAfter(deadline)) {
                kill();
                throw new IllegalStateException("the server did not become ready");
            }
            Thread.sleep(5);
        }
    }

    private boolean isReady() throws InterruptedException {
        try {
            return get("ready").statusCode() == 200;
        } catch (IOException notYet) {
            return false;
        }
    }

    private HttpResponse<String> get(String path) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(endpoint("http") + path)).build();
        return HTTP.send(request, HttpResponse.BodyHandlers.ofString());
    }

    private static Path binary() {
        String given = System.getenv("ASTRARIUM_BIN");
        // Maven runs the tests in this project's folder, three below the repository's root.
        Path root = Path.of("").toAbsolutePath().getParent().getParent().getParent();
        Path binary = root.resolve(given == null || given.isEmpty() ? "target/release/astrarium" : given);
        if (!Files.isExecutable(binary)) {
            throw new IllegalStateException("no server at " + binary + "; run cargo build --release first");
        }
        return binary;
    }

    /** Adds this server's authority to the trust store that the JVM's system properties name. */
    private void trust() throws Exception {
        synchronized (Server.class) {
            KeyStore store = KeyStore.getInstance("PKCS12");
            if (trustStore == null) {
                store.load(null, STORE_PASSWORD);
                trustStore = Files.createTempFile("astrarium-trust", ".p12");
                trustStore.toFile().deleteOnExit();
            } else {
                load(store);
            }
            byte[] pem = get("_explorer/emulator.pem").body().getBytes();
            var authority = CertificateFactory.getInstance("X.509").generateCertificate(new java.io.ByteArrayInputStream(pem));
            store.setCertificateEntry("port-" + port, authority);
            try (OutputStream out = Files.newOutputStream(trustStore)) {
                store.store(out, STORE_PASSWORD);
            }
            System.setProperty("javax.net.ssl.trustStore", trustStore.toString());
            System.setProperty("javax.net.ssl.trustStorePassword", new String(STORE_PASSWORD));
        }
    }

    private static void load(KeyStore store) throws IOException, GeneralSecurityException {
        try (var in = Files.newInputStream(trustStore)) {
            store.load(in, STORE_PASSWORD);
        }
    }
}
