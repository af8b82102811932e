//! Memory without page faults for real-time code.

use std::io;

use rustix::mm::{MlockAllFlags, mlockall};

/// Locks the pages that the process has touched and will touch: a page stays in memory once it was used. Pages that
/// were never used are not loaded. A real-time path loads its own before it starts, by [`prefault_stack`] and by
/// writing to its buffers.
///
/// # Errors
/// `PermissionDenied` or `OutOfMemory` if RLIMIT_MEMLOCK does not allow it.
pub fn lock_on_fault() -> io::Result<()> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?;
    Ok(())
}

/// Has the allocator keep to one area of memory if RLIMIT_AS is low. Otherwise each thread has an area of its own, which
/// reserves 64 MiB of addresses before it is used. Call it before the first other thread starts.
pub fn spare_address_space() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    if limit.is_some_and(|limit| limit < ADDRESSES_AMPLE) {
        #[cfg(target_env = "gnu")]
        // SAFETY: the call changes a number in the allocator, under its own lock.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) }; // Without success it is as it was.
    }
}

/// Octets of addresses that are enough for an area for each of some dozen threads.
const ADDRESSES_AMPLE: u64 = 8 << 30;

/// Touches the next [`STACK_PREFAULT_BYTES`] of the calling thread's stack.
#[inline(never)]
pub fn prefault_stack() {
    let mut pages = [0_u8; STACK_PREFAULT_BYTES];
    for octet in pages.iter_mut().step_by(4096) {
        *octet = std::hint::black_box(1);
    }
    std::hint::black_box(&pages);
}

/// More stack than the deepest real-time path uses, and a sixteenth of the smallest thread stack in use (2 MiB).
pub const STACK_PREFAULT_BYTES: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_the_stack_leaves_a_thread_of_the_usual_size_alive() {
        std::thread::spawn(prefault_stack)
            .join()
            .expect("no overflow");
    }
}
