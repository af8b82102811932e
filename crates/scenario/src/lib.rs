//! Mission files: hosts, flows, loads, the run and its verdicts.

#![forbid(unsafe_code)]
