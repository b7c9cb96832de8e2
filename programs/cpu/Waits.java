/** Waits: sleeps for 400 ms, then waits as long for a monitor that nobody notifies. Ends with 7. */
public class Waits {
    static void sleeps() throws InterruptedException {
        Thread.sleep(400); // sleeps
    }

    public static void main(String[] words) throws InterruptedException {
        sleeps();
        Object monitor = new Object();
        synchronized (monitor) {
            monitor.wait(400); // waits
        }
        System.exit(7);
    }
}
