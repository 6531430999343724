package astrarium.junit5;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A running server. It ends when it is closed, and with this process, however that ends. */
public final class AstrariumServer implements AutoCloseable {
    /** The key that the service's emulator has, and a server that is told no other. */
    public static final String KEY =
            "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

    /** Without this system property the SDK turns every http endpoint into https, whose certificate it would have to be given. */
    private static final String PLAIN_HTTP = "COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED";

    private static final Pattern ENDPOINT = Pattern.compile("AccountEndpoint=([^;]+);");
    private static final long PATIENCE_SECONDS = 30;
    private static final int LOG_LINES_MAX = 1000;

    private final Process process;
    private final Deque<String> log;
    private final String endpoint;

    private AstrariumServer(Process process, Deque<String> log, String endpoint) {
        this.process = process;
        this.log = log;
        this.endpoint = endpoint;
    }

    /**
     * Starts a server on a free port of this machine that keeps nothing, and waits until it is ready. Clients of this process may use
     * plain HTTP from then on: the system property {@code COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED} is set to true, unless it is set
     * already.
     *
     * @param arguments further arguments of {@code astrarium serve}
     * @throws IllegalStateException with what the server said, if it does not start
     */
    public static AstrariumServer start(String... arguments) {
        List<String> words = new ArrayList<>(List.of(binary(), "serve", "--memory", "--listen", "127.0.0.1:0", "--until-stdin-closes"));
        Collections.addAll(words, arguments);
        ProcessBuilder builder = new ProcessBuilder(words);
        builder.environment().keySet().removeIf(name -> name.startsWith("ASTRARIUM_"));
        Deque<String> log = new ArrayDeque<>();
        try {
            Process process = builder.start();
            Thread reader = collect(process.getErrorStream(), log);
            Thread late = killLater(process);
            BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
            String line = lines.readLine();
            late.interrupt();
            Matcher found = ENDPOINT.matcher(line == null ? "" : line);
            if (!found.find()) {
                // One that refuses to start ends by itself; to destroy it would close its output before it is read.
                if (process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                    reader.join();
                }
                process.destroyForcibly().waitFor();
                throw new IllegalStateException("astrarium did not start: " + text(log) + (line == null ? "" : line));
            }
            collect(process.getInputStream(), new ArrayDeque<>());
            if (System.getProperty(PLAIN_HTTP) == null) {
                System.setProperty(PLAIN_HTTP, "true");
            }
            return new AstrariumServer(process, log, found.group(1));
        } catch (IOException error) {
            throw new UncheckedIOException("astrarium could not be started: " + error.getMessage(), error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while astrarium started", error);
        }
    }

    /** What an SDK connects to, over plain HTTP. */
    public String endpoint() {
        return endpoint;
    }

    /** The account key. */
    public String key() {
        return KEY;
    }

    /** Endpoint and key in one text. */
    public String connectionString() {
        return "AccountEndpoint=" + endpoint + ";AccountKey=" + KEY + ";";
    }

    /** What the server has logged so far. */
    public String log() {
        return text(log);
    }

    /** Ends the server in good order, and kills it if that takes too long. */
    @Override
    public void close() {
        try {
            process.getOutputStream().close();
            if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
        } catch (IOException error) {
            process.destroyForcibly();
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Where the program is: what ASTRARIUM_BIN says, the one of the jar for this platform if that is on the class path, or the one on the
     * path.
     */
    public static String binary() {
        String given = System.getenv("ASTRARIUM_BIN");
        if (given != null && !given.isEmpty()) {
            return given;
        }
        String machine = System.getProperty("os.arch").equals("amd64") ? "x86_64" : System.getProperty("os.arch");
        String name = "/astrarium/" + System.getProperty("os.name").toLowerCase() + "-" + machine + "/astrarium";
        try (InputStream packed = AstrariumServer.class.getResourceAsStream(name)) {
            return packed == null ? "astrarium" : Unpacked.from(packed).toString();
        } catch (IOException error) {
            throw new UncheckedIOException("the program could not be unpacked: " + error.getMessage(), error);
        }
    }

    /** The program of the jar, unpacked once for this process into a folder that only its user may use. */
    private static final class Unpacked {
        private static Path path;

        static synchronized Path from(InputStream packed) throws IOException {
            if (path == null) {
                Path folder = Files.createTempDirectory("astrarium-");
                Path file = folder.resolve("astrarium");
                Files.copy(packed, file);
                Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"));
                file.toFile().deleteOnExit();
                folder.toFile().deleteOnExit();
                // Files are deleted in the reverse order of this.
                path = file;
            }
            return path;
        }
    }

    /** Reads a stream to its end: a pipe that nobody reads would stop the server. Keeps the last lines. */
    private static Thread collect(InputStream stream, Deque<String> lines) {
        Thread reader = new Thread(() -> {
            try (BufferedReader source = new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
                for (String line = source.readLine(); line != null; line = source.readLine()) {
                    synchronized (lines) {
                        lines.add(line);
                        if (lines.size() > LOG_LINES_MAX) {
                            lines.remove();
                        }
                    }
                }
            } catch (IOException ended) {
                // The server is gone; there is nothing more to read.
            }
        }, "astrarium output");
        reader.setDaemon(true);
        reader.start();
        return reader;
    }

    private static Thread killLater(Process process) {
        Thread late = new Thread(() -> {
            try {
                Thread.sleep(TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS));
                process.destroyForcibly();
            } catch (InterruptedException inTime) {
                // It started.
            }
        }, "astrarium patience");
        late.setDaemon(true);
        late.start();
        return late;
    }

    private static String text(Deque<String> lines) {
        synchronized (lines) {
            return String.join("\n", lines);
        }
    }
}
