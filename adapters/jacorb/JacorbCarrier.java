import DeckwatchStream.Consumer;
import DeckwatchStream.ConsumerHelper;
import DeckwatchStream.ConsumerPOA;
import deckwatch.Carrier;
import deckwatch.Failure;
import deckwatch.Part;
import deckwatch.Plan;
import java.net.Socket;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import org.jacorb.orb.ParsedIOR;
import org.jacorb.orb.iiop.IIOPAddress;
import org.jacorb.orb.iiop.IIOPProfile;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.CORBA.SystemException;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;
import org.omg.PortableServer.ThreadPolicyValue;

/** The carrier `jacorb`: one-way CORBA calls by JacORB, one connection to each consumer. */
public final class JacorbCarrier implements Carrier {
    private static final long CONNECT_WAIT_NS = 10_000_000_000L;
    /** Calls before the stream, so that it does not begin in the Java interpreter. */
    private static final int WARM_UP_CALLS = 300;

    public static void main(String[] arguments) { Part.play(new JacorbCarrier()); }

    private static ORB orb(Plan plan) throws Failure {
        Properties properties = new Properties();
        properties.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        properties.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        properties.setProperty("OAIAddr", plan.text("address"));
        properties.setProperty("jacorb.net.socket_factory", BoundSockets.class.getName());
        properties.setProperty("jacorb.log.default.verbosity", "0");
        // By default a full queue loses one-way calls.
        properties.setProperty("jacorb.poa.queue_wait", "on");
        properties.setProperty("jacorb.poa.queue_max", "10000");
        // JacORB would repeat a call after half a second, past the bound of a send.
        properties.setProperty("jacorb.retries", "0");
        properties.setProperty("jacorb.retry_interval", "0");
        return ORB.init(new String[0], properties);
    }

    private static void report(Plan plan, boolean sends, Settings settings) {
        // TCP has no other history than its buffers, and JacORB has no priorities of its own.
        if (plan.text("reliability", "").equals("reliable")) settings.honoured("reliability");
        else settings.ignored("reliability");
        settings.ignored("history");
        settings.ignored("priority");
        settings.ignored("idl-type");
        // Java cannot lock its memory.
        settings.ignored("locked-memory");
        if (!sends) settings.ignored("receive-buffer");
        if (!sends) return;
        settings.honoured("deadline");
        settings.honoured("dscp");
        // Java has no SO_PRIORITY.
        settings.ignored("socket-priority");
    }

    // --- Supplier ---

    private ORB supplying;

    @Override
    public Sender connect(Plan plan, int slot, Settings settings) throws Failure {
        BoundSockets.configure(plan);
        if (supplying == null) supplying = orb(plan);
        Plan.Destination to = plan.destination(slot);
        AtomicReference<Socket> socket = new AtomicReference<>();
        BoundSockets.keepIn(socket);
        long until = System.nanoTime() + CONNECT_WAIT_NS;
        for (;;) {
            try {
                Consumer consumer = ConsumerHelper.unchecked_narrow(supplying.string_to_object(to.endpoint()));
                for (int call = 0; call < WARM_UP_CALLS; ++call) consumer.ping();
                report(plan, true, settings);
                return new BoundedSender(consumer, socket, plan.sendBoundNs());
            } catch (SystemException error) {
                if (System.nanoTime() > until) {
                    throw new Failure("The consumer on " + to.host() + " does not answer: " + error
                        + ". Check that it runs, and the route to it.");
                }
            }
        }
    }

    // --- Consumer ---

    private static final class Servant extends ConsumerPOA {
        private final Arrivals arrivals;

        Servant(Arrivals arrivals) { this.arrivals = arrivals; }

        @Override
        public void push(byte[] message) { arrivals.arrived(message); }

        @Override
        public void ping() {}
    }

    @Override
    public Announcement listen(Plan plan, Arrivals arrivals, Settings settings) throws Failure {
        ORB orb = orb(plan);
        try {
            POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
            // One thread serves the calls: they stay in order.
            Policy[] policies = {root.create_thread_policy(ThreadPolicyValue.SINGLE_THREAD_MODEL)};
            POA poa = root.create_POA("stream", root.the_POAManager(), policies);
            byte[] id = poa.activate_object(new Servant(arrivals));
            poa.the_POAManager().activate();
            report(plan, false, settings);
            String reference = orb.object_to_string(poa.id_to_reference(id));
            ParsedIOR parsed = new ParsedIOR((org.jacorb.orb.ORB) orb, reference);
            int port = ((IIOPAddress) ((IIOPProfile) parsed.getEffectiveProfile()).getAddress()).getPort();
            return new Announcement(reference, plan.text("address") + ":" + port);
        } catch (SystemException | org.omg.CORBA.UserException error) {
            throw new Failure("JacORB cannot listen on " + plan.text("address") + ": " + error
                + ". Check that this host has the address.");
        }
    }
}
