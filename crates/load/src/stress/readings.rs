//! What is read about `stress-ng`: the kernel's counters of its processes, the machine's memory and stalls, and the
//! figures of the program about itself.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use super::Stressed;
use crate::limits::STAT_SIZE_MAX;

/// Counters of the processes of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Memory of the process that has most: the worker. The others share its pages, or have almost none.
    pub(super) resident_bytes: u64,
    /// Octets that they made the kernel write to a disk.
    pub(super) written_bytes: u64,
}

/// Time in which tasks of the machine waited for memory, or for input and output, since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stalls {
    pub(super) some: Duration,
    pub(super) full: Duration,
}

impl Stalls {
    /// Reads a file of `/proc/pressure`; `None` on a kernel that does not count it.
    pub(super) fn read(path: &Path) -> Option<Self> {
        Self::parse(&bounded(path, STAT_SIZE_MAX).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let total = |kind: &str| {
            let line = text.lines().find(|line| line.starts_with(kind))?;
            let total = line
                .split(' ')
                .find_map(|word| word.strip_prefix("total="))?;
            Some(Duration::from_micros(total.parse().ok()?))
        };
        Some(Self {
            some: total("some ")?,
            full: total("full ")?,
        })
    }
}

/// Returns the memory that can be taken without swapping.
pub(super) fn available_bytes() -> io::Result<u64> {
    let text = bounded(Path::new("/proc/meminfo"), STAT_SIZE_MAX)?;
    kib(&text, "MemAvailable:").ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Returns the counters of the group that `leader` leads. Processes that end meanwhile are left out.
pub(super) fn of_group(leader: u32) -> Counters {
    let mut counters = Counters::default();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let process = entry.path();
        let read = |file| bounded(&process.join(file), STAT_SIZE_MAX).unwrap_or_default();
        if group_in_stat(&read("stat")) != Some(leader) {
            continue;
        }
        let resident = kib(&read("status"), "RssAnon:").unwrap_or(0);
        counters.resident_bytes = counters.resident_bytes.max(resident);
        let io = read("io");
        let written = io
            .lines()
            .find_map(|line| line.strip_prefix("write_bytes: "));
        counters.written_bytes += written.and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
    }
    counters
}

/// Reads the process group in `/proc/PID/stat`. The command is in parentheses and may contain any character.
fn group_in_stat(stat: &str) -> Option<u32> {
    const GROUP: usize = 2;
    let after = stat.get(stat.rfind(')')? + 1..)?;
    after.split_ascii_whitespace().nth(GROUP)?.parse().ok()
}

fn kib(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Reads the metrics of one worker from the file of `--yaml`; `None` if they are not there.
pub(super) fn metrics(text: &str) -> Option<Stressed> {
    let value = |key: &str| {
        let mut pairs = text.lines().filter_map(|line| line.trim().split_once(": "));
        pairs
            .find(|(known, _)| *known == key)
            .map(|(_, value)| value)
    };
    let number = |key: &str| value(key)?.parse::<f64>().ok().filter(|it| it.is_finite());
    let used_s = number("user-time")? + number("system-time")?;
    // The program's megabyte has 2^20 octets.
    let octets = |key: &str| number(key).map(|mb| mb * f64::from(1 << 20));
    Some(Stressed {
        version: value("stress-ng-version")?.to_owned(),
        operations: value("bogo-ops")?.parse().ok()?,
        operations_per_s: number("bogo-ops-per-second-real-time")?,
        processor_time: Duration::try_from_secs_f64(used_s).ok()?,
        written_octets_per_s: octets("mbsec-write-rate"),
        read_octets_per_s: octets("mbsec-read-rate"),
        stalled_some: None,
        stalled_full: None,
    })
}

/// Reads the beginning of a file.
pub(super) fn bounded(path: &Path, size_max: u64) -> io::Result<String> {
    let mut octets = Vec::new();
    File::open(path)?.take(size_max).read_to_end(&mut octets)?;
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metrics_of_the_program_are_read_from_its_file() {
        let text = "---\nsystem-info:\n      stress-ng-version: 0.15.06\n      cpus: 2\n\nmetrics:\n    - stressor: hdd\n      \
                    bogo-ops: 35373\n      bogo-ops-per-second-usr-sys-time: 19832.8\n      \
                    bogo-ops-per-second-real-time: 11641.4\n      wall-clock-time: 3.0\n      user-time: 1.5\n      \
                    system-time: 0.25\n      max-rss: 2588\n      mbsec-read-rate: 2.0\n      mbsec-write-rate: 0.5\n\n...\n";
        let found = metrics(text).expect("whole");
        let wanted = Stressed {
            version: "0.15.06".to_owned(),
            operations: 35_373,
            operations_per_s: 11_641.4,
            processor_time: Duration::from_millis(1_750),
            written_octets_per_s: Some(524_288.0),
            read_octets_per_s: Some(2_097_152.0),
            stalled_some: None,
            stalled_full: None,
        };
        assert_eq!(found, wanted);
        let cut = text.split("user-time").next().expect("a beginning");
        assert_eq!(metrics(cut), None, "a file that was not finished");
    }

    #[test]
    fn stalls_memory_and_groups_are_read_from_the_kernels_own_forms() {
        let text = "some avg10=3.61 avg60=1.47 avg300=0.98 total=1202\nfull avg10=3.24 avg60=0.87 avg300=0.46 total=332\n";
        let stalls = Stalls::parse(text).expect("whole");
        let us = Duration::from_micros;
        assert_eq!((stalls.some, stalls.full), (us(1202), us(332)));
        assert_eq!(
            kib("MemFree: 1 kB\nMemAvailable:   12 kB\n", "MemAvailable:"),
            Some(12_288)
        );
        assert_eq!(group_in_stat("17 (a) b) S 1 15 15 0"), Some(15));
    }
}
