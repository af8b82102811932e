//! One trait over which every middleware is measured, and the built-in carriers.

#![forbid(unsafe_code)]
