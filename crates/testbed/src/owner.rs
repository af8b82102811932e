//! The owner of a namespace, encoded in its name, so that the namespaces that a killed run left behind can be
//! identified exactly.
//!
//! The name is `dw<pid>-<start>-<number>-<host>`:
//!
//! - `pid`: the owner's process id; 0, which no process has, for a kept testbed,
//! - `start`: when the owner started, in clock ticks since boot in base 36 (process ids are reused),
//! - `number`: the number of the testbed among the owner's,
//! - `host`: the host; absent for the switch.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use deckwatch_os::namespace::start_time_of_process;

/// The owner of a testbed and the testbed's number; every name starts with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The process id; 0 if no process owns the testbed.
    pub pid: u32,
    /// When that process started, clock ticks since boot; 0 if no process owns the testbed.
    pub started_ticks: u64,
    /// The number of the testbed among the owner's.
    pub number: u32,
}

impl Owner {
    /// Returns the calling process as the owner, with an unused number.
    #[must_use]
    pub fn this_process() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let pid = std::process::id();
        Self {
            pid,
            started_ticks: start_time_of_process(pid).unwrap_or(0),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Returns the owner of a kept testbed, which is no process.
    #[must_use]
    pub const fn nobody(number: u32) -> Self {
        Self {
            pid: 0,
            started_ticks: 0,
            number,
        }
    }

    /// Returns true if the testbed is kept until it is taken down, whichever process ends.
    #[must_use]
    pub const fn is_kept(self) -> bool {
        self.pid == 0
    }

    /// Returns true if the owning process has ended; always false for a kept testbed.
    #[must_use]
    pub fn has_ended(self) -> bool {
        !self.is_kept() && start_time_of_process(self.pid) != Some(self.started_ticks)
    }

    /// Returns the name of the switch's namespace.
    #[must_use]
    pub fn switch_name(self) -> String {
        self.to_string()
    }

    /// Returns the name of a host's namespace.
    #[must_use]
    pub fn host_name(self, host: &str) -> String {
        format!("{self}-{host}")
    }

    /// Parses the name of a namespace. Returns the owner and the host, which is `None` for the switch; returns `None`
    /// for a namespace that is not of a testbed.
    #[must_use]
    pub fn parse(name: &str) -> Option<(Self, Option<&str>)> {
        let mut parts = name.strip_prefix(PREFIX)?.splitn(4, '-');
        let owner = Self {
            pid: decimal(parts.next()?)?,
            started_ticks: from_base_36(parts.next()?)?,
            number: decimal(parts.next()?)?,
        };
        Some((owner, parts.next()))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{PREFIX}{}-{}-{}",
            self.pid,
            to_base_36(self.started_ticks),
            self.number
        )
    }
}

/// The prefix of the name of every namespace of a testbed.
const PREFIX: &str = "dw";

/// Parses a number in the form that this module writes: no sign, no leading zero.
fn decimal(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn to_base_36(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(DIGITS_36[usize::try_from(number % 36).unwrap_or(0)]);
        number /= 36;
        if number == 0 {
            break;
        }
    }
    digits
        .iter()
        .rev()
        .map(|&digit| char::from(digit))
        .collect()
}

fn from_base_36(text: &str) -> Option<u64> {
    let number = u64::from_str_radix(text, 36).ok()?;
    (to_base_36(number) == text).then_some(number)
}

const DIGITS_36: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_owner_and_host() {
        let owner = Owner {
            pid: 4711,
            started_ticks: 123_456_789,
            number: 3,
        };
        assert_eq!(owner.host_name("SONAR"), "dw4711-21i3v9-3-SONAR");
        assert_eq!(
            Owner::parse("dw4711-21i3v9-3-SONAR"),
            Some((owner, Some("SONAR")))
        );
        assert_eq!(
            Owner::parse(&owner.host_name("own-ship")),
            Some((owner, Some("own-ship")))
        );
        assert_eq!(Owner::parse(&owner.switch_name()), Some((owner, None)));
    }

    #[test]
    fn names_of_others_are_not_taken_for_ours() {
        for name in [
            "",
            "dw",
            "blue",
            "dw12",
            "dw12-x",
            "dw+1-0-0-a",
            "dw01-0-0-a",
            "dw1-0-x-a",
            "dw1-Z-0-a",
            "xdw1-0-0",
        ] {
            assert_eq!(Owner::parse(name), None, "{name}");
        }
    }

    #[test]
    fn this_process_has_not_ended_but_its_predecessor_of_the_same_id_has() {
        let owner = Owner::this_process();
        assert!(!owner.has_ended());
        let predecessor = Owner {
            started_ticks: owner.started_ticks - 1,
            ..owner
        };
        assert!(predecessor.has_ended());
        assert!(!Owner::nobody(1).has_ended());
    }

    #[test]
    fn each_testbed_of_a_process_has_a_number_of_its_own() {
        assert_ne!(Owner::this_process(), Owner::this_process());
    }
}
