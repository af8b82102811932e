//! Requests to end, and to read files again: SIGINT, SIGTERM and SIGHUP set flags that a loop checks.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// The last ending signal received; 0 before the first.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// The signals that ask this process to end.
const ENDING: [(libc::c_int, &str); 3] = [
    (libc::SIGINT, "SIGINT"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGHUP, "SIGHUP"),
];

/// From now on the first ending signal only sets the result of [`ending`]. A second signal of the same kind ends the
/// process at once, by its default action. A blocking system call of any thread may return EINTR.
///
/// # Errors
/// The operating system's error; none is known.
pub fn catch_ending() -> io::Result<()> {
    for (signal, _) in ENDING {
        // SAFETY: a sigaction of zeroes is valid: no mask, no flags, the default action.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = record as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESETHAND;
        // SAFETY: `action` is live and whole; `record` does nothing that a signal handler may not.
        if unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Whether SIGHUP was received since [`take_reload`].
static RELOAD: AtomicBool = AtomicBool::new(false);

/// From now on SIGHUP asks to read files again: it only sets the result of [`take_reload`], and ends nothing.
///
/// # Errors
/// The operating system's error; none is known.
pub fn catch_reload() -> io::Result<()> {
    // SAFETY: a sigaction of zeroes is valid: no mask, no flags, the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = note_reload as *const () as libc::sighandler_t;
    // SAFETY: `action` is live and whole; `note_reload` does nothing that a signal handler may not.
    if unsafe { libc::sigaction(libc::SIGHUP, &raw const action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Returns whether SIGHUP was received since the last call.
#[must_use]
pub fn take_reload() -> bool {
    RELOAD.swap(false, Ordering::Relaxed)
}

extern "C" fn note_reload(_signal: libc::c_int) {
    RELOAD.store(true, Ordering::Relaxed);
}

/// Returns the name of the ending signal that was received, if one was since [`catch_ending`].
#[must_use]
pub fn ending() -> Option<&'static str> {
    let received = RECEIVED.load(Ordering::Relaxed);
    let find = |&(signal, name): &(libc::c_int, &'static str)| (signal == received).then_some(name);
    ENDING.iter().find_map(find)
}

/// Waits until a descriptor takes octets without blocking: a pipe takes `PIPE_BUF` of them. Returns false if it takes
/// none for [`STALL_MAX`] once an ending signal was received. A descriptor that is closed or broken takes them with an
/// error.
#[must_use]
pub fn can_write(fd: &impl AsFd) -> bool {
    let mut ending_since = None;
    loop {
        if ending().is_some() {
            let since = *ending_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= STALL_MAX {
                return false;
            }
        }
        let wait = Timespec {
            tv_sec: 0,
            tv_nsec: LOOK_INTERVAL_NS,
        };
        match poll(&mut [PollFd::new(fd, PollFlags::OUT)], Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return true,
        }
    }
}

/// How long a reader may take nothing after an ending signal. A reader that lives takes the rest of a document within
/// this time, piece by piece.
pub const STALL_MAX: Duration = Duration::from_secs(1);

/// A signal that comes between the look at it and the wait is seen after this time.
const LOOK_INTERVAL_NS: i64 = 50_000_000;

extern "C" fn record(signal: libc::c_int) {
    RECEIVED.store(signal, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn a_first_ending_signal_is_told_and_does_not_end_the_process() {
        assert_eq!(ending(), None);
        catch_ending().unwrap();
        // SAFETY: no memory is involved; the handler is in place.
        assert_eq!(unsafe { libc::raise(libc::SIGHUP) }, 0);
        assert_eq!(ending(), Some("SIGHUP"));
        catch_reload().unwrap();
        for _ in 0..2 {
            assert!(!take_reload());
            // SAFETY: no memory is involved; the handler is in place.
            assert_eq!(unsafe { libc::raise(libc::SIGHUP) }, 0);
            assert!(take_reload());
        }
        // From now on a full pipe does not block for ever.
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut full = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
        let mut written = 0;
        while can_write(&full) {
            written += full.write(&[0; 4_096]).unwrap();
        }
        assert!(written >= 4_096, "{written}");
        // A reader that is slow, and lives, gets the rest.
        let mut taken = vec![0; written];
        let reading = std::thread::spawn(move || reader.read_exact(&mut taken).map(|()| reader));
        assert!(can_write(&full), "the reader makes room");
        let reader = reading.join().unwrap().unwrap();
        drop(reader);
        assert!(can_write(&full), "the write finds out");
    }
}
