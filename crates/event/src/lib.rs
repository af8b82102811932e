//! The COS event channel.

#![forbid(unsafe_code)]
