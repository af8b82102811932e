import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.math.BigDecimal;
import org.omg.CORBA.Any;
import org.omg.CORBA.TypeCode;
import org.omg.CORBA.TCKind;

/** Whether two values of any IDL type are the same; a NaN is the same as another, and 0.0 is not -0.0. */
final class Same {
    static boolean same(Object a, Object b) throws Exception {
        if (a == null || b == null) return a == b;
        if (a instanceof BigDecimal) return ((BigDecimal) a).compareTo((BigDecimal) b) == 0;
        if (a instanceof Any) return sameAny((Any) a, (Any) b);
        if (a instanceof TypeCode) return ((TypeCode) a).equivalent((TypeCode) b);
        if (a.getClass().isArray()) {
            boolean all = Array.getLength(a) == Array.getLength(b);
            for (int i = 0; all && i < Array.getLength(a); ++i) all = same(Array.get(a, i), Array.get(b, i));
            return all;
        }
        if (!a.getClass().getName().startsWith("Deckwatch.")) return a.equals(b);
        // What is generated: members of structs, discriminators and members of unions, numbers of enumerators.
        boolean all = a.getClass() == b.getClass();
        for (Field field : a.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers())) continue;
            field.setAccessible(true);
            all = all && same(field.get(a), field.get(b));
        }
        return all;
    }

    /** `expected` is of a table: its type tells how the value is taken out of either. */
    private static boolean sameAny(Any any, Any expected) throws Exception {
        TypeCode type = expected.type();
        return areEquivalent(any.type(), type) && same(extract(any, type), extract(expected, type));
    }

    private static boolean areEquivalent(TypeCode read, TypeCode expected) throws Exception {
        TypeCode type = expected;
        while (type.kind().value() == TCKind._tk_alias) type = type.content_type();
        // JacORB forgets the bound of a string's type that it has read.
        boolean isString = type.kind().value() == TCKind._tk_string && read.kind().value() == TCKind._tk_string;
        return isString || read.equivalent(expected);
    }

    private static Object extract(Any any, TypeCode type) throws Exception {
        switch (type.kind().value()) {
            case TCKind._tk_null: return null;
            case TCKind._tk_longlong: return any.extract_longlong();
            case TCKind._tk_double: return any.extract_double();
            case TCKind._tk_boolean: return any.extract_boolean();
            case TCKind._tk_char: return any.extract_char();
            case TCKind._tk_wchar: return any.extract_wchar();
            case TCKind._tk_string: return any.extract_string();
            case TCKind._tk_wstring: return any.extract_wstring();
            case TCKind._tk_any: return any.extract_any();
            case TCKind._tk_TypeCode: return any.extract_TypeCode();
            default:
                Class<?> helper = Class.forName("Deckwatch.Interop." + type.name() + "Helper");
                Method extract = helper.getMethod("extract", Any.class);
                return extract.invoke(null, any);
        }
    }
}
