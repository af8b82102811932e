//! Far hosts: other machines and containers, each reached by a command that gives a pipe to a program there.
//!
//! The command is one like `ssh HOST` or `kubectl exec -i POD --`: it starts the program that its last arguments name,
//! and joins standard input and output to it. Access control, encryption and placement are its business. A part of a run
//! on a far host is this program there, started as `REACH... PROGRAM part --far`:
//!
//! 1. It writes `hello` with its build. The coordinator refuses another one than its own.
//! 2. It reads one line, its plan, with the files that the part reads. It makes a private folder and starts the
//!    part in it.
//! 3. It passes lines on in both directions. It answers `ping`s: these keep the pipe alive and relate the clocks.
//! 4. After the part's end it writes the files that the part created, then `end`, and removes the folder.
//!
//! Only words of a safe alphabet are added to the command, because a remote shell may read them. All else goes over
//! standard input. What comes back is bounded and checked: the far end may be broken or hostile.

mod clock;
mod far;
mod files;
mod folder;
mod install;
mod near;
mod probe;
mod words;

use std::net::IpAddr;
use std::process::{Command, Stdio};

use deckwatch_os::namespace::Placement;
use deckwatch_text::escaped;

pub use clock::FarClock;
pub use far::run as run_far;
pub(crate) use files::{FarPlan, Returned};
pub use folder::FarFolder;
pub use install::install;
pub(crate) use near::{Heard, Pipe, Terms, read_all};
pub use probe::{ReachError, ask, check};
pub(crate) use probe::{missing_adapters, missing_program};
pub(crate) use words::FarReadings;

/// How a far host is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The command and its arguments, to which a program and its arguments are added.
    pub words: Vec<String>,
    /// The address at which the other hosts send to the host.
    pub address: IpAddr,
    /// Where this program is on the host; `None` for `deckwatch` in its PATH.
    pub program: Option<String>,
}

impl Reach {
    /// Returns where this program is on the host.
    #[must_use]
    pub fn program(&self) -> &str {
        self.program.as_deref().unwrap_or(PROGRAM)
    }

    /// Returns the command that starts `words` on the host, with all three standard streams as pipes. It has no terminal:
    /// a command that would ask for a password fails at once, and does not wait for an answer that nobody can type.
    ///
    /// # Errors
    /// The operating system's error; none is known.
    pub(crate) fn command(&self, words: &[&str]) -> std::io::Result<Command> {
        let is_safe = |word: &&str| is_plain_word(word.trim_start_matches('-'));
        debug_assert!(words.iter().all(is_safe), "{words:?}");
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let placement = Placement {
            dies_with_parent: true,
            own_session: true,
            ..Placement::default()
        };
        placement.apply(&mut command)?;
        Ok(command)
    }

    /// Returns the command as a user would type it.
    #[must_use]
    pub fn in_words(&self) -> String {
        self.words.join(" ")
    }
}

/// Whether a word means the same to a shell as without one.
#[must_use]
pub fn is_plain_word(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain)
}

/// Returns a text of a far host on one line, as it may be printed.
pub(crate) fn plain_text(text: &str) -> String {
    escaped(text).to_string()
}

/// The program's name in the PATH of a far host.
pub const PROGRAM: &str = "deckwatch";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_no_shell_changes_are_plain() {
        for word in [
            "deckwatch",
            "/opt/deckwatch-1.2/bin/deckwatch",
            ".a/b+c",
            "of=x",
        ] {
            assert!(is_plain_word(word), "{word}");
        }
        for word in [
            "", "a b", "$HOME/x", "~/x", "a;b", "a'b", "`x`", "x*", "-rf", "ä", "a\nb",
        ] {
            assert!(!is_plain_word(word), "{word}");
        }
    }
}
