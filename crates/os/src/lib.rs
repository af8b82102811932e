//! The only door to the kernel: clocks, poller, sockets and their stamps, packet taps, mapped files, scheduling, memory locking.

pub mod poller;
pub mod tcp;
pub mod wake;
