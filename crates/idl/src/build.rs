//! The compiler for a `build.rs`.
//!
//! ```no_run
//! // build.rs
//! deckwatch_idl::build::Builder::new()
//!     .include("idl/omg")
//!     .file("idl/omg/CosEventComm.idl")
//!     .file("idl/omg/CosEventChannelAdmin.idl")
//!     .compile();
//! ```
//!
//! Each file becomes one in `OUT_DIR`, of the same name with `.rs` behind it. All files of one builder are meant for one
//! Rust module, where they refer to each other:
//!
//! ```text
//! mod idl {
//!     include!(concat!(env!("OUT_DIR"), "/CosEventComm.rs"));
//!     include!(concat!(env!("OUT_DIR"), "/CosEventChannelAdmin.rs"));
//! }
//! ```

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::generate::{Config, generate};
use crate::model::Model;
use crate::text::diagnostic::Diagnostics;
use crate::text::preprocess::Options;

/// What to compile, and how.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Builder {
    files: Vec<PathBuf>,
    options: Options,
    config: Config,
    out_dir: Option<PathBuf>,
}

impl Builder {
    /// Nothing to compile yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder in which `#include`d files are looked for.
    pub fn include(mut self, folder: impl Into<PathBuf>) -> Self {
        self.options.include_paths.push(folder.into());
        self
    }

    /// Defines a name as `#define NAME VALUE` would.
    pub fn define(mut self, name: &str, value: &str) -> Self {
        self.options.defines.push((name.into(), value.into()));
        self
    }

    /// Adds a file to compile.
    pub fn file(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.push(file.into());
        self
    }

    /// Says where the Rust of an IDL module is that comes from an included file which is not among the builder's own:
    /// `.extern_module("CosNaming", "::deckwatch_orb::cos_naming")`.
    pub fn extern_module(mut self, idl_module: &str, rust_path: &str) -> Self {
        self.config
            .extern_modules
            .push((idl_module.into(), rust_path.into()));
        self
    }

    /// What generated code calls the crate `deckwatch-cdr`; `::deckwatch_cdr` unless said otherwise.
    pub fn cdr_path(mut self, path: &str) -> Self {
        self.config.cdr_path = path.into();
        self
    }

    /// What generated code calls the crate `deckwatch-orb`; `::deckwatch_orb` unless said otherwise, `crate` inside it.
    pub fn orb_path(mut self, path: &str) -> Self {
        self.config.orb_path = path.into();
        self
    }

    /// What generated pollers call the crate `deckwatch-dynamic`; `::deckwatch_dynamic` unless said otherwise.
    pub fn dynamic_path(mut self, path: &str) -> Self {
        self.config.dynamic_path = path.into();
        self
    }

    /// Generates asynchronous calls too: `sendc_` and `sendp_` operations, reply handlers and pollers. The files of an interface's bases
    /// are to be generated with them as well.
    pub fn ami(mut self) -> Self {
        self.config.ami = true;
        self
    }

    /// Where the output goes; `OUT_DIR` unless said otherwise.
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(folder.into());
        self
    }

    /// Compiles all files, and tells cargo which files that depends on. Ends the process with status 1, after the errors
    /// have been printed, where there are any.
    pub fn compile(self) {
        let outcome = self.try_compile().and_then(|compiled| {
            let mut cargo = std::io::stdout().lock();
            for path in compiled.sources {
                writeln!(cargo, "cargo::rerun-if-changed={}", path.display())
                    .map_err(|error| BuildError::Write { path, error })?;
            }
            Ok(())
        });
        if let Err(error) = outcome {
            // With nowhere to say it, the status says it.
            let _ = writeln!(std::io::stderr(), "{error}");
            std::process::exit(1);
        }
    }

    /// Compiles all files.
    ///
    /// # Errors
    /// What is wrong with the files, or that the output cannot be written.
    pub fn try_compile(self) -> Result<Compiled, BuildError> {
        let folder = self
            .out_dir
            .or_else(|| std::env::var_os("OUT_DIR").map(PathBuf::from))
            .ok_or(BuildError::NoOutDir)?;
        let config = Config {
            siblings: self.files.clone(),
            ..self.config
        };
        let mut compiled = Compiled::default();
        for file in &self.files {
            let model = Model::load_with(file, &self.options)?;
            let text = generate(&model, &config)?;
            let output = folder
                .join(file.file_stem().unwrap_or_default())
                .with_extension("rs");
            let write = |path: &Path| std::fs::write(path, text.as_bytes());
            write(&output).map_err(|error| BuildError::Write {
                path: output.clone(),
                error,
            })?;
            compiled.outputs.push(output);
            let sources = model
                .sources()
                .files()
                .iter()
                .map(|source| source.path.clone());
            compiled
                .sources
                .extend(sources.filter(|path| path.is_file()));
        }
        compiled.sources.sort();
        compiled.sources.dedup();
        Ok(compiled)
    }
}

/// What a compilation read and wrote.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    /// One file of Rust for each file compiled, in order.
    pub outputs: Vec<PathBuf>,
    /// The IDL files read, included ones too.
    pub sources: Vec<PathBuf>,
}

/// Why a compilation failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The files are wrong.
    Idl(Diagnostics),
    /// The output cannot be written.
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// There is no `OUT_DIR`: this does not run under cargo, and no other folder was given.
    NoOutDir,
}

impl From<Diagnostics> for BuildError {
    fn from(errors: Diagnostics) -> Self {
        Self::Idl(errors)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idl(errors) => errors.fmt(f),
            Self::Write { path, error } => {
                write!(f, "`{}` cannot be written: {error}", path.display())
            }
            Self::NoOutDir => f.write_str("OUT_DIR is not set, and no other folder was given"),
        }
    }
}

impl std::error::Error for BuildError {}
