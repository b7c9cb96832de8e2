import java.nio.charset.StandardCharsets;
import java.util.concurrent.locks.LockSupport;

/**
 * Classes that come and go: in each round one is loaded, whose methods have names of their own and allocate a block, and dropped, so that the next
 * one lies where it lay. The thread that runs them calls no allocator in between, so the stack that is kept of it is the same, word by word.
 * Blocks and what is printed of them are those of Traces.
 */
public class Unloads {
    static final int ROUNDS = 60;

    public static void block() { Traces.block(); }

    static class Loader extends ClassLoader {
        Loader() { super(Unloads.class.getClassLoader()); }

        Runnable unit(byte[] template, int round) throws ReflectiveOperationException {
            byte[] made = template.clone();
            String text = new String(template, StandardCharsets.ISO_8859_1);
            byte[] number = String.format("%04d", round).getBytes(StandardCharsets.US_ASCII);
            for (int at = text.indexOf("0000"); at >= 0; at = text.indexOf("0000", at + 1)) System.arraycopy(number, 0, made, at, number.length);
            var maker = defineClass("Unit", made, 0, made.length).getDeclaredConstructor();
            maker.setAccessible(true);
            return (Runnable) maker.newInstance();
        }
    }

    /** What the worker runs next. */
    static volatile Runnable unit;

    static void work() {
        for (int round = 0; round < ROUNDS; round++) {
            while (unit == null) LockSupport.park();
            unit.run();
            unit = null;
        }
    }

    public static void main(String[] words) throws Exception {
        byte[] template = Unloads.class.getResourceAsStream("Unit.class").readAllBytes();
        Thread worker = new Thread(Unloads::work);
        worker.start();
        for (int round = 0; round < ROUNDS; round++) {
            unit = new Loader().unit(template, round);
            LockSupport.unpark(worker);
            while (unit != null) Thread.onSpinWait();
            System.gc();
        }
        worker.join();
        System.out.print(String.join("\n", Traces.SAID) + "\n");
    }
}

class Unit implements Runnable {
    public Unit() { }

    public void run() { call0000(); }

    void call0000() { work0000(); }

    void work0000() { Unloads.block(); }
}
