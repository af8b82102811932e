//! A crate depends only on crates with a strictly lower floor; unsafe code, anyhow and tokio stay in their rooms.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{Breach, Source};

#[derive(Deserialize)]
struct Floors {
    floors: BTreeMap<String, u8>,
}

const UNSAFE_ROOMS: [&str; 2] = ["os", "sync"];
const ANYHOW_ROOMS: [&str; 1] = ["cli"];
const TOKIO_ROOMS: [&str; 2] = ["live", "cli"];

pub(super) fn check(root: &Path, sources: &[Source]) -> Result<Vec<Breach>> {
    let text =
        std::fs::read_to_string(root.join("floors.toml")).context("floors.toml is missing")?;
    let floors: Floors = toml::from_str(&text)?;
    let mut breaches = Vec::new();
    for source in sources {
        let Some(name) = source.crate_name() else {
            continue;
        };
        if source.path.ends_with("Cargo.toml") {
            breaches.extend(manifest(source, name, &floors.floors)?);
        }
        let is_root = source.path.ends_with("src/lib.rs") || source.path.ends_with("src/main.rs");
        if is_root
            && !UNSAFE_ROOMS.contains(&name)
            && !source.text.contains("#![forbid(unsafe_code)]")
        {
            breaches.push(Breach::new(
                &source.path,
                1,
                "add #![forbid(unsafe_code)]: only os and sync may use unsafe",
            ));
        }
    }
    Ok(breaches)
}

fn manifest(source: &Source, name: &str, floors: &BTreeMap<String, u8>) -> Result<Vec<Breach>> {
    let mut breaches = Vec::new();
    let Some(&own) = floors.get(name) else {
        return Ok(vec![Breach::new(
            &source.path,
            1,
            format!("crate {name} has no floor in floors.toml"),
        )]);
    };
    let table: toml::Table =
        toml::from_str(&source.text).with_context(|| format!("{}", source.path.display()))?;
    for section in ["dependencies", "build-dependencies"] {
        let Some(dependencies) = table.get(section).and_then(toml::Value::as_table) else {
            continue;
        };
        for dependency in dependencies.keys() {
            let text = match dependency
                .strip_prefix("deckwatch-")
                .map(|other| (other, floors.get(other)))
            {
                Some((other, Some(&floor))) if floor >= own => {
                    format!("{name} (floor {own}) may not depend on {other} (floor {floor})")
                }
                Some(("testkit", None)) => {
                    "testkit is for tests: name it under dev-dependencies".to_owned()
                }
                Some((other, None)) => format!("crate {other} has no floor in floors.toml"),
                None if dependency == "anyhow" && !ANYHOW_ROOMS.contains(&name) => {
                    "anyhow is for cli and xtask; libraries use thiserror or Copy enums".to_owned()
                }
                None if dependency == "tokio" && !TOKIO_ROOMS.contains(&name) => {
                    "tokio lives in live and cli alone".to_owned()
                }
                _ => continue,
            };
            breaches.push(Breach::new(
                &source.path,
                line_of(&source.text, dependency),
                text,
            ));
        }
    }
    Ok(breaches)
}

fn line_of(text: &str, word: &str) -> usize {
    text.lines()
        .position(|line| line.starts_with(word))
        .map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn breaches_of(name: &str, text: &str) -> Vec<String> {
        let floors = BTreeMap::from([
            ("os".to_owned(), 0),
            ("orb".to_owned(), 2),
            ("event".to_owned(), 3),
        ]);
        let source = Source {
            path: PathBuf::from(format!("crates/{name}/Cargo.toml")),
            text: text.to_owned(),
        };
        manifest(&source, name, &floors)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn dependency_on_a_lower_floor_is_in_order() {
        assert!(breaches_of("orb", "[dependencies]\ndeckwatch-os.workspace = true\n").is_empty());
    }

    #[test]
    fn dependency_on_a_higher_floor_is_refused_with_its_line() {
        let breaches = breaches_of("orb", "[dependencies]\ndeckwatch-event.workspace = true\n");
        assert_eq!(
            breaches,
            ["crates/orb/Cargo.toml:2: orb (floor 2) may not depend on event (floor 3)"]
        );
    }

    #[test]
    fn anyhow_in_a_library_is_refused() {
        assert_eq!(
            breaches_of("orb", "[dependencies]\nanyhow.workspace = true\n").len(),
            1
        );
    }
}
