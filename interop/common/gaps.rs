//! The gaps that `interop/gaps.toml` lists, held to it.

use serde::Deserialize;

use crate::common::root;

/// What is known not to work, by the name that stands in `gaps.toml`. Fails where it is not listed there, and where it works.
pub(crate) fn gap<T: std::fmt::Debug, E: std::fmt::Debug>(name: &str, outcome: &Result<T, E>) {
    #[derive(Deserialize)]
    struct Gaps {
        gap: Vec<Gap>,
    }
    #[derive(Deserialize)]
    struct Gap {
        name: String,
        reason: String,
    }
    let text = std::fs::read_to_string(root().join("interop/gaps.toml")).expect("gaps.toml");
    let gaps: Gaps = toml::from_str(&text).expect("gaps.toml has gaps");
    let listed = gaps.gap.iter().find(|gap| gap.name == name);
    let listed = listed
        .unwrap_or_else(|| panic!("gaps.toml does not list {name}, and it fails: {outcome:?}"));
    assert!(!listed.reason.trim().is_empty(), "{name} has no reason");
    assert!(
        outcome.is_err(),
        "{name} works now: take it out of gaps.toml"
    );
}
