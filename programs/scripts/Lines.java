import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;
import sun.misc.Unsafe;

/**
 * Every kind of frame that Java has, each with a line that takes blocks from malloc. The comment behind such a line says how often it is reached.
 *
 * There are ROUNDS of 3000 rounds, so that everything is interpreted at first and compiled later, with what it calls within it. What is reached once in
 * a round has 3000. Of the deeper kinds: recursion() is entered at 6 depths in each 100th round (180); overflow() takes its block at depth 40, in each
 * 1000th round (3); hot() runs 100,000 turns in each 1000th round, 4 of them with a block (12), so that it is compiled while it runs; sorting two things takes one
 * comparison; of the four numbers of a stream two are odd; a class is initialised once.
 */
public class Lines {
    static final int ROUNDS = 3000;
    static final int BYTES = 1 << 10;
    static final Unsafe UNSAFE = unsafe();
    static final List<ByteBuffer> KEPT = new ArrayList<>();

    static Unsafe unsafe() {
        try {
            Field field = Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            return (Unsafe) field.get(null);
        } catch (ReflectiveOperationException gone) {
            throw new Error(gone);
        }
    }

    static long plain() {
        return UNSAFE.allocateMemory(BYTES); // 3000
    }

    static long over(long... words) {
        return words.length;
    }

    static long lines() {
        return over(
            UNSAFE.allocateMemory(BYTES), // 3000
            1,
            UNSAFE.allocateMemory(BYTES)); // 3000
    }

    static void recursion(int depth) {
        UNSAFE.allocateMemory(BYTES); // 180
        if (depth > 0) {
            recursion(depth - 1);
        }
    }

    static int overflow(int depth) {
        if (depth == 40) {
            UNSAFE.allocateMemory(BYTES); // 3
        }
        return 1 + overflow(depth + 1);
    }

    static long hot(int turns) {
        long sum = 0;
        for (int at = 0; at < turns; at++) {
            sum += sum ^ at;
            if (at % (turns / 4) == 7) {
                UNSAFE.allocateMemory(BYTES); // 12
            }
        }
        return sum;
    }

    static class Started {
        static final long ADDRESS = UNSAFE.allocateMemory(BYTES); // 1
    }

    abstract static class Shape {
        long made = UNSAFE.allocateMemory(BYTES); // 6000

        {
            UNSAFE.allocateMemory(BYTES); // 6000
        }

        abstract void draw();

        synchronized void locked() {
            UNSAFE.allocateMemory(BYTES); // 6000
        }
    }

    static class Square extends Shape {
        Square() {
            super();
            UNSAFE.allocateMemory(BYTES); // 3000
        }

        void draw() {
            synchronized (this) {
                UNSAFE.allocateMemory(BYTES); // 3000
            }
        }
    }

    static class Circle extends Shape {
        class Inner {
            void draw() {
                UNSAFE.allocateMemory(BYTES); // 3000
            }
        }

        void draw() {
            new Inner().draw();
        }
    }

    static int failing(int round) {
        Object none = null;
        try {
            if (round % 2 == 0) {
                throw new IllegalStateException();
            }
            return none.hashCode();
        } catch (IllegalStateException thrown) {
            UNSAFE.allocateMemory(BYTES); // 1500
        } catch (NullPointerException found) {
            UNSAFE.allocateMemory(BYTES); // 1500
        } finally {
            UNSAFE.allocateMemory(BYTES); // 3000
        }
        return round;
    }

    static long chosen(int round) {
        switch (round % 3) {
            case 0:
                return UNSAFE.allocateMemory(BYTES); // 1000
            case 1:
                return plainly(); // inlined, and what it takes is its own
            default:
                return 0;
        }
    }

    static long plainly() {
        return UNSAFE.allocateMemory(BYTES); // 1000
    }

    public static long called(int bytes) {
        return UNSAFE.allocateMemory(bytes); // 6000
    }

    static <T> T generic(T thing) {
        UNSAFE.allocateMemory(BYTES); // 3000
        return thing;
    }

    static void indirect(int round, MethodHandle handle) throws Throwable {
        LongSupplier lambda = () -> UNSAFE.allocateMemory(BYTES); // 3000
        lambda.getAsLong();
        Runnable anonymous = new Runnable() {
            public void run() {
                UNSAFE.allocateMemory(BYTES); // 3000
            }
        };
        anonymous.run();
        Lines.class.getMethod("called", int.class).invoke(null, BYTES);
        long address = (long) handle.invokeExact(BYTES);
        generic("text");
        IntStream.range(0, 4).filter(at -> at % 2 == 1).forEach(at ->
            UNSAFE.allocateMemory(BYTES + at)); // 6000
        Integer[] two = {2, 1};
        Arrays.sort(two, (one, other) -> {
            UNSAFE.allocateMemory(BYTES); // 3000
            return one - other;
        });
        if (round % 10 == 0) {
            KEPT.add(ByteBuffer.allocateDirect(BYTES)); // 300
        }
    }

    static void round(int round, MethodHandle handle) throws Throwable {
        plain();
        lines();
        if (round % 100 == 0) {
            recursion(5);
        }
        if (round % 1000 == 0) {
            hot(100_000);
            try {
                overflow(0);
            } catch (StackOverflowError deep) {
                UNSAFE.allocateMemory(BYTES); // 3
            }
        }
        for (Shape shape : new Shape[] {new Square(), new Circle()}) {
            shape.draw();
            shape.locked();
        }
        failing(round);
        chosen(round);
        indirect(round, handle);
    }

    public static void main(String[] words) throws Throwable {
        MethodHandle handle = MethodHandles.lookup().findStatic(Lines.class, "called", MethodType.methodType(long.class, int.class));
        Thread[] threads = new Thread[3];
        for (int number = 0; number < threads.length; number++) {
            int first = number;
            threads[number] = new Thread(() -> {
                try {
                    for (int round = first; round < ROUNDS; round += 3) {
                        round(round, handle);
                    }
                } catch (Throwable wrong) {
                    throw new Error(wrong);
                }
            });
            threads[number].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(Started.ADDRESS != 0 ? "done" : "not done");
    }
}
