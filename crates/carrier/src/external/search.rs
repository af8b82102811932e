//! Finds the adapters of this machine.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::manifest::MANIFEST_FILE;
use super::{Manifest, ManifestError};
use crate::carriers::CARRIERS;
use crate::limits::ADAPTERS_MAX;

/// The variable with further folders of adapters, separated by colons.
pub const FOLDERS_VARIABLE: &str = "DECKWATCH_ADAPTERS";

/// An adapter with a sound manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// Its manifest.
    pub manifest: Manifest,
    /// The folder of the manifest.
    pub folder: PathBuf,
    /// The path of its program, or the reason why it cannot be started, with a remedy.
    pub program: Result<PathBuf, String>,
}

/// A manifest that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The folder of the manifest.
    pub folder: PathBuf,
    /// The reason, with its place.
    pub reason: String,
}

/// The adapters of some folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adapters {
    /// By name. A name is found in the first folder that has its program.
    pub adapters: Vec<Adapter>,
    /// Manifests that cannot be used, by folder.
    pub unusable: Vec<Unusable>,
}

/// Returns the folders of adapters: `named` ones, those of [`FOLDERS_VARIABLE`], and those beside this program.
#[must_use]
pub fn folders(named: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders = named.to_vec();
    if let Some(variable) = std::env::var_os(FOLDERS_VARIABLE) {
        folders
            .extend(std::env::split_paths(&variable).filter(|path| !path.as_os_str().is_empty()));
    }
    if let Ok(program) = std::env::current_exe() {
        folders.extend(beside(&program));
    }
    folders
}

/// Returns the folders beside a program: those of the checkout that built it, or that of an installation.
fn beside(program: &Path) -> Vec<PathBuf> {
    let Some(folder) = program.parent() else {
        return Vec::new();
    };
    let Some(above) = folder.parent() else {
        return Vec::new();
    };
    let mut folders = vec![above.join("lib/deckwatch/adapters")];
    // Cargo puts this file into each folder that it builds in.
    if above.join("CACHEDIR.TAG").exists() {
        folders.push(above.join("adapters"));
        folders.extend(above.parent().map(|checkout| checkout.join("adapters")));
    }
    folders
}

/// Searches folders, in their order, for folders with a manifest.
#[must_use]
pub fn search(folders: &[PathBuf]) -> Adapters {
    let mut found = Adapters::default();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        let mut subfolders: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.join(MANIFEST_FILE).exists())
            .take(ADAPTERS_MAX)
            .collect();
        subfolders.sort_unstable();
        for subfolder in subfolders {
            if found.adapters.len() + found.unusable.len() < ADAPTERS_MAX {
                found.add(&subfolder);
            }
        }
    }
    found
        .adapters
        .sort_by(|a, b| a.manifest.name.cmp(&b.manifest.name));
    found
}

impl Adapters {
    fn add(&mut self, folder: &Path) {
        let adapter = match Adapter::read(folder) {
            Ok(adapter) => adapter,
            Err(reason) => {
                self.unusable.push(Unusable {
                    folder: folder.to_owned(),
                    reason,
                });
                return;
            }
        };
        let same_name = |known: &&mut Adapter| known.manifest.name == adapter.manifest.name;
        match self.adapters.iter_mut().find(same_name) {
            Some(known) if known.program.is_err() && adapter.program.is_ok() => *known = adapter,
            Some(_) => {}
            None => self.adapters.push(adapter),
        }
    }
}

impl Adapter {
    fn read(folder: &Path) -> Result<Self, String> {
        let manifest = Manifest::read(folder).map_err(|error: ManifestError| error.to_string())?;
        let name = &manifest.name;
        if CARRIERS.iter().any(|carrier| carrier.name() == name) {
            let path = folder.join(MANIFEST_FILE);
            return Err(format!(
                "{}: `{name}` is the name of a built-in carrier; choose another",
                path.display()
            ));
        }
        let program = program_of(&manifest, folder);
        Ok(Self {
            manifest,
            folder: folder.to_owned(),
            program,
        })
    }
}

fn program_of(manifest: &Manifest, folder: &Path) -> Result<PathBuf, String> {
    let path = folder.join(&manifest.program);
    let name = &manifest.name;
    match std::fs::metadata(&path) {
        // A part may run in another folder.
        Ok(file) if file.is_file() && file.permissions().mode() & 0o111 != 0 => {
            std::path::absolute(path).map_err(|error| error.to_string())
        }
        Ok(_) => Err(format!(
            "{} is no executable file. Make it one with: chmod +x {}",
            path.display(),
            path.display()
        )),
        Err(_) => Err(format!(
            "it is not built. Build it with: ./dev adapters {name}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn adapter(folder: &Path, name: &str, program_mode: Option<u32>) {
        std::fs::create_dir_all(folder).expect("writable");
        let text = format!(
            "name = \"{name}\"\nsummary = \"s\"\nfamily = \"f\"\nprogram = \"p\"\nprotocol = 1\n"
        );
        std::fs::write(folder.join(MANIFEST_FILE), text).expect("writable");
        if let Some(mode) = program_mode {
            let program = folder.join("p");
            std::fs::write(&program, "").expect("writable");
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&program, permissions).expect("ours");
        }
    }

    #[test]
    fn a_built_adapter_is_found_before_one_that_is_not_built() {
        let scratch = Scratch::new();
        let (source, built) = (scratch.path("source"), scratch.path("built"));
        adapter(&source.join("zmq"), "zmq", None);
        adapter(&source.join("dds"), "dds", None);
        adapter(&built.join("zmq"), "zmq", Some(0o755));
        adapter(&built.join("bad"), "bad", Some(0o644));
        let found = search(&[source.clone(), built.clone(), scratch.path("absent")]);
        let names: Vec<&str> = found
            .adapters
            .iter()
            .map(|adapter| &*adapter.manifest.name)
            .collect();
        assert_eq!(names, ["bad", "dds", "zmq"]);
        let reason = |at: usize| found.adapters[at].program.clone().expect_err("no program");
        assert!(reason(0).contains("chmod +x"), "{}", reason(0));
        assert!(reason(1).contains("./dev adapters dds"), "{}", reason(1));
        assert_eq!(found.adapters[2].program, Ok(built.join("zmq/p")));
        assert_eq!(found.unusable, []);
    }

    #[test]
    fn the_name_of_a_built_in_carrier_and_a_broken_manifest_are_refused() {
        let scratch = Scratch::new();
        let folder = scratch.path("a");
        adapter(&folder.join("udp"), "udp", Some(0o755));
        adapter(&folder.join("x"), "Not a name", Some(0o755));
        let found = search(&[folder]);
        assert_eq!(found.adapters, []);
        let reasons: Vec<&str> = found.unusable.iter().map(|one| &*one.reason).collect();
        assert!(reasons[0].contains("built-in carrier"), "{reasons:?}");
        assert!(reasons[1].contains("line 1"), "{reasons:?}");
    }

    #[test]
    fn a_program_of_a_checkout_finds_the_adapters_of_the_checkout() {
        let scratch = Scratch::new();
        let target = scratch.path("target");
        std::fs::create_dir_all(target.join("debug")).expect("writable");
        let program = target.join("debug/deckwatch");
        let installed = target.join("lib/deckwatch/adapters");
        assert_eq!(beside(&program), std::slice::from_ref(&installed));
        std::fs::write(target.join("CACHEDIR.TAG"), "").expect("writable");
        assert_eq!(
            beside(&program),
            [installed, target.join("adapters"), scratch.path("adapters")]
        );
    }
}
