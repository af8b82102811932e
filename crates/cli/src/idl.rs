//! `deckwatch idl`: checks an IDL file, and prints the Rust made of it or what it defines.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use deckwatch_idl::generate::{Config, generate};
use deckwatch_idl::model::DefinitionKind;
use deckwatch_idl::{Model, Options};

use crate::exit;

/// Compile an IDL file to Rust, or list what it defines
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch idl idl/deckwatch/nav.idl                    print the Rust made of it
  deckwatch idl idl/deckwatch/nav.idl -o src/nav.rs      write it to a file
  deckwatch idl idl/omg/CosNaming.idl --list             every name, its repository id and its size
  deckwatch idl CosEventChannelAdmin.idl --extern CosEventComm=crate::cos_event_comm

An error is told with file, line and column, and ends with exit status 2.")]
pub(crate) struct Args {
    /// The IDL file
    file: PathBuf,
    /// Look for included files in this folder too
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// Define a name, as `#define NAME VALUE` would
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// Say where the Rust of an included IDL module is
    #[arg(long = "extern", value_name = "MODULE=PATH")]
    external: Vec<String>,
    /// Write to this file instead of the output
    #[arg(short, long, value_name = "FILE", conflicts_with = "list")]
    output: Option<PathBuf>,
    /// List every name with its kind, its repository id and, where it is fixed, its size in octets
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let options = Options {
        include_paths: args.include,
        defines: args.define.iter().map(|text| pair(text)).collect(),
    };
    let mut config = Config::default();
    for text in &args.external {
        let (module, path) = text
            .split_once('=')
            .context("`--extern` takes MODULE=PATH")?;
        config
            .extern_modules
            .push((module.to_owned(), path.to_owned()));
    }
    let model = match Model::load_with(&args.file, &options) {
        Ok(model) => model,
        Err(errors) => return Ok(refused(&errors)),
    };
    if args.list {
        list(&model);
        return Ok(ExitCode::SUCCESS);
    }
    let text = match generate(&model, &config) {
        Ok(text) => text,
        Err(errors) => return Ok(refused(&errors)),
    };
    match args.output {
        Some(path) => std::fs::write(&path, text)
            .with_context(|| format!("cannot write {}", path.display()))?,
        None => anstream::print!("{text}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// `NAME=VALUE`, or a name defined as 1.
pub(crate) fn pair(text: &str) -> (String, String) {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    (name.to_owned(), value.to_owned())
}

/// Shows what is wrong with the files.
pub(crate) fn refused(errors: &deckwatch_idl::Diagnostics) -> ExitCode {
    anstream::eprint!("{errors}");
    exit::BAD_INPUT.into()
}

fn list(model: &Model) {
    for (_, definition) in model.definitions() {
        let size = match model.marshalled_size(&definition.scoped_name) {
            Some(size) => format!("  {size} octets"),
            None => String::new(),
        };
        let kind = kind(&definition.kind);
        anstream::println!(
            "{kind:9} {}  {}{size}",
            definition.scoped_name,
            definition.repository_id
        );
    }
}

fn kind(kind: &DefinitionKind) -> &'static str {
    match kind {
        DefinitionKind::Module(_) => "module",
        DefinitionKind::Interface(_) => "interface",
        DefinitionKind::Struct(_) => "struct",
        DefinitionKind::Exception(_) => "exception",
        DefinitionKind::Union(_) => "union",
        DefinitionKind::Enum(_) => "enum",
        DefinitionKind::Alias(_) => "typedef",
        DefinitionKind::Constant(..) => "const",
        DefinitionKind::Native => "native",
        DefinitionKind::Value => "valuetype",
    }
}
