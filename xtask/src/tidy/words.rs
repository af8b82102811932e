//! Words that do not belong in the tree, and the header every Rust file begins with.

use super::{Breach, Source};

/// A word, where it is refused, and what to do instead. Pieces are joined, so that this file does not name itself.
struct Word {
    pieces: &'static [&'static str],
    place: Place,
    instead: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Any text file but the lock file.
    Anywhere,
    /// Any Rust file.
    Rust,
    /// Rust files of the crates, tests apart.
    Product,
    /// Rust files of the crates below cli, tests apart.
    Library,
}

const WORDS: &[Word] = &[
    Word {
        pieces: &["to", "do!("],
        place: Place::Rust,
        instead: "finish it, or leave it out and say so in the changelog",
    },
    Word {
        pieces: &["unimple", "mented!("],
        place: Place::Rust,
        instead: "finish it, or raise NO_IMPLEMENT",
    },
    Word {
        pieces: &["FIX", "ME"],
        place: Place::Rust,
        instead: "mend it, or file it",
    },
    Word {
        pieces: &["TO", "DO:"],
        place: Place::Rust,
        instead: "do it, or file it",
    },
    Word {
        pieces: &["#[ig", "nore"],
        place: Place::Rust,
        instead: "a test runs, or counts its skip",
    },
    Word {
        pieces: &["assert!(", "true)"],
        place: Place::Rust,
        instead: "a test that cannot fail is a defect",
    },
    Word {
        pieces: &["Box<dyn ", "Error"],
        place: Place::Library,
        instead: "an error enum of the crate",
    },
    Word {
        pieces: &["Box<dyn std::error::", "Error"],
        place: Place::Library,
        instead: "an error enum of the crate",
    },
    Word {
        pieces: &["mod ", "utils"],
        place: Place::Rust,
        instead: "name the module after what it holds",
    },
    Word {
        pieces: &["fn ", "get_"],
        place: Place::Product,
        instead: "drop the prefix",
    },
    Word {
        pieces: &["print", "ln!("],
        place: Place::Library,
        instead: "libraries return; cli prints",
    },
    Word {
        pieces: &["dbg", "!("],
        place: Place::Rust,
        instead: "remove it",
    },
    Word {
        pieces: &["crates", ".io/"],
        place: Place::Anywhere,
        instead: "name the package, not its registry's host",
    },
    Word {
        pieces: &["/wo", "rk/"],
        place: Place::Anywhere,
        instead: "no path of one machine",
    },
    Word {
        pieces: &["/ro", "ot/"],
        place: Place::Anywhere,
        instead: "no path of one machine",
    },
];

/// Names that are not ours: the standard library's, and operations of TAO's `RtecScheduler::Scheduler` and of
/// `CosTypedEventComm`.
const STANDARD: [&str; 7] = [
    "fn get_mut(",
    "fn get_config_info_set<",
    "fn get_config_infos<",
    "fn get_dependency_set<",
    "fn get_rt_info_set<",
    "fn get_typed_consumer(",
    "fn get_typed_supplier(",
];

pub(super) fn check(sources: &[Source]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for source in sources
        .iter()
        .filter(|source| !source.path.ends_with("Cargo.lock"))
    {
        if source.is_rust() && !source.text.starts_with("//!") {
            breaches.push(Breach::new(
                &source.path,
                1,
                "begin with //! and say what the file is",
            ));
        }
        for word in WORDS.iter().filter(|word| applies(word.place, source)) {
            let needle = word.pieces.concat();
            for (index, line) in product_lines(source, word.place) {
                let is_standard = STANDARD.iter().any(|name| line.contains(name));
                if line.contains(&needle) && !is_standard {
                    breaches.push(Breach::new(
                        &source.path,
                        index + 1,
                        format!("`{needle}`: {}", word.instead),
                    ));
                }
            }
        }
    }
    breaches
}

fn applies(place: Place, source: &Source) -> bool {
    match place {
        Place::Anywhere => true,
        Place::Rust => source.is_rust(),
        Place::Product => source.is_rust() && !source.is_leaf(),
        Place::Library => {
            source.is_rust() && !source.is_leaf() && source.crate_name() != Some("cli")
        }
    }
}

/// The lines a rule looks at: for product rules those before the file's test module, its documentation's examples
/// apart.
fn product_lines(source: &Source, place: Place) -> impl Iterator<Item = (usize, &str)> {
    let product_only = matches!(place, Place::Product | Place::Library);
    source
        .text
        .lines()
        .enumerate()
        .take_while(move |(_, line)| !product_only || *line != "#[cfg(test)]")
        .filter(move |(_, line)| !product_only || !line.trim_start().starts_with("//"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn breaches_of(path: &str, text: &str) -> usize {
        check(&[Source {
            path: PathBuf::from(path),
            text: text.to_owned(),
        }])
        .len()
    }

    #[test]
    fn unfinished_code_is_refused_in_tests_too() {
        assert_eq!(
            breaches_of(
                "crates/orb/tests/a.rs",
                &format!("//! A.\nfn a() {{ {}) }}\n", "to".to_owned() + "do!(")
            ),
            1
        );
    }

    #[test]
    fn printing_is_for_cli() {
        let text = format!(
            "//! A.\nfn a() {{ {}\"\") }}\n",
            "print".to_owned() + "ln!("
        );
        assert_eq!(breaches_of("crates/orb/src/a.rs", &text), 1);
        assert_eq!(breaches_of("crates/cli/src/a.rs", &text), 0);
        assert_eq!(breaches_of("crates/orb/tests/a.rs", &text), 0);
    }

    #[test]
    fn file_without_a_header_is_refused() {
        assert_eq!(breaches_of("crates/orb/src/a.rs", "fn a() {}\n"), 1);
    }
}
