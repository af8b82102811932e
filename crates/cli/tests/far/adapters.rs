//! A carrier in another language on far hosts.

use std::path::Path;
use std::process::Command;

use super::hosts::{Machine, TwoMachines, far_folders};
use super::measured::sweep;
use super::{flow, one_run_at_a_time, run, words};
use crate::watched::Folder;

/// Builds the adapter of the C template in a folder of adapters, or counts a skip. Returns its name.
fn template(adapters: &Path) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = Command::new("make")
        .args(["-s", "-C", "adapters/template"])
        .current_dir(root)
        .env("DECKWATCH_ADAPTER_OUT", adapters.join("template"))
        .output();
    match built {
        Ok(built) => assert!(built.status.success(), "{}", words(&built)),
        Err(error) => {
            deckwatch_testkit::skip("template", &format!("make cannot be run: {error}"));
            return None;
        }
    }
    let manifest = std::fs::read_to_string(adapters.join("template/carrier.toml")).expect("built");
    let mut names = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("name = "));
    Some(names.next().expect("a name").trim_matches('"').to_owned())
}

/// The second host has a CLOCK_MONOTONIC six days ahead: the records of the adapter there are converted as others are.
#[test]
fn an_adapter_moves_the_messages_of_a_mission_between_two_far_hosts() {
    let Some(machines) = TwoMachines::make() else {
        return;
    };
    let folder = Folder::new("far-template");
    let adapters = folder.path().join("adapters");
    let Some(name) = template(&adapters) else {
        return;
    };
    let _alone = one_run_at_a_time();
    // As with ssh, a far program finds its own adapters.
    let found = [
        "env".to_owned(),
        format!("DECKWATCH_ADAPTERS={}", adapters.display()),
    ];
    let machine = |name: &str, index: usize, words: &[String]| {
        let reach = [words, &found].concat();
        Machine::new(name, &reach, &machines.address(index)).line()
    };
    let rest = format!("octets = 64\ncarrier = \"{name}\"\ncount = 60\ndeadline = \"100ms\"");
    let mission = format!(
        "name = \"adapter\"\nhosts = [{}, {}]\n{}{}",
        machine("A", 0, &machines.inside(0)),
        machine("B", 1, &machines.inside_ahead(1)),
        flow("there", "A", "B", &rest),
        flow("back", "B", "A", &rest)
    );
    let more = ["--adapters", &adapters.display().to_string()];
    let (output, document) = run(&folder, &mission, &more);
    let document = document.unwrap_or_else(|| panic!("{}", words(&output)));
    assert!(document.deaths.is_empty(), "{:?}", document.deaths);
    assert_eq!(document.flows.len(), 2);
    let samples = deckwatch_meter::samples::read(&folder.path().join("result/samples.parquet"));
    let samples = samples.expect("samples");
    for flow in &document.flows {
        let destination = &flow.destinations[0];
        let counts = destination.counts;
        assert_eq!((counts.due, counts.received), (60, 60), "{}", flow.name);
        let error_ns = destination.clock_error_ns.expect("a bound");
        let error_ns = i64::try_from(error_ns).expect("small");
        for sample in samples.iter().filter(|sample| sample.flow == flow.index) {
            // Stamps of a clock that was not converted are days apart.
            let way_ns = sample.received_ns - sample.sent_ns;
            assert!((-error_ns..60_000_000_000).contains(&way_ns), "{sample:?}");
        }
    }
    assert!(far_folders().is_empty(), "{:?}", far_folders());
}

#[test]
fn a_sweep_between_far_hosts_skips_an_adapter_with_the_reason() {
    let folder = Folder::new("far-template-sweep");
    let adapters = folder.path().join("adapters");
    let Some(name) = template(&adapters) else {
        return;
    };
    let _alone = one_run_at_a_time();
    let far = Machine::new("B", &["env".to_owned()], "127.0.0.1").line();
    let hosts = format!("hosts = [{{ name = \"A\", address = \"127.0.0.1\" }}, {far}]");
    let (carriers, adapters) = (format!("--carriers=udp,{name}"), adapters.display());
    let adapters = format!("--adapters={adapters}");
    let (output, document) = sweep(
        &folder,
        &hosts,
        &["--from=A", "--to=B", &carriers, &adapters],
    );
    let document = document.unwrap_or_else(|| panic!("{}", words(&output)));
    assert!(output.status.success(), "{}", words(&output));
    assert_eq!(document.measurements.len(), 2, "two sizes of udp");
    let skipped = &document.skipped[0];
    assert_eq!(skipped.what, name);
    let told = "its program runs on this machine alone";
    assert!(skipped.reason.contains(told), "{}", skipped.reason);
}
