//! Options of a stream socket: buffers, keep-alive probes, delay, route, and packet priority.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::sockopt;

use super::StreamSocket;
use crate::option::set_int;

/// Options of a stream socket; the default is that of all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamOptions {
    /// SO_SNDBUF in octets, which the kernel doubles. 0: the kernel chooses the size, and it is limited while large
    /// messages to a reader on the same host fill it.
    pub send_buffer: u32,
    /// SO_RCVBUF in octets, which the kernel doubles. 0: the kernel chooses the size.
    pub receive_buffer: u32,
    /// SO_KEEPALIVE.
    pub keep_alive: bool,
    /// TCP_NODELAY.
    pub no_delay: bool,
    /// SO_DONTROUTE.
    pub dont_route: bool,
    /// The priority of its packets.
    pub packets: Option<PacketPriority>,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            send_buffer: 0,
            receive_buffer: 0,
            keep_alive: true,
            no_delay: true,
            dont_route: false,
            packets: None,
        }
    }
}

/// The priority of a connection's packets: for the routers of the network, and for the queues of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketPriority {
    /// The differentiated services codepoint, 0 to 63.
    pub dscp: u8,
    /// SO_PRIORITY; above 6 it needs CAP_NET_ADMIN.
    pub queue: u8,
}

impl StreamOptions {
    /// Sets the buffer sizes; to be called before the socket connects, listens or is used.
    pub(crate) fn set_buffers(&self, fd: &OwnedFd) -> io::Result<()> {
        if self.send_buffer != 0 {
            set_size(fd, libc::SO_SNDBUF, self.send_buffer)?;
        }
        if self.receive_buffer != 0 {
            set_size(fd, libc::SO_RCVBUF, self.receive_buffer)?;
        }
        Ok(())
    }

    /// Switches off the options that connections have by default.
    pub(super) fn switch_off(&self, fd: &OwnedFd) -> io::Result<()> {
        if !self.no_delay {
            sockopt::set_tcp_nodelay(fd, false)?;
        }
        if !self.keep_alive {
            sockopt::set_socket_keepalive(fd, false)?;
        }
        Ok(())
    }

    /// Sets route and packet priority; to be called before the socket connects or listens, so that they apply to the
    /// first packet.
    pub(super) fn set_route(&self, fd: &OwnedFd) -> io::Result<()> {
        if self.dont_route {
            set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_DONTROUTE, 1)?;
        }
        match self.packets {
            Some(packets) => packets.set(fd),
            None => Ok(()),
        }
    }
}

impl PacketPriority {
    /// The default priority of packets.
    pub(super) const USUAL: Self = Self { dscp: 0, queue: 0 };

    fn set(self, fd: &OwnedFd) -> io::Result<()> {
        let traffic_class = u32::from(self.dscp) << 2;
        // An IPv6 socket also carries IPv4, and has an option for each; an IPv4 socket has only its own.
        let is_ipv6 = sockopt::socket_domain(fd)? == rustix::net::AddressFamily::INET6;
        if is_ipv6 {
            sockopt::set_ipv6_tclass(fd, traffic_class)?;
        }
        set_int(
            fd.as_fd(),
            libc::IPPROTO_IP,
            libc::IP_TOS,
            i32::try_from(traffic_class).unwrap_or(0),
        )?;
        // After the others: setting the type of service sets this one too.
        let queue = i32::from(self.queue);
        set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_PRIORITY, queue)
    }
}

impl StreamSocket {
    /// Applies the options that are set on a connected socket.
    pub(super) fn keep_options(&self, options: &StreamOptions) -> io::Result<()> {
        if options.send_buffer != 0 {
            self.ahead.leave_alone();
        }
        options.switch_off(&self.fd)
    }

    /// Sets the priority of a connection's packets from now on. Does nothing for a unix socket, which has none.
    ///
    /// # Errors
    /// `PermissionDenied` for a queue above 6 without CAP_NET_ADMIN, else the kernel's error.
    pub fn set_packet_priority(&self, packets: PacketPriority) -> io::Result<()> {
        if sockopt::socket_domain(&self.fd)? == rustix::net::AddressFamily::UNIX {
            return Ok(());
        }
        packets.set(&self.fd)
    }

    /// Returns the priority of a connection's packets: IP_TOS (for IPv6 IPV6_TCLASS) without the two ECN bits, and
    /// SO_PRIORITY.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn packet_priority(&self) -> io::Result<PacketPriority> {
        let class = match sockopt::socket_domain(&self.fd)? {
            rustix::net::AddressFamily::INET6 => sockopt::ipv6_tclass(&self.fd)?,
            _ => u32::from(sockopt::ip_tos(&self.fd)?),
        };
        let fd = self.fd.as_fd();
        let [queue] = crate::option::words(fd, libc::SOL_SOCKET, libc::SO_PRIORITY)?;
        Ok(PacketPriority {
            dscp: u8::try_from(class >> 2).unwrap_or(u8::MAX),
            queue: u8::try_from(queue).unwrap_or(u8::MAX),
        })
    }
}

fn set_size(fd: &OwnedFd, name: i32, octets: u32) -> io::Result<()> {
    let octets = i32::try_from(octets).unwrap_or(i32::MAX);
    set_int(fd.as_fd(), libc::SOL_SOCKET, name, octets)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::super::TcpListener;
    use super::*;

    fn connected(to: [u8; 4], options: &StreamOptions) -> io::Result<(TcpListener, StreamSocket)> {
        let listener = TcpListener::listen(SocketAddr::from((to, 0)), 8)?;
        let stream = StreamSocket::connect_with(listener.local_address()?, None, options)?;
        Ok((listener, stream))
    }

    #[test]
    fn a_connection_has_the_options_it_was_made_with() {
        let options = StreamOptions {
            send_buffer: 20_000,
            receive_buffer: 30_000,
            keep_alive: false,
            no_delay: false,
            dont_route: true,
            packets: Some(PacketPriority { dscp: 46, queue: 5 }),
        };
        let (_listener, stream) = connected([127, 0, 0, 1], &options).expect("permitted to all");
        let fd = &stream.fd;
        // The kernel doubles the sizes for its own overhead.
        assert_eq!(sockopt::socket_send_buffer_size(fd).unwrap(), 40_000);
        assert_eq!(sockopt::socket_recv_buffer_size(fd).unwrap(), 60_000);
        assert!(!sockopt::socket_keepalive(fd).unwrap());
        assert!(!sockopt::tcp_nodelay(fd).unwrap());
        let [dont_route] =
            crate::option::words(fd.as_fd(), libc::SOL_SOCKET, libc::SO_DONTROUTE).unwrap();
        assert_eq!(dont_route, 1);
        assert_eq!(Some(stream.packet_priority().unwrap()), options.packets);
    }

    #[test]
    fn a_connection_that_is_taken_has_the_options_of_the_listener() {
        let options = StreamOptions {
            send_buffer: 20_000,
            receive_buffer: 30_000,
            keep_alive: false,
            no_delay: false,
            dont_route: false,
            packets: Some(PacketPriority { dscp: 10, queue: 6 }),
        };
        let (listener, _near) = connected([127, 0, 0, 1], &StreamOptions::default()).unwrap();
        listener.set_options(options).expect("permitted to all");
        let _near = StreamSocket::connect(listener.local_address().unwrap(), None).unwrap();
        let before = listener.accept().unwrap().expect("it waits");
        assert_eq!(Some(before.packet_priority().unwrap()), options.packets);
        let later = listener.accept().unwrap().expect("it waits");
        let fd = &later.fd;
        assert_eq!(sockopt::socket_send_buffer_size(fd).unwrap(), 40_000);
        assert_eq!(sockopt::socket_recv_buffer_size(fd).unwrap(), 60_000);
        assert!(!sockopt::socket_keepalive(fd).unwrap() && !sockopt::tcp_nodelay(fd).unwrap());
        assert_eq!(Some(later.packet_priority().unwrap()), options.packets);
    }

    #[test]
    fn what_a_listener_is_given_anew_counts_alone() {
        let packets = Some(PacketPriority { dscp: 10, queue: 6 });
        let (listener, _near) = connected([127, 0, 0, 1], &StreamOptions::default()).unwrap();
        for packets in [packets, None] {
            let options = StreamOptions {
                packets,
                ..StreamOptions::default()
            };
            listener.set_options(options).expect("permitted to all");
        }
        let _near = StreamSocket::connect(listener.local_address().unwrap(), None).unwrap();
        for _ in 0..2 {
            let taken = listener.accept().unwrap().expect("it waits");
            let packets = PacketPriority { dscp: 0, queue: 0 };
            assert_eq!(taken.packet_priority().unwrap(), packets);
        }
    }

    #[test]
    fn without_options_it_has_those_of_every_connection() {
        let (_listener, stream) = connected([127, 0, 0, 1], &StreamOptions::default()).unwrap();
        assert!(sockopt::socket_keepalive(&stream.fd).unwrap());
        assert!(sockopt::tcp_nodelay(&stream.fd).unwrap());
        let packets = PacketPriority { dscp: 0, queue: 0 };
        assert_eq!(stream.packet_priority().unwrap(), packets);
    }

    #[test]
    fn a_connection_over_ipv6_has_both() {
        let Ok(listener) = TcpListener::listen("[::1]:0".parse().unwrap(), 8) else {
            return deckwatch_testkit::skip("ipv6", "no loopback of IPv6 here");
        };
        let stream = StreamSocket::connect(listener.local_address().unwrap(), None).unwrap();
        let packets = PacketPriority { dscp: 10, queue: 6 };
        stream.set_packet_priority(packets).unwrap();
        assert_eq!(stream.packet_priority().unwrap(), packets);
        assert_eq!(sockopt::ip_tos(&stream.fd).unwrap(), 40);
    }

    #[test]
    fn a_queue_above_six_is_refused_who_may_not_have_it() {
        let packets = PacketPriority { dscp: 46, queue: 7 };
        let (_listener, stream) = connected([127, 0, 0, 1], &StreamOptions::default()).unwrap();
        match stream.set_packet_priority(packets) {
            Ok(()) => assert_eq!(stream.packet_priority().unwrap(), packets),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
    }
}
