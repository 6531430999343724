package astrarium;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A port that passes everything on to another one until it is closed: a client behind it is then cut off for good. */
final class Relay implements AutoCloseable {
    private final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final List<Socket> sockets = new CopyOnWriteArrayList<>();
    private final int target;

    Relay(int target) throws IOException {
        this.target = target;
        start(() -> {
            while (true) {
                Socket client = listener.accept();
                Socket server = new Socket(InetAddress.getLoopbackAddress(), this.target);
                sockets.addAll(List.of(client, server));
                start(() -> pass(client, server));
                start(() -> pass(server, client));
            }
        });
    }

    int port() {
        return listener.getLocalPort();
    }

    @Override
    public void close() throws IOException {
        listener.close();
        for (Socket socket : sockets) {
            socket.close();
        }
    }

    private interface Act {
        void run() throws IOException;
    }

    private static void start(Act act) {
        Thread thread = new Thread(() -> {
            try {
                act.run();
            } catch (IOException closed) {
                // One of the two ends is gone, and this way with it.
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private static void pass(Socket from, Socket to) throws IOException {
        try (from; to; InputStream in = from.getInputStream()) {
            in.transferTo(to.getOutputStream());
        }
    }
}
