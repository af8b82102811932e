//! `spec/clauses.toml`: every clause taken on names its tests or its gap, every test it names is there, and every
//! test of `conformance/` has its clause.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use serde::Deserialize;
use syn::visit::Visit;

use super::{Breach, Source};

const FILE: &str = "spec/clauses.toml";
const SUITE: &str = "conformance";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Clauses {
    /// What the ids begin with, and the document that stands for.
    edition: BTreeMap<String, Edition>,
    #[serde(default)]
    clause: Vec<toml::Spanned<Clause>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "for readers; that they are given is what is checked"
)]
struct Edition {
    document: String,
    numbering: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Clause {
    id: String,
    title: String,
    says: String,
    module: String,
    #[serde(default)]
    tests: Vec<String>,
    gap: Option<String>,
}

pub(super) fn check(root: &Path, sources: &[Source]) -> Result<Vec<Breach>> {
    let text = std::fs::read_to_string(root.join(FILE)).context("spec/clauses.toml is missing")?;
    examine(&text, sources)
}

fn examine(text: &str, sources: &[Source]) -> Result<Vec<Breach>> {
    let clauses: Clauses = toml::from_str(text).context(FILE)?;
    let mut breaches = Vec::new();
    let mut ids = BTreeSet::new();
    let mut named = BTreeSet::new();
    let mut tests = Tests::new(sources);
    for spanned in &clauses.clause {
        let clause = spanned.get_ref();
        let line = line_at(text, spanned.span().start);
        let mut refuse = |what: String| {
            let text = format!("{}: {what}", clause.id);
            breaches.push(Breach::new(Path::new(FILE), line, text));
        };
        for fault in clause.faults(&clauses.edition) {
            refuse(fault.to_owned());
        }
        if !ids.insert(clause.id.as_str()) {
            refuse("the id stands twice".to_owned());
        }
        if !sources
            .iter()
            .any(|source| source.path == Path::new(&clause.module))
        {
            refuse(format!("there is no module {}", clause.module));
        }
        for test in &clause.tests {
            if let Err(fault) = tests.find(test) {
                refuse(fault);
            }
            named.insert(test.as_str());
        }
    }
    for (path, line, test) in tests.of_the_suite() {
        if !named.contains(format!("{}::{test}", path.display()).as_str()) {
            let text = format!("no clause of {FILE} names the test {test}");
            breaches.push(Breach::new(&path, line, text));
        }
    }
    Ok(breaches)
}

impl Clause {
    fn faults(&self, editions: &BTreeMap<String, Edition>) -> Vec<&'static str> {
        let is_blank = |text: &String| text.trim().is_empty();
        let edition = self.id.split('/').next().unwrap_or_default();
        let faults = [
            (
                !editions.contains_key(edition) || !self.id.contains('/'),
                "the id begins with no edition that the head of the file lists",
            ),
            (
                is_blank(&self.title) || is_blank(&self.says),
                "say its title and what it says",
            ),
            (
                self.tests.is_empty() && self.gap.is_none(),
                "neither test nor gap: name its tests, or say why it has none",
            ),
            (
                self.gap.as_ref().is_some_and(is_blank),
                "the gap has no reason",
            ),
        ];
        let mut found = Vec::new();
        found.extend(
            faults
                .into_iter()
                .filter(|(is_fault, _)| *is_fault)
                .map(|(_, text)| text),
        );
        found
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// The test functions of the tree, file by file; a file is read when it is first asked for.
pub(super) struct Tests<'s> {
    sources: &'s [Source],
    read: BTreeMap<PathBuf, Option<BTreeMap<String, usize>>>,
}

impl<'s> Tests<'s> {
    pub(super) fn new(sources: &'s [Source]) -> Self {
        Self {
            sources,
            read: BTreeMap::new(),
        }
    }

    /// `path/to/file.rs::function`, and the function is a test.
    pub(super) fn find(&mut self, test: &str) -> std::result::Result<(), String> {
        let Some((path, function)) = test.rsplit_once("::") else {
            return Err(format!("write {test} as path::function"));
        };
        match self.in_file(Path::new(path)) {
            None => Err(format!("there is no file {path}")),
            Some(tests) if tests.contains_key(function) => Ok(()),
            Some(_) => Err(format!("{path} has no test {function}")),
        }
    }

    fn in_file(&mut self, path: &Path) -> Option<&BTreeMap<String, usize>> {
        let sources = self.sources;
        let read = self.read.entry(path.to_owned()).or_insert_with(|| {
            let source = sources.iter().find(|source| source.path == path)?;
            let file = syn::parse_file(&source.text).ok()?;
            let mut found = Found::default();
            found.visit_file(&file);
            Some(found.0)
        });
        read.as_ref()
    }

    /// Every test of the conformance suite: file, line, function.
    fn of_the_suite(&mut self) -> Vec<(PathBuf, usize, String)> {
        let files: Vec<PathBuf> = self
            .sources
            .iter()
            .filter(|source| source.is_rust() && source.path.starts_with(SUITE))
            .map(|source| source.path.clone())
            .collect();
        let mut all = Vec::new();
        for path in files {
            let tests = self.in_file(&path).into_iter().flatten();
            all.extend(tests.map(|(test, &line)| (path.clone(), line, test.clone())));
        }
        all
    }
}

/// The names and lines of functions that are tests: by attribute, or because they stand in a macro such as `both!` or
/// `proptest!`.
#[derive(Default)]
struct Found(BTreeMap<String, usize>);

impl<'ast> Visit<'ast> for Found {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if function
            .attrs
            .iter()
            .any(|attribute| attribute.path().is_ident("test"))
        {
            let name = &function.sig.ident;
            self.0.insert(name.to_string(), name.span().start().line);
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        // A macro that is defined, and not used, holds patterns.
        if item.ident.is_none() {
            self.note_functions(item.mac.tokens.clone());
        }
    }
}

impl Found {
    fn note_functions(&mut self, tokens: TokenStream) {
        let mut is_after_fn = false;
        for token in tokens {
            if let (TokenTree::Ident(name), true) = (&token, is_after_fn) {
                self.0.insert(name.to_string(), name.span().start().line);
            }
            is_after_fn = matches!(&token, TokenTree::Ident(word) if word == "fn");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "[edition.CORBA-3]\ndocument = \"d\"\nnumbering = \"n\"\n";
    const GOOD: &str = "[[clause]]\nid = \"CORBA-3/9.4\"\ntitle = \"t\"\nsays = \"s\"\nmodule = \"crates/giop/src/lib.rs\"\n";

    fn source(path: &str, text: &str) -> Source {
        Source {
            path: PathBuf::from(path),
            text: text.to_owned(),
        }
    }

    fn breaches_of(clauses: &str) -> Vec<String> {
        let sources = [
            source("crates/giop/src/lib.rs", "//! G.\n"),
            source(
                "conformance/giop.rs",
                "//! C.\nboth! {\n    fn is_kept(over) {\n        fn inner() {}\n    }\n}\nfn helper() {}\n",
            ),
            source(
                "crates/giop/tests/a.rs",
                "//! A.\nmod m {\n    #[test]\n    fn is_tested() {}\n}\nfn no_test() {}\n",
            ),
        ];
        let breaches = examine(&format!("{HEAD}{clauses}"), &sources).unwrap();
        breaches.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn clauses_with_tests_that_are_there_are_in_order() {
        let tests =
            "tests = [\"conformance/giop.rs::is_kept\", \"crates/giop/tests/a.rs::is_tested\"]\n";
        assert_eq!(breaches_of(&format!("{GOOD}{tests}")), [""; 0]);
    }

    #[test]
    fn clause_without_test_and_gap_is_refused_at_its_line() {
        let kept = "tests = [\"conformance/giop.rs::is_kept\"]\n";
        let bare = GOOD.replace("9.4", "9.5");
        assert_eq!(
            breaches_of(&format!("{GOOD}{kept}{bare}")),
            [
                "spec/clauses.toml:10: CORBA-3/9.5: neither test nor gap: name its tests, or say why it has none"
            ]
        );
    }

    #[test]
    fn gap_needs_a_reason() {
        let kept = "tests = [\"conformance/giop.rs::is_kept\"]\n";
        let said = breaches_of(&format!("{GOOD}{kept}gap = \" \"\n"));
        assert_eq!(
            said,
            ["spec/clauses.toml:4: CORBA-3/9.4: the gap has no reason"]
        );
    }

    #[test]
    fn tests_that_are_not_there_are_refused() {
        for (test, fault) in [
            (
                "conformance/giop.rs::inner",
                "conformance/giop.rs has no test inner",
            ),
            (
                "crates/giop/tests/a.rs::no_test",
                "crates/giop/tests/a.rs has no test no_test",
            ),
            (
                "crates/giop/tests/b.rs::a",
                "there is no file crates/giop/tests/b.rs",
            ),
            ("alone", "write alone as path::function"),
        ] {
            let tests = format!("tests = [\"conformance/giop.rs::is_kept\", \"{test}\"]\n");
            let expected = format!("spec/clauses.toml:4: CORBA-3/9.4: {fault}");
            assert_eq!(breaches_of(&format!("{GOOD}{tests}")), [expected]);
        }
    }

    #[test]
    fn test_of_the_suite_that_no_clause_names_is_refused() {
        assert_eq!(
            breaches_of(&format!("{GOOD}gap = \"g\"\n")),
            ["conformance/giop.rs:3: no clause of spec/clauses.toml names the test is_kept"]
        );
    }

    #[test]
    fn ids_stand_once_and_begin_with_an_edition_and_modules_exist() {
        let kept = "tests = [\"conformance/giop.rs::is_kept\"]\n";
        let twice = format!("{GOOD}{kept}{GOOD}{kept}");
        assert_eq!(
            breaches_of(&twice),
            ["spec/clauses.toml:10: CORBA-3/9.4: the id stands twice"]
        );
        let strange = GOOD.replace("CORBA-3", "ITU").replace("lib.rs", "none.rs");
        assert_eq!(breaches_of(&format!("{strange}{kept}")).len(), 2);
    }
}
