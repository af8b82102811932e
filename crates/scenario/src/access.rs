//! Access files: who may do what on which object, with which events. One form for all services.

mod file;

use std::path::Path;
use std::sync::{Arc, LazyLock};

use deckwatch_access::{Action, NetworkError, Range, Ranges, Rule, Table, Who};
use serde::Deserialize as _;
use serde_json::Value;
use toml::Spanned;

use crate::mission::fault::Faults;
use crate::mission::schema::generate;
use crate::mission::{LoadError, read, shaped_table};

/// Reads an access file.
///
/// # Errors
/// [`LoadError`], with all faults of the file that one reading finds.
pub fn load(path: &Path) -> Result<Table, LoadError> {
    parse(path, read(path)?)
}

/// Reads the text of an access file; `path` stands in the faults.
///
/// # Errors
/// As [`load`].
pub fn parse(path: &Path, text: Arc<str>) -> Result<Table, LoadError> {
    let malformed = |faults| LoadError::Malformed(Box::new(faults));
    let mut faults = Faults::new(path, text.clone());
    let table = shaped_table(&text, schema(), "the access file", &mut faults).map_err(malformed)?;
    let file = match file::File::deserialize(toml::de::Deserializer::from(table)) {
        Ok(file) => file,
        Err(error) => {
            let place = error.span().unwrap_or(0..0);
            faults.report(
                place,
                error.message(),
                "see what `deckwatch schema access` prints",
            );
            return Err(malformed(faults));
        }
    };
    let rules = file.allow.iter().map(|allow| rule(allow, &mut faults));
    let rules = rules.collect();
    faults.finish().map_err(malformed)?;
    Ok(Table::new(rules))
}

fn rule(allow: &file::Allow, faults: &mut Faults) -> Rule {
    let who = allow.who.iter().filter_map(|text| who(text, faults));
    let who = who.collect();
    if allow.may.is_empty() && allow.operations.is_empty() {
        faults.report(
            allow.who.first().map_or(0..0, Spanned::span),
            "this rule permits nothing: it has neither `may` nor `operations`",
            "write may = [\"resolve\"], or operations = [\"resolve\", \"list\"]",
        );
    }
    Rule {
        who,
        may: allow.may.iter().map(|word| Action::from(*word)).collect(),
        operations: allow.operations.clone(),
        on: allow.on.clone(),
        types: allow.types.as_ref().map(|all| ranges(all, faults)),
        sources: allow.sources.as_ref().map(|all| ranges(all, faults)),
    }
}

fn who(text: &Spanned<String>, faults: &mut Faults) -> Option<Who> {
    let word = text.get_ref().as_str();
    if word == "anyone" {
        return Some(Who::Anyone);
    }
    if word == "this-host" {
        return Some(Who::ThisHost);
    }
    if let Some(name) = word.strip_prefix("cert:") {
        let name = Some(name).filter(|name| !name.is_empty());
        if name.is_none() {
            faults.report(
                text.span(),
                "`cert:` has no name",
                "write the DNS name in the certificate: cert:rts.ship",
            );
        }
        return name.map(|name| Who::Name(name.to_owned()));
    }
    if let Some(uid) = word.strip_prefix("uid:") {
        let uid = uid.parse().ok().map(Who::User);
        if uid.is_none() {
            let fact = format!("`{word}` has no user id");
            faults.report(
                text.span(),
                fact,
                "write the number that `id -u` prints: uid:1000",
            );
        }
        return uid;
    }
    match word.parse() {
        Ok(network) => return Some(Who::Network(network)),
        Err(NetworkError::HostBits(meant)) => faults.report(
            text.span(),
            format!("`{word}` has bits behind its prefix"),
            format!("write {meant} for the network, or the address alone for one host"),
        ),
        Err(NetworkError::NoPrefix) => faults.report(
            text.span(),
            format!("`{word}` has no prefix of 0 to 32 bits, or to 128 for IPv6"),
            "write 10.1.0.0/16 or fd00::/8",
        ),
        Err(_) => faults.report(
            text.span(),
            format!("`{word}` is no peer"),
            "write an address, a network such as 10.1.0.0/16, cert:rts.ship, uid:1000, this-host, or anyone",
        ),
    }
    None
}

fn ranges(all: &[Spanned<String>], faults: &mut Faults) -> Ranges {
    let read = |text: &Spanned<String>| {
        let range: Option<Range> = text.get_ref().parse().ok();
        if range.is_none() {
            let fact = format!("`{}` is no range", text.get_ref());
            faults.report(text.span(), fact, "write \"20\", or \"20-29\" for 20 to 29");
        }
        range
    };
    Ranges::new(all.iter().filter_map(read).collect())
}

/// Returns the schema of an access file (JSON Schema 2020-12), which is published in `docs/schema/access-1.json`.
#[must_use]
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> =
        LazyLock::new(|| generate::<file::File>("access-1.json", "Deckwatch access"));
    &SCHEMA
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mission::schema::assert_published;
    use deckwatch_access::{Asked, Events, Subject};

    fn faults_of(text: &str) -> String {
        parse(Path::new("a.toml"), text.into())
            .expect_err("a fault")
            .to_string()
    }

    #[test]
    fn published_schema_is_current() {
        assert_published(schema(), "access");
    }

    #[test]
    fn rules_of_a_file_are_those_of_the_table() {
        let text = "[[allow]]\nwho = [\"10.1.0.0/16\", \"uid:7\"]\nmay = [\"supply\"]\n\
                    on = [\"NAV\"]\ntypes = [\"16\", \"20-29\"]\n";
        let table = parse(Path::new("a.toml"), text.into()).expect("a table");
        let may = |event_type, on| {
            let events = Events {
                event_type: Some(event_type),
                source: None,
            };
            let asked = Asked {
                action: Some(Action::Supply),
                operation: b"push",
                object: Some(on),
                events: Some(events),
            };
            table.permits(Subject::user(7), &asked)
        };
        assert!(may(16, "NAV") && may(29, "NAV"));
        assert!(!may(17, "NAV") && !may(16, "LOG"));
    }

    #[test]
    fn faults_have_a_place_and_what_to_write() {
        let found = faults_of(
            "[[allow]]\nwho = [\"10.1.2.3/16\", \"ship\", \"uid:me\"]\nmay = [\"supply\"]\n\
             types = [\"29-20\"]\n",
        );
        for part in [
            "a.toml:2:8: error: `10.1.2.3/16` has bits behind its prefix",
            "help: write 10.1.0.0/16 for the network",
            "a.toml:2:23: error: `ship` is no peer",
            "a.toml:2:31: error: `uid:me` has no user id",
            "a.toml:4:10: error: `29-20` is no range",
        ] {
            assert!(found.contains(part), "{part}: {found}");
        }
        let found = faults_of("[[allow]]\nwho = [\"anyone\"]\nmay = [\"fly\"]\n");
        assert!(found.contains("a.toml:3:8: error"), "{found}");
        let found = faults_of("[[allow]]\nwho = [\"anyone\", \"cert:\"]\n");
        for part in [
            "a.toml:2:8: error: this rule permits nothing",
            "operations = [\"resolve\", \"list\"]",
            "a.toml:2:18: error: `cert:` has no name",
        ] {
            assert!(found.contains(part), "{part}: {found}");
        }
    }
}
