//! The instruments: is this machine fit for real time.

#![forbid(unsafe_code)]
