//! How far the writer of large messages may be ahead of a reader on the same host.
//!
//! The kernel lets the send buffer of a connection grow to megabytes, so that a far reader is never short of octets. Between two processes of one
//! host that is more than a processor keeps in its second cache: all octets go out to memory and come back, which takes several times as
//! long as the two copies, and a message that follows waits behind them. Small messages are better off with the large buffer: of each the
//! kernel counts many times its size, and only what it cannot send at once it sends together.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::net::{self, sockopt};

use crate::option::{set_int, words};

/// Octets of messages that are large: as often as not the time of smaller ones is spent otherwise than in copies.
const LARGE: usize = 16 << 10;

/// SO_SNDBUF of who writes them; the kernel doubles it for what it needs itself. With the buffers of the two processes it stays below a megabyte.
const BUFFER: i32 = 256 << 10;

/// Of the buffers whose sizes are locked, as the option has it: the one that is written to.
const SEND_LOCK: u32 = 1;

/// What has been found out of a connection and done about it.
#[derive(Debug)]
pub(super) struct Ahead(AtomicU8);

/// Nobody has looked yet.
const UNKNOWN: u8 = 0;
/// Its buffer is as the kernel has it.
const FREE: u8 = 1;
/// Its buffer is kept small.
const BOUNDED: u8 = 2;
/// Its reader is on another host, or its buffer is of a size that was asked for.
const LEFT_ALONE: u8 = 3;

impl Ahead {
    pub(super) const fn new() -> Self {
        Self(AtomicU8::new(UNKNOWN))
    }

    /// The size of the buffer has been asked for.
    pub(super) fn leave_alone(&self) {
        self.0.store(LEFT_ALONE, Ordering::Relaxed);
    }

    /// Says that the buffer is full, within a message of so many octets. Called by the one who writes.
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

/// Whether the reader is on this host, by TCP: a unix socket has no such addresses, and a buffer that does not grow.
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

/// Lets the kernel choose the size again. One that is too old to do so leaves it as it is.
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

/// Which buffers' sizes are locked, since Linux 5.16; the crate that names the others does not have it.
const SO_BUF_LOCK: i32 = 72;

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

    /// Writes messages to a reader who does not read, until no more goes.
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
