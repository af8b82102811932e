//! An allocator that keeps memory back for small requests.
//!
//! A server reserves what its peers announce so that a failure is an error (`try_reserve`). It cannot do so for each small
//! value: want of memory there ends the process. This allocator keeps a few MiB back. Once they are used, it refuses
//! large requests until it has them again, so that the memory that is left is for small ones.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Octets that are kept back.
pub const RESERVE_SIZE: usize = 8 << 20;

/// The largest request for which they are used: larger ones are those that may fail.
pub const SMALL_SIZE_MAX: usize = 32 << 10;

/// The system's allocator with a reserve, which a program takes as its global allocator. [`keep`] begins to hold it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reserving;

/// Where the reserve is, or one of the two values below. The address of a mapping is a multiple of a page's size.
static RESERVE: AtomicUsize = AtomicUsize::new(NEVER);

/// No reserve has been asked for.
const NEVER: usize = 0;

/// The reserve is in use.
const USED: usize = 1;

/// Begins to keep a reserve. Has no effect if there is one. Returns whether there is one now.
pub fn keep() -> bool {
    if RESERVE.load(Relaxed) != NEVER {
        return true;
    }
    restore(NEVER)
}

/// Takes a reserve in place of the state `before`.
#[cold]
fn restore(before: usize) -> bool {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses an address that is free, and no other code learns it.
    let mapped =
        unsafe { mmap_anonymous(ptr::null_mut(), RESERVE_SIZE, access, MapFlags::PRIVATE) };
    let Ok(mapped) = mapped else {
        return false;
    };
    let address = mapped.expose_provenance();
    let taken = RESERVE.compare_exchange(before, address, AcqRel, Relaxed);
    if taken.is_err() {
        // SAFETY: the mapping was made above, and nothing refers to it.
        let _ = unsafe { munmap(mapped, RESERVE_SIZE) }; // Another thread has taken one.
    }
    true
}

/// Gives the reserve to the allocator.
#[cold]
fn release() {
    let address = RESERVE.load(Relaxed);
    if address == NEVER || address == USED {
        return;
    }
    if RESERVE
        .compare_exchange(address, USED, AcqRel, Relaxed)
        .is_ok()
    {
        let mapped = ptr::with_exposed_provenance_mut(address);
        // SAFETY: `restore` mapped it, nothing is stored in it, and the exchange made this thread its only owner.
        let _ = unsafe { munmap(mapped, RESERVE_SIZE) }; // Without success the next request fails.
    }
}

/// Whether a request for memory that is large may be tried: not while the reserve is in use.
fn may_be_large() -> bool {
    RESERVE.load(Relaxed) != USED || restore(USED)
}

/// Makes a request again, with the reserve, if it is small.
#[cold]
fn again(size: usize, request: impl Fn() -> *mut u8) -> *mut u8 {
    if size > SMALL_SIZE_MAX {
        return ptr::null_mut();
    }
    release();
    request()
}

#[inline]
fn reserve_behind(size: usize, request: impl Fn() -> *mut u8) -> *mut u8 {
    if size > SMALL_SIZE_MAX && !may_be_large() {
        return ptr::null_mut();
    }
    let memory = request();
    if NonNull::new(memory).is_some() {
        memory
    } else {
        again(size, request)
    }
}

// SAFETY: each request is passed on to the system's allocator with the caller's arguments. A request is only made again
// after it has failed, when a block to reallocate is as it was.
unsafe impl GlobalAlloc for Reserving {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of the system's allocator.
        reserve_behind(layout.size(), || unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        reserve_behind(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`; the block is from the system's allocator.
        let request = || unsafe { System.realloc(block, layout, size) };
        if size <= layout.size() {
            return request();
        }
        reserve_behind(size, request)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`; the block is from the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allowance;
    use crate::memory;
    use rustix::process::{Resource, Rlimit, setrlimit};

    #[global_allocator]
    static MEMORY: Reserving = Reserving;

    /// Takes large blocks until no more is to be had. Returns how many.
    fn take_all(taken: &mut Vec<Vec<u8>>) -> usize {
        let before = taken.len();
        loop {
            let mut block = Vec::<u8>::new();
            if block.try_reserve_exact(2 * SMALL_SIZE_MAX).is_err() {
                return taken.len() - before;
            }
            taken.push(block);
        }
    }

    #[test]
    fn small_requests_succeed_where_large_ones_fail_and_the_reserve_comes_back() {
        deckwatch_testkit::alone(|| {
            memory::spare_address_space();
            assert!(keep());
            let used = allowance::address_space_used().expect("the kernel tells it");
            let limit = Rlimit {
                current: Some(used + (48 << 20)),
                maximum: Some(used + (48 << 20)),
            };
            setrlimit(Resource::As, limit).expect("a lower limit");
            let mut taken = Vec::with_capacity(4_096);
            let count = take_all(&mut taken);
            assert!(count > 64);
            // More than the gaps that the large ones left.
            let small: Vec<_> = (0..2_000).map(|_| Box::new([1_u8; 2_048])).collect();
            assert_eq!(RESERVE.load(Relaxed), USED);
            assert_eq!(take_all(&mut taken), 0, "the rest is for small ones");
            taken.clear();
            drop(small);
            assert!(take_all(&mut taken) > 64);
            assert!(RESERVE.load(Relaxed) > USED, "it is kept again");
        });
    }
}
