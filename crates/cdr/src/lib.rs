//! CDR over borrowed slices, TypeCode and Any; no I/O, no clock.

#![forbid(unsafe_code)]
