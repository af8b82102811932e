//! Carriers in other languages as a user sees them: listed, left out with a reason, and refused where they are named.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use deckwatch_meter::experiment::ExperimentDocument;
use deckwatch_meter::result::ResultDocument;

struct Folder(PathBuf);

impl Folder {
    /// Makes a folder with three adapters: one whose program fails, one that is not built, one with a broken manifest.
    fn new(test: &str) -> Self {
        let name = format!("deckwatch-carriers-{test}-{}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        for (name, protocol) in [("failing", "1"), ("unbuilt", "1"), ("broken", "\"one\"")] {
            let adapter = folder.0.join(name);
            std::fs::create_dir_all(&adapter).expect("a new folder");
            let manifest = format!(
                "name = \"{name}\"\nsummary = \"a test\"\nfamily = \"none\"\nprogram = \"p\"\nprotocol = {protocol}\n"
            );
            std::fs::write(adapter.join("carrier.toml"), manifest).expect("writable");
        }
        let program = folder.0.join("failing/p");
        std::fs::write(&program, "#!/bin/sh\necho the bus is gone >&2\nexit 3\n")
            .expect("writable");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("ours");
        folder
    }

    fn deckwatch(&self, arguments: &[&str]) -> Output {
        // Where it is, it finds no adapters of this checkout.
        let program = self.0.join("deckwatch");
        if !program.exists() {
            std::fs::copy(env!("CARGO_BIN_EXE_deckwatch"), &program).expect("copied");
        }
        Command::new(program)
            .args(arguments)
            .env("DECKWATCH_ADAPTERS", &self.0)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .output()
            .expect("the program starts")
    }

    fn run(&self, carriers: &str) -> Output {
        let mission = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/small.toml");
        let mission = mission.display().to_string();
        let result = self.0.join("result").display().to_string();
        let words = ["run", &mission, "--output", &result, "--no-emulation"];
        self.deckwatch(&[&words[..], &["--carriers", carriers]].concat())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

#[test]
fn carriers_are_listed_with_what_makes_them_usable() {
    let folder = Folder::new("list");
    let output = folder.deckwatch(&["carriers", "--json"]);
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let carriers = listed["carriers"].as_array().expect("a list");
    let of_name = |name: &str| carriers.iter().find(|one| one["name"] == name);
    let usable = |name: &str| of_name(name).map(|one| one["usable"] == true);
    assert_eq!(usable("udp"), Some(true));
    assert_eq!(usable("failing"), Some(true));
    assert_eq!(usable("unbuilt"), Some(false));
    let program = of_name("unbuilt").expect("listed")["program"].to_string();
    assert!(program.contains("./dev adapters unbuilt"), "{program}");
    let unusable = listed["unusable"].to_string();
    assert!(unusable.contains("broken/carrier.toml"), "{unusable}");
}

#[test]
fn carriers_that_do_not_start_are_left_out_of_all_with_their_reasons() {
    let folder = Folder::new("all");
    let output = folder.run("all");
    let document = ResultDocument::load(&folder.0.join("result/result.json"))
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let reason = |name: &str| {
        let of_name = |one: &&deckwatch_meter::result::LeftOut| one.carrier.ends_with(name);
        let left_out = document.left_out.iter().find(of_name);
        left_out.unwrap_or_else(|| panic!("{name}")).reason.clone()
    };
    assert!(reason("failing").contains("the bus is gone"));
    assert!(reason("unbuilt").contains("./dev adapters unbuilt"));
    assert!(reason("broken").contains("line 5"), "{}", reason("broken"));
    assert_eq!(document.left_out.len(), 3);
    assert_eq!(document.flows.len(), 6);
    let warned = |warning: &&deckwatch_meter::result::Warning| warning.kind == "carrier-left-out";
    assert_eq!(document.warnings.iter().filter(warned).count(), 3);
}

#[test]
fn a_carrier_that_is_named_must_start() {
    let folder = Folder::new("named");
    for (carriers, words) in [
        ("udp,failing", "the bus is gone"),
        ("unbuilt", "./dev adapters unbuilt"),
        ("absent", "`absent` is not a carrier"),
        ("absent", "build an adapter first"),
    ] {
        let output = folder.run(carriers);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{carriers}: {said}");
    }
}

#[test]
fn the_book_prints_the_whole_template_of_a_carrier_in_c() {
    let chapter = include_str!("../../../docs/book/writing-a-carrier.md");
    let template = include_str!("../../../adapters/template/template.c");
    let printed = format!("```c\n{template}```\n");
    assert!(
        chapter.ends_with(&printed),
        "print adapters/template/template.c at the end of docs/book/writing-a-carrier.md"
    );
}

/// The adapter of the C template moves messages over UDP; another one does not start, and a third is not built.
#[test]
fn overhead_compares_adapters_between_parts_and_leaves_out_those_that_fail() {
    let folder = Folder::new("overhead");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = Command::new("make")
        .args(["-s", "-C", "adapters/template"])
        .current_dir(root)
        .env("DECKWATCH_ADAPTER_OUT", folder.0.join("template"))
        .output();
    match built {
        Ok(built) => assert!(built.status.success(), "{}", text(&built.stderr)),
        Err(error) => {
            deckwatch_testkit::skip("template", &format!("make cannot be run: {error}"));
            return;
        }
    }
    let manifest = std::fs::read_to_string(folder.0.join("template/carrier.toml")).expect("built");
    let name = manifest
        .lines()
        .find_map(|line| line.strip_prefix("name = "));
    let name = name.expect("a name").trim_matches('"').to_owned();
    let result = folder.0.join("result");
    let carriers = format!("--carriers=all,{name}");
    let words = [
        "overhead",
        &carriers,
        "--sizes=8,2000",
        "--iterations=2",
        "--messages=60",
    ];
    let output = folder.deckwatch(&[&words[..], &["--output", &result.to_string_lossy()]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document = ExperimentDocument::load(&result.join("result.json")).expect("a document");
    let of = |system: &str| {
        let points = document.measurements.iter();
        points
            .filter(|point| point.system == system)
            .collect::<Vec<_>>()
    };
    for point in of(&name) {
        // No answer comes back: transactions are not measured, and not computed from something else.
        assert!(
            !point
                .values
                .keys()
                .any(|key| key.starts_with("transaction")),
            "{point:?}"
        );
        assert_eq!(point.values["parts_one_way_samples"], 120.0, "{point:?}");
        assert_eq!(point.values["parts_ledger_received"], 120.0, "{point:?}");
        assert!(point.values["parts_one_way_mean_ns"] > 0.0);
        assert!(
            point.runs.contains_key("parts_added_to_tcp_ns"),
            "{point:?}"
        );
        assert!(
            point
                .runs
                .contains_key("parts_throughput_lost_against_udp_share")
        );
    }
    assert_eq!(of(&name).len(), 2, "a point for each size");
    for system in ["udp", "tcp", "corba", "event"] {
        for point in of(system) {
            assert!(point.values["transaction_mean_ns"] > 0.0, "{system}");
            assert!(point.values["parts_one_way_mean_ns"] > 0.0, "{system}");
        }
        assert_eq!(of(system).len(), 2, "{system}");
    }
    let reason = |system: &str| {
        let skip = document.skipped.iter().find(|skip| skip.what == system);
        skip.unwrap_or_else(|| panic!("{system}: {:?}", document.skipped))
            .reason
            .clone()
    };
    assert!(
        reason("failing").contains("the bus is gone"),
        "{}",
        reason("failing")
    );
    assert!(reason("unbuilt").contains("./dev adapters unbuilt"));
    assert!(of("failing").is_empty());
    let printed = text(&output.stdout);
    assert!(
        printed.contains("One-way latency added to TCP between parts"),
        "{printed}"
    );
}
