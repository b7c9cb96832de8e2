/**
 * Shares WORK: counted work in methods whose shares are known. Of eight parts `three` has three, `ofThread` and `around` two each, and `deep` one, below 40 calls of
 * itself. Each part is 2/3 in the first loop of `spin` and 1/3 in the second, but for those of `around`: they are in the loop of `looped`, which is so small that it
 * is compiled into its caller. All loops make the same step, in which each number depends on the one before. Ends with 7.
 */
public class Shares {
    static final long FACTOR = 6364136223846793005L;
    static final int TURNS = 1000;
    static volatile long result;

    static long spin(long number, int count) {
        for (int turn = 0; turn < 2 * count; turn++) {
            number = number * FACTOR + turn; // twice
        }
        for (int turn = 0; turn < count; turn++) {
            number = number * FACTOR + turn; // once
        }
        return number;
    }

    static long looped(long number) {
        for (int turn = 0; turn < TURNS; turn++) {
            number = number * FACTOR + turn; // within
        }
        return number;
    }

    static void around(int count) {
        long number = 1;
        for (int turn = 0; turn < 2 * 3 * (count / TURNS); turn++) {
            number = looped(number); // around
        }
        result += number;
    }

    static void three(int count) {
        Runnable called = () -> result += spin(1, count); // lambda
        called.run();
        result += spin(2, count);
        result += spin(3, count);
    }

    static void ofThread(int count) {
        result += spin(4, count);
        result += spin(5, count);
    }

    static void deep(int count, int depth) {
        if (depth == 0) {
            result += spin(6, count);
            return;
        }
        deep(count, depth - 1);
    }

    public static void main(String[] words) throws InterruptedException {
        int count = Integer.parseInt(words[0]) * TURNS;
        three(count);
        Thread thread = new Thread(() -> ofThread(count));
        thread.start();
        thread.join();
        deep(count, 40);
        around(count);
        System.exit(7);
    }
}
