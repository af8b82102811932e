//! What a server listens at by TCP, and the addresses that others reach it by.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::net::{self, SocketFlags, SocketType, sockopt};

use super::{PacketPriority, StreamOptions, StreamSocket, family};

/// A TCP socket that listens and never blocks.
#[derive(Debug)]
pub struct TcpListener {
    pub(super) fd: OwnedFd,
    /// What the connections that it takes have.
    options: Mutex<StreamOptions>,
}

impl TcpListener {
    /// Listens at `address` (port 0: any free one) with room for `backlog` connections that wait to be accepted.
    ///
    /// # Errors
    /// What the kernel answers, most often that the address is in use.
    pub fn listen(address: SocketAddr, backlog: i32) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = net::socket_with(family(address), SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&fd, true)?;
        net::bind(&fd, &address)?;
        net::listen(&fd, backlog)?;
        let options = Mutex::default();
        Ok(Self { fd, options })
    }

    /// Gives the connections that are taken from now on these options.
    ///
    /// # Errors
    /// What the kernel answers to an option; `PermissionDenied` for a priority of packets that it does not permit.
    pub fn set_options(&self, options: StreamOptions) -> io::Result<()> {
        let mut current = self.options.lock().unwrap_or_else(PoisonError::into_inner);
        // The socket, and what is taken from it, keeps a priority of packets until it is given another.
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

    /// Takes one waiting connection. `None`: none waits (or it went away again).
    ///
    /// # Errors
    /// What the kernel answers; see [`is_exhaustion`].
    pub fn accept(&self) -> io::Result<Option<StreamSocket>> {
        match net::accept_with(&self.fd, SocketFlags::CLOEXEC) {
            Ok(fd) => Ok(self.adopt(fd).ok()),
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Buffers and route it has from this socket; the rest it is given here.
    fn adopt(&self, fd: OwnedFd) -> io::Result<StreamSocket> {
        let stream = StreamSocket::adopt_tcp(fd)?;
        let options = *self.options.lock().unwrap_or_else(PoisonError::into_inner);
        stream.keep_options(&options)?;
        if let Some(packets) = options.packets {
            stream.set_packet_priority(packets)?;
        }
        Ok(stream)
    }

    /// The address it listens at, with the port the kernel chose.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::try_from(net::getsockname(&self.fd)?)?)
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether `error` says that descriptors or memory have run out, which passes when others are given back.
#[must_use]
pub fn is_exhaustion(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(
        errno,
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

/// The addresses this host would use towards others, of IPv4 and where `over_ipv6` of IPv6 too; loopback where it has no way to
/// them. Sends nothing.
#[must_use]
pub fn outward_addresses(over_ipv6: bool) -> Vec<IpAddr> {
    // Addresses for documentation, to which every default route leads.
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
