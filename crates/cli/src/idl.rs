//! `deckwatch idl`: checks IDL files, compiles them to Rust, or lists their definitions.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use deckwatch_idl::generate::{Config, generate_together};
use deckwatch_idl::model::DefinitionKind;
use deckwatch_idl::{Model, Options};

use crate::exit;
use crate::output::{err, out, outln, write_whole};

/// Compile IDL files to Rust, check them, or list what they define
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch idl idl/deckwatch/nav.idl                    print the Rust made of it
  deckwatch idl idl/deckwatch/nav.idl -o src/nav.rs      write it to a file
  deckwatch idl idl/omg/*.idl -o src/generated           write each file's into a folder, for one Rust module
  deckwatch idl --check idl/omg/*.idl                    say what is wrong with them, and make nothing
  deckwatch idl idl/omg/CosNaming.idl --list             every name, its repository id and its size
  deckwatch idl idl/omg/CosEventChannelAdmin.idl --extern CosEventComm=crate::cos_event_comm

What an included file defines is referred to, not made again: give that file too, or say by --extern where its Rust is.
Local and abstract interfaces become traits alone, valuetypes a struct and traits; native types are refused with their place.
An error is told with file, line and column, and ends with exit status 2.")]
pub(crate) struct Args {
    /// The IDL files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Look for included files in this folder too
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// Define a name, as `#define NAME VALUE` would
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// Say where the Rust of an included IDL module is
    #[arg(long = "extern", value_name = "MODULE=PATH")]
    external: Vec<String>,
    /// Generate asynchronous calls too: `sendc_` and `sendp_` operations, reply handlers and pollers
    #[arg(long, conflicts_with_all = ["list", "check"])]
    ami: bool,
    /// Write to this file, or into this folder, instead of the output
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["list", "check"])]
    output: Option<PathBuf>,
    /// Check the files alone
    #[arg(long, conflicts_with = "list")]
    check: bool,
    /// List every name with its kind, its repository id and, where it is fixed, its size in octets
    #[arg(long)]
    list: bool,
    /// List as one JSON array
    #[arg(long, requires = "list")]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let options = Options {
        include_paths: args.include.clone(),
        defines: args.define.iter().map(|text| pair(text)).collect(),
    };
    let config = config(&args)?;
    let into_folder = args.output.as_ref().is_some_and(|path| path.is_dir());
    let prints = !args.check && !args.list && !into_folder;
    if prints && args.files.len() > 1 {
        bail!("several files go into a folder: give one that exists with `--output`");
    }
    let mut status = ExitCode::SUCCESS;
    let (mut files, mut models) = (Vec::new(), Vec::new());
    for file in &args.files {
        match Model::load_with(file, &options) {
            Ok(model) => {
                files.push(file);
                models.push(model);
            }
            Err(errors) => status = refused(&errors),
        }
    }
    let listed_models = models.iter().filter(|_| args.list);
    let rows: Vec<Row> = listed_models.flat_map(listed).collect();
    if !args.list && !args.check {
        for (file, made) in files.into_iter().zip(generate_together(&models, &config)) {
            match made {
                Ok(text) => write(&args, file, &text)?,
                Err(errors) => status = refused(&errors),
            }
        }
    }
    if args.json {
        outln!("{}", serde_json::to_string_pretty(&rows)?)?;
    } else {
        rows.iter().try_for_each(Row::print)?;
    }
    Ok(status)
}

fn config(args: &Args) -> anyhow::Result<Config> {
    let mut config = Config {
        ami: args.ami,
        ..Config::default()
    };
    for text in &args.external {
        let (module, path) = text
            .split_once('=')
            .context("`--extern` takes MODULE=PATH")?;
        config
            .extern_modules
            .push((module.to_owned(), path.to_owned()));
    }
    Ok(config)
}

fn write(args: &Args, file: &Path, text: &str) -> anyhow::Result<()> {
    let path = match &args.output {
        None => {
            out!("{text}")?;
            return Ok(());
        }
        Some(folder) if folder.is_dir() => {
            let name = file.file_stem().context("a file has a name")?;
            folder.join(name).with_extension("rs")
        }
        Some(path) => path.clone(),
    };
    write_whole(&path, text)
}

/// Parses `NAME=VALUE`. The value of a plain `NAME` is 1, as with a C preprocessor.
pub(crate) fn pair(text: &str) -> (String, String) {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    (name.to_owned(), value.to_owned())
}

/// Prints the faults of the IDL files. Returns the exit status.
pub(crate) fn refused(errors: &deckwatch_idl::Diagnostics) -> ExitCode {
    err!("{errors}");
    exit::BAD_INPUT.into()
}

/// A definition in the list, which is printed as text or as JSON.
#[derive(serde::Serialize)]
struct Row {
    kind: &'static str,
    name: String,
    repository_id: String,
    /// Marshalled size in octets, if all values have the same size.
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
}

impl Row {
    fn print(&self) -> anyhow::Result<()> {
        let size = match self.size_bytes {
            Some(size) => format!("  {size} octets"),
            None => String::new(),
        };
        outln!(
            "{:9} {}  {}{size}",
            self.kind,
            self.name,
            self.repository_id
        )
    }
}

fn listed(model: &Model) -> impl Iterator<Item = Row> {
    model.definitions().map(|(_, definition)| Row {
        kind: kind(&definition.kind),
        name: definition.scoped_name.clone(),
        repository_id: definition.repository_id.clone(),
        size_bytes: model.marshalled_size(&definition.scoped_name),
    })
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
        DefinitionKind::Value(_) => "valuetype",
    }
}
