//! Directives, macros and their faults.

use super::*;

fn words(text: &str) -> Result<String, String> {
    let mut reporter = Reporter::default();
    let options = Options {
        defines: vec![("OUTSIDE".into(), "7".into())],
        ..Options::default()
    };
    let (sources, tokens) =
        Preprocessor::new(&options, false, &mut reporter).run("t.idl".into(), text.into());
    let words: Vec<&str> = tokens
        .iter()
        .map(|token| sources.text(token.span))
        .collect();
    match reporter.finish(&sources) {
        Ok(()) => Ok(words.join(" ").trim_end().to_owned()),
        Err(errors) => Err(errors.errors[0].message.clone()),
    }
}

#[test]
fn a_guarded_text_is_taken_once() {
    let guarded = "#ifndef A\n#define A\nx\n#endif /* A */\n";
    assert_eq!(words(&format!("{guarded}{guarded}")).unwrap(), "x");
}

#[test]
fn conditions_choose_one_branch() {
    let text = "#if defined(B) && !defined OUTSIDE\na\n#elif OUTSIDE == 7\nb\n#elif 1\nc\n#else\nd\n#endif";
    assert_eq!(words(text).unwrap(), "b");
    assert_eq!(
        words("#if 0\n#if 1\na\n#else\nb\n#endif\ndon't\n#else\nc\n#endif").unwrap(),
        "c"
    );
}

#[test]
fn names_are_replaced_and_a_name_defined_by_itself_is_an_error() {
    assert_eq!(
        words("#define N M + 1\n#define M 2 \\\n 3\nx N y").unwrap(),
        "x 2 3 + 1 y"
    );
    assert_eq!(
        words("#define N N\nN").unwrap_err(),
        "this macro is defined by itself"
    );
}

#[test]
fn macros_that_multiply_each_other_are_stopped() {
    let mut text = String::from("#define A0 x x x x x x x x x x\n");
    for level in 1..12 {
        text += &format!(
            "#define A{level} {}\n",
            format!("A{} ", level - 1).repeat(10)
        );
    }
    assert!(
        words(&(text + "A11"))
            .unwrap_err()
            .starts_with("there are more than")
    );
}

#[test]
fn an_open_condition_a_stray_endif_and_a_macro_with_parameters_are_errors() {
    assert_eq!(
        words("#ifdef A\nx").unwrap_err(),
        "this condition has no `#endif`"
    );
    assert_eq!(words("#endif").unwrap_err(), "`#endif` without `#if`");
    assert!(words("#define F(x) x").unwrap_err().contains("parameters"));
    assert_eq!(
        words("x #define A").unwrap_err(),
        "a directive stands on a line of its own"
    );
}

#[test]
fn a_text_that_is_not_a_file_reads_no_file() {
    assert!(words("#include \"/etc/hostname\"").is_err());
    assert!(words("#include <orb.idl>").unwrap().contains("AnySeq"));
}
