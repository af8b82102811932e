import deckwatch.Failure;
import deckwatch.Plan;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicReference;
import org.jacorb.orb.factory.SocketFactory;

/** Makes the client's sockets: bound to the plan's address, with its DSCP. JacORB creates the factory by its name. */
public final class BoundSockets implements SocketFactory {
    private static volatile InetAddress address;
    private static volatile int trafficClass = -1;
    /** Where this thread's next socket is kept, for a sender that must close it. */
    private static final ThreadLocal<AtomicReference<Socket>> KEPT = new ThreadLocal<>();

    static void configure(Plan plan) throws Failure {
        try {
            address = InetAddress.getByName(plan.text("address"));
        } catch (IOException error) {
            throw new Failure("`" + plan.text("address") + "` is no address.");
        }
        long dscp = plan.number("dscp", -1);
        if (dscp >= 0) trafficClass = (int) dscp << 2;
    }

    static void keepIn(AtomicReference<Socket> place) { KEPT.set(place); }

    @Override
    public Socket createSocket(String host, int port) throws IOException { return createSocket(host, port, 0); }

    @Override
    public Socket createSocket(String host, int port, int timeoutMs) throws IOException {
        Socket socket = new Socket();
        try {
            socket.bind(new InetSocketAddress(address, 0));
            socket.setTcpNoDelay(true);
            if (trafficClass >= 0) socket.setTrafficClass(trafficClass);
            // From here on, the sender may close the socket: the peer may not even accept the connection.
            AtomicReference<Socket> kept = KEPT.get();
            if (kept != null) kept.set(socket);
            socket.connect(new InetSocketAddress(host, port), timeoutMs);
        } catch (IOException error) {
            socket.close();
            throw error;
        }
        return socket;
    }

    @Override
    public boolean isSSL(Socket socket) { return false; }
}
