//! Tests that pass without doing anything: a test leaves early only behind a counted skip or an assertion.
//!
//! libtest reports a test that returns early as passed. So a `return` in a test must stand in a block that has called
//! `skip` or `skip_part` of `deckwatch_testkit` or has asserted something, or in the branch of a condition that calls a
//! function that skips. A function skips if it calls `skip` or `program` of the testkit, or another function of its
//! crate that skips. A function that skips and returns an `Option` must count a skip for each `None`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::Span;
use syn::visit::{self, Visit};

use super::{Breach, Source};

/// Returns the early exits of all tests that count no skip.
pub(super) fn check(sources: &[Source]) -> Vec<Breach> {
    let mut scopes: BTreeMap<String, Vec<(&Source, syn::File)>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        if let Ok(file) = syn::parse_file(&source.text) {
            let files = scopes.entry(scope(&source.path)).or_default();
            files.push((source, file));
        }
    }
    // Tests of crates include the files of `conformance/common` and `interop/common`.
    let mut common: Vec<(&Source, syn::File)> = Vec::new();
    for (source, file) in scopes.values().flatten() {
        if source.path.iter().any(|part| part == "common") {
            common.push((source, file.clone()));
        }
    }
    let mut shared = skipping(&common, BTreeSet::new());
    shared.retain(|name| name != "skip" && name != "program");
    // The rules themselves name what they look for.
    scopes.remove("xtask");
    let breaches = scopes.values().flat_map(|files| {
        let skipping = skipping(files, shared.clone());
        files.iter().flat_map(move |(source, file)| {
            let mut exits = Exits {
                skipping: &skipping,
                found: Vec::new(),
                is_behind: false,
                is_part: false,
            };
            let mut tests = Functions::default();
            tests.visit_file(file);
            for function in tests.all.iter().filter(|function| function.is_test) {
                exits.visit_block(function.block);
            }
            let helpers = tests.all.iter().filter(|function| function.is_fallible);
            for function in helpers.filter(|_| may_skip(source)) {
                if skipping.contains(&function.name) {
                    exits.visit_helper(function.block);
                }
            }
            let breach = |(span, text): (Span, &str)| {
                Breach::new(&source.path, span.start().line, text.to_owned())
            };
            exits.found.into_iter().map(breach).collect::<Vec<_>>()
        })
    });
    breaches.collect()
}

const EXIT: &str =
    "a test leaves early without a counted skip: call deckwatch_testkit::skip in the same block";
const NOTHING: &str = "a function that skips returns None without a counted skip: call deckwatch_testkit::skip before";

/// The crate, or the top folder: functions are known by name in it.
fn scope(path: &Path) -> String {
    let depth = if path.starts_with("crates") { 2 } else { 1 };
    let parts = path.iter().take(depth).map(|part| part.to_string_lossy());
    parts.collect::<Vec<_>>().join("/")
}

/// Whether a function of this file may skip: it belongs to tests.
fn may_skip(source: &Source) -> bool {
    source.is_leaf() || source.text.contains("testkit")
}

/// A function of a file. Methods are named with their type.
struct Function<'a> {
    name: String,
    block: &'a syn::Block,
    is_test: bool,
    /// Whether it returns an `Option`.
    is_fallible: bool,
}

#[derive(Default)]
struct Functions<'a> {
    all: Vec<Function<'a>>,
    /// The type whose methods are visited.
    owner: Option<String>,
}

impl<'a> Functions<'a> {
    fn note(&mut self, signature: &syn::Signature, block: &'a syn::Block, is_test: bool) {
        let name = signature.ident.to_string();
        let owner = self.owner.as_ref();
        self.all.push(Function {
            name: owner.map_or(name.clone(), |owner| format!("{owner}::{name}")),
            block,
            is_test,
            is_fallible: matches!(&signature.output, syn::ReturnType::Type(_, kind)
                if type_name(kind).is_some_and(|name| name == "Option")),
        });
    }
}

impl<'ast> Visit<'ast> for Functions<'ast> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let mut attributes = function.attrs.iter();
        let is_test = attributes.any(|attribute| attribute.path().is_ident("test"));
        self.note(&function.sig, &function.block, is_test);
        visit::visit_item_fn(self, function);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let outer = std::mem::replace(&mut self.owner, type_name(&item.self_ty));
        visit::visit_item_impl(self, item);
        self.owner = outer;
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.note(&function.sig, &function.block, false);
        visit::visit_impl_item_fn(self, function);
    }
}

fn type_name(kind: &syn::Type) -> Option<String> {
    match kind {
        syn::Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        _ => None,
    }
}

/// The functions of a scope that count a skip, or call one that does.
fn skipping(files: &[(&Source, syn::File)], mut names: BTreeSet<String>) -> BTreeSet<String> {
    names.extend(["testkit::skip", "testkit::skip_part", "testkit::program"].map(str::to_owned));
    let mut functions = Functions::default();
    for (source, file) in files.iter().filter(|(source, _)| may_skip(source)) {
        functions.visit_file(file);
        if source.text.contains("testkit::{") || source.text.contains("testkit::skip;") {
            names.insert("skip".to_owned());
        }
        if source.text.contains("testkit::{") || source.text.contains("testkit::program;") {
            names.insert("program".to_owned());
        }
    }
    loop {
        let before = names.len();
        for function in &functions.all {
            // A test is not called.
            if !function.is_test && calls(&names, |finder| finder.visit_block(function.block)) {
                names.insert(function.name.clone());
            }
        }
        if names.len() == before {
            return names;
        }
    }
}

/// Searches an expression for calls of functions that skip, and for assertions.
struct Finder<'a> {
    skipping: &'a BTreeSet<String>,
    skips: bool,
    asserts: bool,
}

fn finder<'a>(skipping: &'a BTreeSet<String>, search: impl FnOnce(&mut Finder<'a>)) -> Finder<'a> {
    let mut finder = Finder {
        skipping,
        skips: false,
        asserts: false,
    };
    search(&mut finder);
    finder
}

fn calls<'a>(skipping: &'a BTreeSet<String>, search: impl FnOnce(&mut Finder<'a>)) -> bool {
    finder(skipping, search).skips
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(path) = &*call.func {
            let names = path.path.segments.iter().map(|one| one.ident.to_string());
            let names: Vec<String> = names.collect();
            let last = names.len() - 1;
            // A function of a module is known by its own name, a method and the testkit's by two.
            let two = names[last.saturating_sub(1)..].join("::");
            let two = two.strip_prefix("deckwatch_").unwrap_or(&two).to_owned();
            let of_module = last == 0 || names[last - 1].starts_with(char::is_lowercase);
            self.skips |= self.skipping.contains(&two)
                || of_module && last > 0 && self.skipping.contains(&names[last])
                || last == 0 && self.skipping.contains(&names[0]);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        let name = called.path.segments.last().map(|one| one.ident.to_string());
        self.asserts |= name.is_some_and(|name| name.starts_with("assert") || name == "panic");
    }
}

/// Searches a test for early exits.
struct Exits<'a> {
    skipping: &'a BTreeSet<String>,
    found: Vec<(Span, &'static str)>,
    /// Whether what is visited stands behind a skip or an assertion.
    is_behind: bool,
    /// Whether it is the part of a process that the test itself starts: a branch that a variable of the environment
    /// selects, and that does something.
    is_part: bool,
}

impl Exits<'_> {
    fn branch(&mut self, is_behind: bool, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.is_behind, is_behind);
        visit(self);
        self.is_behind = outer;
    }

    fn skips(&self, expression: &syn::Expr) -> bool {
        calls(self.skipping, |finder| finder.visit_expr(expression))
    }

    /// Searches a function that skips for a `None` without a skip.
    fn visit_helper(&mut self, block: &syn::Block) {
        let mut nothings = Nothings {
            skipping: self.skipping,
            found: Vec::new(),
            is_behind: false,
        };
        nothings.visit_block(block);
        self.found
            .extend(nothings.found.into_iter().map(|span| (span, NOTHING)));
    }
}

impl<'ast> Visit<'ast> for Exits<'_> {
    fn visit_block(&mut self, block: &'ast syn::Block) {
        let (behind, part) = (self.is_behind, self.is_part);
        for (index, statement) in block.stmts.iter().enumerate() {
            let found = finder(self.skipping, |finder| finder.visit_stmt(statement));
            self.is_part = part && index > 0;
            self.visit_stmt(statement);
            self.is_behind |= found.skips || found.asserts;
        }
        (self.is_behind, self.is_part) = (behind, part);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        let Some(init) = &local.init else { return };
        self.visit_expr(&init.expr);
        if let Some((_, otherwise)) = &init.diverge {
            let skips = self.skips(&init.expr);
            self.branch(skips, |exits| exits.visit_expr(otherwise));
        }
    }

    fn visit_expr_if(&mut self, branches: &'ast syn::ExprIf) {
        let skips = self.skips(&branches.cond);
        let reads = reads_a_variable(&branches.cond);
        self.visit_expr(&branches.cond);
        let outer = std::mem::replace(&mut self.is_part, reads);
        self.branch(skips, |exits| exits.visit_block(&branches.then_branch));
        self.is_part = outer;
        if let Some((_, otherwise)) = &branches.else_branch {
            self.branch(skips, |exits| exits.visit_expr(otherwise));
        }
    }

    fn visit_expr_match(&mut self, choice: &'ast syn::ExprMatch) {
        let skips = self.skips(&choice.expr);
        self.visit_expr(&choice.expr);
        for arm in &choice.arms {
            self.branch(skips, |exits| exits.visit_expr(&arm.body));
        }
    }

    fn visit_expr_return(&mut self, exit: &'ast syn::ExprReturn) {
        let does = exit.expr.as_ref().is_some_and(|value| {
            let found = finder(self.skipping, |finder| finder.visit_expr(value));
            found.skips || found.asserts || self.is_part || is_own_call(value)
        });
        if !does && !self.is_behind && !self.is_part {
            self.found.push((exit.return_token.span, EXIT));
        }
    }

    /// The body of a test that runs in a process of its own, or under every interleaving, is a closure. Other closures
    /// return to the test.
    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let runs_body = matches!(&*call.func, syn::Expr::Path(path)
        if path.path.segments.last().is_some_and(|name| {
            ["alone", "alone_with", "model"].iter().any(|one| name.ident == one)
        }));
        for argument in &call.args {
            match argument {
                syn::Expr::Closure(closure) if runs_body => self.visit_expr(&closure.body),
                _ => self.visit_expr(argument),
            }
        }
    }

    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}

    fn visit_item(&mut self, _: &'ast syn::Item) {}
}

/// Whether a value is the call of a function of this tree, which does what the test does.
fn is_own_call(value: &syn::Expr) -> bool {
    matches!(value, syn::Expr::Call(call) if matches!(&*call.func, syn::Expr::Path(path)
        if path.path.segments.last().is_some_and(|name| name.ident != "Ok" && name.ident != "drop")))
}

/// Whether a condition reads a variable of the environment.
fn reads_a_variable(condition: &syn::Expr) -> bool {
    struct Variables(bool);
    impl<'ast> Visit<'ast> for Variables {
        fn visit_path(&mut self, path: &'ast syn::Path) {
            let name = path.segments.last();
            self.0 |= name.is_some_and(|name| name.ident == "var" || name.ident == "var_os");
        }
    }
    let mut variables = Variables(false);
    variables.visit_expr(condition);
    variables.0
}

/// Searches a function for `None` and `?` that no skip stands before.
struct Nothings<'a> {
    skipping: &'a BTreeSet<String>,
    found: Vec<Span>,
    is_behind: bool,
}

impl<'ast> Visit<'ast> for Nothings<'_> {
    fn visit_block(&mut self, block: &'ast syn::Block) {
        let outer = self.is_behind;
        for statement in &block.stmts {
            self.visit_stmt(statement);
            self.is_behind |= calls(self.skipping, |finder| finder.visit_stmt(statement))
                && !matches!(statement, syn::Stmt::Local(_));
        }
        self.is_behind = outer;
    }

    fn visit_expr_if(&mut self, branches: &'ast syn::ExprIf) {
        let skips = calls(self.skipping, |finder| finder.visit_expr(&branches.cond));
        self.visit_expr(&branches.cond);
        let outer = std::mem::replace(&mut self.is_behind, skips);
        self.visit_block(&branches.then_branch);
        self.is_behind = outer;
        if let Some((_, otherwise)) = &branches.else_branch {
            self.visit_expr(otherwise);
        }
    }

    fn visit_expr_try(&mut self, value: &'ast syn::ExprTry) {
        if !calls(self.skipping, |finder| finder.visit_expr(&value.expr)) {
            self.found.push(value.question_token.spans[0]);
        }
    }

    fn visit_expr_return(&mut self, exit: &'ast syn::ExprReturn) {
        let nothing = exit.expr.as_deref().is_some_and(
            |value| matches!(value, syn::Expr::Path(path) if path.path.is_ident("None")),
        );
        if nothing && !self.is_behind {
            self.found.push(exit.return_token.span);
        }
    }

    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}

    fn visit_item(&mut self, _: &'ast syn::Item) {}
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Helpers as tests have them; `quiet` returns `None` without a skip.
    const HELPERS: &str = "use deckwatch_testkit::skip;\n\
        fn bed() -> Option<u8> { if absent() { skip(\"bed\", \"absent\"); return None; } Some(1) }\n\
        fn may() -> bool { let may = able(); if !may { skip(\"able\", \"no\"); } may }\n\
        impl Rig { fn new() -> Option<Self> { bed()?; Some(Self) } }\n";

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let source = Source {
            path: PathBuf::from(path),
            text: text.to_owned(),
        };
        check(&[source]).iter().map(|breach| breach.line).collect()
    }

    fn lines_of_test(body: &str) -> Vec<usize> {
        let text = format!("{HELPERS}#[test]\nfn t() {{\n{body}\n}}\n");
        lines("crates/orb/tests/a.rs", &text)
    }

    #[test]
    fn an_exit_behind_a_skip_or_an_assertion_is_in_order() {
        for body in [
            "let Some(bed) = bed() else { return; };",
            "let Some(rig) = Rig::new() else { return };",
            "if !may() { return; }",
            "if absent() { return skip(\"a\", \"b\"); }",
            "if absent() { deckwatch_testkit::skip(\"a\", \"b\"); return; }",
            "if set.is_ok() { return assert_eq!(a, b); }",
            "if absent() { assert!(b); return; }",
            "alone(|| { if !may() { return; } work(); });",
            "let got = peers.iter().map(|peer| { return peer.name; });",
            "if let Ok(role) = std::env::var(ROLE) { return play(&role); }",
        ] {
            assert!(lines_of_test(body).is_empty(), "{body}");
        }
    }

    #[test]
    fn an_exit_without_a_skip_is_refused() {
        for body in [
            "if absent() { return; }",
            "let Some(bed) = other() else { return; };",
            "if absent() { eprintln!(\"skipped\"); return; }",
            "if bed().is_some() { work(); } if absent() { return; }",
            "alone(|| { if absent() { return; } work(); });",
            "let Ok(role) = std::env::var(ROLE) else { return; };",
            "if std::env::var_os(ROLE).is_some() { return; }",
        ] {
            assert_eq!(lines_of_test(body), [7], "{body}");
        }
    }

    #[test]
    fn a_helper_that_skips_returns_no_none_without_a_skip() {
        let quiet = "fn quiet() -> Option<u8> {\nbed()?;\nif absent() { return None; }\nother()?;\nSome(1)\n}\n";
        let text = format!("{HELPERS}{quiet}");
        assert_eq!(lines("interop/a.rs", &text), [7, 8]);
    }

    #[test]
    fn helpers_of_shared_folders_are_known_to_the_crates() {
        let source = |path: &str, text: String| Source {
            path: PathBuf::from(path),
            text,
        };
        let test = "#[test]\nfn t() {\nif !may() { return; }\n}\n";
        let shared = source("conformance/common/rt.rs", HELPERS.to_owned());
        let user = source("crates/orb/tests/a.rs", test.to_owned());
        assert_eq!(check(&[shared, user]).len(), 0);
    }
}
