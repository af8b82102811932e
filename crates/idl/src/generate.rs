//! Generates Rust from a [`Model`], as `spec/mapping.md` describes.

mod asynchronous;
mod bound;
mod data;
mod docs;
mod enumeration;
mod flat;
mod interface;
mod names;
mod output;
mod path;
mod plain;
mod print;
mod reference;
mod skeleton;
mod traits;
mod types;
mod union;
mod valuetype;

use std::collections::HashSet;
use std::path::PathBuf;

use proc_macro2::TokenStream;
use quote::quote;

use crate::limits::GENERATED_SIZE_MAX;
use crate::model::implied::{Handlers, with_handlers};
use crate::model::{DefId, Definition, DefinitionKind, Model};
use crate::text::diagnostic::{Diagnostic, Diagnostics, Reporter};
use crate::text::source::{FileId, Span};
use names::{Names, ident, inside};
use output::{Module, Part, Piece};
use path::{KnownPath, Paths};
use print::Printer;
use traits::Traits;
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
    let (mut files, mut refused) = (Vec::new(), Vec::new());
    for index in 0..models.len() {
        let made = file_of(models, index, &together, config);
        refused.push(made.as_ref().err().cloned());
        files.push(made.unwrap_or_default());
    }
    let texts = output::join(files).into_iter().zip(refused);
    texts
        .map(|(text, refused)| refused.map_or(Ok(text), Err))
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

/// Generates the file of one model: its text, and the pieces of which the text consists.
fn file_of(
    models: &[Model],
    index: usize,
    together: &Together,
    config: &Config,
) -> Result<(String, Vec<Piece>), Diagnostics> {
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
        names: Names::new(model, config.ami),
        paths: Paths::outside(config),
        has_pollers: config.ami,
        zerocopy: format!("{}::zerocopy", config.cdr_path),
        extern_modules: &config.extern_modules,
        siblings: siblings(model, &together.files),
        shadowed: &together.shadowed,
        elsewhere: &together.elsewhere[index],
        is_in_local: false,
        traits: Traits::new(model),
        out: Printer::new(header(model)),
        file: index,
        begin: 0,
        module: Module::default(),
        reporter: &mut reporter,
    };
    if generator.check_paths(config) {
        generator.scope(model.roots(), &[]);
        generator.flush();
    }
    let (text, pieces) = (generator.out.finish(), generator.module.body);
    reporter.finish(model.sources())?;
    Ok((text, pieces))
}

/// Returns the first lines of a model's generated file.
fn header(model: &Model) -> String {
    let main = model
        .sources()
        .file(FileId::MAIN)
        .path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let version = env!("CARGO_PKG_VERSION");
    format!("// Generated by deckwatch-idl {version} from {main}; changes here are lost.\n\n")
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

/// Returns the prelude names that a definition shadows.
fn shadowed(models: &[Model]) -> Vec<&'static str> {
    let definitions = models.iter().flat_map(Model::definitions);
    let shadowing = definitions.filter_map(|(_, definition)| {
        let name = names::camel_case(&definition.name);
        PRELUDE
            .iter()
            .map(|(known, _)| *known)
            .find(|known| *known == name)
    });
    shadowing.collect::<HashSet<_>>().into_iter().collect()
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
    /// What the model's types have in common with each other.
    pub(crate) traits: Traits,
    /// The text of the file.
    pub(crate) out: Printer,
    /// The file's index.
    file: usize,
    /// Where the current piece begins in the text.
    begin: usize,
    /// The current module.
    module: Module,
    pub(crate) reporter: &'a mut Reporter,
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

/// Whether a text is a path of Rust: names with `::` between them.
fn is_path(text: &str) -> bool {
    let names = text.strip_prefix("::").unwrap_or(text).split("::");
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    names
        .map(|name| name.strip_prefix("r#").unwrap_or(name))
        .all(is_name)
}

impl Generator<'_> {
    /// Checks the paths in the configuration, which are the user's text. Returns false if one of them is no path.
    fn check_paths(&mut self, config: &Config) -> bool {
        let mut are_paths = true;
        let externs = config.extern_modules.iter().map(|(_, path)| path);
        for path in [&config.cdr_path, &config.orb_path, &config.dynamic_path]
            .into_iter()
            .chain(externs)
        {
            if !is_path(path) {
                are_paths = false;
                self.reporter.report(Diagnostic::without_place(format!(
                    "`{path}` is not a path of Rust"
                )));
            }
        }
        are_paths
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
    fn scope(&mut self, members: &[DefId], at: &[String]) {
        for &id in members {
            if self.reporter.is_full() {
                return;
            }
            // What is refused has been reported.
            if self.definition(id, at).is_ok() {
                let _reported = self.room(self.model.definition(id).span);
            }
            self.nested(id, at);
        }
    }

    /// Reports an error if the text has become too large.
    pub(crate) fn room(&mut self, span: Span) -> Result<(), Refused> {
        if self.out.len() > GENERATED_SIZE_MAX {
            // Nothing after this is of use.
            self.out = Printer::default();
            let text = format!(
                "the Rust of the definitions up to this one exceeds {GENERATED_SIZE_MAX} octets"
            );
            return Err(self.refuse(span, &text));
        }
        Ok(())
    }

    /// Prints whole items.
    pub(crate) fn put(&mut self, tokens: TokenStream) {
        self.out.put(tokens);
    }

    /// Ends the current piece, and returns its part of the text.
    fn part(&mut self) -> Part {
        let (begin, end) = (self.begin, self.out.len());
        self.begin = end;
        Part {
            file: self.file,
            range: begin..end,
        }
    }

    /// Ends the current piece, which has whole items.
    fn flush(&mut self) {
        let part = self.part();
        if !part.range.is_empty() {
            self.module.body.push(Piece::Text(part));
        }
    }

    /// Generates the Rust module for the definitions inside a definition.
    fn nested(&mut self, id: DefId, at: &[String]) {
        let model = self.model;
        let members = inside(model, id);
        if !members.iter().any(|&member| self.is_generated(member)) {
            return;
        }
        let mut inner = at.to_vec();
        inner.push(self.names.inner(id).to_owned());
        self.flush();
        let definition = model.definition(id);
        let is_module = matches!(definition.kind, DefinitionKind::Module(_));
        let doc = if is_module {
            self.doc("IDL module", definition)
        } else {
            let text = format!(" What IDL defines inside `{}`.", definition.scoped_name);
            quote! { #[doc = #text] }
        };
        let name = self.names.inner(id).to_owned();
        let rust_name = ident(&name);
        self.out.open(quote! { #doc pub mod #rust_name });
        let module = Module {
            name,
            head: self.part(),
            body: Vec::new(),
            indent: at.len() * 4,
        };
        let outer = std::mem::replace(&mut self.module, module);
        let paths = self.enter_module();
        self.scope(members, &inner);
        self.paths = paths;
        self.flush();
        self.out.close_to(at.len());
        // Each file that has the module closes it.
        self.begin = self.out.len();
        let module = std::mem::replace(&mut self.module, outer);
        self.module.body.push(Piece::Module(module));
    }

    /// Sets short crate names for the code of a module. No IDL name equals them: each begins with an underscore.
    /// Writes their `use` items, and returns the paths that are valid outside of the module.
    fn enter_module(&mut self) -> Paths {
        let pollers = self.has_pollers;
        let uses = if self.paths.are_short {
            let pollers = pollers.then(|| quote! { , _dynamic });
            vec![
                quote! { use super::{_Arc, _Cow, _Reply, _Request, _Served, _cdr, _orb, _parse, _write #pollers}; },
            ]
        } else {
            let paths = [&self.paths.cdr, &self.paths.orb, &self.paths.dynamic];
            let [cdr, orb, dynamic] = paths.map(KnownPath::tokens);
            let mut uses = vec![quote! { use #cdr as _cdr; }, quote! { use #orb as _orb; }];
            uses.extend(pollers.then(|| quote! { use #dynamic as _dynamic; }));
            uses.extend([
                quote! { use ::std::{borrow::Cow as _Cow, sync::Arc as _Arc}; },
                quote! { use #cdr::generated::{parse as _parse, write as _write}; },
                quote! { use #orb::{AsynchronousReply as _Reply, ServerRequest as _Request, generated::Served as _Served}; },
            ]);
            uses
        };
        for tokens in uses {
            self.put(tokens);
            let part = self.part();
            self.module.body.push(Piece::Use(part));
        }
        std::mem::replace(&mut self.paths, Paths::inside())
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

    fn definition(&mut self, id: DefId, at: &[String]) -> Result<(), Refused> {
        let model = self.model;
        let definition = model.definition(id);
        if !self.is_generated(id) {
            return Ok(());
        }
        self.check_mapped(definition)?;
        match &definition.kind {
            DefinitionKind::Module(_) | DefinitionKind::Native => Ok(()),
            DefinitionKind::Interface(interface) => self.interface(id, definition, interface, at),
            DefinitionKind::Value(value) => {
                let tokens = self.valuetype(id, definition, value, at)?;
                self.put(tokens);
                Ok(())
            }
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
}
