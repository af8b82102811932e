//! Result files in, one self-contained HTML file out.

#![forbid(unsafe_code)]
