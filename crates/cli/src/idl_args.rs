//! The arguments that name an IDL file, shared by several commands.

use std::path::PathBuf;
use std::process::ExitCode;

use deckwatch_idl::{Model, Options};

#[derive(clap::Args)]
pub(crate) struct IdlArgs {
    /// The IDL file that has the types and interfaces
    #[arg(long, value_name = "FILE")]
    pub(crate) idl: Option<PathBuf>,
    /// Look for included IDL files in this folder too
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// Define a name in the IDL, as `#define NAME VALUE` would
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    define: Vec<String>,
}

impl IdlArgs {
    /// Returns the model of the file; an empty one without a file. If the file has errors, prints them and returns the
    /// exit status.
    pub(crate) fn model(&self) -> Result<Model, ExitCode> {
        let model = match &self.idl {
            Some(file) => {
                let options = Options {
                    include_paths: self.include.clone(),
                    defines: (self.define.iter())
                        .map(|text| crate::idl::pair(text))
                        .collect(),
                };
                Model::load_with(file, &options)
            }
            None => Model::parse("none", ""),
        };
        model.map_err(|errors| crate::idl::refused(&errors))
    }
}
