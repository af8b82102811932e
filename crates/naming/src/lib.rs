//! The CosNaming service.

#![forbid(unsafe_code)]

pub mod limits;
pub mod name;
pub mod store;
