//! Compares the compiler with omniidl, an independent IDL compiler, on the IDL files installed with omniORB and our
//! own. Files that omniidl accepts must be accepted with the same repository ids; files that it refuses must be
//! refused. The test is skipped and counted if omniidl is not installed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use deckwatch_idl::{Model, Options};

/// The folder of the IDL files of Debian's package `omniorb-idl`.
pub(crate) const FOLDER: &str = "/usr/share/idl/omniORB";

/// The files of the package that every compiler refuses in their installed form, and the reason.
const REFUSED: &[(&str, &str)] = &[
    (
        "CosTSPortability.idl",
        "uses CORBA::Environment, which no IDL file defines",
    ),
    (
        "DCE_CIOPSecurity.idl",
        "includes IOP.idl, which is not in the package",
    ),
    ("NRService.idl", "includes Security.idl"),
    (
        "SECIOP.idl",
        "includes IOP.idl, which is not in the package, and Security.idl",
    ),
    (
        "SSLIOP.idl",
        "includes IOP.idl, which is not in the package, and Security.idl",
    ),
    (
        "Security.idl",
        "uses CORBA::ServiceOption, which no IDL file defines",
    ),
    ("SecurityAdmin.idl", "includes Security.idl"),
    ("SecurityLevel1.idl", "includes Security.idl"),
    ("SecurityLevel2.idl", "includes Security.idl"),
    ("SecurityReplaceable.idl", "includes Security.idl"),
];

/// Returns the reason why every compiler refuses a file, if there is one.
pub(crate) fn refused(file: &Path) -> Option<&'static str> {
    let name = file.file_name()?.to_str()?;
    REFUSED
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, why)| *why)
}

fn own(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../idl")
        .join(folder)
}

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "idl"));
    files.sort();
    files
}

/// Returns every name with its repository id, according to omniidl; `None` if omniidl refuses the file.
fn by_omniidl(file: &Path, includes: &[PathBuf]) -> Option<BTreeMap<String, String>> {
    let back_end = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle");
    let output = Command::new("omniidl")
        .arg(format!("-p{}", back_end.display()))
        .arg("-brepository_ids")
        .args(
            includes
                .iter()
                .map(|folder| format!("-I{}", folder.display())),
        )
        .arg(file)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .ok()?;
    // For one file omniidl crashes at exit, after it has printed everything. For a refused file it prints nothing.
    let text = String::from_utf8(output.stdout)
        .ok()
        .filter(|text| !text.is_empty())?;
    let mut ids = BTreeMap::new();
    for (name, id) in text.lines().filter_map(|line| line.split_once(' ')) {
        // omniidl treats a reopened module as another one, which a `#pragma version` in the first does not affect. The
        // first id counts.
        ids.entry(name.to_owned()).or_insert_with(|| id.to_owned());
    }
    Some(ids)
}

fn by_us(file: &Path, includes: &[PathBuf]) -> Result<BTreeMap<String, String>, String> {
    let defines = vec![("__OMNIIDL__".to_owned(), "1".to_owned())];
    let options = Options {
        include_paths: includes.to_vec(),
        defines,
    };
    let model = Model::load_with(file, &options).map_err(|errors| errors.to_string())?;
    Ok(model
        .definitions()
        .map(|(_, d)| (d.scoped_name.clone(), d.repository_id.clone()))
        .collect())
}

#[test]
fn what_omniidl_accepts_is_accepted_with_the_same_repository_ids_and_the_rest_is_not() {
    let omniidl = Command::new("omniidl")
        .arg("-V")
        .output()
        .is_ok_and(|output| output.status.success());
    if !omniidl || !Path::new(FOLDER).is_dir() {
        let why = "it, or Debian's package omniorb-idl, is not installed";
        return deckwatch_testkit::skip("omniidl", why);
    }
    let services = Path::new(FOLDER).join("COS");
    // Our own folder comes first: omniORB's examples have an echo.idl too.
    let includes = [
        own("deckwatch"),
        PathBuf::from(FOLDER),
        services.clone(),
        own("omg"),
    ];
    let mut all = files(Path::new(FOLDER));
    all.extend(files(&services));
    let theirs = all.len();
    all.extend(files(&own("omg")));
    all.extend(files(&own("deckwatch")));
    assert!(
        all.len() > theirs,
        "our own files are not where they should be"
    );
    let mut accepted = 0;
    // Two files at a time: each runs in its own omniidl process.
    for pair in all.chunks(2) {
        let expected: Vec<_> = std::thread::scope(|scope| {
            let runs: Vec<_> = pair
                .iter()
                .map(|file| scope.spawn(|| by_omniidl(file, &includes)))
                .collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        for (file, expected) in pair.iter().zip(expected) {
            let why = refused(file);
            assert_eq!(
                why.is_some(),
                expected.is_none(),
                "{}: {why:?}",
                file.display()
            );
            let Some(mut expected) = expected else {
                let name = file.display();
                assert!(
                    by_us(file, &includes).is_err(),
                    "{name} is refused by omniidl"
                );
                eprintln!(
                    "omniidl: {name} is refused by both: it {}",
                    why.unwrap_or("")
                );
                continue;
            };
            accepted += 1;
            let mut found = by_us(file, &includes).unwrap_or_else(|errors| panic!("{errors}"));
            // Not compared: CORBA names that omniidl alone or this compiler alone predefines.
            expected.retain(|name, _| found.contains_key(name) || !name.starts_with("CORBA"));
            found.retain(|name, _| expected.contains_key(name) || !name.starts_with("CORBA"));
            let differing = || {
                expected
                    .iter()
                    .filter(|(name, id)| found.get(*name) != Some(id))
                    .collect::<Vec<_>>()
            };
            assert!(
                found == expected,
                "{}: {:?} are ours otherwise",
                file.display(),
                differing()
            );
        }
    }
    assert_eq!(accepted + REFUSED.len(), all.len());
    eprintln!(
        "omniidl: {accepted} of {} files accepted, with equal repository ids",
        all.len()
    );
}
