//! Packet taps (AF_PACKET): copies of the packets that a host's interfaces send and receive, with the kernel's own
//! stamps.
//!
//! A tap sees an outgoing packet after the queueing discipline has released it, and an incoming packet before the
//! network stack handles it. On `lo` each packet is seen twice, once leaving and once arriving.
//!
//! An interface may have a *front*: another interface that gets a copy of each packet before it enters the queueing
//! discipline ([`Interface::is_front_of`]). A tap on the front stamps what leaves before the host's own queue.

use std::ffi::CStr;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use crate::filter::PortFilter;
use crate::{control, option, socket, stamp};

/// A tap on one interface.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
}

impl Tap {
    /// Opens a tap that keeps packets from or to the filter's ports. A buffer of about `buffer_bytes` holds them until
    /// they are read.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW, else the kernel's error.
    pub fn open(
        interface: &Interface,
        leaving: Leaving,
        filter: &PortFilter,
        buffer_bytes: u32,
    ) -> io::Result<Self> {
        let fd = packet_socket()?;
        filter.attach(fd.as_fd())?;
        if leaving == Leaving::Unseen {
            option::set_int(fd.as_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        }
        socket::set_receive_buffer(&fd, buffer_bytes)?;
        // Not SO_TIMESTAMPNS: if the kernel did not stamp a packet on arrival, that option stamps it when it is read.
        stamp::stamp_received(&fd)?;
        bind(fd.as_fd(), interface.index)?;
        Ok(Self { fd })
    }

    /// Reads the next packet, including its link header, without waiting. Returns `None` if there is none.
    ///
    /// # Errors
    /// The kernel's error; `NetworkDown` once when the interface goes down.
    pub fn take(&mut self, into: &mut [u8]) -> io::Result<Option<Packet>> {
        let mut from = no_address();
        match control::receive(
            self.fd.as_fd(),
            into,
            Some(control::From::Link(&mut from)),
            libc::MSG_TRUNC,
        ) {
            Ok(control) => Ok(Some(Packet {
                len: control.len.min(into.len()),
                len_on_wire: control.len,
                realtime_ns: control.stamp_ns,
                direction: if i32::from(from.sll_pkttype) == PACKET_OUTGOING {
                    Direction::Leaving
                } else {
                    Direction::Arriving
                },
            })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the number of packets dropped at a full buffer since the last call.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn take_dropped(&mut self) -> io::Result<u32> {
        let [_seen, dropped] = option::words(self.fd.as_fd(), libc::SOL_PACKET, PACKET_STATISTICS)?;
        Ok(dropped)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether a tap sees the packets that leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It sees them.
    Seen,
    /// It does not: a tap on the interface's front sees them.
    Unseen,
}

/// A packet that a tap has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Octets put into the buffer.
    pub len: usize,
    /// Octets that the packet had.
    pub len_on_wire: usize,
    /// The time of the stamp, nanoseconds of CLOCK_REALTIME; `None` before the kernel has begun to stamp
    /// ([`crate::stamp::await_stamps`]).
    pub realtime_ns: Option<i64>,
    /// The direction of the packet.
    pub direction: Direction,
}

/// The direction of a packet, seen from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the host.
    Leaving,
    /// To the host.
    Arriving,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index in this network namespace.
    pub index: u32,
    /// Whether it is up.
    pub up: bool,
}

impl Interface {
    /// Returns true if this interface gets a copy of each packet that the other sends: it has the other's name with
    /// [`FRONT`] added.
    #[must_use]
    pub fn is_front_of(&self, other: &Self) -> bool {
        self.name.strip_suffix(FRONT) == Some(&other.name)
    }
}

/// The end of a front's name.
pub const FRONT: &str = "-front";

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Returns the interfaces of this network namespace, in order of index.
///
/// # Errors
/// The kernel's error.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: on success `first` is a list that is ours until it is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut entry = first;
    while !entry.is_null() {
        // SAFETY: `entry` is a live element of the list; its name is a C string, and an address of family AF_PACKET is
        // a sockaddr_ll.
        unsafe {
            let address = (*entry).ifa_addr;
            if !address.is_null() && i32::from((*address).sa_family) == libc::AF_PACKET {
                let link = address.cast::<libc::sockaddr_ll>().read_unaligned();
                found.push(Interface {
                    name: CStr::from_ptr((*entry).ifa_name)
                        .to_string_lossy()
                        .into_owned(),
                    index: link.sll_ifindex.cast_unsigned(),
                    up: (*entry).ifa_flags & libc::IFF_UP.cast_unsigned() != 0,
                });
            }
            entry = (*entry).ifa_next;
        }
    }
    // SAFETY: the list came from getifaddrs and nothing points into it any more.
    unsafe { libc::freeifaddrs(first) };
    found.sort_by_key(|interface| interface.index);
    Ok(found)
}

/// Opens a packet socket that gets no packet before [`bind`].
pub(crate) fn packet_socket() -> io::Result<OwnedFd> {
    // Protocol 0: no packet arrives before the socket is set up and bound.
    // SAFETY: no memory is involved.
    let raw = unsafe {
        libc::socket(
            libc::AF_PACKET,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
            0,
        )
    };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `raw` is a descriptor just made, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Lets the packets of an interface arrive; 0 is all interfaces of the network namespace.
pub(crate) fn bind(fd: BorrowedFd<'_>, interface: u32) -> io::Result<()> {
    let mut address = no_address();
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface.cast_signed();
    // SAFETY: the kernel reads one sockaddr_ll from a live reference.
    let bound = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    match bound {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

pub(crate) fn no_address() -> libc::sockaddr_ll {
    // SAFETY: a sockaddr_ll of zeros is valid: it is integers only.
    unsafe { std::mem::zeroed() }
}

// linux/if_packet.h
const PACKET_OUTGOING: i32 = 4;
pub(crate) const PACKET_STATISTICS: i32 = 6;
pub(crate) const PACKET_IGNORE_OUTGOING: i32 = 23;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;
    use crate::clock::ClockPair;

    fn lo() -> Interface {
        interfaces()
            .expect("readable")
            .into_iter()
            .find(|interface| interface.name == "lo")
            .expect("every namespace has one")
    }

    /// Opens a tap. Returns `None` where taps are not permitted.
    fn open(port: u16, leaving: Leaving, buffer_bytes: u32) -> Option<Tap> {
        match Tap::open(&lo(), leaving, &PortFilter::new(&[port]), buffer_bytes) {
            Ok(tap) => Some(tap),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                deckwatch_testkit::skip("packet-tap", "AF_PACKET needs CAP_NET_RAW");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn drain(tap: &mut Tap) -> Vec<(Packet, Vec<u8>)> {
        let mut buffer = vec![0; 70_000];
        let mut packets = Vec::new();
        while let Some(packet) = tap.take(&mut buffer).expect("readable") {
            packets.push((packet, buffer[..packet.len].to_vec()));
        }
        packets
    }

    #[test]
    fn on_lo_a_packet_is_seen_leaving_and_then_arriving() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let port = receiver.local_addr().expect("bound").port();
        let Some(mut tap) = open(port, Leaving::Seen, 1 << 20) else {
            return;
        };
        assert!(stamp::await_stamps(Duration::from_secs(10)));
        let stranger = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let before = ClockPair::read();
        for _ in 0..3 {
            sender
                .send_to(b"not for the tap", stranger.local_addr().expect("bound"))
                .expect("sent");
            sender
                .send_to(b"for the tap", ("127.0.0.1", port))
                .expect("sent");
        }
        let after = ClockPair::read();
        let packets = drain(&mut tap);
        let ways: Vec<Direction> = packets.iter().map(|(packet, _)| packet.direction).collect();
        assert_eq!(ways, [Direction::Leaving, Direction::Arriving].repeat(3));
        let mut stamps: Vec<i64> = packets
            .iter()
            .map(|(packet, _)| packet.realtime_ns.expect("stamped"))
            .collect();
        stamps.insert(0, before.realtime_ns);
        stamps.push(after.realtime_ns);
        assert!(stamps.is_sorted(), "{stamps:?}");
        assert!(
            packets
                .iter()
                .all(|(_, octets)| octets.ends_with(b"for the tap"))
        );
        assert!(
            !packets
                .iter()
                .any(|(_, octets)| octets.ends_with(b"not for the tap"))
        );
        assert_eq!(tap.take_dropped().expect("readable"), 0);
    }

    #[test]
    fn a_tap_beside_a_front_sees_what_arrives_only() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let port = receiver.local_addr().expect("bound").port();
        let Some(mut tap) = open(port, Leaving::Unseen, 1 << 20) else {
            return;
        };
        let sender = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        sender.send_to(b"once", ("127.0.0.1", port)).expect("sent");
        let packets = drain(&mut tap);
        let ways: Vec<Direction> = packets.iter().map(|(packet, _)| packet.direction).collect();
        assert_eq!(ways, [Direction::Arriving]);
        let named = |name: &str| Interface {
            name: name.to_owned(),
            ..lo()
        };
        assert!(named("eth0-front").is_front_of(&named("eth0")));
        assert!(!named("eth0").is_front_of(&named("eth0")));
        assert!(!named("eth0").is_front_of(&named("eth0-front")));
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let port = receiver.local_addr().expect("bound").port();
        let Some(mut tap) = open(port, Leaving::Seen, 4096) else {
            return;
        };
        let sender = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        for _ in 0..100 {
            sender
                .send_to(&[0; 1000], ("127.0.0.1", port))
                .expect("sent");
        }
        let seen = drain(&mut tap).len();
        let dropped = tap.take_dropped().expect("readable");
        assert_eq!(seen + dropped as usize, 200);
        assert!(dropped > 0);
    }
}
