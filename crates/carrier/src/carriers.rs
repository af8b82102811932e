//! The built-in carriers.

pub mod corba;
pub mod event;
pub mod tcp;
pub mod udp;
