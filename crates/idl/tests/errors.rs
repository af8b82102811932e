//! Errors are reported with their location, several in one run. Hostile texts end in an error.

use deckwatch_idl::Model;

/// Returns the errors as `line:column: message`.
fn errors(text: &str) -> Vec<String> {
    let errors = Model::parse("t.idl", text).expect_err("the text has an error");
    let told = errors.errors.iter().map(|error| {
        let at = errors
            .sources
            .location(error.span.expect("every error has a place"));
        format!("{}:{}: {}", at.line, at.column, error.message)
    });
    told.collect()
}

/// A text, and the first error reported for it.
const BROKEN: &[(&str, &str)] = &[
    ("struct S { long a };", "1:18: expected `;`, found `}`"),
    (
        "struct S { long interface; };",
        "1:17: expected a name, found the keyword `interface`",
    ),
    (
        "typedef long Any;",
        "1:14: expected a name, found the keyword `any`",
    ),
    ("typedef Missing T;", "1:9: `Missing` is not defined"),
    ("struct S {}; ", "1:8: a struct has at least one member"),
    (
        "struct S { long a; long A; };",
        "1:25: `A` and `a` differ in capitals alone",
    ),
    (
        "struct S { S inner; };",
        "1:12: this type is not complete yet",
    ),
    (
        "struct S; typedef S T[2]; struct S { long a; };",
        "1:21: the type of these elements is not complete yet",
    ),
    (
        "union U; struct W { sequence<U> a; U b[3]; }; union U switch (long) { case 1: long a; };",
        "1:36: this type is not complete yet",
    ),
    (
        "struct S { S inner[2]; };",
        "1:12: this type is not complete yet",
    ),
    (
        "typedef fixed<3, 5> T;",
        "1:9: a fixed-point type has 1 to 31 digits, and a scale no greater than that",
    ),
    (
        "struct S { fixed<32, 0> a; };",
        "1:12: a fixed-point type has 1 to 31 digits, and a scale no greater than that",
    ),
    (
        "interface I { fixed<0, 0> f(); };",
        "1:15: a fixed-point type has 1 to 31 digits, and a scale no greater than that",
    ),
    (
        "const octet O = 256;",
        "1:17: 256 is out of the range of this type, 0 to 255",
    ),
    ("const long L = 1 / 0;", "1:16: this divides by zero"),
    (
        "const string<2> S = \"abc\";",
        "1:21: this has 3 characters, and its type has room for 2",
    ),
    (
        "const boolean B = 'x';",
        "1:19: expected TRUE or FALSE, found a character",
    ),
    (
        "typedef sequence<long, 0> T;",
        "1:24: expected a number of at least 1, found 0",
    ),
    (
        "interface I { oneway long f(); };",
        "1:27: a oneway operation has no result",
    ),
    (
        "interface I { void f() raises (I); };",
        "1:32: `I` is not an exception",
    ),
    (
        "interface I; interface J : I {};",
        "1:28: `I` is declared, but not defined before this",
    ),
    (
        "interface I { void f(); }; interface J : I { void f(); };",
        "1:51: `f` is inherited already",
    ),
    (
        "union U switch (long) { case 1: long a; case 1: long b; };",
        "1:41: this case is there twice",
    ),
    (
        "union U switch (boolean) { case TRUE: long a; case FALSE: long b; default: long c; };",
        "1:67: no value is left for `default`: every one has its case",
    ),
    (
        "union U switch (float) { case 1: long a; };",
        "1:17: a union switches on an integer, character, boolean or enum",
    ),
    (
        "module M { typedef long T; struct S { T a; long t; }; };",
        "1:49: `t` has been used here with another meaning, which it keeps to the end of this scope",
    ),
    (
        "interface Node {}; interface I { void f(in Node node); };",
        "1:49: `node` has been used here with another meaning, which it keeps to the end of this scope",
    ),
    (
        "interface Node {}; interface I { void f(in Node _Node); };",
        "1:49: `Node` has been used here with another meaning, which it keeps to the end of this scope",
    ),
    (
        "interface I { void f(in CORBA::Environment e); };",
        "1:25: `CORBA` is not defined",
    ),
    (
        "exception E {}; typedef E T;",
        "1:25: `E` is an exception, not a type",
    ),
    (
        "component C {};",
        "1:1: `component` is of the component model, which is not supported",
    ),
    (
        "#include \"none.idl\"\n",
        "1:1: a text that is not a file includes no others",
    ),
    (
        "#pragma prefix x\n",
        "1:1: expected a string: `#pragma prefix \"omg.org\"`",
    ),
    (
        "struct S { long a$; };",
        "1:18: the character '$' has no place in IDL",
    ),
];

#[test]
fn each_rule_that_is_broken_is_told_where_it_is() {
    for (text, expected) in BROKEN {
        assert_eq!(errors(text)[0], *expected, "{text}");
    }
}

#[test]
fn the_widest_fixed_point_type_and_a_sequence_of_what_is_not_complete_yet_are_no_errors() {
    let text =
        "typedef fixed<31, 31> F; struct S; typedef sequence<S> T[2]; struct S { T inner; };";
    assert!(Model::parse("t.idl", text).is_ok());
}

#[test]
fn one_run_tells_of_several_errors() {
    let text = "struct S {\n  long;\n  short b;\n  wrong c;\n};\nmodule M {\n  typedef 5 T;\n  const long C = \"x\";\n};\n";
    let lines: Vec<String> = errors(text)
        .iter()
        .map(|e| e.split(':').next().unwrap().to_owned())
        .collect();
    assert_eq!(lines, ["2", "7", "4", "8"]);
}

#[test]
fn deep_wide_and_endless_texts_end_in_an_error() {
    let deep = 100_000;
    let texts = [
        format!("typedef {}long", "sequence<".repeat(deep)),
        format!("const long C = {}1;", "(".repeat(deep)),
        format!("const long C = {}1;", "-".repeat(deep)),
        format!("const long C = 1{};", "+1".repeat(deep)),
        "module M {".repeat(deep),
        format!("typedef long T{};", "[2]".repeat(deep)),
        (1..200).fold("struct S0 { long a; };".to_owned(), |text, n| {
            text + &format!("struct S{n} {{ S{} a; S{} b; }};", n - 1, n - 1)
        }),
        (1..1000).fold("interface I0 {};".to_owned(), |text, n| {
            text + &format!("interface I{n} : I{} {{}};", n - 1)
        }),
        "#if 1\n".repeat(deep),
        "@".repeat(deep),
        "$".repeat(deep),
    ];
    for text in texts {
        assert!(!errors(&text).is_empty());
    }
}

#[test]
fn a_name_is_found_in_bases_and_is_ambiguous_in_two() {
    let bases = "interface A { typedef long T; }; interface B { typedef short T; }; ";
    assert!(Model::parse("t.idl", &format!("{bases} interface C : A {{ T f(); }};")).is_ok());
    assert!(
        Model::parse(
            "t.idl",
            &format!("{bases} interface C : A, B {{ A::T f(); }};")
        )
        .is_ok()
    );
    let both = errors(&format!("{bases} interface C : A, B {{ T f(); }};"));
    assert!(
        both[0].ends_with("`T` is inherited in two meanings"),
        "{both:?}"
    );
}

#[test]
fn repository_ids_follow_the_pragmas() {
    let text = "
        #pragma prefix \"a.b\"
        module M {
            struct S { long x; };
            #pragma version S 2.1
            #pragma prefix \"c\"
            struct T { long x; };
            typedef long U;
            #pragma ID U \"LOCAL:u\"
        };
        struct V { long x; };
    ";
    let model = Model::parse("t.idl", text).unwrap();
    let id = |name: &str| {
        model
            .definition(model.lookup(name).unwrap())
            .repository_id
            .clone()
    };
    assert_eq!(id("M"), "IDL:a.b/M:1.0");
    assert_eq!(id("M::S"), "IDL:a.b/M/S:2.1");
    assert_eq!(id("M::T"), "IDL:c/M/T:1.0");
    assert_eq!(id("M::U"), "LOCAL:u");
    assert_eq!(id("V"), "IDL:a.b/V:1.0");
}

#[test]
fn a_literal_of_many_octets_is_shown_by_its_start() {
    let long = "9".repeat(100_000);
    for text in [
        format!("const long A = {long};"),
        format!("const long A = 0x{long};"),
        format!("const long A = 08{long};"),
        format!("const double A = 1e{long};"),
        format!("const fixed A = {long}.5d;"),
        format!("typedef string<{long}> A;"),
        format!("struct A {{ long \"{long}\"; }};"),
        format!("#include \"{long}\""),
        format!("#if {long}\n#endif"),
        format!("#if 1 {long}\n#endif"),
        format!("#if \"{long}\"\n#endif"),
    ] {
        let start = text.replace(&long, "...");
        for error in errors(&text) {
            assert!(error.len() < 200, "{start}: {} octets", error.len());
        }
    }
    let found = errors(&format!("const long A = {long};"));
    let shown = "9".repeat(60);
    let expected = format!("1:16: `{shown}...` does not fit into 64 bits");
    assert_eq!(found, [expected]);
}
