//! OMG IDL: parse, check, the runtime type model, values as text, and Rust generated from it.

#![forbid(unsafe_code)]

mod ast;
pub mod build;
mod check;
mod check_constant;
mod check_interface;
mod check_type;
mod condition;
mod diagnostic;
mod fixed;
pub mod fuzzing;
pub mod generate;
mod implied;
mod layout;
mod lexer;
pub mod limits;
mod literal;
pub mod model;
pub mod notation;
mod parse_definition;
mod parse_type;
mod parser;
mod preprocess;
mod repository_id;
mod scope;
mod source;
mod value;
mod words;

pub use diagnostic::{Diagnostic, Diagnostics};
pub use fixed::Decimal;
pub use model::Model;
pub use preprocess::Options;
pub use source::{FileId, Location, SourceFile, Sources, Span};
pub use value::Value;
