//! Connections through memory that two processes of one host share. Each direction has a ring of octets. Two unix
//! sockets carry only wake-ups for pollers; when a process dies, its socket closes and so notifies the other.
//!
//! Set-up: the client connects to a unix socket and creates the memory, sealed so that neither process can shrink it
//! under the other. The client sends the memory over the socket. It waits for no reply, and may write at once. The
//! server checks the memory when it first reads.
//!
//! Wake-ups: a waiting end stores how it waits in a word beside the ring. A writing end wakes it accordingly: not at
//! all, by a futex, or by an octet on the socket. Two ends that are both awake make no system call.
//!
//! The other end may be hostile: it may write anything into the memory at any time. The memory consists of atomics, so
//! this is not undefined behaviour. Each end keeps its own positions in private memory, validates the other's on each
//! read, and copies octets out before they are parsed. The other end can only break its own connection, or miss its own
//! wake-ups.

mod handshake;
mod memory;
mod ring;
mod stream;

pub use handshake::{SharedListener, connect};
pub use ring::RING_SIZE;
pub use stream::SharedStream;
