//! Every bound of this crate, with its reason.

use std::time::Duration;

/// Octets of a mission file: the largest fleet of [`HOSTS_MAX`] hosts, written out for several variants, has under 200 KiB.
pub const MISSION_SIZE_MAX: u64 = 4 << 20;

/// Faults reported of one file: more than anyone reads at once.
pub const FAULTS_MAX: usize = 32;

/// Shortest period: below it the kernel's timers, not the mission, make the schedule.
pub const PERIOD_MIN: Duration = Duration::from_micros(10);

/// Longest deadline: a drain lasts ten of them, and a mission that waits longer than that for one message is a mistake in a unit.
pub const DEADLINE_MAX: Duration = Duration::from_secs(3600);

/// Warm-up of a flow that names none: long enough for connections, caches and the first round of page faults.
pub const WARM_UP_DEFAULT: Duration = Duration::from_secs(1);
