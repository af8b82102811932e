//! The interfaces of a typed channel, from IDL files.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use deckwatch_event::{TypedInterface, TypedInterfaceError, limits};
use deckwatch_idl::{Model, Options};

/// Loads the IDL files and finds the interfaces in them. Returns the exit status after errors in the files, which are
/// printed.
pub(super) fn interfaces(
    files: &[PathBuf],
    include: &[PathBuf],
    names: &[String],
) -> anyhow::Result<Result<Vec<TypedInterface>, ExitCode>> {
    if names.len() > limits::INTERFACES_MAX {
        bail!(
            "a typed channel has at most {} interfaces",
            limits::INTERFACES_MAX
        );
    }
    let options = Options {
        include_paths: include.to_vec(),
        ..Options::default()
    };
    let mut models = Vec::new();
    for file in files {
        match Model::load_with(file, &options) {
            Ok(model) => models.push(model),
            Err(errors) => return Ok(Err(crate::idl::refused(&errors))),
        }
    }
    let found: Result<Vec<_>, TypedInterfaceError> =
        names.iter().map(|name| find(&models, name)).collect();
    Ok(Ok(found?))
}

/// The interface of the first file that has it.
fn find(models: &[Model], name: &str) -> Result<TypedInterface, TypedInterfaceError> {
    let unknown = || TypedInterfaceError::Unknown(name.to_owned());
    let mut found = models
        .iter()
        .map(|model| TypedInterface::of(model, name))
        .filter(|found| !matches!(found, Err(TypedInterfaceError::Unknown(_))));
    found.next().unwrap_or_else(|| Err(unknown()))
}
