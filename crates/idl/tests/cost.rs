//! What a text can cost: time, memory and stack grow as the text does, or an error with its place ends the compilation.
//! Each of these texts once took minutes, gigabytes, or the whole stack.

use std::fmt::Write as _;

use deckwatch_idl::Model;
use deckwatch_idl::generate::{Config, generate};

/// Repeats a text with the numbers from 0 in place of `@`.
fn each(count: usize, text: &str) -> String {
    (0..count).fold(String::new(), |mut all, number| {
        all.push_str(&text.replace('@', &number.to_string()));
        all
    })
}

fn accepted(text: &str) -> Model {
    Model::parse("t.idl", text).unwrap_or_else(|errors| panic!("{errors}"))
}

fn generated(text: &str) -> String {
    generate(&accepted(text), &Config::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Runs a test on a stack of 256 KiB, on which a frame for each part of a type has no room.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread.spawn(run).unwrap().join().unwrap();
}

/// Types of that many parts each.
fn wide(count: usize) -> [String; 6] {
    [
        format!("struct S {{ {} }};", each(count, "long a@; ")),
        format!("struct S {{ {} }};", each(count, "string<300> a@; ")),
        format!("exception E {{ {} }};", each(count, "sequence<octet> a@; ")),
        format!(
            "union U switch (long) {{ {} }};",
            each(count, "case @: string a@; ")
        ),
        format!("enum E {{ {} z }};", each(count, "a@, ")),
        each(count, "struct S@ { long a; }; "),
    ]
}

#[test]
fn types_of_many_parts_are_generated_on_a_small_stack() {
    on_a_small_stack(|| {
        for text in wide(3_000) {
            let rust = generated(&text);
            assert!(rust.contains("2999"));
        }
    });
}

#[test]
fn generated_text_grows_as_the_idl_does() {
    for (few, many) in wide(200).iter().zip(&wide(800)) {
        let (few, many) = (generated(few).len(), generated(many).len());
        assert!(many < few * 5, "{few} octets became {many}");
    }
}

/// Texts that are refused, each with the message of the first error.
fn refused() -> Vec<(String, &'static str)> {
    let ring = |count: usize, text: &dyn Fn(usize) -> String| {
        let bodies = (0..count).fold(String::new(), |mut all, one| {
            let _infallible = write!(all, "struct S{one} {{ {} }}; ", text(one));
            all
        });
        each(count, "struct S@; ") + &bodies
    };
    let mut empty = String::from("#define A0\n");
    for level in 1..14 {
        let uses = format!("A{} ", level - 1).repeat(10);
        let _infallible = writeln!(empty, "#define A{level} {uses}");
    }
    vec![
        (
            "/* ".repeat(300_000),
            "a comment that starts here has no end",
        ),
        (
            "#/*\n".repeat(200_000),
            "a comment that starts here has no end",
        ),
        (empty + "A13", "there are more than 2000000 tokens"),
        (
            format!(
                "const string S = \"{}\"; {}",
                "x".repeat(600_000),
                each(5_000, "const string T@ = S; ")
            ),
            "there are more than 16777216 octets of strings in constants",
        ),
        (
            format!(
                "#pragma prefix \"{}\"\n{}",
                "x".repeat(100_000),
                each(5_000, "typedef long T@; ")
            ),
            "there are more than 67108864 octets of names with their scopes and prefixes",
        ),
        (
            format!(
                "module M {{ {} }}; {}",
                each(3_000, "typedef long T@; "),
                "typeprefix M \"a\"; ".repeat(3_000)
            ),
            "there are more than 67108864 octets of names with their scopes and prefixes",
        ),
        (
            format!(
                "interface I {{ {} }}; {}",
                each(4_000, "void f@(); "),
                each(10_000, "interface J@ : I {}; ")
            ),
            "there are more than 500000 inherited interfaces and operations",
        ),
        (
            format!("interface I {{ {} }};", each(6_000, "void f@(); ")),
            "an interface has at most 5000 operations of its own",
        ),
        (
            format!(
                "{} interface I {{ void f() raises (E0{}); }};",
                each(300, "exception E@ {}; "),
                each(300, ", E@")
            ),
            "a list of exceptions has at most 256 names",
        ),
        (
            ring(12, &|_| each(12, "sequence<S@> a@; ")),
            "the types around this one contain each other in more than 1000000 ways",
        ),
        (
            ring(5_000, &|one| {
                format!("sequence<S{}> a; ", (one + 1) % 5_000)
            }),
            "types nest deeper than 64 in this one",
        ),
        (
            ring(5_000, &|one| {
                format!("sequence<S{}> a; ", (one + 1).min(4_999))
            }),
            "types nest deeper than 64 in this one",
        ),
        (
            (1..20_000).fold("typedef long A0[2]; ".to_owned(), |mut all, one| {
                let _infallible = write!(all, "typedef A{} A{one}[2]; ", one - 1);
                all
            }),
            "types nest deeper than 64 in this one",
        ),
        (
            format!("typedef sequence<long> {} z;", each(1_500_000, "a@, ")),
            "the file is larger than 4194304 octets",
        ),
        (
            format!("struct {} {{ long a; }};", "x".repeat(300)),
            "a name has at most 255 octets",
        ),
    ]
}

#[test]
fn texts_that_multiply_end_in_an_error_with_its_place() {
    on_a_small_stack(|| {
        for (text, message) in refused() {
            let errors = Model::parse("t.idl", &text).expect_err(message);
            let first = &errors.errors[0];
            assert_eq!(first.message, message, "{}", &text[..60]);
            assert!(
                first.span.is_some() || message.starts_with("the file"),
                "{message}"
            );
        }
    });
}

#[test]
fn texts_that_made_searches_long_are_accepted() {
    let count = 20_000;
    let far = format!(
        "module M {{ enum E {{ {} z }}; }}; union U switch (M::E) {{ {} }};",
        each(count, "a@, "),
        each(count, "case a@: long b@; ")
    );
    let hidden = (1..200).fold(
        "interface I0 { const long a = 0; }; ".to_owned(),
        |mut all, one| {
            let _infallible = write!(
                all,
                "interface I{one} : I{} {{ const long a = {one}; }}; ",
                one - 1
            );
            all
        },
    );
    let texts = [
        far,
        format!(
            "{hidden} interface J : I199 {{ {} }};",
            each(count, "const long b@ = a; ")
        ),
        format!("#if 0\n\"{}\n#endif\n", "\\\"".repeat(300_000)),
        format!(
            "interface A {{ {} }}; interface B : A {{ {} }};",
            each(4_000, "void f@(); "),
            each(4_000, "void g@(); ")
        ),
    ];
    for text in texts {
        accepted(&text);
    }
}

#[test]
fn names_that_become_one_in_rust_stay_short() {
    // Rust's form of these names leaves the underscores out.
    let names = (0..1_024_u32).map(|bits| {
        (0..10).fold(String::from("t"), |mut name, bit| {
            if bits >> bit & 1 == 1 {
                name.push('_');
            }
            name.push_str("1x");
            name
        })
    });
    let text = names.fold(String::new(), |all, name| {
        all + "typedef long " + &name + "; "
    });
    let rust = generated(&text);
    assert!(rust.len() < text.len() * 64, "{} octets", rust.len());
}
