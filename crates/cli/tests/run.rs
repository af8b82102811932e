//! `deckwatch run` as a user sees it: phases in order, a complete result folder, and a result even if the run is
//! interrupted or one of its processes is killed.

mod variants;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use deckwatch_meter::result::{ResultDocument, VerdictKind};
use deckwatch_os::namespace::Capability;
use deckwatch_testbed::Testbed;

const DECKWATCH: &str = env!("CARGO_BIN_EXE_deckwatch");

/// The folder of one test, removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("deckwatch-cli-{test}-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a new folder");
        Self(path)
    }

    fn result(&self) -> PathBuf {
        self.0.join("result")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn mission() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/small.toml")
}

fn command(folder: &Folder, arguments: &[&str]) -> Command {
    command_of(&mission(), folder, arguments)
}

fn command_of(mission: &Path, folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(DECKWATCH);
    command
        .arg("run")
        .arg(mission)
        .arg("--output")
        .arg(folder.result());
    command
        .args(arguments)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    command
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

fn document(folder: &Folder) -> ResultDocument {
    ResultDocument::load(&folder.result().join("result.json")).expect("a result document")
}

/// Returns the exit status of a verdict. Whether messages are in time depends on this machine, so that these tests do
/// not check it.
fn status_of(document: &ResultDocument) -> i32 {
    match document.verdict.kind {
        VerdictKind::Pass => 0,
        VerdictKind::Fail => 1,
        VerdictKind::Unproven => 3,
        VerdictKind::Invalid => 4,
    }
}

/// Starts a run and reads its standard error, up to a line for which `is` returns true.
fn start_and_await(
    folder: &Folder,
    arguments: &[&str],
    is: impl Fn(&str) -> bool,
) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut run = command(folder, arguments)
        .env("DECKWATCH_LOG", "info")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(run.stderr.take().expect("piped"));
    let mut line = String::new();
    while !is(&line) {
        line.clear();
        assert_ne!(
            lines.read_line(&mut line).expect("text"),
            0,
            "the run ended before what was waited for"
        );
    }
    (run, lines)
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .status()
        .expect("kill is there");
    assert!(sent.success());
}

fn finish(run: Child, lines: BufReader<std::process::ChildStderr>) -> (Output, Vec<String>) {
    let said = lines.lines().map(|line| line.expect("text")).collect();
    (run.wait_with_output().expect("it ends"), said)
}

#[test]
fn a_short_run_goes_through_its_phases_in_order_and_leaves_a_whole_result() {
    let folder = Folder::new("short");
    let output = command(&folder, &["--carriers", "udp,tcp"])
        .output()
        .expect("it runs");
    let said = text(&output.stderr);
    let phases: Vec<&str> = said
        .lines()
        .filter(|line| line.ends_with('.') && !line.contains("left;"))
        .collect();
    let expected = [
        "Making hosts and network.",
        "Starting consumers.",
        "Starting packet taps.",
        "Starting suppliers.",
        "Measuring.",
        "Waiting for late messages.",
        "Stopping.",
        "Judging.",
    ];
    let only_phases: Vec<&str> = phases
        .into_iter()
        .filter(|line| expected.contains(line))
        .collect();
    assert_eq!(only_phases, expected, "{said}");

    let printed = text(&output.stdout);
    assert!(printed.contains("report.html"), "{said}{printed}");
    let document = document(&folder);
    assert_eq!(output.status.code(), Some(status_of(&document)));
    let flows: Vec<_> = document
        .flows
        .iter()
        .map(|flow| (flow.name.as_str(), flow.carrier.as_str()))
        .collect();
    assert_eq!(flows, [("NAV", "udp"), ("NAV", "tcp")]);
    for flow in &document.flows {
        assert_eq!(flow.size_bytes, 384);
        let counts = &flow.destinations[0].counts;
        assert_eq!(
            (counts.due, counts.received, counts.lost, counts.warm_up),
            (50, 50, 0, 10),
            "{counts:?}"
        );
    }
    assert_eq!(document.environment.kind, "loopback");
    assert!(document.environment.fallback_reason.is_none());
    assert!(document.environment.fidelity.is_none());
    assert!(document.deaths.is_empty());
    for file in [
        "samples.parquet",
        "report.html",
        "histograms/NAV-udp-SONAR.hlog",
        "histograms/NAV-tcp-SONAR.hlog",
    ] {
        assert!(folder.result().join(file).is_file(), "{file}");
    }
    assert!(!folder.result().join("captures").exists());
}

#[test]
fn a_fleet_of_35_consumers_ends_with_a_whole_result() {
    let folder = Folder::new("fleet");
    let mission = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/nav-fleet.toml");
    let output = command_of(&mission, &folder, &["--duration", "3s"])
        .output()
        .expect("it runs");
    let document = document(&folder);
    assert_eq!(output.status.code(), Some(status_of(&document)));
    assert!(document.deaths.is_empty(), "{:?}", document.deaths);
    let flows = document.flows.iter();
    let all: Vec<_> = flows.flat_map(|flow| &flow.destinations).collect();
    assert_eq!(all.len(), 35);
    for destination in all {
        let counts = &destination.counts;
        assert!(counts.due > 0 && counts.received > 0, "{counts:?}");
    }
    for file in ["samples.parquet", "report.html"] {
        let file = folder.result().join(file).metadata().expect("a file");
        assert!(file.len() > 0);
    }
}

#[test]
fn the_same_flow_goes_over_every_carrier_in_one_run() {
    let folder = Folder::new("carriers");
    let carriers = ["udp", "tcp", "corba", "corba-oneway", "event", "rt-event"];
    let arguments = ["--carriers", &carriers.join(","), "--keep-captures"];
    let output = command(&folder, &arguments).output().expect("it runs");
    let said = text(&output.stderr);
    assert!(
        said.contains("Starting naming service and event channels."),
        "{said}"
    );
    let document = document(&folder);
    assert_eq!(output.status.code(), Some(status_of(&document)));
    assert!(document.deaths.is_empty(), "{:?}", document.deaths);
    let flows: Vec<_> = document
        .flows
        .iter()
        .map(|flow| flow.carrier.as_str())
        .collect();
    assert_eq!(flows, carriers);
    for flow in &document.flows {
        let counts = &flow.destinations[0].counts;
        assert_eq!(
            (counts.due, counts.received),
            (50, 50),
            "{}: {counts:?}",
            flow.carrier
        );
    }
    // Without the privilege there is no tap, and the result contains a warning.
    let tapped = Capability::NetRaw.is_held();
    assert_eq!(
        folder.result().join("captures/RTS.pcapng").is_file(),
        tapped
    );
    assert_eq!(
        document
            .warnings
            .iter()
            .any(|warning| warning.kind == "no-tap"),
        !tapped
    );
}

#[test]
fn json_is_the_document_and_nothing_else() {
    let folder = Folder::new("json");
    let output = command(&folder, &["--json", "--count", "20"])
        .output()
        .expect("it runs");
    let printed: ResultDocument =
        serde_json::from_slice(&output.stdout).expect("a result document");
    assert_eq!(printed, document(&folder));
    assert_eq!(printed.flows[0].destinations[0].counts.due, 20);
    assert_eq!(output.status.code(), Some(status_of(&printed)));
    // Twenty messages, none late, prove at most 13.9%: not a budget of 10%.
    assert_ne!(printed.verdict.kind, VerdictKind::Pass);
}

#[test]
fn a_load_is_started_and_what_its_loop_took_is_told() {
    let folder = Folder::new("load");
    let output = command(&folder, &["--variant", "loaded"])
        .output()
        .expect("it runs");
    assert!(text(&output.stderr).contains("Starting loads."));
    let document = document(&folder);
    assert_eq!(document.mission, "small, loaded");
    let [load] = &document.environment.loads[..] else {
        panic!("one load: {:?}", document.environment.loads)
    };
    assert!(
        load.contains("2 processes, each counting to 10000 (at least")
            && load.contains("sleeping 10ms"),
        "{load}"
    );
    assert!(document.deaths.is_empty(), "{:?}", document.deaths);
}

#[test]
fn ctrl_c_ends_the_run_and_keeps_what_was_measured() {
    let folder = Folder::new("interrupt");
    let received = |line: &str| line.contains(" left; ") && !line.contains(" 0 received");
    let (run, lines) = start_and_await(&folder, &["--variant", "long"], received);
    signal("INT", run.id());
    let (output, said) = finish(run, lines);
    assert!(
        said.iter()
            .any(|line| line.contains("Interrupted by SIGINT")),
        "{said:?}"
    );
    let document = document(&folder);
    assert_eq!(output.status.code(), Some(130));
    let counts = &document.flows[0].destinations[0].counts;
    assert!(counts.received > 0 && counts.due < 10_000, "{counts:?}");
    assert_eq!(counts.lost, 0, "{counts:?}");
    assert!(
        document
            .warnings
            .iter()
            .any(|warning| warning.kind == "interrupted")
    );
    let beside = "The run was ended early: the confidence holds only if its result was not the reason to end it.";
    let reasons = &document.verdict.reasons;
    assert!(reasons.iter().any(|reason| reason == beside), "{reasons:?}");
    let printed = text(&output.stdout);
    assert!(printed.contains(beside), "{printed}");
    assert!(folder.result().join("report.html").is_file());
}

/// Returns the process id in a log line of the run about a process whose label contains `label`.
fn id_of(line: &str, label: &str) -> Option<u32> {
    let rest = line.split("id=").nth(1).filter(|_| line.contains(label))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Kills the process with this label when messages arrive. Returns the run's result, and the lines that it printed
/// after that.
fn run_with_a_death(label: &str, arguments: &[&str]) -> (ResultDocument, Vec<String>) {
    let folder = Folder::new(&label.replace(' ', "-"));
    let id = std::cell::Cell::new(0);
    let (run, lines) = start_and_await(&folder, arguments, |line| {
        id.set(id_of(line, label).unwrap_or(id.get()));
        line.contains(" left; ") && !line.contains(" 0 received")
    });
    signal("KILL", id.get());
    let (output, said) = finish(run, lines);
    let document = document(&folder);
    assert_eq!(output.status.code(), Some(status_of(&document)));
    (document, said)
}

#[test]
fn a_killed_consumer_is_named_and_the_other_destination_goes_on() {
    let killed = "consumer of NAV over udp at SONAR";
    let (document, said) = run_with_a_death(killed, &["--variant", "two-destinations"]);
    assert!(
        said.iter()
            .any(|line| line.contains(&format!("{killed} died: killed by signal 9"))),
        "{said:?}"
    );
    assert!(
        document.verdict.kind >= VerdictKind::Fail,
        "{:?}",
        document.verdict
    );
    let [death] = &document.deaths[..] else {
        panic!("one death: {:?}", document.deaths)
    };
    assert_eq!(
        (death.process.as_str(), death.how.as_str()),
        (killed, "killed by signal 9")
    );
    assert!(death.at_ns > 0);
    let [sonar, radar] = &document.flows[0].destinations[..] else {
        panic!("two destinations")
    };
    assert!(
        sonar.counts.received > 0 && sonar.counts.lost > 0,
        "{:?}",
        sonar.counts
    );
    assert_eq!(radar.counts.received, 200, "{:?}", radar.counts);
}

#[test]
fn a_killed_supplier_is_named_and_the_run_ends_by_itself() {
    let killed = "supplier of NAV over udp on RTS";
    // The schedule lasts ten minutes. After the supplier's death, the run waits for the drain only.
    let (document, _) = run_with_a_death(killed, &["--variant", "long"]);
    assert!(
        document.verdict.kind >= VerdictKind::Fail,
        "{:?}",
        document.verdict
    );
    let [death] = &document.deaths[..] else {
        panic!("one death: {:?}", document.deaths)
    };
    assert_eq!(death.process, killed);
    let counts = &document.flows[0].destinations[0].counts;
    assert!(counts.received > 0 && counts.lost > 10_000, "{counts:?}");
}

#[test]
fn a_killed_channel_is_named_and_the_run_ends_by_itself() {
    let killed = "event channel of NAV on RTS";
    let arguments = ["--variant", "long", "--carriers", "event"];
    let (document, _) = run_with_a_death(killed, &arguments);
    let deaths: Vec<_> = document
        .deaths
        .iter()
        .map(|death| death.process.as_str())
        .collect();
    assert!(deaths.contains(&killed), "{deaths:?}");
    let counts = &document.flows[0].destinations[0].counts;
    assert!(counts.received > 0 && counts.lost > 10_000, "{counts:?}");
}

#[test]
fn a_folder_that_holds_something_is_not_written_into() {
    let folder = Folder::new("taken");
    std::fs::create_dir(folder.result()).expect("writable");
    std::fs::write(folder.result().join("precious"), "x").expect("writable");
    let output = command(&folder, &[]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("is not empty"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_part_without_a_plan_says_who_starts_it() {
    let output = Command::new(DECKWATCH)
        .arg("part")
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("started by `deckwatch run`"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn what_a_killed_run_leaves_ends_with_it_or_is_removed_by_the_next() {
    if !Capability::SysAdmin.is_held() || !Capability::NetAdmin.is_held() {
        return deckwatch_testkit::skip(
            "namespaces",
            "CAP_SYS_ADMIN and CAP_NET_ADMIN are not held",
        );
    }
    let folder = Folder::new("killed");
    let ids = std::cell::RefCell::new(Vec::new());
    let (mut run, _lines) = start_and_await(&folder, &["--variant", "emulated"], |line| {
        ids.borrow_mut().extend(id_of(line, " NAV over udp "));
        line.contains(" left; ") && !line.contains(" 0 received")
    });
    let owner = run.id();
    let left_behind = || {
        Testbed::standing()
            .into_iter()
            .any(|standing| standing.owner.pid == owner)
    };
    assert!(left_behind(), "the run has a testbed");
    signal("KILL", owner);
    run.wait().expect("it is dead");
    assert_eq!(ids.borrow().len(), 2, "a consumer and a supplier");
    for &id in ids.borrow().iter() {
        // The kernel kills these processes when their parent ends. A process that has ended has no start time.
        while deckwatch_os::namespace::start_time_of_process(id).is_some() {
            std::thread::yield_now();
        }
    }
    assert!(left_behind(), "namespaces outlive their owner");
    let next = Folder::new("killed-next");
    let output = command(&next, &[]).output().expect("it runs");
    assert!(
        next.result().join("result.json").is_file(),
        "{}",
        text(&output.stderr)
    );
    assert!(!left_behind(), "{}", text(&output.stderr));
    let memory = std::fs::read_dir("/dev/shm").expect("a memory file system");
    let prefix = format!("deckwatch-dw{owner}-");
    let work = memory
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    assert!(work.is_none(), "{work:?}");
}

#[test]
fn handler_that_exceeds_its_declared_worst_case_is_named_in_the_verdict_of_a_real_time_channel() {
    let folder = Folder::new("handler");
    let mission = folder.0.join("handler.toml");
    let written = "name = \"handler\"\nnetwork = { preset = \"loopback\" }\n\
                   hosts = [{ name = \"RTS\" }, { name = \"SONAR\" }]\n[[flows]]\nname = \"NAV\"\noctets = 384\n\
                   from = \"RTS\"\nto = [\"SONAR\"]\ncarrier = \"rt-event\"\nrate_hz = 20\ndeadline = \"2s\"\n\
                   late = \"1 in 2\"\ncount = 10\nwarm_up = \"100ms\"\nhandle_for = \"3ms\"\nworst_case = \"1ms\"\n";
    std::fs::write(&mission, written).expect("a file");
    let output = Command::new(DECKWATCH)
        .arg("run")
        .arg(&mission)
        .arg("--output")
        .arg(folder.result())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let said = text(&output.stdout) + &text(&output.stderr);
    let document = document(&folder);
    let handler = document.flows[0].destinations[0].handler;
    let handler = handler.expect("it is measured");
    let received = document.flows[0].destinations[0].counts.received;
    assert_eq!((handler.executions, handler.exceeded), (received, received));
    assert_eq!(handler.worst_case_ns, 1_000_000);
    assert!(handler.longest_ns >= 3_000_000, "{handler:?}");
    let named = format!(
        "The handler at SONAR took longer than its declared worst case of 1 ms for {received} of {received} messages"
    );
    assert!(said.contains(&named), "{said}");
    let page = std::fs::read_to_string(folder.result().join("report.html")).expect("a report");
    assert!(page.contains(&named));
}

#[test]
fn run_is_refused_before_it_begins_where_memory_has_too_little_room_for_its_records() {
    if let Some(reason) = Testbed::obstacle() {
        return deckwatch_testkit::skip("namespaces", &reason);
    }
    let folder = Folder::new("room");
    // A memory file system of its own, in a mount namespace of this test.
    let script = "mount -t tmpfs -o size=32k tmpfs /dev/shm && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh", DECKWATCH, "run"])
        .arg(mission())
        .arg("--output")
        .arg(folder.result())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("util-linux is there");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in [
        " in /dev/shm, and 32 KiB are free.",
        "Shorten the run (--duration, --count)",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!folder.result().exists());
}
