//! Tests of the IDL compiler: the language, errors, generated code, and a comparison with omniidl.

#![forbid(unsafe_code)]

mod cost;
mod debian;
mod errors;
mod generator;
mod language;
mod omniidl;
