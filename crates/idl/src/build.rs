//! Runs the IDL compiler from a `build.rs`.
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
//! Each IDL file becomes a file in `OUT_DIR` with the same name and the extension `.rs`. Include all files of one
//! builder in one Rust module: they refer to each other there. An IDL module that several of them open is one Rust
//! module, in the code of the first file that opens it.
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

use crate::generate::{Config, generate_together};
use crate::model::Model;
use crate::text::diagnostic::Diagnostics;
use crate::text::preprocess::Options;

/// The files to compile, and the options.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Builder {
    files: Vec<PathBuf>,
    options: Options,
    config: Config,
    out_dir: Option<PathBuf>,
}

impl Builder {
    /// Creates a builder without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder in which `#include`d files are searched.
    pub fn include(mut self, folder: impl Into<PathBuf>) -> Self {
        self.options.include_paths.push(folder.into());
        self
    }

    /// Defines a macro name, as `#define NAME VALUE` does.
    pub fn define(mut self, name: &str, value: &str) -> Self {
        self.options.defines.push((name.into(), value.into()));
        self
    }

    /// Adds a file to compile.
    pub fn file(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.push(file.into());
        self
    }

    /// Sets the Rust path of an IDL module that is defined in an included file, if the builder does not compile that
    /// file: `.extern_module("CosNaming", "::deckwatch_orb::cos_naming")`.
    pub fn extern_module(mut self, idl_module: &str, rust_path: &str) -> Self {
        self.config
            .extern_modules
            .push((idl_module.into(), rust_path.into()));
        self
    }

    /// Sets the path of the crate `deckwatch-cdr` in generated code. The default is `::deckwatch_cdr`.
    pub fn cdr_path(mut self, path: &str) -> Self {
        self.config.cdr_path = path.into();
        self
    }

    /// Sets the path of the crate `deckwatch-orb` in generated code. The default is `::deckwatch_orb`; inside that
    /// crate, set `crate`.
    pub fn orb_path(mut self, path: &str) -> Self {
        self.config.orb_path = path.into();
        self
    }

    /// Sets the path of the crate `deckwatch-dynamic` in generated pollers. The default is `::deckwatch_dynamic`.
    pub fn dynamic_path(mut self, path: &str) -> Self {
        self.config.dynamic_path = path.into();
        self
    }

    /// Also generates asynchronous calls: `sendc_` and `sendp_` operations, reply handlers and pollers. The files that
    /// define an interface's bases must be generated with this option too.
    pub fn ami(mut self) -> Self {
        self.config.ami = true;
        self
    }

    /// Sets the output folder. The default is `OUT_DIR`.
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(folder.into());
        self
    }

    /// Compiles all files, and prints for cargo the files that the result depends on. On errors, prints them and ends
    /// the process with status 1.
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
            // A failed write to stderr cannot be reported; the exit status still reports the error.
            let _ = writeln!(std::io::stderr(), "{error}");
            std::process::exit(1);
        }
    }

    /// Compiles all files.
    ///
    /// # Errors
    /// Returns the errors found in the files, or the reason why the output cannot be written.
    pub fn try_compile(self) -> Result<Compiled, BuildError> {
        let folder = self
            .out_dir
            .or_else(|| std::env::var_os("OUT_DIR").map(PathBuf::from))
            .ok_or(BuildError::NoOutDir)?;
        let models = self
            .files
            .iter()
            .map(|file| Model::load_with(file, &self.options));
        let models: Vec<Model> = models.collect::<Result<_, _>>()?;
        let mut compiled = Compiled::default();
        let texts = generate_together(&models, &self.config);
        for ((file, model), text) in self.files.iter().zip(&models).zip(texts) {
            let text = text?;
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

/// The files that a compilation read and wrote.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    /// One Rust file for each compiled file, in the order of the files.
    pub outputs: Vec<PathBuf>,
    /// The IDL files read, with the included ones.
    pub sources: Vec<PathBuf>,
}

/// Why a compilation failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The IDL files have errors.
    Idl(Diagnostics),
    /// The output cannot be written.
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// `OUT_DIR` is not set: the process does not run under cargo, and the builder has no output folder.
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
