import Deckwatch.Values.*;
import java.io.Serializable;
import java.util.Properties;
import java.util.function.Supplier;
import org.omg.CORBA.ORB;
import org.omg.CORBA.portable.ValueFactory;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

/** Deckwatch::Values by JacORB: without an argument a server that prints its reference, with one a client of it. */
public final class Main {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        properties.put("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        properties.put("OAIAddr", "127.0.0.1");
        ORB orb = ORB.init(new String[0], properties);
        know(orb, "Point", PointHeld::new);
        know(orb, "Place", PlaceHeld::new);
        know(orb, "Node", NodeHeld::new);
        know(orb, "Circle", CircleHeld::new);
        know(orb, "Account", AccountHeld::new);
        know(orb, "Stamp", StampHeld::new);
        if (args.length > 0) {
            System.exit(call(orb, args[0]));
        }
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        root.the_POAManager().activate();
        System.out.println(orb.object_to_string(root.servant_to_reference(new Reflecting())));
        orb.run();
    }

    private static void know(ORB orb, String name, Supplier<Serializable> fresh) {
        ValueFactory factory = in -> ((org.omg.CORBA_2_3.portable.InputStream) in).read_value(fresh.get());
        ((org.omg.CORBA_2_3.ORB) orb).register_value_factory("IDL:Deckwatch/Values/" + name + ":1.0", factory);
    }

    private static int wrong = 0;

    private static void expect(String what, boolean isRight) {
        if (!isRight) {
            System.out.println("wrong: " + what);
            wrong++;
        }
    }

    private static int call(ORB orb, String reference) {
        Mirror mirror = MirrorHelper.narrow(orb.string_to_object(reference));
        Point point = new PointHeld();
        point.x = 3;
        point.y = 4;
        Point back = mirror.echo_point(point);
        expect("a point", back != null && back.x == 3 && back.y == 4);
        expect("null", mirror.echo_point(null) == null);
        PointHolder first = new PointHolder(), second = new PointHolder();
        expect("one value", mirror.same(point, point, first, second));
        expect("one result", first.value != null && first.value == second.value);
        Node list = null;
        for (int number = 0; number < 100; number++) {
            Node node = new NodeHeld();
            node.number = number;
            node.next = list;
            list = node;
        }
        int count = 0;
        for (Node node = mirror.echo_list(list); node != null; node = node.next) count++;
        expect("a list", count == 100);
        Pair pair = mirror.echo_pair(new Pair(point, point));
        expect("a pair", pair.left == pair.right && pair.left.y == 4);
        Place far = new PlaceHeld(), near = new PlaceHeld();
        far.x = 2;
        far.name = "far";
        near.x = 1;
        near.name = "n".repeat(20000);
        near.next = far;
        PlaceHolder place = new PlaceHolder(near);
        mirror.change(place);
        expect("places", place.value.x == 2 && place.value.name.length() == 20001 && place.value.next.name.equals("far"));
        back = mirror.echo_point(near);
        expect("a place as a point", back.x == 1 && !(back instanceof Place));
        Account account = new AccountHeld(41);
        expect("an account", mirror.echo_account(account).total() == 42);
        String[] names = mirror.echo_names(new String[] {"one", "two"});
        expect("names", names.length == 2 && names[1].equals("two"));
        expect("a label", mirror.echo_label("ahoy").equals("ahoy"));
        Stamp stamp = new StampHeld();
        stamp.seconds = 1.5;
        stamp.zone = "UTC";
        stamp = mirror.echo_stamp(stamp);
        expect("a stamp", stamp.seconds == 1.5 && stamp.zone.equals("UTC"));
        try {
            mirror.lose(point);
            expect("lost", false);
        } catch (Lost lost) {
            expect("what is lost", lost.last == lost.before && lost.last.x == 3);
        }
        System.out.println(wrong == 0 ? "all right" : "wrong");
        return wrong;
    }
}

final class Reflecting extends MirrorPOA {
    public Point echo_point(Point value) { return value; }
    public Node echo_list(Node value) { return value; }
    public boolean same(Point one, Point other, PointHolder first, PointHolder second) {
        first.value = one;
        second.value = one;
        return one != null && one == other;
    }
    public Pair echo_pair(Pair value) { return value; }
    public Point[] echo_points(Point[] value) { return value; }
    public Choice echo_choice(Choice value) { return value; }
    public Serializable echo_base(Serializable value) { return value; }
    public Shape echo_shape(Shape value) { return value; }
    public Account echo_account(Account value) { return new AccountHeld(value.credit(1)); }
    public String[] echo_names(String[] value) { return value; }
    public String echo_label(String value) { return value; }
    public Stamp echo_stamp(Stamp value) { return value; }
    public org.omg.CORBA.Any anything(org.omg.CORBA.Any value) { return value; }
    public void lose(Point last) throws Lost { throw new Lost(last, last); }
    public void change(PlaceHolder place) {
        place.value.x++;
        place.value.name += "!";
    }
}

final class PointHeld extends Point {}

final class PlaceHeld extends Place {}

final class NodeHeld extends Node {}

final class CircleHeld extends Circle {
    public double area() { return radius * radius * 3; }
}

final class AccountHeld extends Account {
    AccountHeld() {}
    AccountHeld(int amount) { balance = amount; }
    public int total() { return balance; }
    public int credit(int amount) { return balance + amount; }
}

final class StampHeld extends Stamp {
    public void marshal(org.omg.CORBA.DataOutputStream out) {
        out.write_string(zone);
        out.write_longlong((long) (seconds * 100));
    }
    public void unmarshal(org.omg.CORBA.DataInputStream in) {
        zone = in.read_string();
        seconds = in.read_longlong() / 100.0;
    }
}
