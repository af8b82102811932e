//! What the tests of measuring commands share: result folders, and commands that are disturbed while they measure.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

/// Returns a path at which there is no folder yet.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("deckwatch-{test}-{}", std::process::id()));
    let _left_over = std::fs::remove_dir_all(&folder);
    folder
}

/// A command that is measuring.
pub(crate) struct Measuring {
    child: Child,
    progress: ChildStderr,
}

impl Measuring {
    /// Starts the command, and waits until it reports its second round. When a later round has begun, the result of the
    /// first is saved.
    pub(crate) fn until_round_2(command: &mut Command) -> Self {
        Self::until(command, "round 2")
    }

    /// Starts the command, and waits until it prints `words`.
    pub(crate) fn until(command: &mut Command, words: &str) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut progress = child.stderr.take().expect("piped");
        let mut heard = Vec::new();
        let mut octet = [0];
        while !String::from_utf8_lossy(&heard).contains(words) {
            let count = progress.read(&mut octet).expect("readable");
            assert_ne!(count, 0, "{}", String::from_utf8_lossy(&heard));
            heard.push(octet[0]);
        }
        Self { child, progress }
    }

    /// Sends a signal to the command.
    pub(crate) fn send(&self, signal: &str) {
        kill(signal, &self.child.id().to_string());
    }

    /// Kills the child process of the command whose arguments begin with `words`.
    pub(crate) fn kill_end(&self, words: &[&str]) {
        let pid = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.expect("the kernel tells of children");
        let is_it = |child: &&str| {
            let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            let mut arguments = line.split('\0').skip(1);
            words.iter().all(|word| arguments.next() == Some(word))
        };
        let end = children.split_whitespace().find(is_it);
        kill("-KILL", end.expect("it has such an end"));
    }

    /// Waits for the end of the command, and returns all its output.
    pub(crate) fn output(self) -> Output {
        let Self {
            child,
            mut progress,
        } = self;
        let listening = std::thread::spawn(move || {
            let mut heard = Vec::new();
            progress.read_to_end(&mut heard).map(|_| heard)
        });
        let output = child.wait_with_output().expect("it ends");
        let stderr = listening.join().expect("no panic").expect("readable");
        Output { stderr, ..output }
    }
}

fn kill(signal: &str, pid: &str) {
    let told = Command::new("kill").args([signal, pid]).status();
    assert!(told.expect("kill is there").success());
}
