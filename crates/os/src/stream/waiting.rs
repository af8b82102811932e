//! The clocks of deadlines, and a wait that ends at one.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

/// Returns CLOCK_MONOTONIC, nanoseconds: the clock of this module's deadlines.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// As [`monotonic_ns`], at the last tick of the scheduler: late by up to 10 ms, but read in a fraction of the time.
#[must_use]
pub fn monotonic_coarse_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Waits until `fd` is ready. Returns `TimedOut` at the deadline.
pub(crate) fn wait_for(fd: &OwnedFd, flags: PollFlags, deadline_ns: Option<u64>) -> io::Result<()> {
    loop {
        let remaining = deadline_ns.map(|deadline_ns| {
            let remaining_ns = deadline_ns.saturating_sub(monotonic_ns());
            let nanoseconds = i64::try_from(remaining_ns % 1_000_000_000).unwrap_or(0);
            Timespec {
                tv_sec: i64::try_from(remaining_ns / 1_000_000_000).unwrap_or(i64::MAX),
                tv_nsec: nanoseconds,
            }
        });
        match poll(&mut [PollFd::new(fd, flags)], remaining.as_ref()) {
            Ok(0) if deadline_ns.is_some() => return Err(io::ErrorKind::TimedOut.into()),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
