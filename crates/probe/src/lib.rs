//! The instruments: whether a machine is fit for real time, the cost of a call, and the counters of a process.

#![forbid(unsafe_code)]

pub mod bench;
pub mod counters;
pub mod dispatch;
pub mod doctor;
pub mod events;
pub mod experiment;
pub mod laboratory;
pub mod limits;
pub mod soak;
pub mod sweep;
