// A heap whose retained sizes are known. With compressed references a header has 12 bytes, that of an array 16, a reference 4, and everything is
// a multiple of 8.
//
//   Session     12 + 2 references + 1 reference = 24
//   byte[1000]  16 + 1000 = 1016        int[10]  16 + 40 = 56
//   a Session with both: 1096; three of them in a chain: 3288, 2192, 1096
//   ArrayList   12 + int + reference + int = 24, Object[10] 56, three Items of 16: 128
//   HashMap     12 + 4 references + 4 numbers = 48, Node[16] 80, two times Node 32 + Key 16 + Item 16: 256
//   Payload     12 + reference = 16, byte[5000] 5016: 5032
//   SoftReference  12 + 4 references + long = 40, and what it retains: 5072
//   WeakReference  12 + 4 references = 32, and nothing: its payload belongs to main's frame
//   twins       five times String 24 + byte[12] 32: 280, of which 224 are wasted
//
// It prints `ready` and ends with its input.

import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.HashMap;

public class Sessions {
    static class Session {
        byte[] data = new byte[1000];
        int[] numbers = new int[10];
        Session next;

        Session(Session next) {
            this.next = next;
        }
    }

    static class Item {
        int number;
    }

    static class Key {
    }

    static class Payload {
        byte[] bytes = new byte[5000];
    }

    static Session first = new Session(new Session(new Session(null)));
    static Session[] array = { new Session(null), null, new Session(null) };
    static ArrayList<Item> list = new ArrayList<>();
    static HashMap<Key, Item> map = new HashMap<>();
    static SoftReference<Payload> soft = new SoftReference<>(new Payload());
    static WeakReference<Payload> weak;
    static String[] twins = new String[5];
    static Runnable lambda = () -> System.out.println(list.size());

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 3; i++) {
            list.add(new Item());
        }
        for (int i = 0; i < 2; i++) {
            map.put(new Key(), new Item());
        }
        for (int i = 0; i < 5; i++) {
            twins[i] = new StringBuilder("mallow ").append("twins").toString();
        }
        Payload held = new Payload();
        weak = new WeakReference<>(held);
        System.out.println("ready");
        System.in.read();
        System.out.println(held.bytes.length);
    }
}
