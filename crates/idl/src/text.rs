//! IDL source text: files, tokens, the preprocessor, and diagnostics that point into it.

pub(crate) mod condition;
pub(crate) mod diagnostic;
pub(crate) mod lexer;
pub(crate) mod literal;
pub(crate) mod operator;
pub(crate) mod preprocess;
pub(crate) mod source;
pub(crate) mod words;
