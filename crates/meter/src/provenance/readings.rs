//! Kernel counters, read before and after a run.

use std::path::Path;
use std::time::{Duration, Instant};

use super::facts::read;
use crate::disturbance::Disturbance;

/// The counters at one moment. The difference of two readings is a [`Disturbance`].
#[derive(Clone, Debug)]
pub struct Readings {
    at: Instant,
    processors: u32,
    stolen: Duration,
    throttled: Duration,
    processor_pressure: Option<Duration>,
    udp_receive_overflows: Option<u64>,
    udp_send_errors: Option<u64>,
}

impl Readings {
    /// Reads the counters now. UDP counters are those of the calling process's own network namespace.
    #[must_use]
    pub fn take() -> Self {
        Self::take_at(Path::new("/"))
    }

    fn take_at(root: &Path) -> Self {
        let stat = read(&root.join("proc/stat")).unwrap_or_default();
        let snmp = read(&root.join("proc/net/snmp")).unwrap_or_default();
        Self {
            at: Instant::now(),
            processors: processors(&stat),
            stolen: stolen(&stat).unwrap_or_default(),
            throttled: throttled(root).unwrap_or_default(),
            processor_pressure: read(&root.join("proc/pressure/cpu"))
                .as_deref()
                .and_then(pressure),
            udp_receive_overflows: udp(&snmp, "RcvbufErrors"),
            udp_send_errors: udp(&snmp, "SndbufErrors"),
        }
    }

    /// Returns the disturbance between this reading and a later one. The caller adds the packets that a capture dropped
    /// and the error of the clocks.
    #[must_use]
    pub fn until(&self, later: &Self) -> Disturbance {
        let pressure = later.processor_pressure.zip(self.processor_pressure);
        Disturbance {
            duration: later.at.saturating_duration_since(self.at),
            processors: later.processors,
            stolen: later.stolen.saturating_sub(self.stolen),
            throttled: later.throttled.saturating_sub(self.throttled),
            processor_pressure: pressure.map(|(later, earlier)| later.saturating_sub(earlier)),
            udp_receive_overflows: since(self.udp_receive_overflows, later.udp_receive_overflows),
            udp_send_errors: since(self.udp_send_errors, later.udp_send_errors),
            ..Disturbance::default()
        }
    }
}

/// Returns the growth of a counter, or `None` if one of the readings is missing.
fn since(earlier: Option<u64>, later: Option<u64>) -> Option<u64> {
    let (earlier, later) = earlier.zip(later)?;
    Some(later.saturating_sub(earlier))
}

/// The unit of /proc/stat: a tick of USER_HZ, which is 100 on every architecture that Linux supports today.
const TICK: Duration = Duration::from_millis(10);

/// Returns the eighth number of the line for all processors: stolen time.
fn stolen(stat: &str) -> Option<Duration> {
    let ticks: u32 = stat
        .lines()
        .find(|line| line.starts_with("cpu "))?
        .split_whitespace()
        .nth(8)?
        .parse()
        .ok()?;
    Some(TICK.saturating_mul(ticks))
}

fn processors(stat: &str) -> u32 {
    let lines = stat.lines().filter(|line| {
        line.strip_prefix("cpu")
            .is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
    });
    u32::try_from(lines.count()).unwrap_or(u32::MAX)
}

/// Returns the total of the `some` line: time in which at least one runnable thread waited.
fn pressure(text: &str) -> Option<Duration> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split(' ')
        .find_map(|word| word.strip_prefix("total="))?
        .trim()
        .parse()
        .ok()
        .map(Duration::from_micros)
}

/// Returns a counter of /proc/net/snmp, which has a line of names and a line of numbers for each protocol.
fn udp(snmp: &str, name: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter(|line| line.starts_with("Udp:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let mut pairs = names.split(' ').zip(numbers.split(' '));
    let (_, number) = pairs.find(|(other, _)| *other == name)?;
    number.parse().ok()
}

/// Returns the time for which this process's control group was throttled by its quota. Supports both versions of
/// control groups.
fn throttled(root: &Path) -> Option<Duration> {
    let groups = read(&root.join("proc/self/cgroup"))?;
    groups.lines().find_map(|line| {
        let mut words = line.splitn(3, ':');
        let (_, controllers, group) = (
            words.next()?,
            words.next()?,
            words.next()?.trim_start_matches('/'),
        );
        let (hierarchy, key, unit) = match controllers {
            "" => ("sys/fs/cgroup", "throttled_usec ", Duration::from_micros(1)),
            "cpu" | "cpu,cpuacct" => (
                "sys/fs/cgroup/cpu",
                "throttled_time ",
                Duration::from_nanos(1),
            ),
            _ => return None,
        };
        let stat = read(&root.join(hierarchy).join(group).join("cpu.stat"))?;
        let number: u64 = stat
            .lines()
            .find_map(|line| line.strip_prefix(key))?
            .trim()
            .parse()
            .ok()?;
        Some(Duration::from_nanos(
            number.saturating_mul(u64::try_from(unit.as_nanos()).ok()?),
        ))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A directory with made-up kernel files, removed when it is dropped.
    pub(crate) struct Tree(PathBuf);

    impl Tree {
        pub(crate) fn new(name: &str) -> Self {
            let root =
                std::env::temp_dir().join(format!("deckwatch-meter-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&root).expect("a temporary folder");
            Self(root)
        }

        pub(crate) fn root(&self) -> &Path {
            &self.0
        }

        pub(crate) fn put(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn fill(tree: &Tree, steal: u64, pressure: u64, overflows: u64, throttled: u64) {
        tree.put("proc/stat", &format!("cpu  1 2 3 4 5 6 7 {steal} 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 8 0 0\nintr 1\n"));
        tree.put("proc/pressure/cpu", &format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={pressure}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n"));
        tree.put(
            "proc/net/snmp",
            &format!("Ip: A B\nIp: 1 2\nUdp: InDatagrams RcvbufErrors SndbufErrors\nUdp: 734 {overflows} 3\nUdpLite: InDatagrams\nUdpLite: 0\n"),
        );
        tree.put(
            "sys/fs/cgroup/job/cpu.stat",
            &format!("usage_usec 5\nnr_throttled 1\nthrottled_usec {throttled}\n"),
        );
        tree.put("proc/self/cgroup", "9:name=systemd:/\n0::/job\n");
    }

    #[test]
    fn the_difference_of_two_readings_is_what_happened_between() {
        let tree = Tree::new("readings");
        fill(&tree, 100, 1_000, 7, 40);
        let before = Readings::take_at(tree.root());
        fill(&tree, 103, 5_000, 9, 90);
        let found = before.until(&Readings::take_at(tree.root()));
        let expected = Disturbance {
            duration: found.duration,
            processors: 2,
            stolen: Duration::from_millis(30),
            throttled: Duration::from_micros(50),
            processor_pressure: Some(Duration::from_millis(4)),
            udp_receive_overflows: Some(2),
            udp_send_errors: Some(0),
            ..Disturbance::default()
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn the_first_version_of_control_groups_counts_in_nanoseconds() {
        let tree = Tree::new("cgroup-1");
        tree.put("proc/self/cgroup", "3:cpuset:/\n2:cpu,cpuacct:/job\n");
        tree.put(
            "sys/fs/cgroup/cpu/job/cpu.stat",
            "nr_periods 5\nthrottled_time 1500000\n",
        );
        assert_eq!(throttled(tree.root()), Some(Duration::from_micros(1_500)));
    }

    #[test]
    fn a_kernel_that_tells_nothing_disturbs_nothing() {
        let tree = Tree::new("no-readings");
        let before = Readings::take_at(tree.root());
        let found = before.until(&Readings::take_at(tree.root()));
        assert_eq!(
            found,
            Disturbance {
                duration: found.duration,
                ..Disturbance::default()
            }
        );
    }
}
