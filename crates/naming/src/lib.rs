//! The CosNaming service.

#![forbid(unsafe_code)]

mod access;
mod context;
mod iterator;
pub mod limits;
mod listings;
pub mod name;
mod outward;
mod service;
pub mod store;
pub mod user;
mod walk;

pub use access::NAMES;
pub use service::{NAME_SERVICE, NamingError, NamingService, message_size_max};
