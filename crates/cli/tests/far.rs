//! Missions on far hosts: reached by commands of this machine, in namespaces with a network and a clock of their own.
//! Far hosts that die, stop or lie end a run by itself, with the reason, and leave nothing behind.

mod adapters;
mod channels;
mod hosts;
mod installed;
mod loads;
mod measured;
mod sshd;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use deckwatch_meter::result::{ResultDocument, VerdictKind};
use deckwatch_meter::sample::{NO_STAMP, Sample};
use rustix::process::Signal;

use crate::watched::{Folder, WatchedRun, signal};
use hosts::{DECKWATCH, Machine, TwoMachines, far_folders, is_alive};

/// The lock of this machine as a far host, which takes part in one run at a time.
pub(super) fn one_run_at_a_time() -> File {
    let lock = std::env::temp_dir().join("deckwatch-far-tests.lock");
    let lock = File::create(lock).expect("writable");
    lock.lock().expect("a lock");
    lock
}

/// Runs a mission to its end. Returns its output, and its document if it has one.
pub(super) fn run(
    folder: &Folder,
    mission: &str,
    arguments: &[&str],
) -> (Output, Option<ResultDocument>) {
    run_by(Path::new(DECKWATCH), folder, mission, arguments)
}

/// As [`run`], by this copy of the program.
pub(super) fn run_by(
    program: &Path,
    folder: &Folder,
    mission: &str,
    arguments: &[&str],
) -> (Output, Option<ResultDocument>) {
    let file = folder.path().join("mission.toml");
    std::fs::write(&file, mission).expect("writable");
    let result = folder.path().join("result");
    let output = Command::new(program)
        .arg("run")
        .arg(file)
        .arg("--output")
        .arg(&result)
        .args(arguments)
        .current_dir(folder.path())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let document = ResultDocument::load(&result.join("result.json")).ok();
    (output, document)
}

pub(super) fn flow(name: &str, from: &str, to: &str, rest: &str) -> String {
    format!(
        "[[flows]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = [\"{to}\"]\nrate_hz = 100\nlate = \"1 in 10\"\nwarm_up = \"100ms\"\n{rest}\n"
    )
}

pub(super) fn nav() -> String {
    let idl = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../idl/deckwatch/nav.idl");
    format!(
        "type = \"Nav::NavData\"\nidl = \"{}\"\nsequence = \"sequence_number\"\n",
        idl.display()
    )
}

pub(super) fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Two hosts in namespaces, the second with a CLOCK_MONOTONIC six days ahead: every stamp of it is useless until it is
/// converted, and so is the start of the schedule that it is given.
#[test]
fn a_far_host_with_another_clock_and_network_is_judged_by_converted_stamps() {
    let Some(machines) = TwoMachines::make() else {
        return;
    };
    let _alone = one_run_at_a_time();
    let hosts = machines.hosts([&machines.inside(0), &machines.inside_ahead(1)]);
    let hosts = format!("name = \"two machines\"\n{hosts}\n");
    let count = "count = 60\ndeadline = \"100ms\"";
    let flows = ["udp", "corba", "event"].map(|carrier| {
        let rest = format!("{}carrier = \"{carrier}\"\n{count}", nav());
        flow(&format!("there-{carrier}"), "A", "B", &rest)
            + &flow(&format!("back-{carrier}"), "B", "A", &rest)
    });
    let folder = Folder::new("far-clock");
    let (output, document) = run(&folder, &(hosts + &flows.concat()), &["--keep-captures"]);
    let document = document.unwrap_or_else(|| panic!("{}", words(&output)));
    assert_eq!(document.environment.kind, "real");
    let clock = &document.provenance.clock;
    assert!(!clock.shared, "{clock:?}");
    let error_ns = clock.latency_error_ns.expect("a bound");
    // Kernel stamps over the network, not the pipe, related them.
    assert!(error_ns < 10_000_000, "{error_ns}");
    let assumed_ns = clock.latency_assumed_ns.expect("estimated");
    assert!(assumed_ns <= error_ns, "{clock:?}");
    for host in ["A", "B"] {
        assert!(clock.sync.contains_key(host), "{clock:?}");
    }
    assert!(document.deaths.is_empty(), "{:?}", document.deaths);
    let samples = deckwatch_meter::samples::read(&folder.path().join("result/samples.parquet"));
    let samples = samples.expect("samples");
    for flow in &document.flows {
        let destination = &flow.destinations[0];
        assert_eq!(destination.clock_error_ns, Some(error_ns), "{}", flow.name);
        assert_eq!(destination.clock_assumed_ns, Some(assumed_ns));
        let counts = destination.counts;
        assert_eq!((counts.due, counts.received), (60, 60), "{}", flow.name);
        let error_ns = i64::try_from(error_ns).expect("small");
        // The first message of a warm-up, which nobody judges, may have passed before the tap knew its connection.
        let is_first = |sample: &Sample| sample.flags.warm_up && sample.sequence == 0;
        for sample in samples.iter().filter(|sample| sample.flow == flow.index) {
            // On one clock a message is sent after it was due, and received after it was sent.
            let stamps = [sample.due_ns, sample.sent_ns, sample.received_ns];
            assert!(stamps.is_sorted_by(|a, b| a - error_ns <= *b), "{sample:?}");
            assert!(
                sample.received_ns - sample.due_ns < 60_000_000_000,
                "{sample:?}"
            );
            // The kernel's stamps of both hosts came back, in a capture or a record.
            for stamp in [sample.kernel_transmit_ns, sample.kernel_receive_ns] {
                if stamp == NO_STAMP && is_first(sample) {
                    continue;
                }
                assert_ne!(stamp, NO_STAMP, "{} {sample:?}", flow.name);
                assert!(
                    (stamp - sample.sent_ns).abs() < 60_000_000_000,
                    "{sample:?}"
                );
            }
        }
    }
    for name in ["A.pcapng", "B.pcapng"] {
        assert!(
            folder.path().join("result/captures").join(name).exists(),
            "{name}"
        );
    }
    let warnings: Vec<&str> = document
        .warnings
        .iter()
        .map(|one| one.kind.as_str())
        .collect();
    assert!(warnings.contains(&"far-hosts"), "{warnings:?}");
    assert!(!warnings.contains(&"clock-by-pipe"), "{warnings:?}");
    assert!(!warnings.contains(&"impossible-stamps"), "{warnings:?}");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        printed.contains("the ends have different clocks: within"),
        "{printed}"
    );
    assert!(
        printed.contains("if both directions are alike)"),
        "{printed}"
    );
    assert_eq!(far_folders(), Vec::<PathBuf>::new());
}

/// No datagram comes back, and each line to the far end takes 5 ms: its clock seems to be half of that behind, and so its
/// messages seem late. They need not be.
#[test]
fn clocks_that_only_a_slow_pipe_relates_make_the_verdict_invalid_and_the_latency_not_comparable() {
    let Some(machines) = TwoMachines::make() else {
        return;
    };
    let _alone = one_run_at_a_time();
    let rules = "add table inet closed; add chain inet closed in { type filter hook input priority 0; }; add rule inet closed in meta l4proto udp drop";
    let in_b = machines.inside(1);
    let closed = Command::new(&in_b[0])
        .args(&in_b[1..])
        .args(["nft", rules])
        .status();
    assert!(closed.is_ok_and(|status| status.success()));
    let slowly = "while IFS= read -r line; do sleep 0.005; printf '%s\\n' \"$line\"; done | \"$@\"";
    let mut slow = ["sh", "-c", slowly, "sh"].map(str::to_owned).to_vec();
    slow.extend(in_b);
    let mission = format!(
        "name = \"slow\"\n{}\n{}",
        machines.hosts([&machines.inside(0), &slow]),
        flow(
            "f",
            "B",
            "A",
            "octets = 64\ncarrier = \"tcp\"\ncount = 100\ndeadline = \"2ms\""
        ),
    );
    let folder = Folder::new("far-slow-clock");
    let (output, document) = run(&folder, &mission, &[]);
    let document = document.unwrap_or_else(|| panic!("{}", words(&output)));
    assert_eq!(output.status.code(), Some(4), "{:?}", document.verdict);
    assert_eq!(document.verdict.kind, VerdictKind::Invalid);
    let clock = &document.provenance.clock;
    assert!(clock.latency_error_ns > Some(2_500_000), "{clock:?}");
    assert_eq!(clock.latency_assumed_ns, None, "{clock:?}");
    let kinds = document.warnings.iter().map(|one| one.kind.as_str());
    let kinds: Vec<&str> = kinds.collect();
    assert!(kinds.contains(&"clock-by-pipe"), "{kinds:?}");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let noted = "NOT COMPARABLE: that is more than the deadline.";
    assert!(printed.contains(noted), "{printed}");
    // Once in the table, and once in the note.
    assert!(printed.matches("NOT COMPARABLE").count() > 1, "{printed}");
}

/// What a hypervisor takes from a far machine withholds processor time from the flow, as if it were this machine.
#[test]
fn stolen_time_of_a_far_machine_is_read_and_warned_of_with_its_name() {
    let _alone = one_run_at_a_time();
    // The far end reports its readings in its last line. No hypervisor here takes so much: the line is changed.
    let steals = "LC_ALL=C; export LC_ALL; \"$@\" | sed -u 's/\"stolen_ns\":[0-9]*/\"stolen_ns\":999999999999/'";
    let reach = ["sh", "-c", steals, "sh"].map(str::to_owned);
    let rest = "octets = 64\ncarrier = \"udp\"\ndeadline = \"100ms\"\ncount = 10";
    let mission = format!(
        "name = \"stolen\"\nhosts = [{{ name = \"HERE\", address = \"127.0.0.1\" }}, {}]\n{}",
        Machine::new("FAR", &reach, "127.0.0.1").line(),
        flow("f", "HERE", "FAR", rest)
    );
    let (output, document) = run(&Folder::new("far-stolen"), &mission, &[]);
    let document = document.unwrap_or_else(|| panic!("{}", words(&output)));
    let of_far = |kind: &str| {
        let mut warnings = document.warnings.iter();
        warnings.any(|one| one.kind == kind && one.text.starts_with("On FAR: "))
    };
    assert!(of_far("stolen-cpu"), "{:?}", document.warnings);
}

#[test]
fn far_hosts_that_die_or_stop_end_the_run_by_itself_and_another_run_is_refused() {
    let _alone = one_run_at_a_time();
    let folder = Folder::new("far-deaths");
    let (dies, stops) = (folder.path().join("dies"), folder.path().join("stops"));
    let hosts = format!(
        "name = \"deaths\"\nhosts = [{{ name = \"HERE\", address = \"127.0.0.1\" }}, {}, {}]\n",
        Machine::noting_its_processes("DIES", &dies).line(),
        Machine::noting_its_processes("STOPS", &stops).line(),
    );
    let rest = "octets = 64\ncarrier = \"udp\"\ndeadline = \"100ms\"\nduration = \"10min\"";
    let flows = flow("to-dies", "HERE", "DIES", rest) + &flow("to-stops", "HERE", "STOPS", rest);
    let mission = hosts + &flows;
    let run = WatchedRun::start("far-deaths-run", &mission, &[]);
    let (refused, _) = self::run(&folder, &mission, &[]);
    assert_eq!(refused.status.code(), Some(2), "{}", words(&refused));
    assert!(
        words(&refused).contains("takes part in another run"),
        "{}",
        words(&refused)
    );
    let far_parts = |file: &PathBuf| -> Vec<u32> {
        let text = std::fs::read_to_string(file).expect("noted");
        let ids = text.lines().filter_map(|line| line.parse().ok());
        ids.filter(|&id| is_alive(id)).collect()
    };
    let (killed, stopped) = (far_parts(&dies), far_parts(&stops));
    assert!(
        !killed.is_empty() && !stopped.is_empty(),
        "{killed:?} {stopped:?}"
    );
    signal(&killed, Signal::KILL);
    signal(&stopped, Signal::STOP);
    // Without consumers nothing goes on: no interrupt is needed.
    let finished = run.finish();
    let how = |words: &str| {
        let deaths = &finished.document.deaths;
        let found = deaths.iter().find(|death| death.process.contains(words));
        found
            .unwrap_or_else(|| panic!("{words}: {deaths:?}"))
            .how
            .clone()
    };
    assert!(
        how("at DIES").contains("did not exit normally"),
        "{}",
        how("at DIES")
    );
    assert!(
        how("at STOPS").contains("carried nothing for 10 s"),
        "{}",
        how("at STOPS")
    );
    for flow in &finished.document.flows {
        assert!(flow.verdict.kind >= VerdictKind::Fail, "{:?}", flow.verdict);
    }
    signal(&stopped, Signal::CONT);
    while stopped.iter().any(|&id| is_alive(id)) {
        std::thread::yield_now();
    }
    // A killed one leaves its folder, without a process. The next part on the host removes it.
    let rest = "octets = 64\ncarrier = \"udp\"\ndeadline = \"100ms\"\ncount = 10";
    let short = format!(
        "name = \"next\"\nhosts = [{{ name = \"HERE\", address = \"127.0.0.1\" }}, {}]\n{}",
        Machine::new("DIES", &["env".to_owned()], "127.0.0.1").line(),
        flow("again", "HERE", "DIES", rest)
    );
    let (output, document) = self::run(&Folder::new("far-next"), &short, &[]);
    assert!(document.is_some(), "{}", words(&output));
    assert_eq!(far_folders(), Vec::<PathBuf>::new());
}

#[test]
fn far_parts_end_when_their_coordinator_is_killed_and_remove_their_folders() {
    let _alone = one_run_at_a_time();
    let folder = Folder::new("far-orphans");
    let noted = folder.path().join("noted");
    let rest = "octets = 64\ncarrier = \"udp\"\ndeadline = \"100ms\"\nduration = \"10min\"";
    let mission = format!(
        "name = \"orphans\"\nhosts = [{{ name = \"HERE\", address = \"127.0.0.1\" }}, {}]\n{}",
        Machine::noting_its_processes("FAR", &noted).line(),
        flow("f", "HERE", "FAR", rest)
    );
    let run = WatchedRun::start("far-orphans-run", &mission, &[]);
    let parts = std::fs::read_to_string(&noted).expect("noted");
    let parts: Vec<u32> = parts.lines().filter_map(|line| line.parse().ok()).collect();
    assert!(parts.iter().any(|&id| is_alive(id)), "{parts:?}");
    assert_ne!(far_folders(), Vec::<PathBuf>::new());
    let _kept = run.kill();
    while parts.iter().any(|&id| is_alive(id)) {
        std::thread::yield_now();
    }
    assert_eq!(far_folders(), Vec::<PathBuf>::new());
    // What the coordinator left on this machine is removed as ever.
    deckwatch_scenario::run::clean_work_folders();
}

/// Returns the error of a run with one far host that is reached so.
fn refused(name: &str, reach: &[&str], program: &str) -> String {
    let reach: Vec<String> = reach.iter().map(|word| (*word).to_owned()).collect();
    let machine = Machine {
        program: program.to_owned(),
        ..Machine::new("FAR", &reach, "127.0.0.1")
    };
    let rest = "octets = 64\ncarrier = \"udp\"\ndeadline = \"100ms\"\ncount = 10";
    let mission = format!(
        "name = \"refused\"\nhosts = [{{ name = \"HERE\", address = \"127.0.0.1\" }}, {}]\n{}",
        machine.line(),
        flow("f", "HERE", "FAR", rest)
    );
    let folder = Folder::new(name);
    let (output, document) = run(&folder, &mission, &[]);
    assert!(document.is_none(), "{document:?}");
    assert_eq!(output.status.code(), Some(2), "{}", words(&output));
    assert!(!folder.path().join("result").exists());
    words(&output)
}

#[test]
fn hosts_that_cannot_be_reached_or_have_another_program_are_refused_with_what_to_do() {
    let no_command = refused("far-none", &["no-such-command"], DECKWATCH);
    assert!(
        no_command.contains("`no-such-command` cannot be started"),
        "{no_command}"
    );
    let unreachable = refused(
        "far-closed",
        &[
            "sh",
            "-c",
            "echo 'Permission denied (publickey).' >&2; exit 255",
            "ssh",
        ],
        DECKWATCH,
    );
    assert!(
        unreachable.contains("status 255: Permission denied (publickey)"),
        "{unreachable}"
    );
    assert!(
        unreachable.contains("Try it in a terminal"),
        "{unreachable}"
    );
    let missing = refused("far-missing", &["env"], "/nowhere/deckwatch");
    assert!(
        missing.contains("There is no `/nowhere/deckwatch` on FAR"),
        "{missing}"
    );
    assert!(missing.contains("--install"), "{missing}");
    let hello = "echo '{\"far\":\"hello\",\"build\":\"0.0.1 (old) release\"}'";
    let other = refused("far-other", &["sh", "-c", hello, "old"], DECKWATCH);
    assert!(
        other.contains("it is deckwatch 0.0.1 (old) release, and this is"),
        "{other}"
    );
}

/// A carrier in another language that this machine has, and the far host has not.
#[test]
fn a_far_host_without_the_program_of_an_adapter_is_refused_with_what_to_copy() {
    let _alone = one_run_at_a_time();
    let folder = Folder::new("far-adapter");
    let adapter = folder.path().join("adapters/mine");
    std::fs::create_dir_all(&adapter).expect("writable");
    let manifest =
        "name = \"mine\"\nsummary = \"s\"\nfamily = \"f\"\nprogram = \"mine\"\nprotocol = 1\n";
    std::fs::write(adapter.join("carrier.toml"), manifest).expect("writable");
    std::fs::copy("/bin/true", adapter.join("mine")).expect("a program");
    let reach = ["env", "-u", "DECKWATCH_ADAPTERS"].map(str::to_owned);
    let mission = |carriers: &str| {
        let rest = format!("octets = 64\n{carriers}\ndeadline = \"100ms\"\ncount = 10");
        format!(
            "name = \"adapter\"\nhosts = [{{ name = \"HERE\", address = \"127.0.0.1\" }}, {}]\n{}",
            Machine::new("FAR", &reach, "127.0.0.1").line(),
            flow("f", "HERE", "FAR", &rest)
        )
    };
    let adapters = folder.path().join("adapters");
    let adapters = adapters.to_str().expect("text");
    let one = mission("carrier = \"udp\"");
    let more = ["--adapters", adapters, "--carriers", "mine"];
    let (output, document) = run(&Folder::new("far-adapter-one"), &one, &more);
    let said = words(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let wanted = "FAR cannot use the carrier mine: it has no adapter of this name. Build it there, or copy the folder ";
    assert!(said.contains(wanted), "{said}");
    assert!(document.is_none());
}

#[test]
fn check_says_how_far_hosts_are_reached_and_claims_no_emulated_network() {
    let reach = ["ssh", "rts.ship"].map(str::to_owned);
    let rest = "octets = 64\ncarrier = \"udp\"\ndeadline = \"100ms\"\ncount = 10";
    let mission = format!(
        "name = \"far\"\nhosts = [{{ name = \"HERE\", address = \"10.0.0.9\" }}, {}]\n{}",
        Machine::new("RTS", &reach, "10.0.0.1").line(),
        flow("f", "RTS", "HERE", rest)
    );
    let folder = Folder::new("far-check");
    let file = folder.path().join("mission.toml");
    std::fs::write(&file, mission).expect("writable");
    let output = Command::new(DECKWATCH).arg("check").arg(file).output();
    let text = String::from_utf8(output.expect("it runs").stdout).expect("text");
    let far = format!("Far host: RTS (10.0.0.1) by `ssh rts.ship`, which starts `{DECKWATCH}`.");
    assert!(text.contains(&far), "{text}");
    assert!(text.contains("on the network of the hosts."), "{text}");
    for absent in ["mulated:", "CAP_NET_ADMIN"] {
        assert!(!text.contains(absent), "{text}");
    }
}

/// Programs that answer as this one does, and then lie.
#[test]
fn a_hostile_far_end_is_given_up_with_what_was_wrong() {
    let hello = "H=$(\"$0\" part --far </dev/null); echo \"$H\"; read -r plan || exit 0; ";
    let floods =
        format!("{hello}exec yes '{{\"event\":\"progress\",\"sent\":18446744073709551615}}'");
    let forges =
        format!("{hello}echo '{{\"far\":\"file\",\"index\":7,\"size_bytes\":1}}'; exec sleep 60");
    let swells = format!(
        "{hello}echo '{{\"far\":\"file\",\"index\":0,\"size_bytes\":99999999999}}'; exec yes"
    );
    let chatters = format!("{hello}exec tr '\\0' x </dev/zero");
    for (name, script, expected) in [
        ("floods", &floods, "more than a part has to say"),
        ("forges", &forges, "the plan does not name"),
        ("swells", &swells, "were expected"),
        ("chatters", &chatters, "a line of more than"),
    ] {
        let said = refused(&format!("far-{name}"), &["sh", "-c", script], DECKWATCH);
        assert!(said.contains(expected), "{name}: {said}");
    }
}
