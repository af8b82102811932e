//! Every bound of this crate, with its reason.

use std::time::Duration;

/// Maximum size of a mission file in octets. The largest fleet of `HOSTS_MAX` hosts, written out for several variants,
/// has under 200 KiB.
pub const MISSION_SIZE_MAX: u64 = 4 << 20;

/// Maximum number of faults reported for one file: a user does not read more at once.
pub const FAULTS_MAX: usize = 32;

/// Shortest period. Below it, the kernel's timers decide the schedule, and not the mission.
pub const PERIOD_MIN: Duration = Duration::from_micros(10);

/// Longest deadline. A drain lasts ten deadlines. A longer deadline than this is probably a mistake in the unit.
pub const DEADLINE_MAX: Duration = Duration::from_secs(3600);

/// Longest burst of late messages that a flow may ask for: to prove even a budget of 1 in 20 for it takes 60 million
/// messages. The mission's schema has the same number.
pub const CLUSTERS_MAX: u64 = 1_000_000;

/// Default warm-up of a flow: long enough for connections, caches and the first round of page faults.
pub const WARM_UP_DEFAULT: Duration = Duration::from_secs(1);

/// Maximum time until a process is ready. On one processor under the mission's own load, a start takes seconds.
pub const READY_PATIENCE: Duration = Duration::from_secs(20);

/// Addition to [`READY_PATIENCE`] for each process that starts at the same time.
pub const READY_PATIENCE_EACH: Duration = Duration::from_millis(500);

/// Time from `go` to the schedule's start: long enough for every part to read it.
pub const START_LEAD: Duration = Duration::from_millis(300);

/// Addition to [`START_LEAD`] for each part.
pub const START_LEAD_EACH: Duration = Duration::from_millis(2);

/// Longest time for which the coordinator waits for a line before it checks for other work.
pub const TURN_PATIENCE: Duration = Duration::from_millis(50);

/// Time between two reports of progress to the observer.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// Time after its schedule and a drain in which a supplier may still be blocked in its calls, before it is stopped.
pub const SUPPLIER_GRACE: Duration = Duration::from_secs(5);

/// Maximum time until processes end after `stop`: a tap writes its capture, the others flush a page.
pub const STOP_PATIENCE: Duration = Duration::from_secs(15);

/// Maximum time until a process ends after it has closed its output.
pub const EXIT_PATIENCE: Duration = Duration::from_secs(2);

/// Maximum number of octets that are kept of a process's standard error.
pub const LAST_WORDS_SIZE_MAX: usize = 4096;

/// Maximum number of result folders of one mission that begin within one second.
pub const SAME_SECOND_MAX: u32 = 100;

/// Maximum size of one host's capture in octets: an hour of a thousand messages of 1 KiB per second.
pub const CAPTURE_SIZE_MAX: u64 = 4 << 30;

/// Time after the planned end of its run at which a load ends by itself, if it is not stopped.
pub const LOAD_GRACE: Duration = Duration::from_secs(120);

/// Interval of the histogram logs.
pub const HISTOGRAM_INTERVAL: Duration = Duration::from_secs(1);
