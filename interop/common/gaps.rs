//! Checks the gaps that `interop/gaps.toml` lists.

#![allow(dead_code, reason = "each test file uses its own part")]

use serde::Deserialize;

use crate::common::root;

#[derive(Deserialize)]
struct Gaps {
    gap: Vec<Gap>,
    beyond: Vec<Gap>,
}

#[derive(Deserialize)]
struct Gap {
    name: String,
    reason: String,
}

fn listed() -> Gaps {
    let text = std::fs::read_to_string(root().join("interop/gaps.toml")).expect("gaps.toml");
    toml::from_str(&text).expect("gaps.toml has gaps")
}

/// Checks a known gap. Panics if `gaps.toml` does not list `name`, or if the outcome is a success.
pub(crate) fn gap<T: std::fmt::Debug, E: std::fmt::Debug>(name: &str, outcome: &Result<T, E>) {
    let gaps = listed();
    let listed = gaps.gap.iter().find(|gap| gap.name == name);
    let listed = listed
        .unwrap_or_else(|| panic!("gaps.toml does not list {name}, and it fails: {outcome:?}"));
    assert!(!listed.reason.trim().is_empty(), "{name} has no reason");
    assert!(
        outcome.is_err(),
        "{name} works now: take it out of gaps.toml"
    );
}

/// The names of a peer's features that have no counterpart in this ORB. Each must have a reason.
pub(crate) fn beyond() -> Vec<String> {
    let beyond = listed().beyond;
    for gap in &beyond {
        assert!(!gap.reason.trim().is_empty(), "{} has no reason", gap.name);
    }
    beyond.into_iter().map(|gap| gap.name).collect()
}
