import DeckwatchStream.Consumer;
import deckwatch.Carrier;
import java.io.IOException;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.omg.CORBA.COMM_FAILURE;
import org.omg.CORBA.SystemException;
import org.omg.CORBA.TRANSIENT;

/**
 * Sends within a bound. JacORB has none for a one-way call: its write blocks while the peer does not read. A second
 * thread closes the connection of an overdue call, and the next call opens another one.
 */
final class BoundedSender implements Carrier.Sender {
    private static final long LOOK_NS_MIN = 1_000_000;

    private final Consumer consumer;
    private final AtomicReference<Socket> socket;
    private final long boundNs;
    /** When the call that is under way began; 0 if there is none. */
    private volatile long sinceNs;
    private volatile boolean overdue;

    BoundedSender(Consumer consumer, AtomicReference<Socket> socket, long boundNs) {
        this.consumer = consumer;
        this.socket = socket;
        this.boundNs = boundNs;
        Thread watch = new Thread(this::watch, "watch");
        watch.setDaemon(true);
        watch.start();
    }

    @Override
    public int send(byte[] message) {
        // A new connection is opened by the thread that calls.
        BoundSockets.keepIn(socket);
        overdue = false;
        sinceNs = System.nanoTime();
        try {
            consumer.push(message);
            return Carrier.SENT;
        } catch (COMM_FAILURE | TRANSIENT error) {
            return overdue ? Carrier.TIMED_OUT : Carrier.DISCONNECTED;
        } catch (SystemException error) {
            return overdue ? Carrier.TIMED_OUT : Carrier.REFUSED;
        } finally {
            sinceNs = 0;
        }
    }

    /** Looks four times in a bound, so that a send takes at most a quarter more. */
    private void watch() {
        for (;;) {
            LockSupport.parkNanos(Math.max(LOOK_NS_MIN, boundNs / 4));
            long since = sinceNs;
            if (since == 0 || System.nanoTime() - since < boundNs) continue;
            overdue = true;
            Socket open = socket.getAndSet(null);
            if (open == null) continue;
            try {
                open.close();
            } catch (IOException error) {
                // The socket is closed in any case.
            }
        }
    }
}
