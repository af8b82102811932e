//! The instruments: is this machine fit for real time, what does a call cost, and what does a process do for it.

#![forbid(unsafe_code)]

pub mod bench;
pub mod counters;
pub mod doctor;
pub mod experiment;
pub mod limits;
