import Deckwatch.Interop.*;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import org.omg.CORBA.BAD_PARAM;
import org.omg.CORBA.CompletionStatus;
import org.omg.CORBA.NO_PERMISSION;

/** Serves Deckwatch::Interop::Types from the tables: every operation comes here. */
final class Tables implements InvocationHandler {
    private final Values values;
    private Object liked;
    private int next;

    Tables(Values values) {
        this.values = values;
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        String operation = method.getName();
        if (operation.startsWith("pass_")) return pass(operation, arguments);
        switch (operation) {
            case "turn_objects":
            case "turn_types":
                Object second = value(arguments[1]).get(arguments[1]);
                value(arguments[1]).set(arguments[1], value(arguments[2]).get(arguments[2]));
                value(arguments[2]).set(arguments[2], second);
                return arguments[0];
            case "call_back": return ((Listener) arguments[0]).heard((String) arguments[1]);
            case "mirror_octets":
            case "mirror_string":
            case "mirror_any":
            case "mirror_readings":
            case "mirror_contacts": return arguments[0];
            case "refuse": throw values.refused();
            case "shut": throw new Closed();
            case "fail": throw new NO_PERMISSION(7, CompletionStatus.COMPLETED_YES);
            case "label": return "tables";
            case "half":
                int number = (Integer) arguments[0];
                if (number % 2 != 0) throw values.refused();
                return number / 2;
            case "favourite":
                if (arguments != null) liked = arguments[0];
                return arguments == null ? liked : null;
            case "note":
                if ((Integer) arguments[0] == next) ++next;
                return null;
            case "noted": return next;
            default: throw new IllegalStateException(operation);
        }
    }

    private static Field value(Object holder) throws NoSuchFieldException {
        return holder.getClass().getField("value");
    }

    private Object pass(String operation, Object[] arguments) throws Exception {
        Object[] rows = values.of(operation);
        int row = (Short) arguments[0];
        Field b = value(arguments[2]), c = value(arguments[3]);
        boolean first = Same.same(arguments[1], Values.at(rows, row));
        if (!first || !Same.same(b.get(arguments[2]), Values.at(rows, row + 1))) {
            System.err.println(operation + " received row " + row + ": " + (first ? "b" : "a") + " is different");
            throw new BAD_PARAM(row, CompletionStatus.COMPLETED_NO);
        }
        b.set(arguments[2], Values.at(rows, row));
        c.set(arguments[3], Values.at(rows, row + 1));
        return Values.at(rows, row + 2);
    }
}
