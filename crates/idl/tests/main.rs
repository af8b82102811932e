//! Tests of the IDL compiler: the language, errors, generated code, and a comparison with omniidl.

mod cost;
#[path = "../../orb/tests/support/counting.rs"]
mod counting;
mod debian;
mod errors;
mod generator;
mod growth;
mod language;
mod omniidl;
