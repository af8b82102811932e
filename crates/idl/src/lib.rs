//! OMG IDL: parser, checker, runtime type model, text notation for values, and generator of Rust code.

#![forbid(unsafe_code)]

pub mod build;
mod check;
mod compile;
pub mod fuzzing;
pub mod generate;
pub mod limits;
pub mod model;
pub mod notation;
mod parse;
mod text;

pub use model::Model;
pub use model::fixed::Decimal;
pub use model::value::Value;
pub use text::diagnostic::{Diagnostic, Diagnostics};
pub use text::preprocess::Options;
pub use text::source::{FileId, Location, SourceFile, Sources, Span};
