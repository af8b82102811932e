//! Every part of OMG IDL (CORBA 3.3 part 1, clause 7) in turn: what it defines, and how violations are reported.

use deckwatch_idl::generate::{Config, generate};
use deckwatch_idl::model::{Definition, DefinitionKind, Interface, Type};
use deckwatch_idl::{Model, Options};

fn model(text: &str) -> Model {
    Model::parse("t.idl", text).unwrap_or_else(|errors| panic!("{errors}"))
}

fn find<'m>(model: &'m Model, name: &str) -> &'m Definition {
    let id = model
        .lookup(name)
        .unwrap_or_else(|| panic!("{name} is not there"));
    model.definition(id)
}

fn interface<'m>(model: &'m Model, name: &str) -> &'m Interface {
    model
        .interface(name)
        .unwrap_or_else(|| panic!("{name} is not there"))
}

/// Returns all error output for a text that is refused.
fn told(text: &str) -> String {
    match Model::parse("t.idl", text) {
        Ok(model) => generate(&model, &Config::default())
            .expect_err("the text has an error")
            .to_string(),
        Err(errors) => errors.to_string(),
    }
}

fn constant(model: &Model, name: &str) -> String {
    model
        .constant(name)
        .unwrap_or_else(|| panic!("{name} is not there"))
        .1
        .to_string()
}

#[test]
fn modules_nest_and_are_opened_again() {
    let model = model(
        "module A { module B { typedef long T; }; }; module A { struct S { B::T x; ::A::B::T y; }; module B { typedef T U; }; };",
    );
    let DefinitionKind::Module(members) = &find(&model, "A").kind else {
        panic!("A is a module");
    };
    assert_eq!(members.len(), 2, "B and S");
    assert_eq!(find(&model, "A::B::U").repository_id, "IDL:A/B/U:1.0");
}

#[test]
fn interfaces_inherit_from_several_and_by_several_ways() {
    let model = model(
        "interface Top { void t(); attribute long size; }; interface Left : Top { void l(); }; interface Right : Top { void r(); };
         interface Bottom : Left, Right { void b(); };",
    );
    let bottom = interface(&model, "Bottom");
    let names: Vec<&str> = model
        .operations(bottom)
        .iter()
        .map(|one| one.wire_name.as_str())
        .collect();
    assert_eq!(names, ["b", "l", "r", "t", "_get_size", "_set_size"]);
}

#[test]
fn what_is_declared_first_may_be_used_before_it_is_defined() {
    let model = model(
        "module M {
            interface I; typedef sequence<I> Many; interface I { Many all(); };
            struct S; typedef sequence<S> Ss; struct S { Ss inner; };
            union U; typedef sequence<U> Us; union U switch (boolean) { case TRUE: Us inner; };
            struct Own { sequence<Own> parts; };
        };",
    );
    for name in ["M::S", "M::U", "M::Own", "M::Ss"] {
        let code = model.type_code(name).unwrap();
        assert!(!code.to_string().is_empty());
    }
    generate(&model, &Config::default()).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(
        told("struct S; struct T { S inner; };"),
        "t.idl:1:22: error: this type is not complete yet\n  |\n1 | struct S; struct T { S inner; };\n  |                      ^\n\
         help: a type may contain itself through a sequence alone: `sequence<Type>`\n\n\
         t.idl:1:8: error: `S` is declared, but never defined\n  |\n1 | struct S; struct T { S inner; };\n  |        ^\n"
    );
}

#[test]
fn attributes_have_exceptions_of_their_own() {
    let model = model(
        "exception A {}; exception B {};
         interface I {
            readonly attribute string name raises (A); attribute long x, y; attribute short z getraises (A) setraises (A, B);
         };",
    );
    let raised: Vec<(&str, usize)> = (interface(&model, "I").operations.iter())
        .map(|one| (one.wire_name.as_str(), one.raises.len()))
        .collect();
    assert_eq!(
        raised,
        [
            ("_get_name", 1),
            ("_get_x", 0),
            ("_set_x", 0),
            ("_get_y", 0),
            ("_set_y", 0),
            ("_get_z", 1),
            ("_set_z", 2)
        ]
    );
}

#[test]
fn operations_keep_their_contexts_and_one_ways_their_rules() {
    let model = model(
        "interface I { void f(in long a) context (\"sys.*\", \"user\"); oneway void g(in string s); };",
    );
    assert_eq!(
        interface(&model, "I").operations[0].contexts,
        ["sys.*", "user"]
    );
    assert!(interface(&model, "I").operations[1].oneway);
}

/// A type, an expression of it, and the value.
const EXPRESSIONS: &[(&str, &str, &str)] = &[
    ("long", "1 + 2 * 3 - 8 / 4 % 3", "5"),
    ("long", "(1 | 6) & 5 ^ 8", "13"),
    ("long", "1 << 10 >> 2", "256"),
    ("long", "-+-5", "5"),
    ("long", "~0", "-1"),
    ("unsigned long", "~0", "4294967295"),
    ("unsigned long long", "~0", "18446744073709551615"),
    ("long long", "-9223372036854775808", "-9223372036854775808"),
    ("octet", "0x0f | 060", "63"),
    ("short", "-0x8000", "-32768"),
    ("double", "1.5e2 / 4", "37.5"),
    ("float", ".5 + 1", "1.5"),
    ("long double", "2. * 3.25", "6.5"),
    ("fixed", "1.25d * 4d", "5d"),
    ("fixed", "10d / 4d - 0.5d", "2d"),
    ("char", "'\\x41'", "'A'"),
    ("wchar", "L'\\u20ac'", "'€'"),
    ("string", "\"a\\tb\" \"c\"", "\"a\\tbc\""),
    ("wstring", "L\"gr\\u00fc\\u00df\" L\"e\"", "\"grüße\""),
    ("boolean", "FALSE", "FALSE"),
    ("E", "e2", "enumerator 1"),
    ("E", "M::e1", "enumerator 0"),
    ("T", "OTHER * 2", "14"),
];

#[test]
fn constants_of_every_type_and_every_operator_have_their_values() {
    for (ty, expression, value) in EXPRESSIONS {
        let text = format!(
            "module M {{ enum E {{ e1, e2 }}; typedef long T; const T OTHER = 7; const {ty} C = {expression}; }};"
        );
        assert_eq!(constant(&model(&text), "M::C"), *value, "{ty} {expression}");
    }
}

#[test]
fn a_constant_outside_of_its_type_is_told_with_its_place() {
    assert_eq!(
        told("module M {\n  const short MOST = 32767 + 1;\n};\n"),
        "t.idl:2:22: error: 32768 is out of the range of this type, -32768 to 32767\n  |\n2 |   const short MOST = 32767 + 1;\n  |                      ^^^^^^^^^\n"
    );
    assert_eq!(
        told("const wchar W = 'x';"),
        "t.idl:1:17: error: expected a wide character (`L'x'`), found a character\n  |\n1 | const wchar W = 'x';\n  |                 ^^^\n"
    );
}

#[test]
fn type_ids_and_prefixes_are_set_by_statements_too() {
    let model = model(
        "module M { interface I {}; interface J {}; typeid J \"IDL:elsewhere/J:3.1\"; };
         typeprefix M \"acme.com\"; typeid M::I \"IDL:acme.com/M/I:2.0\";",
    );
    assert_eq!(find(&model, "M").repository_id, "IDL:acme.com/M:1.0");
    assert_eq!(find(&model, "M::I").repository_id, "IDL:acme.com/M/I:2.0");
}

#[test]
fn a_prefix_holds_to_the_end_of_its_file_or_scope_and_not_in_included_files() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("prefixes");
    std::fs::create_dir_all(folder.join("inner")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write(
        "inner/b.idl",
        "module B { typedef long Plain; };\n#pragma prefix \"b.org\"\nmodule B2 { typedef long T; };\n",
    );
    write(
        "a.idl",
        "#pragma prefix \"a.org\"\n#include <b.idl>\nmodule A {\n#pragma prefix \"inner.org\"\ntypedef long T;\n};\ntypedef long U;\n",
    );
    let options = Options {
        include_paths: vec![folder.join("inner")],
        ..Options::default()
    };
    let model = Model::load_with(folder.join("a.idl"), &options)
        .unwrap_or_else(|errors| panic!("{errors}"));
    let ids =
        ["B::Plain", "B2::T", "A::T", "U"].map(|name| find(&model, name).repository_id.clone());
    assert_eq!(
        ids,
        [
            "IDL:B/Plain:1.0",
            "IDL:b.org/B2/T:1.0",
            "IDL:inner.org/A/T:1.0",
            "IDL:a.org/U:1.0"
        ]
    );
    let missing = Model::load(folder.join("a.idl"), &[])
        .unwrap_err()
        .to_string();
    assert!(
        missing.contains("a.idl:2:1: error: the file `b.idl` is not found"),
        "{missing}"
    );
}

#[test]
fn an_import_names_what_has_been_included() {
    model("module M { typedef long T; }; import ::M; import M::T;");
    assert_eq!(
        told("import ::Elsewhere;"),
        "t.idl:1:8: error: `::Elsewhere` is not defined\n  |\n1 | import ::Elsewhere;\n  |        ^^^^^^^^^^^\nhelp: `import` looks for no file: bring it in by `#include`\n"
    );
}

#[test]
fn an_escaped_name_may_differ_from_a_used_one_in_capitals_alone() {
    model(
        "interface Node {}; interface Map { void f(in Node _node, in Node other); };
         struct Link { Node _node; Node next; long last; };",
    );
}

#[test]
fn factory_is_a_name_where_no_initializer_begins() {
    model(
        "module M { typedef Object Factory; struct Factories { Factory _factory; }; };
         interface factory { M::Factory factory_of(in factory factory); };
         valuetype V { public long x; factory make(in long factory); };",
    );
}

#[test]
fn objects_of_the_interface_repository_are_known_as_references() {
    let text = |of: &str, other: &str| {
        format!(
            "struct Role {{ {of} type; }};
             module CORBA {{ interface Finder {{ {other} find(in {other} all); }}; }};"
        )
    };
    let rust = |text: &str| generate(&model(text), &Config::default()).unwrap();
    assert_eq!(
        rust(&text("CORBA::InterfaceDef", "Repository")),
        rust(&text("Object", "Object"))
    );
}

#[test]
fn valuetypes_are_a_struct_of_their_state_and_traits() {
    let text = "interface I {};\nvaluetype V supports I {\n  private long x; public string y; factory make(in long x) raises (E); void f();\n};\n\
                abstract valuetype A { void g(); };\nvaluetype Box sequence<long>;\ncustom valuetype C : V { public A other; };\nexception E {};\n";
    // `E` is used before it is defined.
    assert!(
        told(text).starts_with("t.idl:3:68: error: `E` is not defined"),
        "{}",
        told(text)
    );
    let text = format!(
        "exception E {{}};\n{}",
        text.replace("exception E {};\n", "")
    );
    let made =
        generate(&model(&text), &Config::default()).unwrap_or_else(|errors| panic!("{errors}"));
    for present in [
        "pub struct V {",
        "pub(crate) x: i32",
        "pub trait VValue: _cdr::valuetype::ValueBase + I + VOperations {",
        "pub trait VInit: Sized {",
        "pub trait AValue:",
        "pub struct Box(pub Vec<i32>)",
        "pub base: V",
    ] {
        assert!(
            made.replace("::deckwatch_cdr", "_cdr").contains(present),
            "{present}: {made}"
        );
    }
    let refused = told("valuetype V; interface I { void f(in V given); };");
    assert!(
        refused.starts_with("t.idl:1:33: error: this valuetype is declared, but never defined"),
        "{refused}"
    );
}

#[test]
fn a_valuetype_that_breaks_a_rule_is_refused_where_it_does() {
    for (text, place, error) in [
        (
            "abstract valuetype A { public long x; };",
            "1:31",
            "an abstract valuetype has no state",
        ),
        (
            "valuetype A {}; valuetype B {}; valuetype C : A, B {};",
            "1:50",
            "`B` has state: only the first base may have it",
        ),
        (
            "valuetype A {}; custom valuetype C : truncatable A {};",
            "1:38",
            "a custom valuetype is not truncatable",
        ),
        (
            "abstract valuetype A {}; valuetype C : truncatable A {};",
            "1:52",
            "an abstract base has no state to which a value could be truncated",
        ),
        (
            "custom valuetype A {}; valuetype C : A {};",
            "1:38",
            "`A` is custom: what is derived from it is `custom` too",
        ),
        (
            "valuetype A {}; valuetype B A;",
            "1:29",
            "a value box holds no other valuetype",
        ),
        (
            "valuetype A; valuetype C : A {};",
            "1:28",
            "`A` is declared, but not defined before this",
        ),
        (
            "struct A { long x; }; valuetype C : A {};",
            "1:37",
            "`A` is not a valuetype",
        ),
        (
            "valuetype A {}; valuetype C supports A {};",
            "1:38",
            "`A` is not an interface",
        ),
        (
            "valuetype A {}; valuetype A {};",
            "1:27",
            "`A` is defined twice",
        ),
    ] {
        let told = told(text);
        assert!(
            told.starts_with(&format!("t.idl:{place}: error: {error}")),
            "{text}: {told}"
        );
    }
}

#[test]
fn abstract_and_local_interfaces_are_traits_and_no_parts_of_what_travels() {
    let text = "abstract interface A { void f(); }; interface I : A { void g(); }; local interface L { void h(in L other); };";
    let made =
        generate(&model(text), &Config::default()).unwrap_or_else(|errors| panic!("{errors}"));
    for (present, name) in [
        (true, "pub trait A:"),
        (true, "pub trait L:"),
        (true, "pub struct IRef("),
        (false, "ARef"),
        (false, "LRef"),
    ] {
        assert_eq!(made.contains(name), present, "{name}");
    }
    let refused = told("local interface L {}; struct S { L part; };");
    assert!(
        refused.starts_with(
            "t.idl:1:36: error: local interfaces as parts of other types are not mapped to Rust yet"
        ),
        "{refused}"
    );
    let refused = told("local interface Gone; local interface L { void f(in Gone other); };");
    assert!(
        refused.contains("this local interface is declared, but never defined"),
        "{refused}"
    );
    let refused = told("abstract interface A {}; interface I { void f(in A given); };");
    assert!(
        refused.starts_with(
            "t.idl:1:45: error: values of abstract interfaces are not mapped to Rust yet"
        ),
        "{refused}"
    );
    assert!(
        told("local interface L {}; interface I : L {};")
            .contains("does not inherit from a local one")
    );
}

#[test]
fn annotations_are_read_over_wherever_they_stand() {
    let model = model(
        "@annotation Unit { string value default \"m\"; };
         @final @nested(TRUE) struct S { @key long id; @id(7) @range(min = 1, max = 5) @default(3) short level; @optional string<4> @external text; };
         @bit_bound(8) enum E { @value(3) e1, @default_literal e2 };
         union U switch (@key long) { @unit(\"s\") case 1: @hashid long x; default: octet y; };
         @service(\"CORBA\") interface I { @oneway @topic(name = \"T\", platform = \"*\") void f(@unit in @key long x); @readonly attribute long a; };
         @verbatim (language = \"c++\", placement = BEFORE_DECLARATION, text = \"#include <x>\") module M { @appendable typedef long T; };",
    );
    assert!(
        matches!(find(&model, "S").kind, DefinitionKind::Struct(ref s) if s.members.len() == 3)
    );
    assert_eq!(interface(&model, "I").operations.len(), 3);
}

#[test]
fn names_are_escaped_and_differ_in_more_than_capitals() {
    let model = model(
        "module _module { struct _struct { long _long; }; interface _I { void _oneway(); }; };",
    );
    assert_eq!(
        find(&model, "module::struct").repository_id,
        "IDL:module/struct:1.0"
    );
    assert_eq!(
        interface(&model, "module::I").operations[0].wire_name,
        "oneway"
    );
    assert_eq!(
        told("struct Track { long id; };\ntypedef Track track;\n"),
        "t.idl:2:15: error: `track` and `Track` differ in capitals alone\n  |\n2 | typedef Track track;\n  |               ^^^^^\n\
         t.idl:1:8: note: `Track` is defined here\n  |\n1 | struct Track { long id; };\n  |        ^^^^^\n"
    );
    assert!(told("struct S { long Struct; };").starts_with("t.idl:1:17: error: "));
}

#[test]
fn natives_and_the_corba_module_are_known() {
    let model = model("#include <orb.idl>\nnative Servant; struct S { CORBA::TypeCode code; };");
    assert!(matches!(
        find(&model, "Servant").kind,
        DefinitionKind::Native
    ));
    let DefinitionKind::Struct(s) = &find(&model, "S").kind else {
        panic!("S is a struct");
    };
    assert!(matches!(s.members[0].ty, Type::Basic(_)));
    assert!(told("native Cookie;").contains("native types are not mapped to Rust yet"));
    assert!(told("component C {};").contains("component model"));
}
