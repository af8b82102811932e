//! The CosNaming service.

#![forbid(unsafe_code)]

mod context;
mod iterator;
pub mod limits;
pub mod name;
mod service;
pub mod store;
pub mod user;
mod walk;

pub use service::{NAME_SERVICE, NamingError, NamingService};
