import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Takes 20 x 1000 buffers from malloc; keep() is called so often that it is compiled. */
public class Buffers {
    private static final List<ByteBuffer> KEPT = new ArrayList<>();

    static void keep(int bytes) {
        KEPT.add(ByteBuffer.allocateDirect(bytes));
    }

    static void round() {
        for (int at = 0; at < 1000; at++) {
            keep(2003);
        }
    }

    public static void main(String[] words) throws Exception {
        for (int at = 0; at < 20; at++) {
            round();
        }
        Process child = new ProcessBuilder("env").redirectErrorStream(true).start();
        String environment = new String(child.getInputStream().readAllBytes());
        long ours = environment.lines().filter(line -> line.contains("-XX:") || line.startsWith("JAVA_TOOL")).count();
        System.out.println(KEPT.size() + " " + words.length + " " + ours);
    }
}
