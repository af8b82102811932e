//! The cases of the library over parts that are processes: for the built-in carriers, and for adapters that can be built
//! here.

use std::ffi::OsString;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_carrier::conformance::{CASES, Launcher};
use deckwatch_carrier::external::FOLDERS_VARIABLE;
use deckwatch_carrier::part;
use deckwatch_testkit::skip;

/// Set for a process of this test program that plays a part.
const PART_VARIABLE: &str = "DECKWATCH_TEST_PART";

/// Plays the part whose plan is on standard input. It is no test: [`launcher`] starts it.
#[test]
fn plays_a_part() {
    if std::env::var_os(PART_VARIABLE).is_some() {
        let mut input = BufReader::new(std::io::stdin());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut input, &mut line).expect("a line");
        let plan = serde_json::from_str(&line).expect("a plan");
        // The part has written its error.
        let _ = part::run(&plan, input, std::io::stdout());
    }
}

/// Starts parts by [`plays_a_part`], which find adapters in a folder.
fn launcher(adapters: &Path) -> Launcher {
    let words = ["parts::plays_a_part", "--exact", "--nocapture", "--quiet"];
    Launcher {
        program: std::env::current_exe().expect("known"),
        arguments: words.map(OsString::from).to_vec(),
        environment: vec![
            (PART_VARIABLE.into(), "1".into()),
            (FOLDERS_VARIABLE.into(), adapters.into()),
        ],
    }
}

fn assert_kept(launcher: &Launcher, carrier: CarrierRef) {
    let broken: Vec<String> = CASES
        .iter()
        .filter_map(|case| {
            let fact = case.check(launcher, carrier).err()?;
            Some(format!("{carrier}: {}: {fact}", case.promise))
        })
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn built_in_carriers_keep_the_contract() {
    let launcher = &launcher(Path::new("/nonexistent"));
    std::thread::scope(|scope| {
        for carrier in CarrierRef::all() {
            scope.spawn(move || assert_kept(launcher, carrier));
        }
    });
}

/// Builds an adapter of this checkout into a folder. Returns false, with a counted skip, if its packages are missing.
fn build(name: &str, probe: Option<&str>, folder: &Path) -> bool {
    if let Some(package) = probe {
        let probed = Command::new("pkg-config")
            .arg("--exists")
            .arg(package)
            .status();
        if !probed.is_ok_and(|status| status.success()) {
            skip(
                name,
                "its packages are not installed (./dev adapters --install)",
            );
            return false;
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = Command::new("make")
        .args(["-s", "-C", &format!("adapters/{name}")])
        .current_dir(root)
        .env("DECKWATCH_ADAPTER_OUT", folder.join(name))
        .output();
    match built {
        Ok(built) => {
            let errors = String::from_utf8_lossy(&built.stderr);
            assert!(built.status.success(), "{name}: {errors}");
            true
        }
        Err(error) => {
            skip(name, &format!("make cannot be run: {error}"));
            false
        }
    }
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[test]
fn adapters_keep_the_contract() {
    let name = format!("deckwatch-adapters-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    let wanted = [
        ("template", None),
        ("zeromq", Some("libzmq")),
        ("cyclonedds", Some("CycloneDDS")),
    ];
    let built = wanted.map(|(name, probe)| build(name, probe, &folder.0));
    let found = deckwatch_carrier::external::search(std::slice::from_ref(&folder.0));
    assert_eq!(found.adapters.len(), built.iter().filter(|is| **is).count());
    if !found.adapters.is_empty() {
        deckwatch_testkit::did_a_part();
    }
    let launcher = &launcher(&folder.0);
    std::thread::scope(|scope| {
        for adapter in found.adapters {
            let program = adapter.program.expect("just built");
            let external = deckwatch_carrier::external::External::leak(adapter.manifest, program);
            scope.spawn(move || assert_kept(launcher, CarrierRef::new(external)));
        }
    });
}
