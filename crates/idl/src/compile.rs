//! Compiles a file to its [`Model`]: preprocess, parse, check.

use std::path::{Path, PathBuf};

use crate::check::check;
use crate::model::Model;
use crate::parse::Parser;
use crate::text::diagnostic::{Diagnostic, Diagnostics, Reporter};
use crate::text::preprocess::{Options, Preprocessor, read};
use crate::text::source::Sources;

impl Model {
    /// Reads and checks a file. Included files are searched in the file's own folder and in `include_paths`.
    ///
    /// # Errors
    /// Returns all errors found in the files, at least one.
    pub fn load(path: impl AsRef<Path>, include_paths: &[PathBuf]) -> Result<Self, Diagnostics> {
        Self::load_with(
            path,
            &Options {
                include_paths: include_paths.to_vec(),
                ..Options::default()
            },
        )
    }

    /// As [`Model::load`], with include paths and predefined macro names in `options`.
    ///
    /// # Errors
    /// Returns all errors found in the files, at least one.
    pub fn load_with(path: impl AsRef<Path>, options: &Options) -> Result<Self, Diagnostics> {
        let path = path.as_ref();
        match read(path) {
            Ok(text) => Self::compile(path.to_owned(), text, options, true),
            Err(message) => Err(Diagnostics {
                errors: vec![Diagnostic::without_place(format!(
                    "`{}`: {message}",
                    path.display()
                ))],
                sources: Sources::default(),
            }),
        }
    }

    /// Checks a text in memory, which may include only `orb.idl`. Errors show `name` as the file name.
    ///
    /// # Errors
    /// Returns all errors found in the text, at least one.
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostics> {
        Self::compile(name.into(), text.into(), &Options::default(), false)
    }

    fn compile(
        path: PathBuf,
        text: std::sync::Arc<str>,
        options: &Options,
        disk: bool,
    ) -> Result<Self, Diagnostics> {
        let mut reporter = Reporter::default();
        let (sources, tokens) = Preprocessor::new(options, disk, &mut reporter).run(path, text);
        let items = Parser::new(&sources, &tokens, &mut reporter).specification();
        drop(tokens);
        let (definitions, roots) = check(&sources, items, &mut reporter);
        reporter.finish(&sources)?;
        Ok(Self::new(definitions, roots, sources))
    }
}
