//! Socket operations that std does not have: large buffers, packet priority, a source address, a wait until an absolute
//! time.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};

use crate::{clock, option};

/// Connects from `address`, with a port that the kernel chooses, to `destination`.
///
/// # Errors
/// `TimedOut` after `time_max`, else the kernel's error.
pub fn connect_from(
    address: IpAddr,
    destination: SocketAddr,
    time_max: Duration,
) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(destination), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(address, 0).into())?;
    socket.connect_timeout(&destination.into(), time_max)?;
    Ok(socket.into())
}

/// Sends octets without blocking, also on a socket whose reads block. Returns how many the kernel took.
///
/// # Errors
/// The kernel's error: `WouldBlock` when the send buffer is full.
pub fn send_now(socket: impl AsFd, octets: &[u8]) -> io::Result<usize> {
    let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
    Ok(rustix::net::send(socket, octets, flags)?)
}

/// Waits until octets or a connection can be read from one of the first [`WAITED_MAX`] sockets, or CLOCK_MONOTONIC
/// reaches `until_ns`. A signal ends the wait too. Allocates no memory.
pub fn wait_readable<'s>(sockets: impl Iterator<Item = BorrowedFd<'s>>, until_ns: i64) {
    wait_for(sockets, PollFlags::IN, until_ns);
}

/// Waits until one of the first [`WAITED_MAX`] sockets can be written again or has failed, or CLOCK_MONOTONIC reaches
/// `until_ns`. A signal or a transmit stamp ends the wait too. Allocates no memory.
pub fn wait_writable<'s>(sockets: impl Iterator<Item = BorrowedFd<'s>>, until_ns: i64) {
    wait_for(sockets, PollFlags::OUT, until_ns);
}

/// As [`wait_readable`], without a limit of time if `until_ns` is `None`. Returns which of them can be read, or have
/// ended.
pub fn readable<const N: usize>(sockets: [BorrowedFd<'_>; N], until_ns: Option<i64>) -> [bool; N] {
    let mut waited = sockets.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN));
    wait(&mut waited, until_ns.unwrap_or(i64::MAX));
    waited.map(|one| !one.revents().is_empty())
}

fn wait_for<'s>(sockets: impl Iterator<Item = BorrowedFd<'s>>, what: PollFlags, until_ns: i64) {
    let mut sockets = sockets.map(|socket| PollFd::from_borrowed_fd(socket, what));
    let Some(first) = sockets.next() else { return };
    let mut waited: [PollFd<'s>; WAITED_MAX] = std::array::from_fn(|_| first.clone());
    let mut count = 1;
    for (slot, socket) in waited[1..].iter_mut().zip(sockets) {
        *slot = socket;
        count += 1;
    }
    wait(&mut waited[..count], until_ns);
}

fn wait(waited: &mut [PollFd<'_>], until_ns: i64) {
    let remaining_ns = until_ns.saturating_sub(clock::monotonic_ns()).max(0);
    let timeout = Timespec {
        tv_sec: remaining_ns / 1_000_000_000,
        tv_nsec: remaining_ns % 1_000_000_000,
    };
    // Whatever the result, the caller checks the sockets again.
    let _ = poll(waited, Some(&timeout)); // The call that follows finds out.
}

/// Maximum of sockets of one wait: more than the destinations of a flow.
pub const WAITED_MAX: usize = 64;

/// Requests a receive buffer of `size_bytes`, above the system's limit if that is permitted. Returns the actual size,
/// in the kernel's own count.
///
/// # Errors
/// The kernel's error.
pub fn set_receive_buffer(socket: impl AsFd, size_bytes: u32) -> io::Result<u32> {
    set_buffer(socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, size_bytes)
}

/// Requests a send buffer of `size_bytes`, above the system's limit if that is permitted. Returns the actual size, in
/// the kernel's own count.
///
/// # Errors
/// The kernel's error.
pub fn set_send_buffer(socket: impl AsFd, size_bytes: u32) -> io::Result<u32> {
    set_buffer(socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, size_bytes)
}

fn set_buffer(socket: impl AsFd, force: i32, name: i32, size_bytes: u32) -> io::Result<u32> {
    let fd = socket.as_fd();
    let size = i32::try_from(size_bytes).unwrap_or(i32::MAX);
    option::set_int(fd, libc::SOL_SOCKET, force, size)
        .or_else(|_| option::set_int(fd, libc::SOL_SOCKET, name, size))?;
    let [got] = option::words(fd, libc::SOL_SOCKET, name)?;
    Ok(got)
}

/// Returns the largest IP packet on the way to the peer of a connected socket, as far as the kernel knows it.
///
/// # Errors
/// The kernel's error: `NotConnected` without a peer.
pub fn path_mtu(socket: impl AsFd) -> io::Result<u32> {
    let fd = socket.as_fd();
    let [mtu] = option::words(fd, libc::IPPROTO_IP, libc::IP_MTU)
        .or_else(|_| option::words(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU))?;
    Ok(mtu)
}

/// Returns the number of datagrams that a full receive buffer has dropped since the socket was created.
/// [`crate::stamp::receive`] returns the same count with the next datagram that finds room.
///
/// # Errors
/// The kernel's error.
pub fn dropped(socket: impl AsFd) -> io::Result<u32> {
    let words: [u32; SK_MEMINFO_VARS] =
        option::words(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    Ok(words[SK_MEMINFO_DROPS])
}

// linux/sock_diag.h
const SK_MEMINFO_VARS: usize = 9;
const SK_MEMINFO_DROPS: usize = 8;

/// Marks the socket's packets: first the differentiated services code point on the wire, then the priority by which
/// this host's queueing discipline chooses a band. The order matters, because setting the first resets the second.
///
/// # Errors
/// The kernel's error; `PermissionDenied` for a priority above 6 without CAP_NET_ADMIN.
pub fn set_priority(
    socket: impl AsFd,
    ipv6: bool,
    dscp: Option<u8>,
    priority: Option<u32>,
) -> io::Result<()> {
    let fd = socket.as_fd();
    if let Some(dscp) = dscp {
        let (level, name) = if ipv6 {
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
        } else {
            (libc::IPPROTO_IP, libc::IP_TOS)
        };
        option::set_int(fd, level, name, i32::from(dscp & 0x3F) << 2)?;
    }
    if let Some(priority) = priority {
        let priority = i32::try_from(priority).unwrap_or(i32::MAX);
        option::set_int(fd, libc::SOL_SOCKET, libc::SO_PRIORITY, priority)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_wait_tells_which_can_be_read_and_ends_at_its_time_to_the_microsecond() {
        let (quiet, _open) = std::io::pipe().unwrap();
        let (spoken, mut speaker) = std::io::pipe().unwrap();
        let (ended, _) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut speaker, b"x").unwrap();
        let all = [quiet.as_fd(), spoken.as_fd(), ended.as_fd()];
        assert_eq!(readable(all, None), [false, true, true]);
        // The shortest of several waits is not rounded up to a millisecond.
        let took_ns = (0..50).map(|_| {
            let begun_ns = clock::monotonic_ns();
            assert_eq!(readable([quiet.as_fd()], Some(begun_ns + 50_000)), [false]);
            clock::monotonic_ns() - begun_ns
        });
        let shortest_ns = took_ns.min().unwrap();
        assert!((50_000..900_000).contains(&shortest_ns), "{shortest_ns}");
    }

    #[test]
    fn the_code_point_does_not_undo_the_priority() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        set_priority(&socket, false, Some(46), Some(6)).expect("permitted to all");
        let tos = option::words::<1>(socket.as_fd(), libc::IPPROTO_IP, libc::IP_TOS);
        assert_eq!(tos.expect("read"), [0xb8]);
        let priority = option::words::<1>(socket.as_fd(), libc::SOL_SOCKET, libc::SO_PRIORITY);
        assert_eq!(priority.expect("read"), [6]);
    }

    #[test]
    fn a_buffer_is_at_least_what_was_asked_for() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        assert!(set_receive_buffer(&socket, 16_384).expect("small") >= 16_384);
        assert!(set_send_buffer(&socket, 16_384).expect("small") >= 16_384);
    }
}
