//! What std cannot ask of a socket: large buffers, and the priority of its packets.

use std::io;
use std::os::fd::AsFd;

use crate::option;

/// Asks for a receive buffer of `size_bytes`, above the system's limit where that is permitted. Returns what was got, in the kernel's own count.
///
/// # Errors
/// What the kernel answers.
pub fn set_receive_buffer(socket: impl AsFd, size_bytes: u32) -> io::Result<u32> {
    set_buffer(socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, size_bytes)
}

/// Asks for a send buffer of `size_bytes`, above the system's limit where that is permitted. Returns what was got, in the kernel's own count.
///
/// # Errors
/// What the kernel answers.
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

/// Marks the socket's packets: the differentiated services code point on the wire, then the priority by which this host's queueing
/// discipline chooses a band. In this order, because setting the first resets the second.
///
/// # Errors
/// What the kernel answers; `PermissionDenied` for a priority above 6 without CAP_NET_ADMIN.
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
