//! A far host that is reached by `ssh` through a real sshd, which runs in an emulated host.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::Signal;

use super::hosts::{DECKWATCH, Machine, TwoMachines, far_folders, small_program};
use super::measured::sweep;
use super::{flow, nav, one_run_at_a_time, run, run_by, words};
use crate::watched::{Folder, WatchedRun, signal};

const SSHD: &str = "/usr/sbin/sshd";

/// A running sshd. It is killed when this is dropped, and its sessions with it.
struct Sshd(Child);

impl Drop for Sshd {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn make_key(path: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .status();
    assert!(made.is_ok_and(|status| status.success()));
}

impl Sshd {
    /// Starts an sshd at an address of a namespace, and waits until it listens. Its sessions start in `home`.
    fn start(namespace: &str, address: &str, folder: &Path, home: &Path) -> Self {
        make_key(&folder.join("host-key"));
        make_key(&folder.join("key"));
        let public = std::fs::read(folder.join("key.pub")).expect("made");
        std::fs::write(folder.join("authorized"), public).expect("writable");
        let (folder_text, home) = (folder.display(), home.display());
        let config = format!(
            "ListenAddress {address}:22\nHostKey {folder_text}/host-key\nAuthorizedKeysFile {folder_text}/authorized\n\
             StrictModes no\nPidFile none\nUsePAM no\nPasswordAuthentication yes\nPermitRootLogin yes\n\
             ForceCommand cd {home} && eval \"$SSH_ORIGINAL_COMMAND\"\n"
        );
        let file = folder.join("config");
        std::fs::write(&file, config).expect("writable");
        // Where sshd separates its privileges; the package's service makes it at boot.
        std::fs::create_dir_all("/run/sshd").expect("writable");
        let mut sshd = Command::new("ip")
            .args(["netns", "exec", namespace, SSHD, "-D", "-e", "-f"])
            .arg(&file)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ip is there");
        let mut lines = BufReader::new(sshd.stderr.take().expect("piped")).lines();
        let listens = |line: &str| line.contains("Server listening");
        let found = lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| listens(&line));
        assert!(found, "sshd ended");
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).count());
        Self(sshd)
    }
}

/// Returns the words that reach a host by ssh from a namespace.
fn ssh(namespace: &str, key: &Path, address: &str) -> Vec<String> {
    let key = key.display().to_string();
    let words = [
        "ip", "netns", "exec", namespace, "ssh", "-F", "none", "-i", &key,
    ];
    let options = [
        "BatchMode=yes",
        "IdentitiesOnly=yes",
        "StrictHostKeyChecking=no",
        "UserKnownHostsFile=/dev/null",
        "LogLevel=ERROR",
    ];
    let to = format!("root@{address}");
    let options = options.iter().flat_map(|option| ["-o", option]);
    let all = words.into_iter().chain(options).chain([to.as_str()]);
    all.map(str::to_owned).collect()
}

/// Makes two machines, or counts a skip where there is no ssh.
fn machines_with_ssh() -> Option<TwoMachines> {
    let absent = [SSHD, "/usr/bin/ssh"]
        .into_iter()
        .find(|path| !Path::new(path).exists());
    if let Some(absent) = absent {
        let why = format!("there is no {absent}: apt-get install openssh-server openssh-client");
        deckwatch_testkit::skip("sshd", &why);
        return None;
    }
    TwoMachines::make()
}

#[test]
fn a_sweep_runs_over_ssh() {
    let Some(machines) = machines_with_ssh() else {
        return;
    };
    let _alone = one_run_at_a_time();
    let (keys, home) = (Folder::new("sweep-keys"), Folder::new("sweep-login"));
    let _sshd = Sshd::start(
        machines.namespace(1),
        &machines.address(1),
        keys.path(),
        home.path(),
    );
    let key = keys.path().join("key");
    let reach = ssh(machines.namespace(0), &key, &machines.address(1));
    let hosts = machines.hosts([&machines.inside(0), &reach]);
    let folder = Folder::new("ssh-sweep");
    let (output, document) = sweep(
        &folder,
        &hosts,
        &["--from=A", "--to=B", "--carriers=udp,tcp,event,rt-event"],
    );
    let document = document.unwrap_or_else(|| panic!("{}", words(&output)));
    assert!(output.status.success(), "{}", words(&output));
    assert_eq!(
        document.measurements.len(),
        8,
        "two sizes over four carriers"
    );
    for point in &document.measurements {
        assert_eq!(point.values["ledger_received"], 100.0, "{}", point.system);
        assert!(point.values["transaction_mean_ns"] > 0.0);
    }
    assert_eq!(far_folders(), Vec::<PathBuf>::new());
    // A key that the host does not know.
    let stranger = ssh(
        machines.namespace(0),
        &keys.path().join("host-key"),
        &machines.address(1),
    );
    let hosts = machines.hosts([&machines.inside(0), &stranger]);
    let (refused, document) = sweep(
        &Folder::new("ssh-sweep-no"),
        &hosts,
        &["--from=A", "--to=B"],
    );
    assert_eq!(refused.status.code(), Some(2), "{}", words(&refused));
    assert!(
        words(&refused).contains("Permission denied"),
        "{}",
        words(&refused)
    );
    assert!(document.is_none());
}

#[test]
fn a_clock_overhead_and_a_load_run_over_ssh() {
    let Some(machines) = machines_with_ssh() else {
        return;
    };
    let _alone = one_run_at_a_time();
    let (keys, home) = (Folder::new("more-keys"), Folder::new("more-login"));
    let at_b = machines.address(1);
    let _sshd = Sshd::start(machines.namespace(1), &at_b, keys.path(), home.path());
    let reach = ssh(machines.namespace(0), &keys.path().join("key"), &at_b);
    let any = "octets = 64\ncarrier = \"udp\"\ncount = 1\ndeadline = \"100ms\"";
    let text = format!(
        "name = \"ssh\"\n{}\n{}",
        machines.hosts([&machines.inside(0), &reach]),
        flow("any", "A", "B", any)
    );
    let folder = Folder::new("ssh-more");
    let file = folder.path().join("mission.toml");
    std::fs::write(&file, text).expect("writable");
    // In A, from which the network leads to B.
    let deckwatch = |words_of: &str| {
        let inside = machines.inside(0);
        let output = Command::new(&inside[0])
            .args(&inside[1..])
            .arg(DECKWATCH)
            .args(words_of.split(' '))
            .arg("--hosts")
            .arg(&file)
            .current_dir(folder.path())
            .output()
            .expect("it runs");
        let code = output.status.code();
        assert!(code.is_some_and(|code| code < 2), "{}", words(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    let clock = deckwatch("clock B --for 1s --json");
    let total = clock.lines().last().expect("a total");
    assert!(total.contains("rigorous_ns"), "{clock}");
    let overhead = "overhead --carriers corba,event,rt-event --sizes 64 --iterations 2 --messages 20 --json --from A --to B";
    let found: serde_json::Value = serde_json::from_str(&deckwatch(overhead)).expect("a document");
    let measured = found["measurements"].as_array().expect("a list");
    assert_eq!(measured.len(), 5, "udp, tcp and three others: {found}");
    let load = "load net --rate 1Mb/s --size 500 --for 2300ms --json --from A --to B";
    let report: serde_json::Value = serde_json::from_str(&deckwatch(load)).expect("a report");
    assert!(
        report["received"]["datagrams"].as_u64() > Some(0),
        "{report}"
    );
}

/// Runs a mission in a terminal of its own, in which nobody types. Returns what it printed.
fn run_in_a_terminal(folder: &Folder, mission: &str) -> Output {
    let file = folder.path().join("mission.toml");
    std::fs::write(&file, mission).expect("writable");
    let result = folder.path().join("result");
    let line = format!(
        "{DECKWATCH} run {} --output {}",
        file.display(),
        result.display()
    );
    let mut terminal = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env("NO_COLOR", "1")
        .env_remove("SSH_ASKPASS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("script is there");
    // Its end would be typed as an end of the input.
    let keyboard = terminal.stdin.take();
    let output = terminal.wait_with_output().expect("it ends");
    drop(keyboard);
    output
}

/// Without BatchMode, ssh asks for a password in the terminal of the run, or by the program in SSH_ASKPASS.
#[test]
fn a_host_that_asks_for_a_password_or_gets_a_wrong_one_is_refused_at_once() {
    let Some(machines) = machines_with_ssh() else {
        return;
    };
    let at_b = machines.address(1);
    let (keys, home) = (Folder::new("password-keys"), Folder::new("password-login"));
    let _sshd = Sshd::start(machines.namespace(1), &at_b, keys.path(), home.path());
    let mut reach = ssh(machines.namespace(0), &keys.path().join("host-key"), &at_b);
    for word in &mut reach {
        if word == "BatchMode=yes" {
            "BatchMode=no".clone_into(word);
        }
    }
    let mission = format!(
        "name = \"password\"\nhosts = [{}, {}]\n{}",
        Machine::new("A", &machines.inside(0), &machines.address(0)).line(),
        Machine::new("B", &reach, &at_b).line(),
        flow(
            "f",
            "A",
            "B",
            "octets = 64\ncarrier = \"udp\"\ncount = 10\ndeadline = \"100ms\""
        )
    );
    let check = |told: &str, status: Option<i32>, folder: &Folder| {
        assert_eq!(status, Some(2), "{told}");
        assert!(told.contains("B cannot be reached"), "{told}");
        assert!(told.contains("Permission denied"), "{told}");
        assert!(told.contains("use a key or an agent"), "{told}");
        assert!(!folder.path().join("result").exists(), "{told}");
    };
    let folder = Folder::new("password-asked");
    let asked = run_in_a_terminal(&folder, &mission);
    let told = String::from_utf8_lossy(&asked.stdout);
    check(&told, asked.status.code(), &folder);

    let wrong = keys.path().join("askpass");
    std::fs::write(&wrong, "#!/bin/sh\necho wrong\n").expect("writable");
    std::fs::set_permissions(&wrong, std::fs::Permissions::from_mode(0o700)).expect("set");
    let by_askpass = [
        "env",
        "SSH_ASKPASS_REQUIRE=force",
        &format!("SSH_ASKPASS={}", wrong.display()),
    ]
    .map(str::to_owned);
    let far = Machine::new("B", &[&by_askpass[..], &reach].concat(), &at_b);
    let wrong = mission.replace(&Machine::new("B", &reach, &at_b).line(), &far.line());
    let folder = Folder::new("password-wrong");
    let (output, document) = run(&folder, &wrong, &[]);
    check(&words(&output), output.status.code(), &folder);
    assert!(document.is_none());
}

#[test]
fn a_mission_runs_over_ssh_and_leaves_nothing_on_either_side() {
    let Some(machines) = machines_with_ssh() else {
        return;
    };
    let _alone = one_run_at_a_time();
    let (at_a, at_b) = (machines.address(0), machines.address(1));
    let (keys, home) = (Folder::new("far-keys"), Folder::new("far-login"));
    let _sshd = Sshd::start(machines.namespace(1), &at_b, keys.path(), home.path());
    let near = machines.inside(0);
    let by_ssh = |key: &str| {
        let reach = ssh(machines.namespace(0), &keys.path().join(key), &at_b);
        Machine {
            program: "deckwatch-of-the-test".to_owned(),
            ..Machine::new("B", &reach, &at_b)
        }
    };
    let mission = |far: &Machine, rest: &str| {
        format!(
            "name = \"ssh\"\nhosts = [{}, {}]\n{}",
            Machine::new("A", &near, &at_a).line(),
            far.line(),
            ["udp", "corba"]
                .map(|carrier| {
                    let rest = format!("{}carrier = \"{carrier}\"\n{rest}", nav());
                    flow(&format!("to-{carrier}"), "A", "B", &rest)
                        + &flow(&format!("from-{carrier}"), "B", "A", &rest)
                })
                .concat()
        )
    };
    let short = "count = 30\ndeadline = \"100ms\"";
    // A key that the host does not know, and none at all: the host then asks for a password, which nobody types.
    for key in ["host-key", "no-such-key"] {
        let (stranger, document) = run(&Folder::new("ssh-no"), &mission(&by_ssh(key), short), &[]);
        let said = words(&stranger);
        assert_eq!(stranger.status.code(), Some(2), "{said}");
        assert!(
            said.contains("B cannot be reached") && said.contains("Permission denied"),
            "{said}"
        );
        assert!(said.contains("Try it in a terminal: "), "{said}");
        assert!(document.is_none());
    }

    let far = by_ssh("key");
    let (output, document) = run_by(
        &small_program(keys.path()),
        &Folder::new("ssh-run"),
        &mission(&far, short),
        &["--install"],
    );
    let document = document.unwrap_or_else(|| panic!("{}", words(&output)));
    assert!(
        words(&output).contains("Copied this program to B"),
        "{}",
        words(&output)
    );
    assert!(document.deaths.is_empty(), "{:?}", document.deaths);
    for flow in &document.flows {
        let counts = flow.destinations[0].counts;
        assert_eq!((counts.due, counts.received), (30, 30), "{}", flow.name);
        assert!(flow.destinations[0].clock_error_ns.is_some());
    }
    assert_eq!(far_folders(), Vec::<PathBuf>::new());

    // The connections break in the middle of a run.
    let long = "duration = \"10min\"\ndeadline = \"100ms\"";
    let far = Machine {
        program: DECKWATCH.to_owned(),
        ..far
    };
    let run = WatchedRun::start("ssh-broken", &mission(&far, long), &[]);
    signal(&run.parts("B"), Signal::KILL);
    let finished = run.finish();
    let deaths = &finished.document.deaths;
    assert!(
        deaths.iter().any(|death| death.process.contains("at B")),
        "{deaths:?}"
    );
    // The parts there end because their pipes have closed.
    while !far_folders().is_empty() {
        std::thread::yield_now();
    }
}
