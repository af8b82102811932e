//! A wake-up between threads: one thread waits in a poller, another wakes it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// An event counter of the kernel (eventfd): [`Wake::notify`] makes it readable until [`Wake::clear`].
#[derive(Debug)]
pub struct Wake {
    fd: OwnedFd,
}

impl Wake {
    /// Creates a counter at zero; close-on-exec and non-blocking.
    ///
    /// # Errors
    /// The kernel's error, most often that descriptors have run out.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// Makes the counter readable. A counter that is full is readable already.
    pub fn notify(&self) {
        // A full one is readable already.
        let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
    }

    /// Sets the counter to zero. Returns true if it had been notified since the last call.
    pub fn clear(&self) -> bool {
        let mut count = [0_u8; 8];
        rustix::io::read(&self.fd, &mut count).is_ok()
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notified_twice_is_cleared_once() {
        let wake = Wake::new().unwrap();
        assert!(!wake.clear());
        wake.notify();
        wake.notify();
        assert!(wake.clear());
        assert!(!wake.clear());
    }
}
