//! A far host that is reached by `ssh` through a real sshd, which runs in an emulated host.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use deckwatch_testbed::{HostSpec, Testbed, preset};
use rustix::process::Signal;

use super::hosts::{DECKWATCH, Machine, far_folders, small_program};
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
             StrictModes no\nPidFile none\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n\
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

#[test]
fn a_mission_runs_over_ssh_and_leaves_nothing_on_either_side() {
    if let Some(reason) = Testbed::obstacle() {
        deckwatch_testkit::skip("namespaces", &reason);
        return;
    }
    let absent = [SSHD, "/usr/bin/ssh"]
        .into_iter()
        .find(|path| !Path::new(path).exists());
    if let Some(absent) = absent {
        let why = format!("there is no {absent}: apt-get install openssh-server openssh-client");
        deckwatch_testkit::skip("sshd", &why);
        return;
    }
    let _alone = one_run_at_a_time();
    let network = preset("gigabit-ethernet").expect("a preset");
    let testbed = Testbed::create(&network, &[HostSpec::new("A"), HostSpec::new("B")]);
    let testbed = testbed.expect("namespaces");
    let [(a, at_a), (b, at_b)] = [0, 1].map(|index| {
        let host = &testbed.hosts()[index];
        let name = host.namespace_name().expect("a namespace").to_owned();
        (name, host.address().to_string())
    });
    let (keys, home) = (Folder::new("far-keys"), Folder::new("far-login"));
    let _sshd = Sshd::start(&b, &at_b, keys.path(), home.path());
    let near = ["ip", "netns", "exec", &a].map(str::to_owned);
    let by_ssh = |key: &str| Machine {
        program: "deckwatch-of-the-test".to_owned(),
        ..Machine::new("B", &ssh(&a, &keys.path().join(key), &at_b), &at_b)
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
    let (stranger, _) = run(
        &Folder::new("ssh-no"),
        &mission(&by_ssh("host-key"), short),
        &[],
    );
    assert_eq!(stranger.status.code(), Some(2));
    let said = words(&stranger);
    assert!(
        said.contains("B cannot be reached") && said.contains("Permission denied"),
        "{said}"
    );

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
