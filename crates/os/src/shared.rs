//! Connections through memory that two processes of one host share: a ring of octets a direction, and two unix sockets that carry
//! nothing but wake-ups for pollers and, by their end, the news that the other process has died.
//!
//! Set-up: the client connects to a unix socket, makes the memory (sealed, so that nobody can take it away from under the other) and
//! sends it over; it waits for nobody, and may write at once. The server checks the memory when it first reads. Whoever waits says how in a word beside the ring, and whoever writes rings accordingly: nothing,
//! a futex, or an octet on the socket. Two ends that are both awake need no system call at all.
//!
//! The other end may be hostile: it may write anything into the memory at any time. All of it is atomics, so that this is no
//! undefined behaviour; each end keeps its own positions to itself, checks the other's whenever it looks, and copies octets out
//! before anybody interprets them. What the other end can do is to break its own connection, or to leave its own news unheard.

mod handshake;
mod memory;
mod ring;
mod stream;

pub use handshake::{SharedListener, connect};
pub use ring::RING_SIZE;
pub use stream::SharedStream;
