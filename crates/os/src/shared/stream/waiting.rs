//! Sleeping and waking of the two ends of a connection through shared memory.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};
use rustix::thread::futex;

use super::super::ring::wait;
use crate::stream::{monotonic_ns, wait_for};

/// How long a thread sleeps before it checks whether the other end has died. The death of a process does not wake a
/// thread that sleeps in a futex.
pub(super) const DEATH_LOOK: Duration = Duration::from_millis(50);

/// Spurious wake-ups after which one read sleeps in a way that the other end cannot interrupt.
const VAIN_WAKES_MAX: u32 = 16;

/// The duration of that sleep.
const VAIN_WAKE_REST: Duration = Duration::from_millis(1);

/// Wakes the end that waits by this word, in the way that the word states.
pub(super) fn ring_for(word: &AtomicU32, socket: &OwnedFd) {
    if word.load(Ordering::Relaxed) == wait::AWAKE {
        return;
    }
    match word.swap(wait::AWAKE, Ordering::AcqRel) {
        wait::SLEEPS => {
            // There may be no sleeper.
            let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
        }
        wait::WATCHES => {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            // A socket that is full is readable already.
            // A full socket wakes the reader, and an ended one needs no wake-up.
            let _ = net::send(socket, &[0], flags);
        }
        _ => {}
    }
}

/// Wakes a thread of this process that sleeps by this word.
pub(super) fn wake(word: &AtomicU32) {
    word.store(wait::AWAKE, Ordering::SeqCst);
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32); // There may be no sleeper.
}

/// Sleeps until a wake-up. Counts it in `vain_wakes`; the caller resets that count when it makes progress. Returns
/// false when the time has passed.
pub(super) fn sleep(word: &AtomicU32, limit: Duration, vain_wakes: &mut u32) -> bool {
    if *vain_wakes >= VAIN_WAKES_MAX {
        std::thread::park_timeout(VAIN_WAKE_REST.min(limit));
        return false;
    }
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(limit.subsec_nanos()),
    };
    let slept = futex::wait(word, futex::Flags::empty(), wait::SLEEPS, Some(&limit));
    let is_woken = slept != Err(Errno::TIMEDOUT);
    *vain_wakes += u32::from(is_woken);
    is_woken
}

pub(super) fn remaining(deadline_ns: Option<u64>) -> io::Result<Duration> {
    let Some(deadline_ns) = deadline_ns else {
        return Ok(DEATH_LOOK);
    };
    match deadline_ns.saturating_sub(monotonic_ns()) {
        0 => Err(io::ErrorKind::TimedOut.into()),
        remaining_ns => Ok(Duration::from_nanos(remaining_ns)),
    }
}

/// Discards the wake-up octets.
pub(super) fn drain(socket: impl AsFd) {
    // The next read finds an end.
    let _ = net::recv(socket, &mut [0_u8; 64][..], RecvFlags::DONTWAIT);
}

pub(super) fn wait_for_greeting(socket: &OwnedFd, limit: Duration) {
    let deadline_ns =
        monotonic_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
    let _ = wait_for(socket, PollFlags::IN, Some(deadline_ns)); // The caller reads the clock.
}

pub(super) fn events(socket: &OwnedFd) -> PollFlags {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut asked = [PollFd::new(socket, PollFlags::RDHUP)];
    match poll(&mut asked, Some(&now)) {
        Ok(_) => asked[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}
