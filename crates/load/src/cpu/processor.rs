//! The kernel's counters of each processor: `/proc/stat` (proc_stat(5)).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};

use deckwatch_os::clock::monotonic_ns;

use crate::limits::STAT_SIZE_MAX;

/// Time since boot that a processor was idle or stolen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Without work, with or without a wait for a disk. The kernel counts it to the microsecond, where it counts the
    /// other states by samples of a clock tick. So use is what is not idle.
    pub(super) idle_ns: u64,
    /// Taken by the hypervisor while there was work.
    pub(super) stolen_ns: u64,
}

/// The counters of all processors at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    pub(super) at_ns: i64,
    pub(super) processors: BTreeMap<u32, Counters>,
}

impl Reading {
    /// Reads the counters.
    pub(super) fn now() -> io::Result<Self> {
        let at_ns = monotonic_ns();
        let mut text = String::new();
        File::open("/proc/stat")?
            .take(STAT_SIZE_MAX)
            .read_to_string(&mut text)?;
        Ok(Self {
            at_ns,
            processors: parse(&text),
        })
    }

    /// Returns a processor's busy and stolen share since an earlier reading. A processor that went offline meanwhile has
    /// none.
    pub(super) fn since(&self, before: &Self, processor: u32) -> Option<Used> {
        let now = self.processors.get(&processor)?;
        let then = before.processors.get(&processor)?;
        let wall_ns = (self.at_ns - before.at_ns).max(0) as f64;
        let idle_ns = now.idle_ns.saturating_sub(then.idle_ns) as f64;
        let stolen_ns = now.stolen_ns.saturating_sub(then.stolen_ns) as f64;
        Some(Used {
            wall_ns,
            // Without a bound: the next difference has what this one has too much or too little.
            busy_ns: wall_ns - idle_ns,
            stolen_ns,
        })
    }
}

/// Use of one processor between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Used {
    pub(super) wall_ns: f64,
    pub(super) busy_ns: f64,
    pub(super) stolen_ns: f64,
}

fn parse(text: &str) -> BTreeMap<u32, Counters> {
    let line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let processor = words.next()?.parse().ok()?;
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let of = |place: usize| ticks.get(place).copied().unwrap_or(0);
        let counters = Counters {
            idle_ns: (of(IDLE) + of(WAITING)) * TICK_NS,
            stolen_ns: of(STOLEN) * TICK_NS,
        };
        Some((processor, counters))
    };
    // The first line is the sum of all; its second word is no number of a processor.
    text.lines()
        .filter(|line| !line.starts_with("cpu "))
        .filter_map(line)
        .collect()
}

const IDLE: usize = 3;
const WAITING: usize = 4;
const STOLEN: usize = 7;

/// The unit of the counters, USER_HZ: a hundredth of a second on every architecture that Rust's Linux targets have.
const TICK_NS: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
cpu  5008872 4259138 1699700 3428269 43811 0 180820 34560 0 0
cpu0 2457991 2105338 783655 1875637 13733 0 74151 16718 0 0
cpu12 2550880 2153800 916044 1552632 30078 0 106669
intr 1 2 3
ctxt 77
";

    #[test]
    fn each_processor_has_its_own_line_and_old_kernels_have_fewer_columns() {
        let found = parse(TEXT);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [0, 12]);
        let first = Counters {
            idle_ns: (1_875_637 + 13_733) * TICK_NS,
            stolen_ns: 16_718 * TICK_NS,
        };
        assert_eq!(found[&0], first);
        assert_eq!(found[&12].stolen_ns, 0);
    }

    #[test]
    fn use_is_what_is_not_idle() {
        let reading = |at_ns, idle_ns, stolen_ns| Reading {
            at_ns,
            processors: BTreeMap::from([(1, Counters { idle_ns, stolen_ns })]),
        };
        let before = reading(5, 100, 40);
        let after = reading(1_005, 350, 50);
        let used = after.since(&before, 1).expect("there");
        assert_eq!(
            (used.wall_ns, used.busy_ns, used.stolen_ns),
            (1000.0, 750.0, 10.0)
        );
        assert_eq!(after.since(&before, 0), None);
    }

    #[test]
    fn this_machine_has_counters() {
        assert!(!Reading::now().expect("Linux").processors.is_empty());
    }
}
