import java.lang.management.ManagementFactory;
import java.util.*;
import javax.management.ObjectName;

/** Keeps sessions, writes a dump of itself, and then the virtual machine's own count of objects by class. */
public class Counted {
    static final class Session { final int id; final String key; final long[] times = new long[3]; Session(int id) { this.id = id; key = "session " + id; } }
    static final List<Session> sessions = new ArrayList<>();
    public static void main(String[] words) throws Exception {
        for (int id = 0; id < 1000; id++) sessions.add(new Session(id));
        var diagnostic = ManagementFactory.getPlatformMXBean(com.sun.management.HotSpotDiagnosticMXBean.class);
        var server = ManagementFactory.getPlatformMBeanServer();
        var name = new ObjectName("com.sun.management:type=DiagnosticCommand");
        var all = new Object[] { new String[] {} };
        var signature = new String[] { String[].class.getName() };
        server.invoke(name, "gcClassHistogram", all, signature);
        System.gc(); System.gc();
        diagnostic.dumpHeap(words[0], true);
        System.out.print(server.invoke(name, "gcClassHistogram", all, signature));
    }
}
