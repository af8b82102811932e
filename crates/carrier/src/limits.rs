//! Every bound of this crate, with its reason.

use std::time::Duration;

/// Octets of one line between coordinator and part. A plan names at most a few hundred destinations, each an IOR of under 1 KiB; a line beyond this is no plan.
pub const LINE_SIZE_MAX: usize = 4 << 20;

/// Time between two progress lines of a part: four a second look alive to the eye and cost a loaded host nothing.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
