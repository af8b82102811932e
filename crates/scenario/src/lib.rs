//! Mission files: hosts, flows, loads, the run and its verdicts.

#![forbid(unsafe_code)]

pub mod forecast;
pub mod limits;
pub mod mission;
pub mod part;
pub mod privilege;
pub mod run;
pub mod stream;
