//! Four times the text costs about four times the work. Work is counted in allocations and in octets held at once: no
//! clock is asked.

use deckwatch_idl::Model;
use deckwatch_idl::generate::{Config, generate};

use crate::counting::{THREAD_ALLOCATED, THREAD_ALLOCATIONS, THREAD_HELD, THREAD_HELD_MAX};

/// Repeats a text with the numbers from 0 in place of `@`.
fn each(count: usize, text: &str) -> String {
    (0..count)
        .map(|number| text.replace('@', &number.to_string()))
        .collect()
}

/// Each definition after the first names the one before it.
fn chain(count: usize, first: &str, text: &str) -> String {
    (1..count).fold(first.to_owned(), |all, number| {
        let before = (number - 1).to_string();
        all + &text.replace('@', &number.to_string()).replace('%', &before)
    })
}

/// Texts of that many parts each.
fn texts(count: usize) -> Vec<String> {
    vec![
        format!("module M {{ {} }};", each(count, "struct S@ { long a; }; ")),
        each(count, "module M@ { struct S { long a; }; }; "),
        each(count, "module M { struct S@ { long a; }; }; "),
        format!("struct S {{ {} }};", each(count, "long a@; ")),
        format!("struct S {{ {} }};", each(count, "string<300> a@; ")),
        chain(
            count.min(60),
            "struct S0 { long a; }; ",
            "struct S@ { S% a; }; ",
        ),
        format!(
            "union U switch (long) {{ {} }};",
            each(count, "case @: string a@; ")
        ),
        format!(
            "union U switch (long) {{ {} string a; }};",
            each(count, "case @: ")
        ),
        format!("enum E {{ {} z }};", each(count, "a@, ")),
        each(count, "const long A@ = @; "),
        chain(count, "const long A0 = 0; ", "const long A@ = A%; "),
        each(count, "typedef long T@; "),
        each(count, "exception E@ { long a; }; "),
        each(count, "interface I@; "),
        format!("interface I {{ {} }};", each(count, "void f@(); ")),
        format!("interface I {{ {} }};", each(count, "attribute long a@; ")),
        format!(
            "interface I {{ void f({} in long z); }};",
            each(count, "in long a@, ")
        ),
        each(count, "valuetype V@ { public long a; }; "),
        format!("valuetype V {{ {} }};", each(count, "public long a@; ")),
        each(count, "valuetype V@ long; "),
        each(
            count,
            "valuetype V@ { public long a; long f(in V@ b); factory g(in long a); }; ",
        ),
        each(count, "#pragma prefix \"a@\"\n"),
        "struct S { long a; };\n".to_owned() + &each(count, "#pragma version S 1.0\n"),
        each(count, "#define A@ @\n"),
        each(count, "#ifdef A@\n#endif\n"),
        each(count, "/* @ */\n"),
        each(count, "// @\nstruct S@ { long a; };\n"),
    ]
}

/// Texts of that many interfaces with few operations each.
fn interfaces(count: usize) -> Vec<String> {
    vec![
        each(count, "interface I@ { void f(); }; "),
        each(count, "interface I@ { void f(); };\n"),
        format!(
            "module M {{ {} }};",
            each(count, "interface I@ { void f(); }; ")
        ),
        each(count, "module M@ { interface I { void f(); }; }; "),
        each(
            count,
            "interface I@ { long f(in string a, inout sequence<long> b, out I@ c); }; ",
        ),
        "exception E { long a; }; ".to_owned()
            + &each(
                count,
                "interface I@ { oneway void f(); void g() raises (E); }; ",
            ),
        each(
            count,
            "interface I@ { attribute long a; readonly attribute string b; }; ",
        ),
        each(count, "interface I@; ") + &each(count, "interface I@ { I@ f(); }; "),
        "interface I { void f(); }; ".to_owned() + &each(count, "interface I@ : I { void g(); }; "),
        each(count, "abstract interface I@ { void f(); }; "),
        each(count, "local interface I@ { void f(); }; "),
    ]
}

/// What the way from a text to its Rust costs.
#[derive(Debug)]
struct Cost {
    allocations: usize,
    /// Octets of all allocations.
    allocated: usize,
    /// The most octets held at once.
    held: usize,
}

/// Returns the cost on a thread of its own: proc-macro2 may keep what each thread has parsed, so that a list of an earlier
/// text would grow at the cost of this one.
fn cost(text: &str, config: &Config) -> Cost {
    let measured = || {
        // What is made once in a thread is made before.
        let first = Model::parse("t.idl", "struct S { long a; }; interface I { void f(); };");
        generate(&first.expect("it is right"), config).expect("it is right");
        let held = THREAD_HELD.get();
        THREAD_HELD_MAX.set(held);
        let (allocations, allocated) = (THREAD_ALLOCATIONS.get(), THREAD_ALLOCATED.get());
        let model = Model::parse("t.idl", text).unwrap_or_else(|errors| panic!("{errors}"));
        generate(&model, config).unwrap_or_else(|errors| panic!("{errors}"));
        Cost {
            allocations: THREAD_ALLOCATIONS.get() - allocations,
            allocated: THREAD_ALLOCATED.get() - allocated,
            held: usize::try_from(THREAD_HELD_MAX.get() - held).unwrap(),
        }
    };
    std::thread::scope(|scope| scope.spawn(measured).join().expect("it does not panic"))
}

/// Compares the costs of texts of 100 and of 400 parts each.
fn compare(texts: fn(usize) -> Vec<String>, config: &Config) {
    for (few, many) in texts(100).iter().zip(&texts(400)) {
        let (one, four) = (cost(few, config), cost(many, config));
        // Lists and strings double their room, so that octets grow in steps.
        let is_linear = four.allocations < one.allocations * 5
            && four.allocated < one.allocated * 8
            && four.held < one.held * 8;
        assert!(is_linear, "{one:?} became {four:?}: {}", &many[..60]);
    }
}

#[test]
fn four_times_the_text_costs_about_four_times_the_work() {
    compare(texts, &Config::default());
}

#[test]
fn four_times_the_interfaces_cost_about_four_times_the_work() {
    compare(interfaces, &Config::default());
    let asynchronous = Config {
        ami: true,
        ..Config::default()
    };
    compare(interfaces, &asynchronous);
}

#[test]
fn a_name_is_looked_up_once_in_each_interface_that_is_inherited() {
    let text = |depth: usize| {
        let chain = chain(
            depth,
            "interface I0 { const long a = 0; }; ",
            "interface I@ : I% { const long a = @; }; ",
        );
        let users = format!("interface J@ : I{} {{ const long b = a; }}; ", depth - 1);
        chain + &each(200, &users)
    };
    let parsed = |text: &str| {
        let before = THREAD_ALLOCATIONS.get();
        Model::parse("t.idl", text).unwrap_or_else(|errors| panic!("{errors}"));
        THREAD_ALLOCATIONS.get() - before
    };
    let (few, many) = (parsed(&text(25)), parsed(&text(100)));
    assert!(many < few * 5, "{few} allocations became {many}");
}

#[test]
fn a_chain_of_aliases_ends_where_it_becomes_too_deep() {
    let text = chain(100, "typedef long A0[2]; ", "typedef A% A@[2]; ");
    let errors = Model::parse("t.idl", &text).expect_err("it is too deep");
    // The next alias counts from there: no use follows more than the bound.
    assert_eq!(errors.errors.len(), 3, "{errors}");
    assert_eq!(
        errors.errors[0].message,
        "types nest deeper than 64 in this one"
    );
}
