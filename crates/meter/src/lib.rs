//! Samples, histograms, statistics, pacing, provenance, the result document.

#![forbid(unsafe_code)]

pub mod result;
pub mod sample;
