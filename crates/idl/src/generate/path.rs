//! The paths of generated items, as other generated code refers to them.

use super::names::ident;
use super::{Generator, Refused};
use crate::model::DefId;
use crate::text::diagnostic::Diagnostic;
use crate::text::source::Span;

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
        let (ups, covered) = match external {
            Some((covered, path)) => (vec![path.to_owned()], covered),
            None => {
                let common = modules
                    .iter()
                    .zip(at)
                    .take_while(|(one, other)| one == other)
                    .count();
                (vec!["super".to_owned(); at.len() - common], common)
            }
        };
        if external.is_some() || self.is_generated(id) || self.is_beside(id) {
            let downs = modules[covered..]
                .iter()
                .map(|module| ident(module).to_string());
            let parts: Vec<String> = ups
                .into_iter()
                .chain(downs)
                .chain([ident(&name).to_string()])
                .collect();
            return Ok(parts.join("::"));
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
