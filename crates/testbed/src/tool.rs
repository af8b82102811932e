//! The programs that create namespaces and shapers. Each runs with a script on its standard input.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use deckwatch_os::namespace::{Namespace, Placement};

use crate::TestbedError;
use crate::limits::TOOL_SPEECH_LEN_MAX;

/// A system program that the testbed runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Namespaces, interfaces, addresses.
    Ip,
    /// Addresses and ports of the bridge.
    Bridge,
    /// Shapers.
    Tc,
    /// Priorities and losses.
    Nft,
    /// Offloads.
    Ethtool,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Ip, Self::Bridge, Self::Tc, Self::Nft, Self::Ethtool];

    /// The command.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Bridge => "bridge",
            Self::Tc => "tc",
            Self::Nft => "nft",
            Self::Ethtool => "ethtool",
        }
    }

    /// The Debian package that contains it.
    #[must_use]
    pub const fn package(self) -> &'static str {
        match self {
            Self::Ip | Self::Bridge | Self::Tc => "iproute2",
            Self::Nft => "nftables",
            Self::Ethtool => "ethtool",
        }
    }

    /// Returns where it is installed: in the search path, or in a system folder that a user's search path often omits.
    #[must_use]
    pub fn path(self) -> Option<PathBuf> {
        let search = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&search)
            .chain(SYSTEM_FOLDERS.iter().map(PathBuf::from))
            .map(|folder| folder.join(self.name()))
            .find(|candidate| is_program(candidate))
    }

    /// Runs it with `script` on its standard input, inside a namespace if one is given. Returns its output.
    pub(crate) fn run(
        self,
        inside: Option<&Namespace>,
        words: &[&str],
        script: &str,
    ) -> Result<String, TestbedError> {
        let path = self.path().ok_or(TestbedError::ToolAbsent {
            tool: self.name(),
            package: self.package(),
        })?;
        let mut command = Command::new(path);
        command.args(words).env("LC_ALL", "C");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let placement = Placement {
            namespace: inside.cloned(),
            own_group: true,
            ..Placement::default()
        };
        let output = placement
            .apply(&mut command)
            .and_then(|()| command.spawn())
            .and_then(|mut child| {
                let written = child
                    .stdin
                    .take()
                    .map_or(Ok(()), |mut input| input.write_all(script.as_bytes()));
                match written {
                    // The tool ended before it read everything; its own message explains more.
                    Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
                    _ => child.wait_with_output(),
                }
            })
            .map_err(TestbedError::system(format!("Running `{}`", self.name())))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(TestbedError::ToolFailed {
            command: [&[self.name()], words].concat().join(" "),
            speech: speech(&output.stderr, script),
        })
    }
}

/// Returns a tool's error output, shortened, with the line of the script that it refers to.
fn speech(stderr: &[u8], script: &str) -> String {
    let said = String::from_utf8_lossy(stderr);
    let said = said.trim();
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("Command failed -:"))
        .and_then(|number| number.trim().parse::<usize>().ok())
        .and_then(|number| script.lines().nth(number.checked_sub(1)?));
    let mut speech: String = said.chars().take(TOOL_SPEECH_LEN_MAX).collect();
    if let Some(line) = line {
        speech.push_str(&format!(" [{line}]"));
    }
    speech
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

const SYSTEM_FOLDERS: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_line_of_a_batch_is_quoted() {
        let stderr = b"Error: argument \"x\" is wrong\nCommand failed -:2\n";
        let speech = speech(stderr, "link set lo up\nlink set x y\n");
        assert!(speech.ends_with("[link set x y]"), "{speech}");
    }

    #[test]
    fn long_speech_is_cut() {
        assert_eq!(
            speech("e".repeat(5000).as_bytes(), "").len(),
            TOOL_SPEECH_LEN_MAX
        );
    }
}
