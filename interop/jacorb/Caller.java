import Deckwatch.Interop.*;
import java.lang.reflect.Method;
import java.util.Arrays;
import org.omg.CORBA.Any;
import org.omg.CORBA.CompletionStatus;
import org.omg.CORBA.NO_PERMISSION;
import org.omg.CORBA.ORB;
import org.omg.CORBA.ObjectHolder;
import org.omg.CORBA.TypeCode;
import org.omg.CORBA.TypeCodeHolder;
import org.omg.PortableServer.POA;

/** Calls every operation of Deckwatch::Interop::Types with every row of the tables. */
final class Caller {
    private final ORB orb;
    private final Types types;
    private final Values values;
    private final Scope scope;
    private int calls, wrong;

    /** Which operations are called. */
    interface Scope {
        boolean holds(String operation);
    }

    private interface Call {
        boolean isRight() throws Exception;
    }

    Caller(ORB orb, Types types, Values values, Scope scope) {
        this.orb = orb;
        this.types = types;
        this.values = values;
        this.scope = scope;
    }

    private void attempt(String what, int row, Call call) {
        ++calls;
        try {
            if (call.isRight()) return;
            System.out.println(what + " row " + row + ": DIFFERENT");
        } catch (java.lang.reflect.InvocationTargetException exception) {
            System.out.println(what + " row " + row + ": " + exception.getCause());
        } catch (Exception exception) {
            System.out.println(what + " row " + row + ": " + exception);
        }
        ++wrong;
    }

    /** Whether all went as expected. */
    boolean callAll(POA root) throws Exception {
        passAll();
        turnAll();
        callBack(root);
        raiseAll();
        sendMuch();
        System.out.println(calls + " calls, " + wrong + " not as expected");
        return wrong == 0;
    }

    private void passAll() {
        for (Method method : TypesOperations.class.getMethods()) {
            String operation = method.getName();
            if (!operation.startsWith("pass_") || !scope.holds(operation)) continue;
            Object[] rows = values.of(operation);
            Class<?> holder = method.getParameterTypes()[2];
            for (int row = 0; row < rows.length; ++row) {
                final int number = row;
                attempt(operation, row, () -> {
                    Object b = holder.getConstructor().newInstance(), c = holder.getConstructor().newInstance();
                    holder.getField("value").set(b, Values.at(rows, number + 1));
                    Object result = method.invoke(types, (short) number, Values.at(rows, number), b, c);
                    return Same.same(result, Values.at(rows, number + 2))
                            && Same.same(holder.getField("value").get(b), Values.at(rows, number))
                            && Same.same(holder.getField("value").get(c), Values.at(rows, number + 1));
                });
            }
        }
    }

    private void turnAll() {
        attempt("turn_objects", 0, () -> {
            ObjectHolder b = new ObjectHolder(null), c = new ObjectHolder(types);
            org.omg.CORBA.Object result = types.turn_objects(types, b, c);
            return result._is_equivalent(types) && b.value._is_equivalent(types) && c.value == null;
        });
        attempt("turn_types", 0, () -> {
            TypeCodeHolder b = new TypeCodeHolder(NodeHelper.type()), c = new TypeCodeHolder(ChoiceHelper.type());
            TypeCode result = types.turn_types(ParcelHelper.type(), b, c);
            return result.equal(ParcelHelper.type()) && b.value.equal(ChoiceHelper.type()) && c.value.equal(NodeHelper.type());
        });
        attempt("attribute", 0, () -> {
            boolean all = true;
            for (Object contact : values.of("pass_contact")) {
                types.favourite((Contact) contact);
                all = all && Same.same(types.favourite(), contact);
            }
            return all && types.label().equals("tables") && types.half(-8) == -4;
        });
        attempt("_is_a", 0, () -> types._is_a("IDL:Deckwatch/Interop/Base:1.0")
                && !types._is_a("IDL:Deckwatch/Interop/Listener:1.0") && !types._non_existent());
    }

    /** Gives back what it hears, but for one word. */
    private static final class Ear extends ListenerPOA {
        @Override
        public String heard(String text) throws Closed {
            if (text.equals("close")) throw new Closed();
            return text;
        }
    }

    private void callBack(POA root) throws Exception {
        Listener listener = ListenerHelper.narrow(root.servant_to_reference(new Ear()));
        attempt("reference in an any", 0, () -> {
            Any any = orb.create_any();
            ListenerHelper.insert(any, listener);
            return ListenerHelper.extract(types.mirror_any(any))._is_equivalent(listener);
        });
        attempt("call_back", 0, () -> types.call_back(listener, Values.UMLAUTS).equals(Values.UMLAUTS));
        attempt("call_back", 1, () -> {
            try {
                types.call_back(listener, "close");
            } catch (Closed closed) {
                return true;
            }
            return false;
        });
    }

    private void raiseAll() {
        attempt("refuse", 0, () -> {
            try {
                types.refuse();
            } catch (Refused refused) {
                return isExpected(refused);
            }
            return false;
        });
        attempt("half", 1, () -> {
            try {
                types.half(3);
            } catch (Refused refused) {
                return isExpected(refused);
            }
            return false;
        });
        attempt("shut", 0, () -> {
            try {
                types.shut();
            } catch (Closed closed) {
                return true;
            }
            return false;
        });
        attempt("fail", 0, () -> {
            try {
                types.fail();
            } catch (NO_PERMISSION exception) {
                return exception.minor == 7 && exception.completed == CompletionStatus.COMPLETED_YES;
            }
            return false;
        });
    }

    private boolean isExpected(Refused refused) throws Exception {
        Refused expected = values.refused();
        return refused.reason.equals(expected.reason) && Same.same(refused.who, expected.who) && Arrays.equals(refused.codes, expected.codes);
    }

    private void sendMuch() {
        for (int len : new int[] {0, 8191, 8192, 100001, 1000000}) {
            attempt("mirror_octets", len, () -> {
                byte[] data = new byte[len];
                for (int i = 0; i < len; ++i) data[i] = (byte) (i % 251);
                return Arrays.equals(types.mirror_octets(data), data);
            });
        }
        attempt("mirror_string", 0, () -> {
            String text = "y".repeat(1000000);
            return types.mirror_string(text).equals(text);
        });
        attempt("mirror_readings", 0, () -> {
            Object[] three = values.of("pass_reading");
            Reading[] data = new Reading[18000];
            for (int i = 0; i < data.length; ++i) data[i] = (Reading) three[i % 3];
            return Same.same(types.mirror_readings(data), data);
        });
        attempt("mirror_contacts", 0, () -> {
            Object[] three = values.of("pass_contact");
            Contact[] data = new Contact[3000];
            for (int i = 0; i < data.length; ++i) data[i] = (Contact) three[i % 3];
            return Same.same(types.mirror_contacts(data), data);
        });
        attempt("note", 0, () -> {
            int before = types.noted();
            for (int number = before; number < before + 300; ++number) types.note(number, new byte[number % 100 == 99 ? 20000 : number % 60]);
            return types.noted() == before + 300;
        });
    }
}
