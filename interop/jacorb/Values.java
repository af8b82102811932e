import Deckwatch.Interop.*;
import java.math.BigDecimal;
import java.util.HashMap;
import java.util.Map;
import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;

/** The table of values of Deckwatch::Interop, as Java has them. */
final class Values {
    static final String UMLAUTS = "Gr\u00fc\u00dfe";

    private final ORB orb;
    private final Map<String, Object[]> rows = new HashMap<>();

    Values(ORB orb) {
        this.orb = orb;
        basic();
        sequences();
        constructed();
        anys();
    }

    /** The rows of the operation `pass_...`. */
    Object[] of(String operation) {
        Object[] all = rows.get(operation.substring("pass_".length()));
        if (all == null) throw new IllegalStateException(operation + " has no table");
        return all;
    }

    static Object at(Object[] rows, int row) {
        return rows[row % rows.length];
    }

    private void put(String name, Object... all) {
        rows.put(name, all);
    }

    private Object get(String name, int row) {
        return rows.get(name)[row];
    }

    private void basic() {
        put("boolean", true, false, true);
        put("octet", (byte) 0, (byte) 127, (byte) 255);
        put("char", '\0', 'a', '~');
        put("latin_char", '\u00a0', '\u00e9', '\u00ff');
        put("wchar", 'A', '\u00e9', '\u20ac', '\ufffd');
        put("short", Short.MIN_VALUE, (short) -1, (short) 0, Short.MAX_VALUE);
        put("ushort", (short) 0, (short) -1, (short) 0, (short) -1);
        put("long", Integer.MIN_VALUE, -1, 0, Integer.MAX_VALUE);
        put("ulong", 0, -1, 0, -1);
        put("longlong", Long.MIN_VALUE, -1L, 0L, Long.MAX_VALUE);
        put("ulonglong", 0L, -1L, 0L, -1L);
        put("float", Float.NaN, -0.0f, Float.MAX_VALUE, Float.MIN_VALUE, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY);
        put("double", Double.NaN, -0.0, Double.MAX_VALUE, Double.MIN_VALUE, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY);
        put("colour", Colour.red, Colour.green, Colour.blue);
        put("price", new BigDecimal("1234567.89"), new BigDecimal("-9999999.99"), new BigDecimal("1000000.05"));
        put("little", new BigDecimal("0.00"), new BigDecimal("0.01"), new BigDecimal("-0.05"));
        put("sum", new BigDecimal("123456789012345678901.0123456789"), new BigDecimal("-999999999999999999999.9999999999"),
                new BigDecimal("100000000000000000000.0000000001"));
        put("string", "", "ahoy", UMLAUTS, "x".repeat(300));
        put("sign", "", "RTS", "12345678");
        put("wstring", "", "plain", "Gr\u00fc\u00dfe \u20ac", "\ud834\udd1e clef");
        put("wide_sign", "", "four", "\u00e9\u20ac");
    }

    private void sequences() {
        byte[] octets = new byte[300];
        for (int i = 0; i < octets.length; ++i) octets[i] = (byte) (i % 251);
        boolean[] booleans = new boolean[17];
        for (int i = 0; i < booleans.length; ++i) booleans[i] = i % 2 == 0;
        put("octets", new byte[0], new byte[] {0, 127, (byte) 255}, octets);
        put("booleans", new boolean[0], new boolean[] {true, false, true}, booleans);
        put("chars", new char[0], new char[] {'\0', 'a', '~'}, new char[] {'z'});
        put("latin_chars", new char[0], new char[] {'\u00a0', '\u00e9', '\u00ff'}, new char[] {'\u00c5'});
        put("shorts", new short[0], new short[] {Short.MIN_VALUE, -1, 0, Short.MAX_VALUE}, new short[] {1});
        put("longs", new int[0], new int[] {Integer.MIN_VALUE, -1, 0, Integer.MAX_VALUE}, new int[] {1});
        put("longlongs", new long[0], new long[] {Long.MIN_VALUE, -1, 0, Long.MAX_VALUE}, new long[] {1});
        put("floats", new float[0],
                new float[] {Float.NaN, -0.0f, Float.MAX_VALUE, Float.MIN_VALUE, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY},
                new float[] {0.5f});
        put("doubles", new double[0],
                new double[] {Double.NaN, -0.0, Double.MAX_VALUE, Double.MIN_VALUE, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY},
                new double[] {0.5});
        put("texts", new String[0], new String[] {"", "ahoy"}, new String[] {UMLAUTS});
        put("colours", new Colour[0], new Colour[] {Colour.blue, Colour.red}, new Colour[] {Colour.green});
        put("few_longs", new int[0], new int[] {1}, new int[] {Integer.MIN_VALUE, -1, 0, Integer.MAX_VALUE});
        put("few_signs", new String[0], new String[] {"RTS"}, new String[] {"12345678", ""});
        put("table", new int[0][], new int[][] {{}, {1}, {2, 3}}, new int[][] {{-1}});
        put("wide_chars", new char[0], new char[] {'A', '\u20ac'}, new char[] {'\u00e9'});
        put("wide_texts", new String[0], new String[] {"", "Gr\u00fc\u00dfe \u20ac"}, new String[] {"\ud834\udd1e clef"});
    }

    private void constructed() {
        Object[] grid = new Object[3], names = new Object[3], cube = new Object[3];
        String[] texts = {"", "ahoy", UMLAUTS};
        for (int row = 0; row < 3; ++row) {
            int[][] cells = new int[2][3];
            for (int i = 0; i < 6; ++i) cells[i / 3][i % 3] = i * (row + 1) - row;
            grid[row] = cells;
            names[row] = new String[] {texts[row % 3], texts[(row + 1) % 3], texts[(row + 2) % 3]};
            double[][][] block = new double[2][2][2];
            for (int i = 0; i < 8; ++i) block[i / 4][i / 2 % 2][i % 2] = row + i / 4.0;
            cube[row] = block;
        }
        put("grid", grid);
        put("names", names);
        put("cube", cube);
        Reading[] readings = {
            new Reading(false, (byte) 0, ' ', Short.MIN_VALUE, (short) 0, Integer.MIN_VALUE, 0, Long.MIN_VALUE, 0L,
                    Float.NEGATIVE_INFINITY, Double.NEGATIVE_INFINITY, Colour.red),
            new Reading(true, (byte) 1, 'x', (short) -2, (short) 3, -4, 5, -6L, 7L, 0.5f, -0.25, Colour.green),
            new Reading(true, (byte) 255, '~', Short.MAX_VALUE, (short) -1, Integer.MAX_VALUE, -1, Long.MAX_VALUE, -1L,
                    Float.MAX_VALUE, Double.MIN_VALUE, Colour.blue),
        };
        put("reading", (Object[]) readings);
        put("readings", new Reading[0], readings, new Reading[] {readings[1]});
        put("pair", new Reading[] {readings[0], readings[1]}, new Reading[] {readings[1], readings[2]}, new Reading[] {readings[2], readings[0]});
        Contact[] contacts = new Contact[3];
        Deal[] deals = new Deal[3];
        Wide[] wide = new Wide[3];
        for (int row = 0; row < 3; ++row) {
            contacts[row] = new Contact((String) get("string", row), (String) get("sign", row), (Reading[]) get("readings", row), (int[][]) grid[row]);
            deals[row] = new Deal((String) get("string", row), (BigDecimal) get("price", row), (byte) 200);
            wide[row] = new Wide((byte) 1, '\u20ac', (String) get("wstring", row + 1), (String) get("wide_sign", row));
        }
        put("contact", (Object[]) contacts);
        put("contacts", new Contact[0], contacts, new Contact[] {contacts[2]});
        put("deal", (Object[]) deals);
        put("wide", (Object[]) wide);
        Node leaf = new Node("leaf", new Node[0]);
        Node chain = leaf;
        for (int i = 0; i < 5; ++i) chain = new Node("chain", new Node[] {chain});
        put("node", leaf, new Node("root", new Node[] {leaf, new Node("twig", new Node[] {leaf})}), chain);
        unions(contacts, readings);
    }

    private void unions(Contact[] contacts, Reading[] readings) {
        Choice[] choices = {new Choice(), new Choice(), new Choice(), new Choice()};
        choices[0].found(-1, contacts[1]);
        choices[1].level((byte) 9);
        choices[2].found(7, contacts[2]);
        choices[3].text("ahoy");
        put("choice", (Object[]) choices);
        put("choices", new Choice[0], choices, new Choice[] {choices[1]});
        Flag[] flags = {new Flag(), new Flag(), new Flag()};
        flags[0].value(0.5);
        flags[1].__default();
        flags[2].value(-0.0);
        put("flag", (Object[]) flags);
        Shade[] shades = {new Shade(), new Shade(), new Shade()};
        shades[0].depth(-5);
        shades[1].names((String[]) get("texts", 1));
        shades[2].inner(choices[0]);
        put("shade", (Object[]) shades);
        Letter[] letters = {new Letter(), new Letter(), new Letter()};
        letters[0].s((short) -2);
        letters[1].cells((int[][]) get("grid", 1));
        letters[2].other(readings[2]);
        put("letter", (Object[]) letters);
    }

    private interface Insertion {
        void into(Any any);
    }

    private Any any(Insertion insertion) {
        Any any = orb.create_any();
        insertion.into(any);
        return any;
    }

    Refused refused() {
        return new Refused(UMLAUTS, (Contact) get("contact", 1), (int[]) get("longs", 1));
    }

    private Any parcel(Choice pick, Any inside, Colour shade) {
        return any(into -> ParcelHelper.insert(into, new Parcel(pick, inside, shade)));
    }

    private void anys() {
        Any node = any(into -> NodeHelper.insert(into, (Node) get("node", 1)));
        Any inner = parcel((Choice) get("choice", 1), orb.create_any(), Colour.red);
        Any[] all = {
            orb.create_any(),
            any(into -> into.insert_longlong(Long.MIN_VALUE)),
            any(into -> into.insert_double(Double.POSITIVE_INFINITY)),
            any(into -> into.insert_string(UMLAUTS)),
            any(into -> PriceHelper.insert(into, (BigDecimal) get("price", 1))),
            any(into -> ColourHelper.insert(into, Colour.blue)),
            any(into -> ContactHelper.insert(into, (Contact) get("contact", 1))),
            any(into -> ChoiceHelper.insert(into, (Choice) get("choice", 0))),
            parcel((Choice) get("choice", 3), node, Colour.blue),
            any(into -> into.insert_any(inner)),
            any(into -> GridHelper.insert(into, (int[][]) get("grid", 1))),
            any(into -> ReadingsHelper.insert(into, (Reading[]) get("readings", 1))),
            any(into -> into.insert_TypeCode(ContactHelper.type())),
            any(into -> ColoursHelper.insert(into, (Colour[]) get("colours", 1))),
            any(into -> into.insert_boolean(true)),
            any(into -> into.insert_char('a')),
            any(into -> CallSignHelper.insert(into, "12345678")),
            any(into -> LetterHelper.insert(into, (Letter) get("letter", 1))),
            any(into -> FlagHelper.insert(into, (Flag) get("flag", 1))),
        };
        put("any", (Object[]) all);
        put("anys", new Any[0], all, new Any[] {all[1]});
        Any refused = any(into -> RefusedHelper.insert(into, refused()));
        put("raised", refused, any(into -> ClosedHelper.insert(into, new Closed())), refused);
        put("wide_any",
                any(into -> WideHelper.insert(into, (Wide) get("wide", 1))),
                any(into -> into.insert_wstring((String) get("wstring", 3))),
                any(into -> into.insert_wchar('\u20ac')),
                any(into -> WideTextsHelper.insert(into, (String[]) get("wide_texts", 1))));
    }
}
