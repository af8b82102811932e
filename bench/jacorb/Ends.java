// The JacORB ends of the laboratory: `server CLASS OBJECTS FILE` and `client CLASS REFERENCE`. The script `ends` starts
// them in their place. The protocol is in crates/probe/src/laboratory/end.rs.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

import Deckwatch.ComplexStruct;
import DeckwatchBench.Bench;
import DeckwatchBench.BenchHelper;
import DeckwatchBench.BenchPOA;
import DeckwatchBench.PlainStruct;
import org.omg.CORBA.ORB;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

public final class Ends {
    private static final PrintStream OUT = System.out;

    private static final class Mirror extends BenchPOA {
        private final AtomicLong arrived = new AtomicLong();

        public long calls() { return arrived.get(); }
        public void ping() {}
        public String echo_string(String message) { return message; }
        public byte[] echo_octets(byte[] data) { return data; }
        public ComplexStruct echo_complex(ComplexStruct data) { return data; }
        public ComplexStruct[] echo_complex_sequence(ComplexStruct[] data) { return data; }
        public org.omg.CORBA.Any echo_any(org.omg.CORBA.Any data) { return data; }
        public org.omg.CORBA.Object echo_object(org.omg.CORBA.Object reference) { return reference; }
        public void refuse(String reason, int code) { throw new org.omg.CORBA.NO_IMPLEMENT(); }
        public void send_octets(byte[] data) { arrived.incrementAndGet(); }
        public void send_complex_sequence(ComplexStruct[] data) { arrived.incrementAndGet(); }
        public void sink_octets(byte[] data) {}
        public void sink_complex_sequence(ComplexStruct[] data) {}
        public void sink_plain_sequence(PlainStruct[] data) {}
    }

    private interface One { void call(); }

    private final String kind;
    private final int there;
    private final int count;
    private final long budgetNs;
    private final long periodNs;

    private Ends(String line) {
        String[] words = line.trim().split(" ");
        kind = words[0];
        there = Integer.parseInt(words[1]);
        count = Integer.parseInt(words[3]);
        budgetNs = Long.parseLong(words[4]);
        periodNs = words.length > 5 ? Long.parseLong(words[5]) : 0;
    }

    private void take(One one) {
        ByteBuffer roundTrips = ByteBuffer.allocate(4 * count).order(ByteOrder.nativeOrder());
        for (int warmUp = 0; warmUp < 64; ++warmUp) one.call();
        long begin = System.nanoTime(), before = begin, due = begin;
        int taken = 0;
        while (taken < count && before - begin < budgetNs) {
            if (periodNs != 0) {
                due += periodNs;
                for (long left; (left = due - System.nanoTime()) > 0;) LockSupport.parkNanos(left);
                before = System.nanoTime();
            }
            one.call();
            long after = System.nanoTime();
            roundTrips.putInt((int) (after - before));
            ++taken;
            before = after;
        }
        OUT.print("ok " + taken + "\n");
        OUT.write(roundTrips.array(), 0, 4 * taken);
    }

    private void stream(Bench bench, One send) {
        long arrived = bench.calls(), begin = System.nanoTime(), sent = 0;
        while (sent < count && System.nanoTime() - begin < budgetNs) {
            for (int i = 0; i < 16; ++i) send.call();
            sent += 16;
        }
        while (bench.calls() < arrived + sent) {}
        OUT.print("sum " + sent + " " + (System.nanoTime() - begin) + "\n");
    }

    private byte[] octets() {
        byte[] data = new byte[there];
        for (int i = 0; i < there; ++i) data[i] = (byte) i;
        return data;
    }

    private ComplexStruct[] structs() {
        ComplexStruct[] data = new ComplexStruct[there];
        for (int i = 0; i < there; ++i) data[i] = new ComplexStruct((short) 12, 34567, 0.5F, 2.25, 'x', "contact");
        return data;
    }

    private PlainStruct[] plain() {
        PlainStruct[] data = new PlainStruct[there];
        for (int i = 0; i < there; ++i) data[i] = new PlainStruct(0.25, 0.5, 0.75, 1234567890123L, 42, 0.875F);
        return data;
    }

    private void obey(Bench[] all) {
        Bench bench = all[0];
        switch (kind) {
            case "octets": {
                byte[] data = octets();
                int[] next = {0};
                take(() -> {
                    all[next[0]].echo_octets(data);
                    next[0] = (next[0] + 1) % all.length;
                });
                break;
            }
            case "structs": {
                ComplexStruct[] data = structs();
                take(() -> bench.echo_complex_sequence(data));
                break;
            }
            case "sink-octets": {
                byte[] data = octets();
                take(() -> bench.sink_octets(data));
                break;
            }
            case "sink-structs": {
                ComplexStruct[] data = structs();
                take(() -> bench.sink_complex_sequence(data));
                break;
            }
            case "sink-plain": {
                PlainStruct[] data = plain();
                take(() -> bench.sink_plain_sequence(data));
                break;
            }
            case "stream-octets": {
                byte[] data = octets();
                stream(bench, () -> bench.send_octets(data));
                break;
            }
            default:
                OUT.print("error '" + kind + "' is unknown to this end\n");
        }
    }

    private static void greet(String scheduling, String reference) {
        OUT.print(scheduling + " " + reference + "\n");
        OUT.flush();
    }

    private static void serve(ORB orb, String scheduling, int objects, String file) throws Exception {
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        List<String> references = new ArrayList<>();
        for (int i = 0; i < objects; ++i) {
            byte[] id = root.activate_object(new Mirror());
            references.add(orb.object_to_string(root.id_to_reference(id)));
        }
        if (!file.equals("-")) Files.write(Path.of(file), references);
        root.the_POAManager().activate();
        greet(scheduling, references.get(0));
        while (System.in.read() >= 0) {}
        // The ORB's threads are not stopped first.
        Runtime.getRuntime().halt(0);
    }

    private static void call(ORB orb, String scheduling, String reference) throws Exception {
        List<String> texts = reference.startsWith("@") ? Files.readAllLines(Path.of(reference.substring(1))) : List.of(reference);
        // A step without a common divisor with the count visits each object once before it repeats one.
        long step = 1;
        for (long prime : new long[] {1299709, 104729, 7919}) if (texts.size() % prime != 0) step = prime;
        Bench[] all = new Bench[texts.size()];
        for (int i = 0; i < all.length; ++i) {
            all[i] = BenchHelper.unchecked_narrow(orb.string_to_object(texts.get((int) (i * step % all.length))));
        }
        greet(scheduling, "ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            try {
                new Ends(line).obey(all);
            } catch (org.omg.CORBA.SystemException exception) {
                OUT.print("error " + exception.toString().replace('\n', ' ') + "\n");
            }
            OUT.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    public static void main(String[] arguments) throws Exception {
        System.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        System.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        ORB orb = ORB.init(new String[0], null);
        if (arguments[0].equals("server")) {
            serve(orb, arguments[1], Integer.parseInt(arguments[2]), arguments[3]);
        } else {
            call(orb, arguments[1], arguments[2]);
        }
    }
}
