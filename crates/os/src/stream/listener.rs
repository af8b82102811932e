//! TCP listeners, and the addresses at which other hosts reach this one.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::net::{self, SocketAddrAny, SocketFlags, SocketType, sockopt};

use super::{PacketPriority, StreamOptions, StreamSocket, family};

/// A listening, non-blocking TCP socket.
#[derive(Debug)]
pub struct TcpListener {
    pub(super) fd: OwnedFd,
    /// The options of the connections that it accepts.
    options: Mutex<StreamOptions>,
}

impl TcpListener {
    /// Listens at `address` (port 0: any free port) with room for `backlog` pending connections.
    ///
    /// # Errors
    /// The kernel's error, most often that the address is in use.
    pub fn listen(address: SocketAddr, backlog: i32) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = net::socket_with(family(address), SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&fd, true)?;
        net::bind(&fd, &address)?;
        net::listen(&fd, backlog)?;
        let options = Mutex::default();
        Ok(Self { fd, options })
    }

    /// Sets the options of the connections that are accepted from now on.
    ///
    /// # Errors
    /// The kernel's error for an option; `PermissionDenied` for a packet priority that it does not permit.
    pub fn set_options(&self, options: StreamOptions) -> io::Result<()> {
        let mut current = self.options.lock().unwrap_or_else(PoisonError::into_inner);
        // The listener and the connections accepted from it keep a packet priority until it is set again.
        let usual = current.packets.map(|_| PacketPriority::USUAL);
        let options = StreamOptions {
            packets: options.packets.or(usual),
            ..options
        };
        options.set_buffers(&self.fd)?;
        options.set_route(&self.fd)?;
        *current = options;
        Ok(())
    }

    /// Accepts one pending connection. Returns `None` if none is pending (or the client has closed it again).
    ///
    /// # Errors
    /// The kernel's error; see [`is_exhaustion`].
    pub fn accept(&self) -> io::Result<Option<StreamSocket>> {
        match net::acceptfrom_with(&self.fd, SocketFlags::CLOEXEC) {
            Ok((fd, peer)) => Ok(self.adopt(fd, peer).ok()),
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The connection inherits buffers and route from the listening socket; the other options are set here.
    fn adopt(&self, fd: OwnedFd, peer: Option<SocketAddrAny>) -> io::Result<StreamSocket> {
        let mut stream = StreamSocket::adopt_tcp(fd)?;
        stream.accepted = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        let options = *self.options.lock().unwrap_or_else(PoisonError::into_inner);
        stream.keep_options(&options)?;
        if let Some(packets) = options.packets {
            stream.set_packet_priority(packets)?;
        }
        Ok(stream)
    }

    /// Returns the address at which it listens, with the port that the kernel chose.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::try_from(net::getsockname(&self.fd)?)?)
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns true if `error` means that descriptors or memory have run out. The condition ends when others are released.
#[must_use]
pub fn is_exhaustion(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(
        errno,
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

/// Returns the addresses that this host uses towards other hosts, of IPv4 and with `over_ipv6` of IPv6 too. Returns
/// loopback if the host has no route to others. Sends nothing.
#[must_use]
pub fn outward_addresses(over_ipv6: bool) -> Vec<IpAddr> {
    // Addresses for documentation; every default route covers them.
    let ipv4 = SocketAddr::from(([192, 0, 2, 1], 9));
    let ipv6 = SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 9));
    let towards = |address| -> io::Result<IpAddr> {
        let flags = SocketFlags::CLOEXEC;
        let fd = net::socket_with(family(address), SocketType::DGRAM, flags, None)?;
        net::connect(&fd, &address)?;
        Ok(SocketAddr::try_from(net::getsockname(&fd)?)?.ip())
    };
    let mut found: Vec<_> = towards(ipv4).into_iter().collect();
    if over_ipv6 {
        found.extend(towards(ipv6));
    }
    if found.is_empty() {
        found.push(IpAddr::from([127, 0, 0, 1]));
    }
    found
}
