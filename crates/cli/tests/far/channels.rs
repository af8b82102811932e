//! The event channels of a sweep between far hosts: where they run, and that they leave nothing behind.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::Signal;

use super::hosts::{DECKWATCH, Machine, far_folders, is_alive};
use super::measured::sweep;
use super::{flow, one_run_at_a_time, words};
use crate::watched::{Folder, signal};

/// Returns two hosts whose far processes note in a file their host, their id, and the words of the program. As with a
/// real one, only the pipe leads to them: one that is stopped does not hold the sweep's standard error.
fn noting(file: &Path) -> String {
    let machine = |name: &str| {
        let script = format!(
            "echo \"{name} $$ $*\" >> {}; exec \"$@\" 2>/dev/null",
            file.display()
        );
        let reach = ["setsid", "--wait", "sh", "-c", &script, "sh"].map(str::to_owned);
        Machine::new(name, &reach, "127.0.0.1").line()
    };
    format!("hosts = [{}, {}]", machine("A"), machine("B"))
}

/// A far process that was noted.
struct Noted {
    host: String,
    id: u32,
    /// Whether it is a naming service or a channel.
    is_part: bool,
}

fn noted(file: &Path) -> Vec<Noted> {
    let text = std::fs::read_to_string(file).expect("noted");
    let of = |line: &str| {
        let mut words = line.split(' ');
        Some(Noted {
            host: words.next()?.to_owned(),
            id: words.next()?.parse().ok()?,
            is_part: line.contains(" part --run "),
        })
    };
    text.lines().filter_map(of).collect()
}

/// Waits until none of the far processes is alive, and requires that none has left its folder.
fn assert_nothing_is_left(file: &Path) {
    while noted(file).iter().any(|one| is_alive(one.id)) {
        std::thread::yield_now();
    }
    assert_eq!(far_folders(), Vec::<PathBuf>::new());
}

#[test]
fn channels_of_a_sweep_run_at_the_far_host_that_sends_to_them_and_leave_nothing() {
    let _alone = one_run_at_a_time();
    let folder = Folder::new("far-channels");
    let file = folder.path().join("noted");
    let more = ["--from=A", "--to=B", "--carriers=event,rt-event"];
    let (output, document) = sweep(&folder, &noting(&file), &more);
    let document = document.unwrap_or_else(|| panic!("{}", words(&output)));
    assert!(output.status.success(), "{}", words(&output));
    assert_eq!(document.skipped, Vec::new());
    let of = |carrier: &str| {
        let points = document.measurements.iter();
        points.filter(|point| point.system == carrier).count()
    };
    assert_eq!((of("event"), of("rt-event")), (2, 2), "two sizes each");
    for point in &document.measurements {
        assert_eq!(point.values["ledger_received"], 100.0, "{}", point.system);
        assert!(point.values["transaction_mean_ns"] > 0.0);
    }
    // Of each carrier: the naming service and the channel of the messages at A, the channel of the answers at B.
    let all = noted(&file);
    let parts_at = |host: &str| {
        let parts = all.iter().filter(|one| one.is_part);
        parts.filter(|one| one.host == host).count()
    };
    assert_eq!((parts_at("A"), parts_at("B")), (4, 2));
    assert_nothing_is_left(&file);
}

/// A sweep over `event` that measures.
struct Sweeping {
    sweep: Child,
    lines: BufReader<ChildStderr>,
    said: String,
    file: PathBuf,
    _folder: Folder,
}

impl Sweeping {
    fn start(test: &str) -> Self {
        let folder = Folder::new(test);
        let file = folder.path().join("noted");
        let rest = "octets = 64\ncarrier = \"udp\"\ncount = 1\ndeadline = \"100ms\"";
        let mission = format!(
            "name = \"channels\"\n{}\n{}",
            noting(&file),
            flow("any", "A", "B", rest)
        );
        let hosts = folder.path().join("mission.toml");
        std::fs::write(&hosts, mission).expect("writable");
        let mut sweep = Command::new(DECKWATCH)
            .args([
                "sweep",
                "--carriers=event",
                "--sizes=64",
                "--iterations=10000",
            ])
            .args(["--from=A", "--to=B", "--hosts"])
            .arg(&hosts)
            .arg("--output")
            .arg(folder.path().join("result"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut lines = BufReader::new(sweep.stderr.take().expect("piped"));
        let mut said = String::new();
        while !said.contains("64 octets") {
            assert!(lines.read_line(&mut said).expect("text") > 0, "{said}");
        }
        Self {
            sweep,
            lines,
            said,
            file,
            _folder: folder,
        }
    }

    /// Sends a signal to the naming services and channels at a host.
    fn signal_parts(&self, host: &str, of: Signal) {
        let all = noted(&self.file);
        let parts = all.iter().filter(|one| one.is_part && one.host == host);
        let parts: Vec<u32> = parts.map(|one| one.id).collect();
        assert!(!parts.is_empty());
        signal(&parts, of);
    }

    /// Waits for its end. Returns its exit status and what it said.
    fn finish(&mut self) -> (Option<i32>, String) {
        self.lines.read_to_string(&mut self.said).expect("text");
        let status = self.sweep.wait().expect("it ends");
        (status.code(), self.said.clone())
    }
}

impl Drop for Sweeping {
    fn drop(&mut self) {
        // After a failed assertion it would go on.
        drop(self.sweep.kill());
        drop(self.sweep.wait());
    }
}

#[test]
fn far_channels_end_when_the_sweep_is_killed_and_remove_their_folders() {
    let _alone = one_run_at_a_time();
    let mut sweeping = Sweeping::start("far-channels-orphans");
    assert_ne!(far_folders(), Vec::<PathBuf>::new());
    signal(&[sweeping.sweep.id()], Signal::KILL);
    sweeping.finish();
    assert_nothing_is_left(&sweeping.file);
}

#[test]
fn a_far_channel_that_dies_or_stands_still_ends_the_sweep_with_its_name() {
    let _alone = one_run_at_a_time();
    for (of, told) in [
        (Signal::KILL, "it has ended"),
        (
            Signal::STOP,
            "the pipe from there has carried nothing for 10s",
        ),
    ] {
        let mut sweeping = Sweeping::start("far-channels-faults");
        sweeping.signal_parts("B", of);
        let (status, said) = sweeping.finish();
        assert_eq!(status, Some(2), "{said}");
        let told = format!("A channel of event on B cannot go on: {told}");
        assert!(said.contains(&told), "{said}");
        if of == Signal::STOP {
            sweeping.signal_parts("B", Signal::CONT);
        }
        while noted(&sweeping.file).iter().any(|one| is_alive(one.id)) {
            std::thread::yield_now();
        }
    }
    // The next part on the host removes the folders of those that were killed.
    let folder = Folder::new("far-channels-next");
    let file = folder.path().join("noted");
    let more = ["--from=A", "--to=B", "--carriers=udp"];
    let (output, _) = sweep(&folder, &noting(&file), &more);
    assert!(output.status.success(), "{}", words(&output));
    assert_nothing_is_left(&file);
}
