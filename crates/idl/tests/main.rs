//! The IDL compiler: language, errors, generated code, and omniidl as a second opinion.

#![forbid(unsafe_code)]

mod errors;
mod generator;
mod language;
mod omniidl;
