//! An allocator that counts, per thread and for the whole process. A test that uses the process's count must run alone
//! in its process.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

/// Whether the process is counted. Other tests are not, so that they are not slowed down.
static IS_COUNTING: AtomicBool = AtomicBool::new(false);

/// Allocations of the process since [`start`].
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// Octets that the process has allocated since [`start`], less those it has freed.
static HELD: AtomicI64 = AtomicI64::new(0);

/// Small allocations of the process since [`start`], less those it has freed.
static LIVE: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// Octets that this thread has allocated, less those it has freed.
    pub(crate) static THREAD_HELD: Cell<i64> = const { Cell::new(0) };
    /// The highest value of [`THREAD_HELD`].
    pub(crate) static THREAD_HELD_MAX: Cell<i64> = const { Cell::new(0) };
    /// Allocations of this thread.
    pub(crate) static THREAD_ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Octets of all of them; an allocation that grows counts again as a whole.
    pub(crate) static THREAD_ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

/// Starts to count the whole process. The test must be alone in its process.
pub(crate) fn start() {
    IS_COUNTING.store(true, Ordering::SeqCst);
}

/// Allocations of the process since [`start`].
pub(crate) fn allocations() -> usize {
    assert!(IS_COUNTING.load(Ordering::SeqCst), "call `start` first");
    ALLOCATIONS.load(Ordering::SeqCst)
}

/// Octets that the process has allocated since [`start`], less those it has freed.
pub(crate) fn held() -> i64 {
    assert!(IS_COUNTING.load(Ordering::SeqCst), "call `start` first");
    HELD.load(Ordering::SeqCst)
}

/// Allocations of the process since [`start`] below 16 KiB, less those it has freed. Pools keep larger buffers: as many
/// as were in use at once.
pub(crate) fn live() -> i64 {
    assert!(IS_COUNTING.load(Ordering::SeqCst), "call `start` first");
    LIVE.load(Ordering::SeqCst)
}

/// Counts a change: allocations, small ones that live, octets that are held, and the octets of what was allocated.
fn count(allocations: usize, live: i64, octets: i64, size: usize) {
    if IS_COUNTING.load(Ordering::Relaxed) {
        LIVE.fetch_add(live, Ordering::SeqCst);
        ALLOCATIONS.fetch_add(allocations, Ordering::SeqCst);
        HELD.fetch_add(octets, Ordering::SeqCst);
    }
    // A thread that ends frees memory after its thread-local counters are dropped.
    let _ = THREAD_ALLOCATIONS.try_with(|count| count.set(count.get() + allocations));
    let _ = THREAD_ALLOCATED.try_with(|sum| sum.set(sum.get() + size));
    let _ = THREAD_HELD.try_with(|held| {
        held.set(held.get() + octets);
        let _ = THREAD_HELD_MAX.try_with(|max| max.set(max.get().max(held.get())));
    });
}

fn is_small(size: usize) -> i64 {
    i64::from(size < 16 << 10)
}

struct Counting;

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(
            1,
            is_small(layout.size()),
            layout.size() as i64,
            layout.size(),
        );
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -is_small(layout.size()), -(layout.size() as i64), 0);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let live = is_small(size) - is_small(layout.size());
        count(1, live, size as i64 - layout.size() as i64, size);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
