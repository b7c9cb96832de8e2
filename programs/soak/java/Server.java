import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import sun.misc.Unsafe;

/**
 * The JDK's HTTP server: java Server --mode MODE --port N.
 *
 * <p>clean makes strings and drops them; leak adds a string of 60 characters to a static list; native takes 100 bytes from malloc, by
 * way of Unsafe, and forgets them.
 */
public class Server {
    private static final List<String> HISTORY = new ArrayList<>();
    private static Unsafe unsafe;
    private static long number;

    public static void main(String[] arguments) throws Exception {
        String mode = option(arguments, "--mode", "clean");
        int port = Integer.parseInt(option(arguments, "--port", environment("PORT", "3030")));
        Field field = Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        unsafe = (Unsafe) field.get(null);
        // The backlog holds a burst of connections.
        HttpServer server = HttpServer.create(new InetSocketAddress(environment("HOST", "127.0.0.1"), port), 512);
        server.createContext("/", exchange -> answer(exchange, mode));
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
    }

    private static void answer(HttpExchange exchange, String mode) throws IOException {
        exchange.getRequestBody().readAllBytes();
        work(mode);
        // No body: head and body in two pieces would wait for each other's acknowledgement.
        exchange.sendResponseHeaders(204, -1);
        exchange.close();
    }

    private static synchronized void work(String mode) {
        number += 1;
        switch (mode) {
            case "clean" -> String.format("answer %053d", number);
            case "leak" -> HISTORY.add(String.format("answer %053d", number)); // LEAK java-leak
            case "native" -> unsafe.setMemory(unsafe.allocateMemory(100), 100, (byte) 1); // LEAK java-native
            default -> throw new IllegalArgumentException(mode);
        }
    }

    private static String option(String[] arguments, String name, String fallback) {
        for (int at = 0; at + 1 < arguments.length; at++) {
            if (arguments[at].equals(name)) {
                return arguments[at + 1];
            }
        }
        return fallback;
    }

    private static String environment(String name, String fallback) {
        String value = System.getenv(name);
        return value == null ? fallback : value;
    }
}
