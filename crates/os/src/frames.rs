//! Whole Ethernet frames (AF_PACKET): received in batches from all interfaces of a network namespace with the kernel's
//! stamps of their arrival, and sent past the queueing disciplines.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use crate::control::{Control, ControlBuffer};
use crate::tap::{PACKET_IGNORE_OUTGOING, PACKET_STATISTICS, bind, no_address, packet_socket};
use crate::{option, socket, stamp};

/// A socket for the frames of all interfaces of its network namespace.
#[derive(Debug)]
pub struct FrameSocket {
    fd: OwnedFd,
}

/// A frame that has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// Index of the interface.
    pub interface: u32,
    /// Octets put into the buffer.
    pub len: usize,
    /// Whether the frame was longer than the buffer.
    pub truncated: bool,
    /// The time of arrival, nanoseconds of CLOCK_REALTIME; `None` before the kernel has begun to stamp
    /// ([`crate::stamp::await_stamps`]).
    pub realtime_ns: Option<i64>,
}

impl FrameSocket {
    /// Opens the socket in the network namespace of the calling thread. Frames arrive from [`Self::start`] on.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW, else the kernel's error.
    pub fn open(buffer_bytes: u32) -> io::Result<Self> {
        let fd = packet_socket()?;
        option::set_int(fd.as_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        option::set_int(fd.as_fd(), libc::SOL_PACKET, PACKET_QDISC_BYPASS, 1)?;
        socket::set_receive_buffer(&fd, buffer_bytes)?;
        stamp::stamp_received(&fd)?;
        Ok(Self { fd })
    }

    /// Lets frames arrive.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn start(&self) -> io::Result<()> {
        bind(self.fd.as_fd(), 0)
    }

    /// Receives the frames that have arrived, each into a buffer, without waiting. Returns their number, at most
    /// [`BATCH_MAX`] and the number of buffers; 0 if there is none.
    ///
    /// # Errors
    /// The kernel's error; `NetworkDown` once when an interface goes down.
    pub fn receive(&self, into: &mut [Vec<u8>], arrived: &mut [Arrived]) -> io::Result<usize> {
        let count = into.len().min(arrived.len()).min(BATCH_MAX);
        let mut control = [const { MaybeUninit::<ControlBuffer>::uninit() }; BATCH_MAX];
        let mut from = [no_address(); BATCH_MAX];
        let mut octets = [const {
            libc::iovec {
                iov_base: std::ptr::null_mut(),
                iov_len: 0,
            }
        }; BATCH_MAX];
        // SAFETY: an mmsghdr of zeros is a valid one: null pointers with zero lengths.
        let mut messages: [libc::mmsghdr; BATCH_MAX] = unsafe { std::mem::zeroed() };
        for index in 0..count {
            octets[index].iov_base = into[index].as_mut_ptr().cast();
            octets[index].iov_len = into[index].len();
            let header = &mut messages[index].msg_hdr;
            header.msg_iov = &raw mut octets[index];
            header.msg_iovlen = 1;
            header.msg_name = (&raw mut from[index]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            header.msg_control = control[index].as_mut_ptr().cast();
            header.msg_controllen = size_of::<ControlBuffer>() as _;
        }
        // SAFETY: all pointers of the first `count` messages point to live memory of the lengths given, and outlive the
        // call.
        let got = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        let Ok(got) = usize::try_from(got) else {
            return match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                error => Err(error),
            };
        };
        for index in 0..got {
            let message = &messages[index];
            // SAFETY: recvmmsg has filled the control messages of the first `got` messages.
            let found = unsafe { Control::of(&message.msg_hdr, message.msg_len as usize) };
            arrived[index] = Arrived {
                interface: from[index].sll_ifindex.cast_unsigned(),
                len: found.len.min(into[index].len()),
                truncated: found.truncated,
                realtime_ns: found.stamp_ns,
            };
        }
        Ok(got)
    }

    /// Sends a frame at once, past the queueing discipline of the interface.
    ///
    /// # Errors
    /// The kernel's error: `NetworkDown` for an interface that is down, `WouldBlock` for a full send buffer.
    pub fn send(&self, interface: u32, frame: &[u8]) -> io::Result<()> {
        let mut address = no_address();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = interface.cast_signed();
        // SAFETY: the kernel reads the octets and one sockaddr_ll from live references.
        let sent = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                libc::MSG_DONTWAIT,
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Returns the number of frames dropped at a full receive buffer since the last call.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn take_dropped(&self) -> io::Result<u32> {
        let [_seen, dropped] = option::words(self.fd.as_fd(), libc::SOL_PACKET, PACKET_STATISTICS)?;
        Ok(dropped)
    }
}

impl AsFd for FrameSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Frames of one receive: their headers stand on the stack.
pub const BATCH_MAX: usize = 32;

// linux/if_packet.h
const PACKET_QDISC_BYPASS: i32 = 20;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;
    use crate::clock::ClockPair;
    use crate::tap::interfaces;

    #[test]
    fn frames_of_lo_arrive_once_stamped_and_a_sent_one_arrives_too() {
        let socket = match FrameSocket::open(1 << 20) {
            Ok(socket) => socket,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                deckwatch_testkit::skip("packet-tap", "AF_PACKET needs CAP_NET_RAW");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        assert!(stamp::await_stamps(Duration::from_secs(10)));
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let to = receiver.local_addr().expect("bound");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let content: Vec<u8> = (0..200).map(|i| i ^ to.port() as u8).collect();
        let before = ClockPair::read();
        socket.start().expect("bound");
        sender.send_to(&content, to).expect("sent");
        let mut buffers = vec![vec![0; 2000]; 4];
        let mut arrived = [Arrived::default(); 4];
        // Other tests use lo too; ours is the one with these octets.
        let mut ours = |socket: &FrameSocket| {
            let mut found = Vec::new();
            for _ in 0..1_000_000 {
                let got = socket
                    .receive(&mut buffers, &mut arrived)
                    .expect("readable");
                for index in 0..got {
                    let frame = &buffers[index][..arrived[index].len];
                    if frame.ends_with(&content) {
                        found.push((arrived[index], frame.to_vec()));
                    }
                }
                if !found.is_empty() && got == 0 {
                    break;
                }
            }
            found
        };
        let first = ours(&socket);
        assert_eq!(first.len(), 1, "an outgoing frame was seen");
        let (seen, frame) = &first[0];
        let lo = interfaces().expect("readable");
        let lo = lo.iter().find(|one| one.name == "lo").expect("there");
        assert_eq!((seen.interface, seen.truncated), (lo.index, false));
        let after = ClockPair::read();
        let stamp_ns = seen.realtime_ns.expect("stamped");
        assert!((before.realtime_ns..=after.realtime_ns).contains(&stamp_ns));
        socket.send(lo.index, frame).expect("sent");
        // Its checksum is the unfinished one of `lo`, so that it reaches no socket but packet sockets.
        assert_eq!(ours(&socket).len(), 1);
    }
}
