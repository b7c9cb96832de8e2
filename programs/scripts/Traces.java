import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;
import sun.misc.Unsafe;

/**
 * Allocates blocks, each of a size of its own, in every kind of frame, and prints for each the stack that the JVM itself gives at the same line:
 * SIZE CLASS.METHOD:LINE CLASS.METHOD:LINE ... innermost first. The line is 0 where a method has none.
 */
public class Traces {
    static final int FIRST = 4096;
    static final int MOST = Integer.getInteger("most", 6000);
    static int next = FIRST;
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

    static synchronized int size(Throwable here) {
        int size = next;
        next += 16;
        StringBuilder said = new StringBuilder().append(size);
        for (StackTraceElement frame : here.getStackTrace()) {
            said.append(' ').append(frame.getClassName()).append('.').append(frame.getMethodName()).append(':').append(Math.max(frame.getLineNumber(), 0));
        }
        SAID.add(said);
        return size;
    }

    static void block() {
        UNSAFE.freeMemory(UNSAFE.allocateMemory(size(new Throwable())));
    }

    static void inner(int at) {
        if (at % 3 == 0) {
            block();
        } else {
            block(); block();
        }
    }

    static int outer(int at) {
        inner(at);
        int sum = at;
        inner(sum + 1);
        return sum;
    }

    static int deep(int depth, int at) {
        if (depth == 0) {
            return outer(at);
        }
        return 1 + deep(depth - 1,
            at);
    }

    interface Shape { void draw(int at); }

    static class Square implements Shape {
        public void draw(int at) { block(); }
    }

    static class Circle implements Shape {
        public void draw(int at) {
            synchronized (this) {
                inner(at);
            }
        }
    }

    static class Fails extends RuntimeException {
        Fails() { super("x", null, false, false); block(); }
    }

    static void throwing(int at) {
        try {
            if (at % 2 == 0) throw new Fails();
            Object[] none = at % 5 == 0 ? null : new Object[1];
            none[0] = at;
        } catch (NullPointerException | Fails caught) {
            block();
        } finally {
            block();
        }
    }

    static void called(Integer at) { inner(at); }

    static long osr(int turns) {
        long sum = 0;
        for (int at = 0; at < turns; at++) {
            sum += at % 7;
            if (at % (turns / 10) == 0) {
                block();
            }
        }
        return sum;
    }

    static class Garbage extends Thread {
        volatile boolean goesOn = true;
        Garbage() { setDaemon(true); }
        public void run() {
            Object[] kept = new Object[1000];
            for (int at = 0; goesOn; at++) kept[at % 1000] = new byte[1 + at % 5000];
        }
    }

    static void everything(int at) throws Exception {
        outer(at);
        deep(at % 40, at);
        Shape[] shapes = {new Square(), new Circle(), made -> block()};
        for (Shape shape : shapes) shape.draw(at);
        throwing(at);
        IntConsumer lambda = given -> inner(given);
        IntStream.range(0, 2).forEach(lambda);
        Method called = Traces.class.getDeclaredMethod("called", Integer.class);
        called.invoke(null, at);
        Shape proxy = (Shape) Proxy.newProxyInstance(Traces.class.getClassLoader(), new Class<?>[] {Shape.class},
            (self, method, words) -> { block(); return null; });
        proxy.draw(at);
        String text = "at " + at + " of " + MOST;
        if (text.isEmpty()) block();
    }

    /** Where there are virtual threads, one of them, whose stack goes on into its carrier's. */
    static void virtually() throws Exception {
        Method starts;
        try {
            starts = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException old) {
            return;
        }
        Runnable work = () -> {
            for (int at = 0; at < 500; at++) deep(at % 20, at);
        };
        ((Thread) starts.invoke(null, work)).join();
    }

    public static void main(String[] words) throws Exception {
        Garbage garbage = new Garbage();
        garbage.start();
        osr(200_000);
        int threads = Integer.getInteger("threads", 3);
        List<Thread> started = new ArrayList<>();
        for (int thread = 0; thread < threads; thread++) {
            int number = thread;
            Runnable work = () -> {
                try {
                    for (int at = 0; next < FIRST + 16 * MOST; at++) everything(at * 7 + number);
                } catch (Exception wrong) {
                    throw new Error(wrong);
                }
            };
            Thread made = new Thread(work);
            made.start();
            started.add(made);
        }
        for (Thread thread : started) thread.join();
        osr(200_000);
        virtually();
        garbage.goesOn = false;
        System.out.print(String.join("\n", SAID) + "\n");
    }
}
