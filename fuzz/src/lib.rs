//! What several fuzz targets share, and what is too long for one file.

pub mod access_tables;
pub mod choices;
pub mod counted;
pub mod giop_sessions;
pub mod names_rows;
pub mod pipe;
pub mod tls_handshakes;
