import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import sun.misc.Unsafe;

/**
 * Classes that come and go: in each round one is loaded, whose methods have names of their own and allocate a block, and dropped, so that the next
 * one lies where it lay. The thread that runs them calls no allocator in between, so the stack that is kept of it is the same, word by word.
 * Prints for each block the stack that the JVM itself gives, as Traces does.
 */
public class Unloads {
    static final int ROUNDS = 60;
    static final List<StringBuilder> SAID = new ArrayList<>();
    static final Unsafe UNSAFE = unsafe();

    static Unsafe unsafe() {
        try {
            Field field = Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            return (Unsafe) field.get(null);
        } catch (ReflectiveOperationException gone) {
            throw new Error(gone);
        }
    }

    static int size(Throwable here) {
        int size = 4096 + SAID.size() * 16;
        StringBuilder said = new StringBuilder().append(size);
        for (StackTraceElement frame : here.getStackTrace()) {
            said.append(' ').append(frame.getClassName()).append('.').append(frame.getMethodName()).append(':').append(Math.max(frame.getLineNumber(), 0));
        }
        SAID.add(said);
        return size;
    }

    public static void block() {
        UNSAFE.freeMemory(UNSAFE.allocateMemory(size(new Throwable())));
    }

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
        System.out.print(String.join("\n", SAID) + "\n");
    }
}

class Unit implements Runnable {
    public Unit() { }

    public void run() { call0000(); }

    void call0000() { work0000(); }

    void work0000() { Unloads.block(); }
}
