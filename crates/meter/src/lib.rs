//! Samples, histograms, statistics, pacing, provenance, the result document.

#![forbid(unsafe_code)]
