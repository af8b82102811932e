//! Mission files (hosts, flows, loads), their forecast, and the run of a mission to its verdicts.

#![forbid(unsafe_code)]

pub mod access;
pub mod forecast;
pub mod fuzzing;
pub mod limits;
pub mod mission;
pub mod network;
pub mod part;
pub mod privilege;
pub mod reach;
pub mod room;
pub mod run;
pub mod schedule;
pub mod series;
pub mod simulate;
pub mod stream;
