//! The generated code in `tests/generated` equals the generator's current output. After a change of the generator,
//! `DECKWATCH_BLESS=1 cargo test -p deckwatch-idl --test idl generator` writes it anew.

use std::path::{Path, PathBuf};

use deckwatch_idl::Model;
use deckwatch_idl::build::Builder;
use deckwatch_idl::generate::{Config, generate};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generated")
}

#[test]
fn generated_code_is_what_the_generator_makes_today() {
    compare(&["shared.idl", "broad.idl"]);
    compare(&["opened.idl", "again.idl"]);
}

/// Compares the code of files of one Rust module.
fn compare(files: &[&str]) {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let builder = Builder::new().orb_path("crate").out_dir(out);
    let files = files.iter().map(|file| folder().join(file));
    let compiled = files
        .fold(builder, Builder::file)
        .try_compile()
        .unwrap_or_else(|error| panic!("{error}"));
    for made in compiled.outputs {
        let kept = folder()
            .join(made.file_name().unwrap())
            .with_extension("inc");
        let text = std::fs::read_to_string(&made).unwrap();
        if std::env::var_os("DECKWATCH_BLESS").is_some() {
            std::fs::write(&kept, &text).unwrap();
        }
        assert!(
            std::fs::read_to_string(&kept).unwrap() == text,
            "{} is not up to date",
            kept.display()
        );
    }
}

/// Returns the generated Rust of a text, with asynchronous calls.
fn asynchronous(text: &str) -> String {
    let config = Config {
        ami: true,
        ..Config::default()
    };
    let model = Model::parse("t.idl", text).unwrap_or_else(|errors| panic!("{errors}"));
    generate(&model, &config).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn asynchronous_calls_are_generated_where_they_are_wanted_and_have_names_of_their_own() {
    let text = "
        interface AMI_NavHandler {};
        interface Nav { long sendc_speed(); long speed(); oneway void stop(); };
        local interface Here { void look(); };";
    let rust = asynchronous(text);
    for wanted in [
        "IDL:AMI_AMI_NavHandler:1.0",
        "fn sendc_ami_speed(",
        "fn sendc_sendc_speed(",
        "fn sendp_speed(",
        "struct AMINavPoller",
        "trait AMINavExceptionHolder",
    ] {
        assert!(rust.contains(wanted), "{wanted}");
    }
    for unwanted in ["sendc_stop", "AMI_HereHandler"] {
        assert!(!rust.contains(unwanted), "{unwanted}");
    }
    let model = Model::parse("t.idl", text).unwrap();
    let plain = generate(&model, &Config::default()).unwrap();
    assert!(!plain.contains("Poller") && !plain.contains("ExceptionHolder"));
}

#[test]
fn handler_of_an_interface_that_is_declared_before_its_bases_inherits_from_their_handlers() {
    let rust = asynchronous(
        "
        interface Third; interface Second; interface First;
        interface Root { long depth(); };
        interface First : Root { Third last(); };
        interface Second : First, Root { long two(); };
        interface Third : Second { long three(); };",
    );
    for wanted in [
        "trait AMIFirstHandler: AMIRootHandler {",
        "trait AMISecondHandler: AMIFirstHandler + AMIRootHandler {",
        "trait AMIThirdHandler: AMISecondHandler {",
    ] {
        assert!(rust.contains(wanted), "{wanted}");
    }
}
