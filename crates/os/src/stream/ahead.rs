//! Limits how far the writer of large messages may be ahead of a reader on the same host.
//!
//! The kernel lets the send buffer of a connection grow to megabytes, so that a remote reader never runs out of octets.
//! Between two processes of one host, that is more than a processor's second-level cache holds. All octets then go out
//! to memory and back, which takes several times as long as the two copies, and the next message waits for them. Small
//! messages gain from the large buffer: the kernel counts many times the size of each, and it sends together only those
//! that it cannot send at once.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::net::{self, sockopt};

use crate::option::{set_int, words};

/// The minimum size of a large message, in octets. For smaller ones, copies are often not the main part of the time.
const LARGE: usize = 16 << 10;

/// SO_SNDBUF of a writer of large messages; the kernel doubles it for its own overhead. With the buffers of the two
/// processes it stays below a megabyte.
const BUFFER: i32 = 256 << 10;

/// The bit of SO_BUF_LOCK for the send buffer (SOCK_SNDBUF_LOCK).
const SEND_LOCK: u32 = 1;

/// The state of a connection's send buffer: one of the constants below.
#[derive(Debug)]
pub(super) struct Ahead(AtomicU8);

/// The connection has not been checked yet.
const UNKNOWN: u8 = 0;
/// The kernel chooses the size of its buffer.
const FREE: u8 = 1;
/// Its buffer is limited to [`BUFFER`].
const BOUNDED: u8 = 2;
/// Its reader is on another host, or its buffer has a requested size.
const LEFT_ALONE: u8 = 3;

impl Ahead {
    pub(super) const fn new() -> Self {
        Self(AtomicU8::new(UNKNOWN))
    }

    /// Keeps the size of the buffer, because the user has requested it.
    pub(super) fn leave_alone(&self) {
        self.0.store(LEFT_ALONE, Ordering::Relaxed);
    }

    /// Adjusts the buffer after it was found full within a message of `message_len` octets. Called by the writer.
    #[cold]
    pub(super) fn note_full(&self, fd: &OwnedFd, message_len: usize) {
        let state = self.0.load(Ordering::Relaxed);
        let next = match (state, message_len >= LARGE) {
            (UNKNOWN, true) if !is_on_this_host(fd) => LEFT_ALONE,
            (UNKNOWN | FREE, true) => bound(fd),
            (BOUNDED, false) => free(fd),
            _ => return,
        };
        self.0.store(next, Ordering::Relaxed);
    }
}

/// Returns true if the reader is on this host, by TCP. A unix socket has no IP addresses, and its buffer does not grow.
fn is_on_this_host(fd: &OwnedFd) -> bool {
    let ends = || -> io::Result<bool> {
        let near = SocketAddr::try_from(net::getsockname(fd)?)?;
        let far = net::getpeername(fd)?.ok_or(io::ErrorKind::NotConnected)?;
        Ok(near.ip() == SocketAddr::try_from(far)?.ip())
    };
    ends().unwrap_or(false)
}

fn bound(fd: &OwnedFd) -> u8 {
    let is_larger =
        sockopt::socket_send_buffer_size(fd).is_ok_and(|size| size > 2 * BUFFER as usize);
    match is_larger {
        true if set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, BUFFER).is_ok() => BOUNDED,
        _ => FREE,
    }
}

/// Lets the kernel choose the size again. A kernel before 5.16 cannot; the size then stays.
fn free(fd: &OwnedFd) -> u8 {
    let locked = words(fd.as_fd(), libc::SOL_SOCKET, SO_BUF_LOCK);
    let freed = locked.and_then(|[locked]| {
        let others = i32::try_from(locked & !SEND_LOCK).unwrap_or(0);
        set_int(fd.as_fd(), libc::SOL_SOCKET, SO_BUF_LOCK, others)
    });
    match freed {
        Ok(()) => FREE,
        Err(_) => LEFT_ALONE,
    }
}

/// The option for the buffers whose sizes are locked, since Linux 5.16; the libc crate does not define it.
pub(crate) const SO_BUF_LOCK: i32 = 72;

#[cfg(test)]
mod tests {
    use super::super::{StreamOptions, StreamSocket, TcpListener, monotonic_ns};
    use super::*;

    fn connected(options: &StreamOptions) -> (TcpListener, StreamSocket) {
        let listener = TcpListener::listen(SocketAddr::from(([127, 0, 0, 1], 0)), 8).unwrap();
        let address = listener.local_address().unwrap();
        let stream = StreamSocket::connect_with(address, None, options).unwrap();
        (listener, stream)
    }

    fn buffer_size(stream: &StreamSocket) -> usize {
        sockopt::socket_send_buffer_size(&stream.fd).unwrap()
    }

    /// Writes messages to a peer that does not read, until no more fits.
    fn fill(stream: &StreamSocket, message_len: usize) {
        let message = vec![0; message_len];
        let write = || stream.write_all(&message, Some(monotonic_ns() + 1_000_000));
        while write().is_ok() {}
    }

    #[test]
    fn who_writes_large_messages_on_one_host_is_kept_near_and_who_writes_small_ones_is_not() {
        let (_listener, stream) = connected(&StreamOptions::default());
        fill(&stream, 100);
        assert_eq!(stream.ahead.0.load(Ordering::Relaxed), UNKNOWN);
        fill(&stream, 64 << 10);
        assert_eq!(stream.ahead.0.load(Ordering::Relaxed), BOUNDED);
        assert!(buffer_size(&stream) <= 2 * BUFFER as usize);
        fill(&stream, 100);
        let [locked] = words(stream.fd.as_fd(), libc::SOL_SOCKET, SO_BUF_LOCK).unwrap();
        assert_eq!(locked & SEND_LOCK, 0);
    }

    #[test]
    fn a_buffer_that_was_asked_for_stays() {
        let options = StreamOptions {
            send_buffer: 600_000,
            ..StreamOptions::default()
        };
        let (_listener, stream) = connected(&options);
        let size = buffer_size(&stream);
        fill(&stream, 64 << 10);
        assert_eq!(buffer_size(&stream), size);
    }

    #[test]
    fn a_peer_on_this_host_is_told_from_others() {
        let (_listener, stream) = connected(&StreamOptions::default());
        assert!(is_on_this_host(&stream.fd));
        let (near, _far) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(!is_on_this_host(&near.into()));
    }
}
