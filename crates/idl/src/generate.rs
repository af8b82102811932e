//! Generates Rust from a [`Model`], as `spec/mapping.md` describes.

mod asynchronous;
mod bound;
mod data;
mod docs;
mod enumeration;
mod interface;
mod merge;
mod names;
mod plain;
mod reference;
mod skeleton;
mod types;
mod union;
mod valuetype;

use std::collections::HashSet;
use std::path::PathBuf;

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::implied::{Handlers, with_handlers};
use crate::model::{DefId, Definition, DefinitionKind, Model};
use crate::text::diagnostic::{Diagnostic, Diagnostics, Reporter};
use crate::text::source::{FileId, Span};
use names::{Names, ident, inside};
pub(crate) use union::label_number;

/// Paths and options of the generated code.
#[derive(Clone, Debug)]
pub struct Config {
    /// The path of the crate `deckwatch-cdr`.
    pub cdr_path: String,
    /// The path of the crate `deckwatch-orb`.
    pub orb_path: String,
    /// The path of the crate `deckwatch-dynamic`; only pollers use it.
    pub dynamic_path: String,
    /// The Rust paths of IDL modules from included files: `("CosNaming", "::deckwatch_orb::cos_naming")`.
    pub extern_modules: Vec<(String, String)>,
    /// Whether to generate asynchronous calls too: `sendc_`, `sendp_`, reply handlers and pollers.
    pub ami: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cdr_path: "::deckwatch_cdr".into(),
            orb_path: "::deckwatch_orb".into(),
            dynamic_path: "::deckwatch_dynamic".into(),
            extern_modules: Vec::new(),
            ami: false,
        }
    }
}

/// Generates Rust for the definitions in the main file of a model. Definitions of included files are only referred to.
///
/// # Errors
/// Returns the definitions without a mapping, and the references to included definitions whose Rust path `config` does
/// not contain.
pub fn generate(model: &Model, config: &Config) -> Result<String, Diagnostics> {
    let mut texts = generate_together(std::slice::from_ref(model), config);
    // One model has one text.
    texts.pop().unwrap_or_else(|| Ok(String::new()))
}

/// As [`generate`], for files whose generated code is included in one Rust module. They refer to each other's
/// definitions there. A module that several of them open is generated into the text of the first that opens it.
pub fn generate_together(models: &[Model], config: &Config) -> Vec<Result<String, Diagnostics>> {
    let together = Together::new(models);
    let made = (0..models.len()).map(|index| file_of(models, index, &together, config));
    let mut made: Vec<Result<syn::File, Diagnostics>> = made.collect();
    merge::merge(made.iter_mut().filter_map(|file| file.as_mut().ok()));
    let texts = made.into_iter().zip(models);
    texts
        .map(|(file, model)| file.map(|file| text_of(model, &file)))
        .collect()
}

/// What the files of one Rust module have in common.
struct Together {
    /// The main files.
    files: Vec<PathBuf>,
    /// The prelude names that a definition shadows. Generated code writes their full paths.
    shadowed: Vec<&'static str>,
    /// For each file, the interfaces that it declares and another file generates.
    elsewhere: Vec<HashSet<String>>,
}

impl Together {
    fn new(models: &[Model]) -> Self {
        let files = models.iter().filter_map(|model| {
            let main = model.sources().file(FileId::MAIN);
            main.path.canonicalize().ok()
        });
        Self {
            files: files.collect(),
            shadowed: shadowed(models),
            elsewhere: declared_elsewhere(models),
        }
    }
}

/// Returns for each file the interfaces that it declares without a definition, and that another file defines or that
/// an earlier file declares too.
fn declared_elsewhere(models: &[Model]) -> Vec<HashSet<String>> {
    let names = |model: &Model, is_defined: bool| -> HashSet<String> {
        let own = model.definitions().filter(|(_, definition)| {
            definition.whole.file == FileId::MAIN
                && matches!(&definition.kind, DefinitionKind::Interface(interface)
                    if interface.defined == is_defined)
        });
        own.map(|(_, definition)| definition.scoped_name.clone())
            .collect()
    };
    let mut known: HashSet<String> = models.iter().flat_map(|model| names(model, true)).collect();
    let mut elsewhere = Vec::new();
    for model in models {
        let declared = names(model, false);
        elsewhere.push(declared.intersection(&known).cloned().collect());
        known.extend(declared);
    }
    elsewhere
}

/// Generates the file of one model.
fn file_of(
    models: &[Model],
    index: usize,
    together: &Together,
    config: &Config,
) -> Result<syn::File, Diagnostics> {
    let model = &models[index];
    let mut reporter = Reporter::default();
    let (implied, handlers);
    let model = if config.ami {
        (implied, handlers) = with_handlers(model);
        &implied
    } else {
        handlers = Handlers::default();
        model
    };
    let mut generator = Generator {
        model,
        handlers,
        names: Names::new(model),
        paths: Paths {
            cdr: config.cdr_path.clone(),
            orb: config.orb_path.clone(),
            dynamic: config.dynamic_path.clone(),
            arc: "::std::sync::Arc".into(),
            cow: "::std::borrow::Cow".into(),
            write: format!("{}::generated::write", config.cdr_path),
            parse: format!("{}::generated::parse", config.cdr_path),
            reply: format!("{}::AsynchronousReply", config.orb_path),
            served: format!("{}::generated::Served", config.orb_path),
            request: format!("{}::ServerRequest", config.orb_path),
        },
        has_pollers: config.ami,
        zerocopy: format!("{}::zerocopy", config.cdr_path),
        extern_modules: &config.extern_modules,
        siblings: siblings(model, &together.files),
        shadowed: &together.shadowed,
        elsewhere: &together.elsewhere[index],
        is_in_local: false,
        reporter: &mut reporter,
    };
    generator.check_paths(config);
    let tokens = generator.scope(model.roots(), &[]);
    reporter.finish(model.sources())?;
    let broken = |error: syn::Error| Diagnostics {
        errors: vec![Diagnostic::without_place(format!(
            "the generated code does not parse: {error}"
        ))],
        sources: model.sources().clone(),
    };
    let mut file: syn::File = syn::parse2(tokens).map_err(broken)?;
    for item in &mut file.items {
        allow(item);
    }
    Ok(file)
}

/// Returns the text of a model's generated file.
fn text_of(model: &Model, file: &syn::File) -> String {
    let main = model
        .sources()
        .file(FileId::MAIN)
        .path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "// Generated by deckwatch-idl {version} from {main}; changes here are lost.\n\n{}",
        prettyplease::unparse(file)
    )
}

/// Returns the files of the compilation that are siblings.
fn siblings(model: &Model, known: &[PathBuf]) -> Vec<FileId> {
    let files = (0..).map(FileId).zip(model.sources().files());
    files
        .filter(|(_, file)| {
            file.path
                .canonicalize()
                .is_ok_and(|path| known.contains(&path))
        })
        .map(|(id, _)| id)
        .collect()
}

/// Adds the `allow` attributes for lints that generated code may violate.
fn allow(item: &mut syn::Item) {
    let attributes = match item {
        syn::Item::Const(item) => &mut item.attrs,
        syn::Item::Enum(item) => &mut item.attrs,
        syn::Item::Impl(item) => &mut item.attrs,
        syn::Item::Mod(item) => &mut item.attrs,
        syn::Item::Struct(item) => &mut item.attrs,
        syn::Item::Trait(item) => &mut item.attrs,
        syn::Item::Type(item) => &mut item.attrs,
        _ => return,
    };
    attributes.push(syn::parse_quote! {
        #[allow(
            dead_code, unreachable_pub, missing_docs, clippy::too_many_arguments, clippy::type_complexity,
            clippy::upper_case_acronyms, clippy::module_inception, clippy::enum_variant_names,
            clippy::wrong_self_convention, clippy::should_implement_trait, clippy::large_enum_variant,
            clippy::redundant_closure, clippy::redundant_pattern_matching, clippy::approx_constant, clippy::excessive_precision,
            clippy::new_ret_no_self, clippy::missing_errors_doc, unused_imports, elided_lifetimes_in_paths
        )]
    });
}

/// Returns the prelude names that a definition shadows.
fn shadowed(models: &[Model]) -> Vec<&'static str> {
    PRELUDE
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| {
            let mut definitions = models.iter().flat_map(Model::definitions);
            definitions.any(|(_, definition)| names::camel_case(&definition.name) == **name)
        })
        .collect()
}

const PRELUDE: &[(&str, &str)] = &[
    ("Option", "::std::option::Option"),
    ("Result", "::std::result::Result"),
    ("String", "::std::string::String"),
    ("Vec", "::std::vec::Vec"),
    ("Send", "::std::marker::Send"),
    ("Sync", "::std::marker::Sync"),
    ("From", "::std::convert::From"),
    ("Default", "::std::default::Default"),
];

pub(crate) struct Generator<'a> {
    pub(crate) model: &'a Model,
    /// The reply handlers; empty unless asynchronous calls are generated.
    pub(crate) handlers: Handlers,
    pub(crate) names: Names,
    /// The paths of the crates in the module that is being generated.
    pub(crate) paths: Paths,
    has_pollers: bool,
    /// The path of the crate `zerocopy`, valid in every module.
    pub(crate) zerocopy: String,
    extern_modules: &'a [(String, String)],
    siblings: Vec<FileId>,
    shadowed: &'a [&'static str],
    /// The interfaces that another file of the same Rust module generates, and this one only declares.
    elsewhere: &'a HashSet<String>,
    /// Whether the operations of a local interface are being generated. Only these can pass local interfaces.
    pub(crate) is_in_local: bool,
    pub(crate) reporter: &'a mut Reporter,
}

/// The paths that generated code uses for frequent crates and types.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(crate) cdr: String,
    pub(crate) orb: String,
    pub(crate) dynamic: String,
    pub(crate) arc: String,
    pub(crate) cow: String,
    pub(crate) write: String,
    pub(crate) parse: String,
    pub(crate) reply: String,
    pub(crate) served: String,
    pub(crate) request: String,
}

/// The generator refused a definition and reported the reason.
#[derive(Debug)]
pub(crate) struct Refused;

/// Parses a text as Rust tokens.
///
/// # Panics
/// If the text is not made of Rust tokens. The generator writes it, and names in it are identifiers.
pub(crate) fn tokens(text: &str) -> TokenStream {
    text.parse()
        .unwrap_or_else(|error| unreachable!("`{text}` is not Rust: {error}"))
}

impl Generator<'_> {
    /// Checks the paths in the configuration, which are the user's text.
    fn check_paths(&mut self, config: &Config) {
        let externs = config.extern_modules.iter().map(|(_, path)| path);
        for path in [&config.cdr_path, &config.orb_path, &config.dynamic_path]
            .into_iter()
            .chain(externs)
        {
            if syn::parse_str::<syn::Path>(path).is_err() {
                self.reporter.report(Diagnostic::without_place(format!(
                    "`{path}` is not a path of Rust"
                )));
            }
        }
    }

    pub(crate) fn prelude(&self, name: &'static str) -> String {
        if !self.shadowed.contains(&name) {
            return name.into();
        }
        PRELUDE
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(name, |(_, path)| path)
            .into()
    }

    /// Generates the definitions of a scope; `at` is their Rust module path.
    fn scope(&mut self, members: &[DefId], at: &[String]) -> TokenStream {
        let mut out = TokenStream::new();
        for &id in members {
            out.extend(self.definition(id, at).unwrap_or_default());
            out.extend(self.nested(id, at));
        }
        out
    }

    /// Generates the Rust module for the definitions inside a definition.
    fn nested(&mut self, id: DefId, at: &[String]) -> TokenStream {
        let members = inside(self.model, id).to_vec();
        if !members.iter().any(|&member| self.is_generated(member)) {
            return TokenStream::new();
        }
        let mut inner = at.to_vec();
        inner.push(self.names.inner(id).to_owned());
        let (aliases, paths) = self.enter_module();
        let body = self.scope(&members, &inner);
        self.paths = paths;
        let definition = self.model.definition(id);
        let is_module = matches!(definition.kind, DefinitionKind::Module(_));
        let doc = if is_module {
            self.doc("IDL module", definition)
        } else {
            let text = format!(" What IDL defines inside `{}`.", definition.scoped_name);
            quote! { #[doc = #text] }
        };
        let name = ident(self.names.inner(id));
        quote! { #doc pub mod #name { #aliases #body } }
    }

    /// Sets short crate names for the code of a module. No IDL name equals them: each begins with an underscore.
    /// Returns their `use` items, and the paths that are valid outside of the module.
    fn enter_module(&mut self) -> (TokenStream, Paths) {
        let pollers = self.has_pollers;
        let aliases = if self.paths.cdr == "_cdr" {
            let pollers = pollers.then(|| quote! { , _dynamic });
            quote! { use super::{_Arc, _Cow, _Reply, _Request, _Served, _cdr, _orb, _parse, _write #pollers}; }
        } else {
            let paths = [&self.paths.cdr, &self.paths.orb, &self.paths.dynamic];
            let [cdr, orb, dynamic] = paths.map(|path| tokens(path));
            let pollers = pollers.then(|| quote! { use #dynamic as _dynamic; });
            quote! {
                use #cdr as _cdr;
                use #orb as _orb;
                #pollers
                use ::std::{borrow::Cow as _Cow, sync::Arc as _Arc};
                use #cdr::generated::{parse as _parse, write as _write};
                use #orb::{AsynchronousReply as _Reply, ServerRequest as _Request, generated::Served as _Served};
            }
        };
        let inside = Paths {
            cdr: "_cdr".into(),
            orb: "_orb".into(),
            dynamic: "_dynamic".into(),
            arc: "_Arc".into(),
            cow: "_Cow".into(),
            write: "_write".into(),
            parse: "_parse".into(),
            reply: "_Reply".into(),
            served: "_Served".into(),
            request: "_Request".into(),
        };
        (aliases, std::mem::replace(&mut self.paths, inside))
    }

    /// Whether code is generated for a definition: the main file contains it, or for a module a definition inside it.
    fn is_generated(&self, id: DefId) -> bool {
        let definition = self.model.definition(id);
        match &definition.kind {
            DefinitionKind::Module(members) => {
                members.iter().any(|&member| self.is_generated(member))
            }
            _ => {
                definition.whole.file == FileId::MAIN
                    && !self.elsewhere.contains(&definition.scoped_name)
            }
        }
    }

    fn definition(&mut self, id: DefId, at: &[String]) -> Result<TokenStream, Refused> {
        let definition = self.model.definition(id);
        if !self.is_generated(id) {
            return Ok(TokenStream::new());
        }
        self.check_mapped(definition)?;
        match &definition.kind {
            DefinitionKind::Module(_) | DefinitionKind::Native => Ok(TokenStream::new()),
            DefinitionKind::Interface(interface) => self.interface(id, definition, interface, at),
            DefinitionKind::Value(value) => self.valuetype(id, definition, value, at),
            DefinitionKind::Struct(structure) => self.structure(id, definition, structure, at),
            DefinitionKind::Exception(structure) => self.exception(id, definition, structure, at),
            DefinitionKind::Union(union) => self.union(id, definition, union, at),
            DefinitionKind::Enum(enumerators) => self.enumeration(id, definition, enumerators),
            DefinitionKind::Alias(target) => self.alias(id, definition, target, at),
            DefinitionKind::Constant(ty, value) => self.constant(id, definition, ty, value, at),
        }
    }

    /// Returns documentation: the comment from the IDL file, and a heading with the kind of the definition.
    pub(crate) fn doc(&self, kind: &str, definition: &Definition) -> TokenStream {
        let heading = format!(" {kind} `{}`.", definition.scoped_name);
        match docs::comment(self.model.sources(), definition.whole) {
            Some(text) => {
                let lines = text.lines().map(|line| format!(" {line}"));
                quote! { #(#[doc = #lines])* #[doc = ""] #[doc = #heading] }
            }
            None => quote! { #[doc = #heading] },
        }
    }

    /// Returns the documentation of a part: the comment from the IDL file, or the text `otherwise`.
    pub(crate) fn part_doc(&self, otherwise: &str, whole: Span) -> TokenStream {
        let text =
            docs::comment(self.model.sources(), whole).unwrap_or_else(|| otherwise.to_owned());
        let lines = text.lines().map(|line| format!(" {line}"));
        quote! { #(#[doc = #lines])* }
    }

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
