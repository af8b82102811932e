//! The instruments: is this machine fit for real time.

#![forbid(unsafe_code)]

pub mod doctor;
pub mod limits;
