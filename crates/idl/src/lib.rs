//! OMG IDL: parse, check, the runtime type model, and Rust generated from it.

#![forbid(unsafe_code)]
