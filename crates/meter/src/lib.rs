//! Measurement of latency: schedules, samples, blame, statistics, verdicts, provenance, and the result documents.

#![forbid(unsafe_code)]

pub mod blame;
pub mod caution;
pub mod clock;
pub mod disturbance;
pub mod experiment;
#[cfg(test)]
mod foreign;
pub mod histogram;
pub mod host_entry;
pub mod judge;
pub mod limits;
pub mod metrics;
pub mod pacing;
pub mod provenance;
pub mod result;
pub mod sample;
pub mod samples;
pub mod statistics;
pub mod words;
