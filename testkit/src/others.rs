//! Processor time of other processes: what disturbed a test that measures, as opposed to what the test did itself.

use std::collections::BTreeMap;
use std::time::Duration;

/// The processor time of all processes but this one, its descendants and the kernel's, at one moment.
///
/// What a test does itself, by threads that take a processor or flood a link, by loads that it starts or by what it
/// tests, is not in it: a test that could excuse itself could not fail.
#[derive(Clone, Copy, Debug)]
pub struct OtherProcesses {
    used: Duration,
}

impl OtherProcesses {
    /// Reads the accounts of all processes that this process may see.
    ///
    /// # Panics
    /// Panics if `/proc` is not mounted.
    #[must_use]
    pub fn now() -> Self {
        let entries = std::fs::read_dir("/proc").expect("the kernel lists them");
        let accounts = entries.flatten().filter_map(|entry| {
            let process = entry.file_name().to_str()?.parse().ok()?;
            // A process may have ended meanwhile.
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            Some((process, Account::parse(&stat)?))
        });
        Self {
            used: used_by_others(&accounts.collect(), std::process::id()),
        }
    }

    /// Returns the processor time that other processes have used since this reading.
    #[must_use]
    pub fn used_since(&self) -> Duration {
        Self::now().used.saturating_sub(self.used)
    }
}

/// The account of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Account {
    parent: u32,
    is_kernel: bool,
    /// Time of its threads, and of its children that have ended.
    used: Duration,
}

impl Account {
    /// Parses `/proc/PID/stat` (proc_pid_stat(5)). The name of the process may contain parentheses.
    fn parse(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The first one behind the name is field 3.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let ticks: u64 = [14, 15, 16, 17]
            .into_iter()
            .map(number)
            .sum::<Option<_>>()?;
        Some(Self {
            parent: u32::try_from(number(4)?).ok()?,
            is_kernel: number(9)? & KERNEL_THREAD != 0,
            used: Duration::from_millis(ticks * TICK_MS),
        })
    }
}

/// Returns the time of all processes but `own` and its descendants.
fn used_by_others(accounts: &BTreeMap<u32, Account>, own: u32) -> Duration {
    let is_own = |process: u32| {
        let parent = |process: &u32| accounts.get(process).map(|account| account.parent);
        // Bounded: an id may have been used again while the accounts were read.
        let ancestors = std::iter::successors(Some(process), parent).take(accounts.len());
        ancestors.into_iter().any(|ancestor| ancestor == own)
    };
    let others = accounts
        .iter()
        .filter(|(process, account)| !account.is_kernel && !is_own(**process));
    others.map(|(_, account)| account.used).sum()
}

/// The unit of times in stat files: USER_HZ, which is 100 on every architecture that Linux supports today.
const TICK_MS: u64 = 10;
/// PF_KTHREAD of the kernel's flags of a thread.
const KERNEL_THREAD: u64 = 0x0020_0000;

#[cfg(test)]
mod tests {
    use super::*;

    fn account(parent: u32, ms: u64) -> Account {
        Account {
            parent,
            is_kernel: false,
            used: Duration::from_millis(ms),
        }
    }

    #[test]
    fn an_account_has_the_time_of_threads_and_of_ended_children() {
        let stat =
            "4711 (a) b) R) S 12 4711 4711 0 -1 4194304 1 0 0 0 1 20 300 4000 20 0 1 0 987654";
        assert_eq!(Account::parse(stat), Some(account(12, 43_210)));
        let kernel = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 7 0 0 20 0 1 0 1 0 0";
        assert!(Account::parse(kernel).is_some_and(|account| account.is_kernel));
        assert_eq!(Account::parse("4711 (a) S 12"), None);
    }

    #[test]
    fn a_process_and_its_descendants_are_no_others() {
        let kernel = Account {
            is_kernel: true,
            ..account(0, 100_000)
        };
        let accounts = BTreeMap::from([
            (1, account(0, 1)),
            (2, kernel),
            (10, account(1, 20)),
            (11, account(10, 300)),
            (12, account(11, 4_000)),
            (13, account(1, 50_000)),
            // Two that are said to be parents of each other.
            (14, account(15, 6)),
            (15, account(14, 6)),
        ]);
        assert_eq!(used_by_others(&accounts, 10), Duration::from_millis(50_013));
        assert_eq!(used_by_others(&accounts, 1), Duration::from_millis(12));
    }
}
