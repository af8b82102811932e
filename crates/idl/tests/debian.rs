//! The IDL files of Debian's package `omniorb-idl`, without a defined macro. Each file compiles, and rustc compiles the
//! Rust of all files. Without the package, the tests count a skip.

use std::path::{Path, PathBuf};
use std::process::Command;

use deckwatch_idl::generate::{Config, generate_together};
use deckwatch_idl::{Model, Options};

use crate::omniidl::{FOLDER, files, refused};

/// Returns the folder of the Common Object Services, or counts a skip.
fn services() -> Option<PathBuf> {
    let services = Path::new(FOLDER).join("COS");
    if !services.is_dir() {
        let why = "Debian's package omniorb-idl is not installed";
        deckwatch_testkit::skip("omniidl", why);
        return None;
    }
    Some(services)
}

fn load(file: &Path, services: &Path) -> Result<Model, String> {
    let options = Options {
        include_paths: vec![services.to_owned(), PathBuf::from(FOLDER)],
        ..Options::default()
    };
    Model::load_with(file, &options).map_err(|errors| errors.to_string())
}

/// The file whose Rust is almost as long as that of all others together. It uses no other.
const LONGEST: &str = "CosCollection.idl";

/// Returns the Rust of the longest file without asynchronous calls, and of all others with them: the others are the
/// services and the files of the other folder that they include.
fn generated(services: &Path) -> [String; 2] {
    let accepted = files(services).into_iter();
    let included = ["ir.idl", "corbaidl.idl"].map(|name| Path::new(FOLDER).join(name));
    let all = accepted
        .filter(|file| refused(file).is_none())
        .chain(included);
    let (longest, others): (Vec<_>, Vec<_>) = all.partition(|file| file.ends_with(LONGEST));
    [(longest, false), (others, true)].map(|(files, ami)| {
        let models = files.iter().map(|file| load(file, services).unwrap());
        let models: Vec<Model> = models.collect();
        assert!(!models.is_empty());
        let config = Config {
            ami,
            ..Config::default()
        };
        let texts = generate_together(&models, &config).into_iter();
        texts
            .map(|text| text.unwrap_or_else(|errors| panic!("{errors}")))
            .collect()
    })
}

#[test]
fn every_file_of_the_common_object_services_compiles_but_those_that_no_compiler_accepts() {
    let Some(services) = services() else { return };
    let (mut accepted, mut unexpected) = (0, Vec::new());
    for file in files(&services) {
        match (load(&file, &services), refused(&file)) {
            (Ok(_), None) => accepted += 1,
            (Err(_), Some(_)) => {}
            (Ok(_), Some(why)) => unexpected.push(format!("{}: it {why}", file.display())),
            (Err(errors), None) => unexpected.push(errors),
        }
    }
    assert!(accepted > 40, "{accepted} files");
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
}

/// A crate of the generated code is checked as one outside the workspace would be: nothing of it runs. It stays in the
/// target folder, so that the next run checks again only what has changed.
#[test]
fn generated_code_of_all_these_files_passes_rustc() {
    let Some(services) = services() else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("debian");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let [plain, asynchronous] = generated(&services);
    renew(&folder.join("src/plain.rs"), &plain);
    renew(&folder.join("src/asynchronous.rs"), &asynchronous);
    let lib = "#![deny(warnings)]\nmod asynchronous;\nmod plain;\n";
    renew(&folder.join("src/lib.rs"), lib);
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let needed = ["cdr", "orb", "dynamic"].map(|name| {
        let path = crates.join(name);
        format!("deckwatch-{name} = {{ path = {path:?} }}\n")
    });
    let manifest = format!(
        "[package]\nname = \"debian\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n{}",
        needed.concat()
    );
    renew(&folder.join("Cargo.toml"), &manifest);
    std::fs::copy(crates.join("../Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let checked = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline", "--target-dir"])
        .arg(target)
        .env("CARGO_INCREMENTAL", "0")
        .current_dir(&folder)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{told}");
}

/// Writes a file if its text is another: cargo goes by the time of the last write.
fn renew(file: &Path, text: &str) {
    if std::fs::read(file).is_ok_and(|kept| kept == text.as_bytes()) {
        return;
    }
    std::fs::write(file, text).unwrap();
}
