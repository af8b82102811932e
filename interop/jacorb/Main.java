import Deckwatch.Interop.*;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Properties;
import org.omg.CORBA.ORB;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;
import org.omg.PortableServer.Servant;
import org.omg.PortableServer.ThreadPolicyValue;

/**
 * Deckwatch::Interop by JacORB. `Main server PORT PORT PORT` prints a reference for each version of GIOP from 1.0 on and serves; `Main client REFERENCE
 * REFERENCE REFERENCE` calls every operation behind each, whose profiles are of IIOP 1.0, 1.1 and 1.2; it ends with 1 where an answer is not the one expected.
 */
public final class Main {
    /** An ORB that speaks GIOP 1.`minor` at most. */
    private static ORB orb(int minor, String port) {
        Properties properties = new Properties();
        properties.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        properties.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        properties.setProperty("jacorb.giop_minor_version", String.valueOf(minor));
        properties.setProperty("jacorb.connection.client.pending_reply_timeout", "60000");
        properties.setProperty("OAIAddr", "127.0.0.1");
        properties.setProperty("OAPort", port);
        // GIOP 1.0 knows no agreement; and where UTF-8 is agreed upon, a server of another native code set answers in that all the same.
        properties.setProperty("jacorb.native_char_codeset", minor == 0 ? "ISO8859_1" : "UTF8");
        // Else a full queue lets one-ways go.
        properties.setProperty("jacorb.poa.queue_wait", "on");
        properties.setProperty("jacorb.poa.queue_max", "10000");
        return ORB.init(new String[0], properties);
    }

    private static POA root(ORB orb) throws Exception {
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        root.the_POAManager().activate();
        return root;
    }

    private static void serve(String[] ports) throws Exception {
        ORB last = null;
        for (int minor = 0; minor <= 2; ++minor) {
            ORB orb = orb(minor, ports[minor]);
            POA root = root(orb);
            // One-ways keep their order only where one thread serves them.
            org.omg.CORBA.Policy[] policies = {
                root.create_thread_policy(ThreadPolicyValue.SINGLE_THREAD_MODEL),
                root.create_implicit_activation_policy(org.omg.PortableServer.ImplicitActivationPolicyValue.IMPLICIT_ACTIVATION),
            };
            POA poa = root.create_POA("tables", root.the_POAManager(), policies);
            Class<?>[] faces = {TypesOperations.class};
            TypesOperations tables = (TypesOperations) Proxy.newProxyInstance(Main.class.getClassLoader(), faces, new Tables(new Values(orb)));
            Servant servant = new TypesPOATie(tables, poa);
            System.out.println(orb.object_to_string(poa.servant_to_reference(servant)));
            last = orb;
        }
        last.run();
    }

    private static boolean isInScope(String operation, int minor) {
        switch (operation) {
            // Listed gaps of JacORB.
            case "pass_little":
            case "pass_wide_sign": return false;
            case "pass_wide":
            case "pass_wide_any": return minor > 1;
            // Where UTF-8 is agreed upon there are no letters of one octet beyond ASCII.
            case "pass_latin_char":
            case "pass_latin_chars": return minor == 0;
            // Wide characters came with GIOP 1.1.
            default: return minor > 0 || !operation.startsWith("pass_w");
        }
    }

    private static boolean call(String[] references) throws Exception {
        boolean all = true;
        for (int minor = 0; minor <= 2; ++minor) {
            ORB orb = orb(minor, "0");
            Types types = TypesHelper.narrow(orb.string_to_object(references[minor]));
            System.out.println("GIOP 1." + minor);
            final int version = minor;
            Caller.Scope scope = operation -> isInScope(operation, version);
            all &= new Caller(orb, types, new Values(orb), scope).callAll(root(orb));
            orb.shutdown(true);
        }
        return all;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 4 && arguments[0].equals("server")) {
            serve(Arrays.copyOfRange(arguments, 1, 4));
        } else if (arguments.length == 4 && arguments[0].equals("client")) {
            System.exit(call(Arrays.copyOfRange(arguments, 1, 4)) ? 0 : 1);
        } else if (arguments.length == 2 && arguments[0].equals("times")) {
            ORB orb = orb(2, "0");
            Times.call(orb, arguments[1]);
            orb.shutdown(true);
        } else {
            System.err.println("usage: Main server PORT PORT PORT | Main client REFERENCE REFERENCE REFERENCE | Main times REFERENCE");
            System.exit(2);
        }
    }
}
