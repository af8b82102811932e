//! The code kept for `tests/generated` is what the generator makes today. After a change of the generator,
//! `DECKWATCH_BLESS=1 cargo test -p deckwatch-idl --test generator` writes it anew.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use deckwatch_idl::build::Builder;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generated")
}

#[test]
fn generated_code_is_what_the_generator_makes_today() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let compiled = Builder::new()
        .file(folder().join("shared.idl"))
        .file(folder().join("broad.idl"))
        .orb_path("crate::orb")
        .out_dir(out)
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
