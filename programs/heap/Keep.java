/** Keeps what it makes, and ends when its input does. */
public class Keep {
    record Order(String customer) {}

    public static void main(String[] words) throws Exception {
        var orders = new java.util.ArrayList<Order>();
        for (int number = 0; number < 1000; number++) orders.add(new Order("customer-" + number));
        System.out.println("ready " + ProcessHandle.current().pid());
        while (System.in.read() >= 0) {}
        System.out.println(orders.size() + " orders");
    }
}
