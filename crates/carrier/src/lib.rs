//! The trait [`carrier::Carrier`], through which every middleware is measured, and the built-in carriers.
//!
//! A *stream* is one flow over one carrier. It runs as separate processes, its *parts*:
//!
//! * a supplier on the flow's from-host;
//! * a consumer on each destination's host;
//! * for `event`, a channel and a naming service on the supplier's host;
//! * a packet tap on each host.
//!
//! A part first reads its [`plan`]. While it runs, it writes events and reads commands ([`talk`]).

#![forbid(unsafe_code)]

pub mod arrival;
mod batch;
pub mod body;
pub mod capture;
pub mod carrier;
pub mod carriers;
pub mod clock;
pub mod conformance;
pub mod error;
pub mod external;
mod giop_messages;
pub mod host_clock;
pub mod join;
pub mod limits;
mod packet;
pub mod part;
mod pending;
pub mod plan;
mod reassembly;
pub mod receiver;
pub mod record;
pub mod scheduling;
#[cfg(test)]
mod scratch;
pub mod send_loop;
pub mod sender;
pub mod stamp_clock;
pub mod talk;
