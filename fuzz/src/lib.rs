//! What several fuzz targets share, and what is too long for one file.

pub mod counted;
pub mod giop_sessions;
pub mod pipe;
pub mod tls_handshakes;
