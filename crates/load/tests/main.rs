//! Real loads against the kernel's counters. What other processes do meanwhile is not known: each bound is true beside any
//! of them.

mod cpu;
mod net;
mod stress;
