//! The instruments: is this machine fit for real time, and what does a call cost.

#![forbid(unsafe_code)]

pub mod bench;
pub mod doctor;
pub mod limits;
