//! The kernel's stamps of the messages that a socket sends and receives (SO_TIMESTAMPING, software). Also the kernel's
//! reports of lost messages: SO_RXQ_OVFL, IP_RECVERR.
//!
//! A receive stamp is read with the octets. Transmit stamps and send errors are read from the socket's error queue with
//! [`take_report`], which never waits. Each transmit stamp identifies the message by the kernel's own count (OPT_ID):
//! of datagrams, or of octets of a stream. Stamps are CLOCK_REALTIME; [`crate::clock::ClockPair`] converts them to
//! CLOCK_MONOTONIC.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::{clock, control, option};

/// Makes the kernel stamp arriving messages and count those that a full receive buffer dropped.
///
/// # Errors
/// The kernel's error.
pub fn stamp_received(socket: impl AsFd) -> io::Result<()> {
    let fd = socket.as_fd();
    option::set_int(fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
    set_stamping(
        fd,
        libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE,
    )
}

/// Makes the kernel stamp each datagram sent when it enters the queueing discipline. So the time in the host's own queue
/// and on its own link is after the stamp. Datagrams are counted from 0.
///
/// # Errors
/// The kernel's error.
pub fn stamp_sent_datagrams(socket: impl AsFd) -> io::Result<()> {
    restart(socket.as_fd(), TRANSMIT)
}

/// Makes the kernel stamp each datagram of a socket, sent as by [`stamp_sent_datagrams`] and received as by
/// [`stamp_received`]. The count restarts at 0.
///
/// # Errors
/// The kernel's error.
pub fn stamp_datagrams(socket: impl AsFd) -> io::Result<()> {
    restart(
        socket.as_fd(),
        TRANSMIT | libc::SOF_TIMESTAMPING_RX_SOFTWARE,
    )
}

/// Makes the kernel stamp the last octet of each send on a connection when it enters the queueing discipline. Octets are
/// counted from 0, starting with the next send.
///
/// # Errors
/// The kernel's error; `InvalidInput` before the connection is made.
pub fn stamp_sent_octets(socket: impl AsFd) -> io::Result<()> {
    let fd = socket.as_fd();
    // With OPT_ID_TCP (Linux 6.2) the count starts at the octets written. Without it the count starts at the octets
    // that the peer has acknowledged, which is the same if none are in transit.
    restart(fd, TRANSMIT | libc::SOF_TIMESTAMPING_OPT_ID_TCP).or_else(|_| restart(fd, TRANSMIT))
}

/// Turns stamping off and on, so that the count restarts at 0. A sender does so after a datagram that could not be
/// sent: it depends on the kernel whether that datagram was counted.
fn restart(fd: BorrowedFd<'_>, flags: u32) -> io::Result<()> {
    set_stamping(fd, 0)?;
    set_stamping(fd, flags)
}

fn set_stamping(fd: BorrowedFd<'_>, flags: u32) -> io::Result<()> {
    option::set_int(
        fd,
        libc::SOL_SOCKET,
        libc::SO_TIMESTAMPING,
        flags.cast_signed(),
    )
}

const TRANSMIT: u32 = libc::SOF_TIMESTAMPING_TX_SCHED
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;

/// Makes the kernel report local drops (a full queueing discipline) and refusals by the network to the sender. Without
/// this option the kernel reports success for every send.
///
/// # Errors
/// The kernel's error.
pub fn report_send_errors(socket: impl AsFd, ipv6: bool) -> io::Result<()> {
    let (level, name) = if ipv6 {
        (libc::SOL_IPV6, libc::IPV6_RECVERR)
    } else {
        (libc::SOL_IP, libc::IP_RECVERR)
    };
    option::set_int(socket.as_fd(), level, name, 1)
}

/// The result of one receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Octets put into the buffer; 0 at the end of a stream.
    pub len: usize,
    /// Whether a datagram was longer than the buffer.
    pub truncated: bool,
    /// When the kernel received it, nanoseconds of CLOCK_REALTIME; for a stream, when it received the last octet.
    pub stamp_realtime_ns: Option<i64>,
    /// Datagrams that a full receive buffer has dropped since the socket was created. After the first drop, each
    /// datagram carries this count.
    pub dropped: Option<u32>,
}

/// Receives a datagram or octets of a stream with their stamp, waiting up to the socket's own timeout.
///
/// # Errors
/// The kernel's error; `WouldBlock` when the timeout has passed.
pub fn receive(socket: impl AsFd, into: &mut [u8]) -> io::Result<Received> {
    let control = control::receive(socket.as_fd(), into, None, 0)?;
    Ok(Received::of(&control))
}

impl Received {
    fn of(control: &control::Control) -> Self {
        Self {
            len: control.len,
            truncated: control.truncated,
            stamp_realtime_ns: control.stamp_ns,
            dropped: control.dropped,
        }
    }
}

/// As [`receive`], for a datagram. Returns the address that it comes from as well.
///
/// # Errors
/// The kernel's error; `WouldBlock` when the timeout has passed.
pub fn receive_from(
    socket: impl AsFd,
    into: &mut [u8],
) -> io::Result<(Received, Option<SocketAddr>)> {
    // SAFETY: a socket address of zeroes is valid: of no family.
    let mut name: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let from = control::From::Ip(&mut name);
    let control = control::receive(socket.as_fd(), into, Some(from), 0)?;
    Ok((Received::of(&control), address_of(&name)))
}

fn address_of(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let name = std::ptr::from_ref(name);
    // SAFETY: the storage is as large and as aligned as any address, and its family tells which one it holds.
    unsafe {
        match i32::from((*name).ss_family) {
            libc::AF_INET => {
                let name = &*name.cast::<libc::sockaddr_in>();
                let address = Ipv4Addr::from_bits(u32::from_be(name.sin_addr.s_addr));
                Some((IpAddr::V4(address), u16::from_be(name.sin_port)).into())
            }
            libc::AF_INET6 => {
                let name = &*name.cast::<libc::sockaddr_in6>();
                let address = Ipv6Addr::from(name.sin6_addr.s6_addr);
                let port = u16::from_be(name.sin6_port);
                let scope = name.sin6_scope_id;
                Some(std::net::SocketAddrV6::new(address, port, 0, scope).into())
            }
            _ => None,
        }
    }
}

/// Waits until the kernel stamps arriving packets. Stamping starts a little after the first socket has requested it,
/// because a work queue enables it; until then packets have no stamp. Returns false if it has not started within
/// `time_max`, or if there is no loopback to test it on.
#[must_use]
pub fn await_stamps(time_max: Duration) -> bool {
    let end_ns = clock::monotonic_ns()
        .saturating_add(i64::try_from(time_max.as_nanos()).unwrap_or(i64::MAX));
    let Ok(probe) = probe() else { return false };
    let mut octet = [0];
    while clock::monotonic_ns() < end_ns {
        let arrived = probe.send(&octet).and_then(|_| receive(&probe, &mut octet));
        if arrived.is_ok_and(|received| received.stamp_realtime_ns.is_some()) {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// Creates a socket that sends to itself.
fn probe() -> io::Result<UdpSocket> {
    let probe = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    probe.connect(probe.local_addr()?)?;
    probe.set_read_timeout(Some(PROBE_WAIT))?;
    stamp_received(&probe)?;
    Ok(probe)
}

/// A datagram on loopback that has not arrived by then is lost.
const PROBE_WAIT: Duration = Duration::from_millis(10);

/// One entry of a socket's error queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Report {
    /// A transmit stamp.
    Stamp {
        /// Identifies the message: the number of datagrams before it, or the position of its last octet, counted from
        /// 0.
        id: u32,
        /// The time of the stamp, nanoseconds of CLOCK_REALTIME.
        realtime_ns: i64,
    },
    /// A datagram sent before was refused, on this host or by the network.
    Refused {
        /// The error, as in `errno`.
        errno: u32,
        /// Whether it was refused on this host, not by the network.
        local: bool,
    },
    /// Any other entry.
    Other,
}

/// Reads the next entry of the error queue without waiting. Returns `None` if the queue is empty.
///
/// # Errors
/// The kernel's error.
pub fn take_report(socket: impl AsFd) -> io::Result<Option<Report>> {
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    let control = match control::receive(socket.as_fd(), &mut [], None, flags) {
        Ok(control) => control,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(error) = control.error else {
        return Ok(Some(Report::Other));
    };
    Ok(Some(match (error.origin, error.info, control.stamp_ns) {
        (libc::SO_EE_ORIGIN_TIMESTAMPING, SCM_TSTAMP_SCHED, Some(realtime_ns)) => Report::Stamp {
            id: error.data,
            realtime_ns,
        },
        (libc::SO_EE_ORIGIN_TIMESTAMPING, ..) => Report::Other,
        (origin, ..) => Report::Refused {
            errno: error.errno,
            local: origin == libc::SO_EE_ORIGIN_LOCAL,
        },
    }))
}

// linux/errqueue.h; not in libc.
const SCM_TSTAMP_SCHED: u32 = 1;

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::clock::ClockPair;

    fn udp_pair() -> (UdpSocket, UdpSocket) {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        sender
            .connect(receiver.local_addr().expect("bound"))
            .expect("connects");
        (sender, receiver)
    }

    fn reports(socket: &impl AsFd) -> Vec<Report> {
        std::iter::from_fn(|| take_report(socket).expect("the queue can be read")).collect()
    }

    #[test]
    fn stamps_of_a_datagram_stand_in_order_of_its_road() {
        let (sender, receiver) = udp_pair();
        stamp_received(&receiver).expect("stamps");
        stamp_sent_datagrams(&sender).expect("stamps");
        let mut buffer = [0; 64];
        assert!(await_stamps(Duration::from_secs(10)));
        for id in 0..200_u32 {
            let before = ClockPair::read();
            sender.send(&id.to_be_bytes()).expect("sent");
            let received = receive(&receiver, &mut buffer).expect("received");
            let after = ClockPair::read();
            assert_eq!(received.len, 4);
            let stamp = |report: &Report| match *report {
                Report::Stamp {
                    id: of,
                    realtime_ns,
                } if of == id => Some(realtime_ns),
                _ => None,
            };
            let sent = reports(&sender).iter().find_map(stamp);
            let road = [
                before.realtime_ns,
                sent.expect("stamped"),
                received.stamp_realtime_ns.expect("stamped"),
                after.realtime_ns,
            ];
            assert!(road.is_sorted(), "{road:?}");
        }
    }

    #[test]
    fn stamps_of_a_stream_name_the_last_octet_of_each_send() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let mut sender =
            TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let (receiver, _) = listener.accept().expect("accepts");
        stamp_sent_octets(&sender).expect("stamps");
        stamp_received(&receiver).expect("stamps");
        let mut buffer = [0; 100];
        let mut ids = Vec::new();
        for _ in 0..5 {
            sender.write_all(&[7; 100]).expect("sent");
            (&receiver).read_exact(&mut buffer).expect("received");
            ids.extend(
                reports(&sender)
                    .into_iter()
                    .filter_map(|report| match report {
                        Report::Stamp { id, .. } => Some(id),
                        _ => None,
                    }),
            );
        }
        assert_eq!(ids, [99, 199, 299, 399, 499]);
    }

    #[test]
    fn a_full_receive_buffer_is_counted() {
        let (sender, receiver) = udp_pair();
        option::set_int(receiver.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 2048).expect("set");
        stamp_received(&receiver).expect("stamps");
        for _ in 0..50 {
            sender.send(&[0; 500]).expect("sent");
        }
        receiver.set_nonblocking(true).expect("set");
        let mut buffer = [0; 500];
        let mut got = 0;
        while receive(&receiver, &mut buffer).is_ok() {
            got += 1;
        }
        assert_eq!(
            crate::socket::dropped(&receiver).expect("readable"),
            50 - got
        );
        // The next datagram that finds room carries the counter.
        sender.send(&[0; 500]).expect("sent");
        let last = receive(&receiver, &mut buffer).expect("received");
        assert_eq!(last.dropped, Some(50 - got));
        assert!(got < 50);
    }

    #[test]
    fn a_datagram_to_a_closed_port_is_reported_as_refused() {
        let (sender, receiver) = udp_pair();
        report_send_errors(&sender, false).expect("set");
        drop(receiver);
        sender.send(b"nobody").expect("the first is on its way");
        let refused = reports(&sender);
        let errno = libc::ECONNREFUSED.cast_unsigned();
        assert_eq!(
            refused,
            [Report::Refused {
                errno,
                local: false
            }]
        );
    }

    #[test]
    fn one_socket_gets_stamps_of_both_directions_and_the_address_of_the_sender() {
        assert!(await_stamps(Duration::from_secs(10)));
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may have no IPv6.
            let Ok(one) = UdpSocket::bind(address) else {
                continue;
            };
            let other = UdpSocket::bind(address).expect("loopback");
            for socket in [&one, &other] {
                stamp_datagrams(socket).expect("stamps");
            }
            let mut buffer = [0; 8];
            let address = |socket: &UdpSocket| socket.local_addr().expect("bound");
            for (from, to) in [(&one, &other), (&other, &one)] {
                from.send_to(b"asked", address(to)).expect("sent");
                let (received, sender) = receive_from(to, &mut buffer).expect("received");
                assert_eq!((received.len, sender), (5, Some(address(from))));
                assert!(received.stamp_realtime_ns.is_some());
                assert!(matches!(reports(from)[..], [Report::Stamp { id: 0, .. }]));
            }
        }
    }

    #[test]
    fn counting_anew_starts_at_zero() {
        let (sender, _receiver) = udp_pair();
        for _ in 0..2 {
            stamp_sent_datagrams(&sender).expect("stamps");
            sender.send(b"first").expect("sent");
            let ids: Vec<u32> = reports(&sender)
                .into_iter()
                .filter_map(|report| match report {
                    Report::Stamp { id, .. } => Some(id),
                    _ => None,
                })
                .collect();
            assert_eq!(ids, [0]);
        }
    }
}
