//! The paths of generated items, as other generated code refers to them.

use std::fmt;

use proc_macro2::TokenStream;

use super::names::is_keyword;
use super::{Config, Generator, Refused};
use crate::model::DefId;
use crate::text::diagnostic::Diagnostic;
use crate::text::source::Span;

/// The paths that generated code uses for frequent crates and types.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(crate) cdr: KnownPath,
    pub(crate) orb: KnownPath,
    pub(crate) dynamic: KnownPath,
    pub(crate) arc: KnownPath,
    pub(crate) cow: KnownPath,
    pub(crate) write: KnownPath,
    pub(crate) parse: KnownPath,
    pub(crate) reply: KnownPath,
    pub(crate) served: KnownPath,
    pub(crate) request: KnownPath,
    /// Whether these are the names that each module has in `use` items.
    pub(super) are_short: bool,
}

impl Paths {
    /// Returns the paths outside of all modules.
    pub(super) fn outside(config: &Config) -> Self {
        let of = |path: &str, item: &str| KnownPath::new(format!("{path}::{item}"));
        let (cdr, orb) = (&config.cdr_path, &config.orb_path);
        Self {
            cdr: KnownPath::new(cdr.clone()),
            orb: KnownPath::new(orb.clone()),
            dynamic: KnownPath::new(config.dynamic_path.clone()),
            arc: KnownPath::new("::std::sync::Arc".into()),
            cow: KnownPath::new("::std::borrow::Cow".into()),
            write: of(cdr, "generated::write"),
            parse: of(cdr, "generated::parse"),
            reply: of(orb, "AsynchronousReply"),
            served: of(orb, "generated::Served"),
            request: of(orb, "ServerRequest"),
            are_short: false,
        }
    }

    /// Returns the names that each module has in `use` items.
    pub(super) fn inside() -> Self {
        let of = |name: &str| KnownPath::new(name.to_owned());
        Self {
            cdr: of("_cdr"),
            orb: of("_orb"),
            dynamic: of("_dynamic"),
            arc: of("_Arc"),
            cow: of("_Cow"),
            write: of("_write"),
            parse: of("_parse"),
            reply: of("_Reply"),
            served: of("_Served"),
            request: of("_Request"),
            are_short: true,
        }
    }
}

/// A path, and its tokens: they are parsed once for all definitions.
#[derive(Clone, Debug)]
pub(crate) struct KnownPath {
    text: String,
    tokens: TokenStream,
}

impl KnownPath {
    /// Knows a path. What is no path in the configuration is refused before anything is generated.
    fn new(text: String) -> Self {
        Self {
            tokens: text.parse().unwrap_or_default(),
            text,
        }
    }

    pub(super) fn tokens(&self) -> TokenStream {
        self.tokens.clone()
    }
}

impl fmt::Display for KnownPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Generator<'_> {
    /// Whether generated code has a path to the definition: it is generated from this file or a sibling, or an extern
    /// module contains it.
    pub(crate) fn is_reachable(&self, id: DefId) -> bool {
        self.is_generated(id) || self.is_beside(id) || self.extern_module(id).is_some()
    }

    /// Whether a sibling file's code, in the same Rust module, contains the definition.
    fn is_beside(&self, id: DefId) -> bool {
        self.siblings
            .contains(&self.model.definition(id).whole.file)
    }

    /// Returns the extern module that contains a definition: the number of IDL scopes that it covers, and its Rust
    /// path.
    fn extern_module(&self, id: DefId) -> Option<(usize, &str)> {
        let scoped_name = &self.model.definition(id).scoped_name;
        let covers = |module: &str| {
            scoped_name
                .strip_prefix(module)
                .is_some_and(|rest| rest.starts_with("::"))
        };
        let known = self
            .extern_modules
            .iter()
            .filter(|(module, _)| covers(module));
        let (module, path) = known.max_by_key(|(module, _)| module.len())?;
        Some((module.split("::").count(), path))
    }

    /// Returns the path of a definition, or of a name generated beside it, as seen from the modules `at`.
    pub(crate) fn path(
        &mut self,
        id: DefId,
        name: String,
        at: &[String],
        span: Span,
    ) -> Result<String, Refused> {
        let modules = self.names.modules(id);
        let external = if self.is_generated(id) {
            None
        } else {
            self.extern_module(id)
        };
        if external.is_some() || self.is_generated(id) || self.is_beside(id) {
            let (mut path, covered) = match external {
                Some((covered, path)) => (path.to_owned(), covered),
                None => {
                    let both = modules.iter().zip(at);
                    let common = both.take_while(|(one, other)| one == other).count();
                    (["super"].repeat(at.len() - common).join("::"), common)
                }
            };
            for part in modules[covered..].iter().chain([&name]) {
                if !path.is_empty() {
                    path.push_str("::");
                }
                if is_keyword(part) {
                    path.push_str("r#");
                }
                path.push_str(part);
            }
            return Ok(path);
        }
        let definition = self.model.definition(id);
        let module = definition
            .scoped_name
            .split("::")
            .next()
            .unwrap_or_default();
        let text = format!(
            "`{}` is from an included file, and it is not known where its Rust is",
            definition.scoped_name
        );
        let help = format!(
            "give its file to the same builder, or tell it: `.extern_module(\"{module}\", \"path::of::its::module\")`"
        );
        self.reporter.report(
            Diagnostic::new(span, text)
                .note(definition.span, "it is defined here")
                .help(help),
        );
        Err(Refused)
    }
}
