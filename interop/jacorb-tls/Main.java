import Deckwatch.Echo;
import Deckwatch.EchoHelper;
import Deckwatch.EchoOperations;
import Deckwatch.EchoPOATie;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Properties;
import org.omg.CORBA.ORB;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

/**
 * Deckwatch::Echo by JacORB, whose properties of TLS come from the command line. `Main server` prints a reference and serves; `Main client REFERENCE` calls
 * it, and ends with 1 where an answer is not the one expected.
 */
public final class Main {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        properties.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        properties.setProperty("OAIAddr", "127.0.0.1");
        ORB orb = ORB.init(new String[0], properties);
        if (arguments[0].equals("server")) {
            serve(orb);
        } else {
            call(EchoHelper.narrow(orb.string_to_object(arguments[1])));
            orb.shutdown(true);
        }
    }

    private static void serve(ORB orb) throws Exception {
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        root.the_POAManager().activate();
        Class<?>[] faces = {EchoOperations.class};
        // Each operation returns its argument.
        Object same = Proxy.newProxyInstance(
            Main.class.getClassLoader(), faces, (self, operation, given) -> operation.getReturnType() == void.class ? null : given == null ? 0L : given[0]);
        System.out.println(orb.object_to_string(root.servant_to_reference(new EchoPOATie((EchoOperations) same, root))));
        orb.run();
    }

    private static void call(Echo echo) {
        echo.ping();
        byte[] large = new byte[3 << 20];
        Arrays.fill(large, (byte) 7);
        if (!echo.echo_string("over TLS").equals("over TLS") || !Arrays.equals(echo.echo_octets(large), large)) {
            System.exit(1);
        }
        System.out.println("as sent");
    }
}
