//! Every bound of this crate, with its reason.

use std::time::Duration;

/// Octets of a mission file: the largest fleet of `HOSTS_MAX` hosts, written out for several variants, has under 200
/// KiB.
pub const MISSION_SIZE_MAX: u64 = 4 << 20;

/// Faults reported of one file: more than anyone reads at once.
pub const FAULTS_MAX: usize = 32;

/// Shortest period: below it the kernel's timers, not the mission, make the schedule.
pub const PERIOD_MIN: Duration = Duration::from_micros(10);

/// Longest deadline: a drain lasts ten of them, and a mission that waits longer than that for one message is a mistake
/// in a unit.
pub const DEADLINE_MAX: Duration = Duration::from_secs(3600);

/// Warm-up of a flow that names none: long enough for connections, caches and the first round of page faults.
pub const WARM_UP_DEFAULT: Duration = Duration::from_secs(1);

/// Patience with a process that is to become ready: under the mission's own load on one processor a start takes
/// seconds.
pub const READY_PATIENCE: Duration = Duration::from_secs(20);

/// What each further process that starts at the same time adds to it.
pub const READY_PATIENCE_EACH: Duration = Duration::from_millis(500);

/// From `go` to the schedule's start: long enough for every part to read it.
pub const START_LEAD: Duration = Duration::from_millis(300);

/// What each part adds to it.
pub const START_LEAD_EACH: Duration = Duration::from_millis(2);

/// Longest that the coordinator waits for a line before it checks for other work.
pub const TURN_PATIENCE: Duration = Duration::from_millis(50);

/// Time between two reports of progress to the observer.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// How long after the end of its schedule and a drain a supplier may still be held up in its calls, before it is
/// stopped.
pub const SUPPLIER_GRACE: Duration = Duration::from_secs(5);

/// Patience with processes after `stop`: a tap writes out its capture, the others flush a page.
pub const STOP_PATIENCE: Duration = Duration::from_secs(15);

/// Patience with a process that has closed its output.
pub const EXIT_PATIENCE: Duration = Duration::from_secs(2);

/// Octets kept of what a process wrote to its standard error.
pub const LAST_WORDS_SIZE_MAX: usize = 4096;

/// Result folders of one mission begun within one second.
pub const SAME_SECOND_MAX: u32 = 100;

/// Octets of one host's capture: an hour of a thousand messages of 1 KiB a second.
pub const CAPTURE_SIZE_MAX: u64 = 4 << 30;

/// How much longer than its run a load lives if it is not stopped.
pub const LOAD_GRACE: Duration = Duration::from_secs(120);

/// Interval of the histogram logs.
pub const HISTOGRAM_INTERVAL: Duration = Duration::from_secs(1);
