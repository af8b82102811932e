//! All direct access to the kernel: clocks, pollers, sockets and their stamps, packet taps, mapped files, scheduling,
//! memory locking.

pub mod allowance;
pub mod bulk;
pub mod clock;
mod control;
pub mod discipline;
pub mod examine;
pub mod filter;
pub mod frames;
pub mod isolate;
pub mod lock;
pub mod mapped;
pub mod memory;
pub mod multicast;
pub mod namespace;
mod option;
pub mod perf;
pub mod poller;
pub mod process;
pub mod random;
pub mod regular;
pub mod reserve;
pub mod schedule;
pub mod shared;
pub mod signal;
pub mod socket;
pub mod stamp;
pub mod stream;
pub mod tap;
pub mod task;
pub mod unix;
pub mod wake;
