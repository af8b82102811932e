//! Samples, histograms, statistics, pacing, provenance, the result document.

#![forbid(unsafe_code)]

pub mod limits;
pub mod pacing;
pub mod result;
pub mod sample;
pub mod statistics;
