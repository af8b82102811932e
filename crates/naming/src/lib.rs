//! The CosNaming service.

#![forbid(unsafe_code)]
