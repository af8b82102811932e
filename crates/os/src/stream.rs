//! Stream sockets with deadlines, for the ORB: over TCP here and over unix sockets in [`crate::unix`]. A read or write
//! usually takes one system call.
//!
//! Sockets are in blocking mode; a call that must not wait passes a flag. A wait with a deadline sleeps in the socket's
//! own receive timeout, and for the last stretch in `ppoll`. The receive timeout is set only when it changes, and is
//! always shorter than the remaining time. So a steady timeout costs no further call, and a deadline is still met
//! precisely.

mod ahead;
mod interfaces;
mod listener;
mod options;
mod waiting;

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    self, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, sockopt,
};

use ahead::Ahead;
pub(crate) use ahead::SO_BUF_LOCK;
pub use interfaces::interface_addresses;
pub use listener::{TcpListener, is_exhaustion, outward_addresses};
pub use options::{PacketPriority, StreamOptions};
pub(crate) use waiting::wait_for;
pub use waiting::{monotonic_coarse_ns, monotonic_ns};

/// Shorter waits use `ppoll`: the receive timeout counts in scheduler ticks.
const COARSE_WAIT_MS_MIN: u64 = 32;

/// Reads that a spinning read makes between two readings of the clock.
const READS_PER_CLOCK: u32 = 8;

/// Idle time after which the kernel probes the peer.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);

/// How long the kernel waits for the answer to each probe.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Unanswered probes after which the kernel closes the connection.
const KEEPALIVE_PROBES: u32 = 3;

/// One connection. One thread may read while another writes.
#[derive(Debug)]
pub struct StreamSocket {
    fd: OwnedFd,
    /// The current receive timeout of the socket, in milliseconds; 0 for none.
    receive_timeout_ms: AtomicU32,
    /// Limits how far the writer may be ahead of the reader.
    ahead: Ahead,
    /// The other end as the kernel named it when it was accepted: after a reset the kernel has forgotten it.
    accepted: Option<SocketAddr>,
}

impl StreamSocket {
    /// Connects by TCP to `address`, giving up at `deadline_ns`.
    ///
    /// # Errors
    /// `TimedOut` at the deadline, else the kernel's error.
    pub fn connect(address: SocketAddr, deadline_ns: Option<u64>) -> io::Result<Self> {
        Self::connect_with(address, deadline_ns, &StreamOptions::default())
    }

    /// As [`StreamSocket::connect`], with these options.
    ///
    /// # Errors
    /// `TimedOut` at the deadline, else the kernel's error, also for an option.
    pub fn connect_with(
        address: SocketAddr,
        deadline_ns: Option<u64>,
        options: &StreamOptions,
    ) -> io::Result<Self> {
        let fd = Self::unconnected(address, options)?;
        Self::await_connected(fd, address, deadline_ns, options)
    }

    /// As [`StreamSocket::connect`], from this address of this host: a host may have several, and the peer sees it.
    ///
    /// # Errors
    /// As [`StreamSocket::connect`]; `AddrNotAvailable` for an address that this host does not have.
    pub fn connect_from(
        source: IpAddr,
        address: SocketAddr,
        deadline_ns: Option<u64>,
    ) -> io::Result<Self> {
        let options = StreamOptions::default();
        let fd = Self::unconnected(address, &options)?;
        net::bind(&fd, &SocketAddr::new(source, 0))?;
        Self::await_connected(fd, address, deadline_ns, &options)
    }

    fn unconnected(address: SocketAddr, options: &StreamOptions) -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = net::socket_with(family(address), SocketType::STREAM, flags, None)?;
        // The window that the kernel offers in its first packet follows from the buffer size at that time.
        options.set_buffers(&fd)?;
        options.set_route(&fd)?;
        Ok(fd)
    }

    fn await_connected(
        fd: OwnedFd,
        address: SocketAddr,
        deadline_ns: Option<u64>,
        options: &StreamOptions,
    ) -> io::Result<Self> {
        match net::connect(&fd, &address) {
            Ok(()) => {}
            Err(Errno::INPROGRESS | Errno::INTR) => {
                wait_for(&fd, PollFlags::OUT, deadline_ns)?;
                sockopt::socket_error(&fd)??;
            }
            Err(error) => return Err(error.into()),
        }
        rustix::io::ioctl_fionbio(&fd, false)?;
        let stream = Self::adopt_tcp(fd)?;
        stream.keep_options(options)?;
        Ok(stream)
    }

    /// Begins to connect by TCP to `address`, with these options, and does not wait for the peer. Until it has accepted,
    /// the socket has no room to write. A read reports why the peer could not be reached.
    ///
    /// # Errors
    /// The kernel's error, also for an option.
    pub fn begin_connect(address: SocketAddr, options: &StreamOptions) -> io::Result<Self> {
        let fd = Self::unconnected(address, options)?;
        match net::connect(&fd, &address) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        rustix::io::ioctl_fionbio(&fd, false)?;
        let stream = Self::adopt_tcp(fd)?;
        stream.keep_options(options)?;
        Ok(stream)
    }

    fn adopt_tcp(fd: OwnedFd) -> io::Result<Self> {
        sockopt::set_tcp_nodelay(&fd, true)?;
        // Limits how long a peer that has vanished silently keeps its connection open.
        sockopt::set_tcp_keepidle(&fd, KEEPALIVE_IDLE)?;
        sockopt::set_tcp_keepintvl(&fd, KEEPALIVE_INTERVAL)?;
        sockopt::set_tcp_keepcnt(&fd, KEEPALIVE_PROBES)?;
        sockopt::set_socket_keepalive(&fd, true)?;
        Ok(Self::adopt(fd))
    }

    /// Wraps a connected socket of any family, in blocking mode.
    pub(crate) const fn adopt(fd: OwnedFd) -> Self {
        Self {
            fd,
            receive_timeout_ms: AtomicU32::new(0),
            ahead: Ahead::new(),
            accepted: None,
        }
    }

    /// Returns its descriptor, for another use.
    pub(crate) fn into_descriptor(self) -> OwnedFd {
        self.fd
    }

    /// Reads the octets that have arrived, waiting until `deadline_ns` (for ever without one). Returns 0 if the peer
    /// has ended its side.
    ///
    /// # Errors
    /// `TimedOut` at the deadline, else the kernel's error.
    pub fn read(&self, into: &mut [u8], deadline_ns: Option<u64>) -> io::Result<usize> {
        loop {
            let flags = match deadline_ns {
                None => {
                    self.set_receive_timeout(0)?;
                    RecvFlags::empty()
                }
                Some(deadline_ns) => self.prepare_wait(deadline_ns)?,
            };
            match net::recv(&self.fd, &mut *into, flags) {
                Ok((count, _)) => return Ok(count),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits precisely for the last stretch. For a longer wait, sets the timeout of the receive call.
    fn prepare_wait(&self, deadline_ns: u64) -> io::Result<RecvFlags> {
        let remaining_ms = deadline_ns.saturating_sub(monotonic_ns()) / 1_000_000;
        if remaining_ms < COARSE_WAIT_MS_MIN {
            wait_for(&self.fd, PollFlags::IN, Some(deadline_ns))?;
            return Ok(RecvFlags::DONTWAIT);
        }
        let coarse_ms = u32::try_from(remaining_ms).unwrap_or(u32::MAX / 2);
        self.set_receive_timeout(1 << coarse_ms.ilog2())?;
        Ok(RecvFlags::empty())
    }

    /// Reads, waiting at most about `wait_ms` (rounded up to the scheduler's tick), by one call and without reading the
    /// clock. Returns `None` if nothing arrived.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn read_within(&self, into: &mut [u8], wait_ms: u32) -> io::Result<Option<usize>> {
        self.set_receive_timeout(wait_ms)?;
        would_wait(net::recv(&self.fd, into, RecvFlags::empty()).map(|(count, _)| count))
    }

    /// Reads as soon as octets arrive, trying repeatedly without sleeping, for `wait` at most. Returns `None` if
    /// nothing arrived.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn read_spinning(&self, into: &mut [u8], wait: Duration) -> io::Result<Option<usize>> {
        let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        let mut give_up_ns = None;
        loop {
            for _ in 0..READS_PER_CLOCK {
                if let Some(count) = self.read_now(into)? {
                    return Ok(Some(count));
                }
            }
            let now_ns = monotonic_ns();
            if now_ns >= *give_up_ns.get_or_insert(now_ns.saturating_add(wait_ns)) {
                return Ok(None);
            }
        }
    }

    /// Reads the octets that have arrived without waiting. Returns `None` if there are none.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn read_now(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        would_wait(net::recv(&self.fd, into, RecvFlags::DONTWAIT).map(|(count, _)| count))
    }

    /// Returns true if anything can be read now: octets, the peer's end or an error. Takes nothing out.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        let mut octet = [0_u8; 1];
        !matches!(
            net::recv(
                &self.fd,
                &mut octet[..],
                RecvFlags::DONTWAIT | RecvFlags::PEEK
            ),
            Err(Errno::AGAIN | Errno::INTR)
        )
    }

    /// Writes all of `octets`, waiting until `deadline_ns` (for ever without one) if the peer does not read.
    ///
    /// # Errors
    /// `TimedOut` at the deadline, in which case a part may have been sent; else the kernel's error.
    pub fn write_all(&self, octets: &[u8], deadline_ns: Option<u64>) -> io::Result<()> {
        self.write_rest(octets, octets.len(), deadline_ns)
    }

    /// Writes the rest of a message of `message_len` octets.
    fn write_rest(
        &self,
        mut octets: &[u8],
        message_len: usize,
        deadline_ns: Option<u64>,
    ) -> io::Result<()> {
        while !octets.is_empty() {
            match net::send(&self.fd, octets, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => octets = &octets[count..],
                Err(Errno::AGAIN) => self.await_room(message_len, deadline_ns)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits until there is room to write, or the connection has failed.
    ///
    /// # Errors
    /// `TimedOut` at the deadline, else the kernel's error.
    pub fn wait_for_room(&self, deadline_ns: Option<u64>) -> io::Result<()> {
        wait_for(&self.fd, PollFlags::OUT, deadline_ns)
    }

    fn await_room(&self, message_len: usize, deadline_ns: Option<u64>) -> io::Result<()> {
        self.ahead.note_full(&self.fd, message_len);
        wait_for(&self.fd, PollFlags::OUT, deadline_ns)
    }

    /// As [`StreamSocket::write_all`], for octets in two buffers, with one call for both.
    ///
    /// # Errors
    /// As [`StreamSocket::write_all`].
    pub fn write_both(
        &self,
        first: &[u8],
        second: &[u8],
        deadline_ns: Option<u64>,
    ) -> io::Result<()> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let (mut written, message_len) = (0, first.len() + second.len());
        while written < first.len() {
            let both = [IoSlice::new(&first[written..]), IoSlice::new(second)];
            match net::sendmsg(&self.fd, &both, &mut SendAncillaryBuffer::default(), flags) {
                Ok(count) => written += count,
                Err(Errno::AGAIN) => self.await_room(message_len, deadline_ns)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.write_rest(&second[written - first.len()..], message_len, deadline_ns)
    }

    /// Writes what fits without waiting. Returns the number of octets, which may be 0.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn write_now(&self, octets: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while written < octets.len() {
            let rest = &octets[written..];
            match net::send(&self.fd, rest, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => written += count,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(written)
    }

    /// Writes what fits of `parts` without waiting, with one call. Returns the number of octets, which may be 0.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn write_parts_now(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        loop {
            match net::sendmsg(&self.fd, parts, &mut SendAncillaryBuffer::default(), flags) {
                Ok(count) => return Ok(count),
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Ends both directions; a [`StreamSocket::read`] that waits returns 0.
    pub fn shutdown(&self) {
        let _ = net::shutdown(&self.fd, net::Shutdown::Both); // It may have ended already.
    }

    /// Ends the outgoing direction: the peer reads to the end of what was written.
    pub fn shutdown_write(&self) {
        let _ = net::shutdown(&self.fd, net::Shutdown::Write); // It may have ended already.
    }

    /// The address of this end.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::try_from(net::getsockname(&self.fd)?)?)
    }

    /// The address of the other end. That of an accepted connection is known after its end, too.
    ///
    /// # Errors
    /// The kernel's error; an error also for a unix socket, which has no such address.
    pub fn peer_address(&self) -> io::Result<SocketAddr> {
        if let Some(accepted) = self.accepted {
            return Ok(accepted);
        }
        let address = net::getpeername(&self.fd)?.ok_or(io::ErrorKind::NotConnected)?;
        Ok(SocketAddr::try_from(address)?)
    }

    fn set_receive_timeout(&self, wait_ms: u32) -> io::Result<()> {
        if self.receive_timeout_ms.load(Ordering::Relaxed) == wait_ms {
            return Ok(());
        }
        let wait = (wait_ms != 0).then(|| Duration::from_millis(u64::from(wait_ms)));
        sockopt::set_socket_timeout(&self.fd, sockopt::Timeout::Recv, wait)?;
        self.receive_timeout_ms.store(wait_ms, Ordering::Relaxed);
        Ok(())
    }
}

impl AsFd for StreamSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns true if something can be read from, or accepted at, a descriptor now.
#[must_use]
pub fn is_readable_now(fd: &impl AsFd) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&now)) == Ok(1)
}

fn family(address: SocketAddr) -> net::AddressFamily {
    if address.is_ipv4() {
        net::AddressFamily::INET
    } else {
        net::AddressFamily::INET6
    }
}

fn would_wait(result: Result<usize, Errno>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (StreamSocket, StreamSocket) {
        let listener = TcpListener::listen(SocketAddr::from(([127, 0, 0, 1], 0)), 8).unwrap();
        let near = StreamSocket::connect(listener.local_address().unwrap(), None).unwrap();
        wait_for(&listener.fd, PollFlags::IN, None).unwrap();
        (near, listener.accept().unwrap().unwrap())
    }

    #[test]
    fn the_address_of_a_peer_is_known_after_its_reset() {
        let (near, far) = pair();
        let address = near.local_address().unwrap();
        // A socket that lingers for no time is reset when it is closed.
        sockopt::set_socket_linger(&near.fd, Some(Duration::ZERO)).unwrap();
        drop(near);
        wait_for(&far.fd, PollFlags::IN, None).unwrap();
        let reset = far.read_now(&mut [0]).unwrap_err();
        assert_eq!(reset.kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(far.peer_address().unwrap(), address);
    }

    #[test]
    fn octets_written_are_read_and_an_end_is_zero() {
        let (near, far) = pair();
        let mut octets = [0; 8];
        assert_eq!(far.read_now(&mut octets).unwrap(), None);
        assert!(!far.is_readable());
        near.write_all(b"abc", None).unwrap();
        assert_eq!(far.read(&mut octets, None).unwrap(), 3);
        assert_eq!(&octets[..3], b"abc");
        near.shutdown();
        assert_eq!(far.read(&mut octets, None).unwrap(), 0);
        assert!(far.is_readable());
    }

    #[test]
    fn a_read_is_interrupted_at_its_deadline_and_not_before() {
        let (near, _far) = pair();
        for wait_ms in [5, 70] {
            let deadline_ns = monotonic_ns() + wait_ms * 1_000_000;
            let error = near.read(&mut [0; 8], Some(deadline_ns)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(monotonic_ns() >= deadline_ns);
        }
    }

    #[test]
    fn parts_are_written_behind_each_other_and_a_full_peer_takes_none() {
        let (near, far) = pair();
        let parts = [&b"ab"[..], b"", b"cde"].map(IoSlice::new);
        assert_eq!(near.write_parts_now(&parts).unwrap(), 5);
        let mut octets = [0; 8];
        assert_eq!(far.read(&mut octets, None).unwrap(), 5);
        assert_eq!(&octets[..5], b"abcde");
        let large = vec![0; 1 << 20];
        while near.write_parts_now(&[IoSlice::new(&large)]).unwrap() != 0 {}
        assert_eq!(near.write_parts_now(&parts).unwrap(), 0);
    }

    #[test]
    fn a_connection_that_is_begun_has_room_once_it_is_accepted_and_a_refusal_is_read() {
        let listener = TcpListener::listen(SocketAddr::from(([127, 0, 0, 1], 0)), 8).unwrap();
        let address = listener.local_address().unwrap();
        let near = StreamSocket::begin_connect(address, &StreamOptions::default()).unwrap();
        wait_for(&near.fd, PollFlags::OUT, None).unwrap();
        assert_eq!(near.write_now(b"abc").unwrap(), 3);
        let _taken = listener.accept().unwrap().unwrap();
        drop(listener);
        let refused = StreamSocket::begin_connect(address, &StreamOptions::default());
        let error = refused.and_then(|stream| {
            wait_for(&stream.fd, PollFlags::OUT, None)?;
            stream.read_now(&mut [0; 8])
        });
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_write_to_a_peer_that_does_not_read_is_interrupted_at_its_deadline() {
        let (near, _far) = pair();
        let octets = vec![0; 64 << 20];
        let error = near
            .write_all(&octets, Some(monotonic_ns() + 5_000_000))
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn octets_in_two_places_are_written_as_one_whatever_the_peer_has_room_for() {
        let (near, far) = pair();
        for (first, second) in [
            (0, 0),
            (0, 3),
            (3, 0),
            (100, 9),
            (20 << 20, 3),
            (3, 20 << 20),
        ] {
            let (first, second) = (vec![1; first], vec![2; second]);
            let len = first.len() + second.len();
            let read = std::thread::scope(|scope| {
                let reading = scope.spawn(|| {
                    let mut read = Vec::new();
                    let mut octets = vec![0; 1 << 16];
                    while read.len() < len {
                        let count = far.read(&mut octets, None).unwrap();
                        read.extend_from_slice(&octets[..count]);
                    }
                    read
                });
                near.write_both(&first, &second, None).unwrap();
                reading.join().unwrap()
            });
            assert!(read == [first, second].concat());
        }
        let error = near
            .write_both(
                &[1; 3],
                &vec![2; 64 << 20],
                Some(monotonic_ns() + 5_000_000),
            )
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_write_that_does_not_wait_says_how_far_it_came() {
        let (near, far) = pair();
        let octets = vec![7; 64 << 20];
        let written = near.write_now(&octets).unwrap();
        assert!(written < octets.len());
        assert_eq!(near.write_now(&octets[written..]).unwrap(), 0);
        let mut read = 0;
        while read < written {
            read += far.read(&mut vec![0; 1 << 20], None).unwrap();
        }
        assert_ne!(near.write_now(&octets[written..]).unwrap(), 0);
    }

    #[test]
    fn a_short_read_returns_with_nothing() {
        let (near, _far) = pair();
        assert_eq!(near.read_within(&mut [0; 8], 1).unwrap(), None);
    }

    #[test]
    fn a_peer_that_vanishes_is_noticed_on_either_side() {
        let (near, far) = pair();
        for stream in [&near, &far] {
            assert!(sockopt::socket_keepalive(&stream.fd).unwrap());
            assert_eq!(sockopt::tcp_keepidle(&stream.fd).unwrap(), KEEPALIVE_IDLE);
        }
    }

    #[test]
    fn a_refused_connection_is_an_error() {
        let listener = TcpListener::listen(SocketAddr::from(([127, 0, 0, 1], 0)), 8).unwrap();
        let address = listener.local_address().unwrap();
        drop(listener);
        let error = StreamSocket::connect(address, None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
