//! Relates the clocks of two machines: exchanges of four stamps over UDP, stamped by both kernels.
//!
//! A prober here asks, and a responder there answers. A datagram's transmit stamp is known only after it was sent, so
//! each answer has the far stamps of the exchange before. Kernel stamps are CLOCK_REALTIME and are converted to
//! CLOCK_MONOTONIC on their own machine; an exchange over a step of that clock is dropped.

mod datagram;
mod local;
mod prober;
mod responder;
#[cfg(test)]
mod tests;

pub use local::sync_state;
pub use prober::{Counts, Prober};
pub use responder::Responder;
