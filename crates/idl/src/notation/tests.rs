//! Every value of every type is printed and read back, in each form. A text that is not a value is refused, with the
//! location of the error.

mod random;

use deckwatch_cdr::typecode::{Member, ValueMember, ValueModifier};
use deckwatch_cdr::value::{Instance, Reference, Value, read_value, write_value};
use deckwatch_cdr::{ByteOrder, CharSet, Codec, Reader, TypeCode, Write, Writer};

use random::Random;

use super::{Notation, World};
use crate::Model;

const TYPES: &str = r#"
    module M {
        enum Colour { red, green, blue };
        struct Point { double x; float y; };
        typedef sequence<Point> Track;
        typedef Colour Palette[2][3];
        struct Everything {
            boolean b; octet o; char c; wchar wc; short s; unsigned short us; long l; unsigned long ul; long long ll;
            unsigned long long ull; float f; double d; long double ld; fixed<9,2> price; fixed<31,0> many; string text;
            string<5> bounded; wstring wide; wstring<4> short_wide; sequence<octet> octets; octet digest[4];
            sequence<char> letters; char tag[3]; sequence<long, 4> few; Track path; Palette shades; CORBA::TypeCode kind; Object target; any extra;
        };
        struct Tree { string label; sequence<Tree> children; };
        union Sparse switch (long) { case 1: string one; case -2: case 3: Point place; default: octet rest; };
        union Choice switch (Colour) { case red: long number; case green: string words; };
        union Maybe switch (boolean) { case TRUE: Track value; };
        union Lettered switch (char) { case 'a': sequence<Lettered> inner; case '\'': wstring quote; };
        union Wide switch (unsigned long long) { case 18446744073709551615: long most; };
        exception Refused { string reason; Colour shade; };
        interface I {};
    };
"#;

struct Isolated;

impl World for Isolated {
    fn reference(&self, text: &str) -> Result<Reference, String> {
        let (type_id, data) = text
            .strip_prefix("IOR:")
            .and_then(|text| text.split_once('!'))
            .ok_or("not of this test")?;
        Ok(Reference {
            type_id: type_id.to_owned(),
            profiles: vec![(0, data.as_bytes().to_vec())],
        })
    }

    fn reference_text(&self, reference: &Reference) -> String {
        let data = String::from_utf8_lossy(&reference.profiles[0].1);
        format!("IOR:{}!{data}", reference.type_id)
    }

    fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        Ok(path.as_bytes().to_vec())
    }
}

fn model() -> Model {
    Model::parse("types.idl", TYPES).unwrap_or_else(|errors| panic!("{errors}"))
}

fn octets(code: &TypeCode, value: &Value) -> Vec<u8> {
    let mut octets = Vec::new();
    let codec = Codec::DEFAULT.with_chars(CharSet::Utf8);
    let mut w = Writer::new(&mut octets)
        .with_order(ByteOrder::Big)
        .with_codec(codec);
    write_value(code, value, &mut w).unwrap();
    octets
}

#[test]
fn names_that_are_no_words_are_escaped_and_read_back() {
    let model = Model::parse("none", "").unwrap_or_else(|errors| panic!("{errors}"));
    let notation = Notation::new(&model, &Isolated);
    let colour = TypeCode::enumeration("IDL:C:1.0", "", &["red\r", "a, b"]);
    let member = |name| Member {
        name,
        type_code: &colour,
    };
    let hostile = ["\u{1b}[2J", "x\ny", "\u{202e}", "", "", "plain"].map(member);
    let code = TypeCode::structure("IDL:S\u{7}:1.0", "n\u{9b}m", &hostile);
    let values = [0, 1, 0, 1, 0, 1].map(Value::Enum).to_vec();
    let value = Value::Struct(values);
    let printed = notation.print(&code, &value).unwrap();
    for text in [printed.text(1_000), printed.json(1_000)] {
        assert!(
            text.is_ascii() && !text.contains(char::is_control),
            "{text}"
        );
        assert_eq!(notation.read(&code, &text), Ok(value.clone()), "{text}");
    }
    assert!(
        printed.text(1_000).contains("_3: \"a, b\", _4: "),
        "{}",
        printed.text(1_000)
    );
    let text = notation.type_text(&code);
    assert!(
        text.is_ascii() && !text.contains(char::is_control),
        "{text}"
    );
    assert_eq!(notation.type_code(&text), Ok(code), "{text}");
}

#[test]
fn every_value_reads_back_as_it_was_printed_in_both_forms_and_all_widths() {
    let model = model();
    let notation = Notation::new(&model, &Isolated);
    let types = [
        "M::Everything",
        "M::Tree",
        "M::Sparse",
        "M::Choice",
        "M::Maybe",
        "M::Lettered",
        "M::Wide",
        "M::Refused",
        "any",
        "string",
        "wchar",
        "M::Palette",
    ];
    for seed in 0..400 {
        let mut random = Random(seed);
        for name in types {
            let code = notation.type_code(name).unwrap();
            let value = random.value(&notation, &code, 0);
            let printed = notation.print(&code, &value).unwrap();
            for text in [
                printed.text(110),
                printed.text(20),
                printed.json(110),
                printed.json(1),
            ] {
                let read = notation.read(&code, &text).unwrap_or_else(|error| {
                    panic!(
                        "seed {seed}, {name}: {error}\n{}\n{text}",
                        error.excerpt(&text)
                    )
                });
                assert!(
                    same(&code, &read, &value),
                    "seed {seed}, {name}\n{text}\n{read:?}\n{value:?}"
                );
            }
        }
    }
}

#[test]
fn values_of_value_types_are_printed_as_far_as_they_are_known() {
    let model = model();
    let notation = Notation::new(&model, &Isolated);
    let shown = |code: &TypeCode, type_id: &str, state: Vec<Value>| {
        let type_id = type_id.to_owned();
        let value = Value::Valuetype(Some(Box::new(Instance { type_id, state })));
        let printed = notation.print(code, &value);
        printed.map(|printed| printed.text(110))
    };
    let cargo = TypeCode::abstract_interface("IDL:Cargo:1.0", "Cargo");
    let mut sent = Vec::new();
    let mut w = Writer::new(&mut sent);
    // Discriminator false: the abstract interface's value is a valuetype. Then a chunked value that holds one number.
    w.write_u32(0).unwrap();
    w.write_u32(0x7fff_ff0a).unwrap();
    "IDL:Printed:1.0".write(&mut w).unwrap();
    for number in [4, 7, u32::MAX] {
        w.write_u32(number).unwrap();
    }
    let value = read_value(&cargo, &mut Reader::new(&sent, ByteOrder::NATIVE)).unwrap();
    let own_code_alone = notation
        .print(&cargo, &value)
        .map(|printed| printed.text(110));
    assert_eq!(
        own_code_alone.as_deref(),
        Ok(r#"{valuetype: "IDL:Printed:1.0", opaque: true}"#)
    );
    let state = || vec![Value::Long(7)];
    assert!(shown(&cargo, "IDL:Printed:1.0", state()).is_err());
    let kilos = ValueMember {
        name: "kilos",
        type_code: &TypeCode::long(),
        is_public: true,
    };
    let none = ValueModifier::None;
    let code = TypeCode::value("IDL:Printed:1.0", "Printed", none, None, &[kilos]);
    let text = shown(&code, "IDL:Printed:1.0", state());
    assert_eq!(
        text.as_deref(),
        Ok(r#"{valuetype: "IDL:Printed:1.0", kilos: 7}"#)
    );
}

/// Whether two values have equal octets. A NaN is equal to any NaN: its payload need not be preserved.
fn same(code: &TypeCode, read: &Value, value: &Value) -> bool {
    octets(code, read) == octets(code, value) || format!("{read:?}").contains("NaN")
}

#[test]
fn every_type_reads_back_as_it_was_written_out() {
    let own = model();
    let none = Model::parse("none.idl", "").unwrap();
    let (own, none) = (
        Notation::new(&own, &Isolated),
        Notation::new(&none, &Isolated),
    );
    for name in [
        "M::Everything",
        "M::Tree",
        "M::Sparse",
        "M::Choice",
        "M::Lettered",
        "M::Refused",
        "M::I",
        "M::Palette",
        "M::Wide",
    ] {
        let code = own.type_code(name).unwrap();
        assert_eq!(own.type_text(&code), name);
        let text = none.type_text(&code);
        let read = none
            .type_code(&text)
            .unwrap_or_else(|error| panic!("{error}\n{}", error.excerpt(&text)));
        assert_eq!(read, code, "{text}");
    }
    let palette = own.type_code("M::Colour[2][3]").unwrap();
    assert_eq!(
        (palette.length(), palette.content_type().unwrap().length()),
        (Some(2), Some(3))
    );
}

#[test]
fn a_hostile_type_is_cut_when_it_is_written_out() {
    let mut code = TypeCode::long();
    for depth in 0..40 {
        let part = code.clone();
        let member = |name| deckwatch_cdr::typecode::Member {
            name,
            type_code: &part,
        };
        code = TypeCode::structure(
            &format!("IDL:S{depth}:1.0"),
            "S",
            &[member("a"), member("b")],
        );
    }
    let none = Model::parse("none.idl", "").unwrap();
    let text = Notation::new(&none, &Isolated).type_text(&code);
    assert!(
        text.len() < 2 * crate::limits::TYPE_TEXT_MAX && text.ends_with('}'),
        "{}",
        text.len()
    );
}

/// A type, a text, and the printed form of its value.
const READ: &[(&str, &str, &str)] = &[
    ("long", " 0x7fffffff ", "2147483647"),
    ("short", "-0x10", "-16"),
    ("double", "1", "1.0"),
    (
        "string",
        "two words, and {marks}",
        "\"two words, and {marks}\"",
    ),
    ("string", "\"\\u00e9\\ud83d\\ude00\\x41\"", "\"é😀A\""),
    ("char", "'\\n'", "'\\n'"),
    ("M::Colour", "M::green", "green"),
    ("fixed<5, 2>", "1.25d", "1.25"),
    ("M::Point", "{\"y\": 1, X: 2,}", "{x: 2.0, y: 1.0}"),
    (
        "sequence<string>",
        "[a b , \"c,d\", e]",
        "[\"a b\", \"c,d\", \"e\"]",
    ),
    ("sequence<octet>", "[1, 0xff]", "x'01ff'"),
    ("sequence<octet>", "x'01 FF'", "x'01ff'"),
    ("sequence<octet>", "@AB", "x'4142'"),
    ("sequence<char>", "['a', b]", "\"ab\""),
    (
        "M::Sparse",
        "{place: {x: 1, y: 2}}",
        "{case: -2, value: {x: 1.0, y: 2.0}}",
    ),
    ("M::Sparse", "{rest: 9}", "{case: 0, value: 9}"),
    ("M::Sparse", "{value: 9, case: 70}", "{case: 70, value: 9}"),
    ("M::Choice", "{case: blue}", "{case: blue}"),
    ("any", "{value: [1, [2]], type: \"long\"}", ""),
    (
        "any",
        "{type: long, value: 5}",
        "{type: \"long\", value: 5}",
    ),
    ("any", "null", "null"),
    ("Object", "nil", "nil"),
    (
        "TypeCode",
        "sequence<M::Point, 4>",
        "\"sequence<M::Point, 4>\"",
    ),
];

#[test]
fn values_are_read_as_people_write_them() {
    let model = model();
    let notation = Notation::new(&model, &Isolated);
    for (name, text, expected) in READ {
        let code = notation.type_code(name).unwrap();
        let read = notation.read(&code, text);
        let printed = read.map(|value| notation.print(&code, &value).unwrap().text(110));
        if expected.is_empty() {
            assert!(printed.is_err(), "{name} {text}");
        } else {
            assert_eq!(printed.as_deref(), Ok(*expected), "{name} {text}");
        }
    }
}

/// A type, a text that is not a value of it, the offset of the error, and the message.
const REFUSED: &[(&str, &str, usize, &str)] = &[
    (
        "octet",
        "256",
        0,
        "expected an integer from 0 to 255 (octet), found `256`",
    ),
    (
        "long",
        "",
        0,
        "expected a value of type long, found the end",
    ),
    (
        "long",
        "1 2",
        0,
        "expected an integer from -2147483648 to 2147483647 (long), found `1 2`",
    ),
    (
        "boolean",
        "maybe",
        0,
        "expected true or false (boolean), found `maybe`",
    ),
    (
        "float",
        "1e39",
        0,
        "expected a number of at most 3.4e38 (float), found `1e39`",
    ),
    (
        "M::Colour",
        "pink",
        0,
        "expected one of red, green, blue (M::Colour), found `pink`",
    ),
    (
        "string<3>",
        "four",
        0,
        "expected at most 3 octets of UTF-8 (string<3>), found 4",
    ),
    ("string", "\"open", 0, "this quote is not closed"),
    (
        "string",
        "\"a\" b",
        4,
        "something follows the value; text with spaces or marks in it stands in quotes",
    ),
    (
        "M::Point",
        "{x: 1}",
        5,
        "the member `y` (float) of M::Point is missing",
    ),
    (
        "M::Point",
        "{x: 1, z: 2}",
        7,
        "M::Point has no member `z`; it has x, y",
    ),
    (
        "M::Point",
        "{x: 1, x: 2}",
        7,
        "the member `x` stands here twice",
    ),
    ("M::Point", "{x 1}", 3, "expected `:`, found `1`"),
    (
        "M::Point",
        "5",
        0,
        "expected `{` and the members of M::Point, found `5`",
    ),
    (
        "M::Track",
        "[{x: 1, y: 2}, {x: a, y: 1}]",
        19,
        "`[1].x`: expected a number (double), found `a`",
    ),
    (
        "M::Track",
        "[{x: 1, y: 2}",
        13,
        "expected `,` or `]`, found the end",
    ),
    (
        "long[2]",
        "[1]",
        0,
        "expected 2 elements (long[2]), found 1",
    ),
    (
        "sequence<long, 1>",
        "[1, 2]",
        0,
        "expected at most 1 elements (sequence<long, 1>), found 2",
    ),
    (
        "M::Choice",
        "{case: red}",
        10,
        "the value of M::Choice is missing",
    ),
    (
        "M::Choice",
        "{case: blue, value: 1}",
        21,
        "no member has this case, so that there is no value",
    ),
    (
        "any",
        "5",
        0,
        "expected an any as `{type: \"IDL type\", value: VALUE}`, found `5`",
    ),
    (
        "any",
        "{type: \"M::Missing\", value: 1}",
        8,
        "`type`: the type `M::Missing` is not known; write its name with its modules'",
    ),
    (
        "Object",
        "somewhere",
        0,
        "expected IOR:, corbaloc:, corbaname: or nil, found `somewhere`: not of this test",
    ),
    (
        "sequence<octet>",
        "x'0'",
        0,
        "expected octets as x'00ff', [0, 255] or @FILE, found `x'0'`",
    ),
];

#[test]
fn what_is_no_value_is_refused_where_it_stands() {
    let model = model();
    let notation = Notation::new(&model, &Isolated);
    for (name, text, start, said) in REFUSED {
        let code = notation.type_code(name).unwrap();
        let error = notation.read(&code, text).expect_err(text);
        assert_eq!(
            (error.start, error.to_string().as_str()),
            (*start, *said),
            "{name} {text}"
        );
    }
}

#[test]
fn an_excerpt_points_at_the_place() {
    let model = model();
    let notation = Notation::new(&model, &Isolated);
    let text = "[{x: 1, y: 2},\n {x: a, y: 1}]";
    let code = notation.type_code("M::Track").unwrap();
    let error = notation.read(&code, text).unwrap_err();
    assert_eq!(error.excerpt(text), "   {x: a, y: 1}]\n       ^\n");
}

#[test]
fn an_error_behind_escapes_points_at_the_whole_text() {
    let model = model();
    let notation = Notation::new(&model, &Isolated);
    let code = notation.type_code("TypeCode").unwrap();
    let text = "\"exception \\\"IDL:e:1.0\\\" E { \u{fffd}\"";
    let error = notation.read(&code, text).unwrap_err();
    assert_eq!((error.start, error.end), (0, text.len()));
    assert!(error.excerpt(text).contains('^'));
}

#[test]
fn deep_texts_are_refused_and_not_followed() {
    let model = model();
    let notation = Notation::new(&model, &Isolated);
    let code = notation.type_code("M::Tree").unwrap();
    let open = "{label: a, children: [".repeat(100_000);
    assert!(notation.read(&code, &open).is_err());
    assert!(notation.type_code(&"sequence<".repeat(100_000)).is_err());
    let any = notation.type_code("any").unwrap();
    let value = format!("{{value: {}", "[".repeat(100_000));
    assert!(notation.read(&any, &value).is_err());
}

#[test]
fn half_of_a_surrogate_pair_is_read_and_printed_in_a_wstring_alone() {
    let model = Model::parse("t.idl", "").unwrap();
    let notation = Notation::new(&model, &Isolated);
    let read = |ty: &str, text: &str| notation.read(&notation.type_code(ty).unwrap(), text);
    for text in [
        r#""a\ud83d\ud83d""#,
        r#""\ude00b""#,
        r#""\ud83d""#,
        r#""\ud83dx\ude00""#,
    ] {
        let value = read("wstring<3>", text).unwrap();
        let wide = notation.type_code("wstring").unwrap();
        assert_eq!(notation.print(&wide, &value).unwrap().text(80), text);
    }
    let whole = read("wstring", r#""\ud83d\ude00""#).unwrap();
    assert_eq!(whole, Value::WString("\u{1F600}".into()));
    let refused = read("string", r#""\ud83d""#).unwrap_err().to_string();
    assert!(refused.contains("surrogate"), "{refused}");
}

/// Texts of types and values, cut, joined and changed with a seeded generator. Checks the guarantees of the fuzz target
/// without its tools.
#[test]
fn changed_texts_are_refused_or_read_back() {
    const SEEDS: &[&str] = &[
        "M::Ss\n[{l: -0x10, text: \"a\\u00e9\", x: {type: \"sequence<M::U>\", value: [{case: a, value: {l: 1, text: b, x: null}}]}}]",
        "M::T\n{ts: [{ts: [], os: x'00ff'}], os: [1, 2]}",
        "any\n{value: [1.5, -inf, nan], type: \"double[3]\"}",
        "union \"IDL:x/U:1.0\" U switch (char) { case 97: sequence<recursive \"IDL:x/U:1.0\"> more; default: wstring<4> w; }\n{case: 'a', value: [{w: \"\\ud83d\\ude00\"}]}",
        "struct \"IDL:x/S:1.0\" S { long double ld; fixed<31, -2> f; TypeCode t; Object o; M::F price; }\n{ld: 0x1.8p3, f: 100, t: \"exception \\\"IDL:e:1.0\\\" E { }\", o: nil, price: -1.25d}",
        "sequence<string>\n[bare words, \"q,uoted\", 'single']",
        "typedef \"IDL:x/T:1.0\" T sequence<enum \"\" E { one, two }, 7>\n[one, two]",
    ];
    let mut random = Random(1);
    for round in 0..20_000 {
        let mut text: Vec<u8> = SEEDS[random.below(SEEDS.len())].bytes().collect();
        for _ in 0..=random.below(4) {
            let other = SEEDS[random.below(SEEDS.len())].as_bytes();
            let (at, from) = (random.below(text.len() + 1), random.below(other.len()));
            let len = random.below(12).min(other.len() - from);
            match random.below(4) {
                0 => text.truncate(at.max(1)),
                1 => drop(text.splice(at..at, other[from..from + len].iter().copied())),
                2 => drop(text.drain(at..(at + len).min(text.len()))),
                _ if at < text.len() => text[at] = b" 09-'\"\\,:{}[]<>xX@.ae\n"[random.below(22)],
                _ => {}
            }
        }
        let shown = String::from_utf8_lossy(&text).into_owned();
        let outcome = std::panic::catch_unwind(|| crate::fuzzing::value(&text));
        assert!(outcome.is_ok(), "round {round}: {shown}");
    }
}
