//! Mission files: the documents of runs, and what is said of malformed ones.

mod documents;
mod malformed;
