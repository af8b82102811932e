//! A channel on a multicast group: what its suppliers push goes to the group, and what comes from the group to its
//! consumers.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::JoinHandle;

use deckwatch_cdr::{ByteOrder, Parse as _, Reader};
use deckwatch_orb::{NetworkPriority, Orb, SystemException, SystemExceptionKind as Kind};
use deckwatch_os::{clock, multicast, socket};
use deckwatch_sync::PiMutex;

use super::fragment::{Fault, Fragment, HEADER_SIZE, fragments};
use super::link::{GatewayFailure, Link, Takes};
use super::reassembly::{Reassembly, Taken};
use crate::deckwatch_federation::EventId;
use crate::filter::Header;
use crate::limits::{
    MULTICAST_BUFFER_SIZE, MULTICAST_BURST, MULTICAST_DATAGRAM_SIZE, MULTICAST_PAUSE,
    MULTICAST_REQUEST_SIZE_MAX, MULTICAST_SEND_TIMEOUT, MULTICAST_TURN,
};
use crate::raise::raise;
use crate::rt::{Inlet, RtEventChannel, drawn_identity};
use crate::rtec_event_comm::Event;

/// Options of a channel on a multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastOptions {
    /// The group and its port.
    pub group: SocketAddrV4,
    /// The address of the interface; UNSPECIFIED: the one that the routes choose.
    pub interface: Ipv4Addr,
    /// Routers that a datagram may pass, and one.
    pub ttl: u8,
    /// The priority of the datagrams. `None`: the default of the kernel.
    pub network_priority: Option<NetworkPriority>,
    /// The events that are sent to the group; all if empty. Received events are not filtered.
    pub sent: Vec<Header>,
}

/// Why a channel cannot have a group.
#[derive(Debug)]
#[non_exhaustive]
pub enum MulticastError {
    /// A socket failed.
    Socket(io::Error),
    /// The channel refused the consumer that sends to the group.
    Channel(GatewayFailure),
    /// There is no thread.
    Thread(io::Error),
}

impl fmt::Display for MulticastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(error) => write!(f, "no socket for the group: {error}"),
            Self::Channel(failure) => write!(f, "the channel does not take a consumer: {failure}"),
            Self::Thread(error) => write!(f, "no thread: {error}"),
        }
    }
}

impl std::error::Error for MulticastError {}

/// The counts of a channel on a group at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MulticastCounts {
    /// Events that were sent to the group.
    pub sent: u64,
    /// Events that could not be sent, in part or at all.
    pub unsent: u64,
    /// Events that the channel has taken from the group.
    pub received: u64,
    /// Datagrams that came from this sender itself.
    pub own: u64,
    /// Datagrams that had come before, or late.
    pub doubled: u64,
    /// Datagrams, or requests, that are malformed or too large.
    pub malformed: u64,
    /// Datagrams whose checksum is wrong.
    pub corrupt: u64,
    /// Requests of which fragments were missing after [`crate::limits::MULTICAST_TIMEOUT`].
    pub incomplete: u64,
    /// Requests of which fragments were missing when others needed their place.
    pub displaced: u64,
    /// Datagrams that the kernel dropped because the receive buffer was full.
    pub overflowed: u64,
}

#[derive(Default)]
struct Counters {
    sent: AtomicU64,
    unsent: AtomicU64,
    received: AtomicU64,
    own: AtomicU64,
    doubled: AtomicU64,
    malformed: AtomicU64,
    corrupt: AtomicU64,
    incomplete: AtomicU64,
    displaced: AtomicU64,
}

/// A channel on a multicast group, until it is closed or dropped.
pub struct Multicast {
    counters: Arc<Counters>,
    receiver: Arc<UdpSocket>,
    link: Option<Link>,
    thread: Option<JoinHandle<()>>,
    is_closed: Arc<AtomicBool>,
}

impl Multicast {
    /// Puts a channel that serves on this ORB on a group.
    ///
    /// # Errors
    /// [`MulticastError`]
    pub fn start(
        orb: &Orb,
        channel: &RtEventChannel,
        options: &MulticastOptions,
    ) -> Result<Self, MulticastError> {
        let MulticastOptions {
            group, interface, ..
        } = *options;
        let receiver = multicast::receiver(group, interface).map_err(MulticastError::Socket)?;
        let sender = multicast::sender(group, interface, options.ttl);
        let sender = sender.map_err(MulticastError::Socket)?;
        let prepared = (receiver.set_read_timeout(Some(MULTICAST_TURN)))
            .and_then(|()| sender.set_write_timeout(Some(MULTICAST_SEND_TIMEOUT)))
            .and_then(|()| socket::set_receive_buffer(&receiver, MULTICAST_BUFFER_SIZE))
            .and_then(|_| match options.network_priority {
                Some(it) => {
                    socket::set_priority(&sender, false, Some(it.dscp), Some(it.queue.into()))
                }
                None => Ok(()),
            })
            .and_then(|()| sender.local_addr());
        let own = prepared.map_err(MulticastError::Socket)?;
        let counters = Arc::<Counters>::default();
        // What came from the group does not go back to it.
        let identity = drawn_identity();
        let mut whole = Self {
            counters: Arc::clone(&counters),
            receiver: Arc::new(receiver),
            link: None,
            thread: None,
            is_closed: Arc::default(),
        };
        let run = Run {
            socket: Arc::clone(&whole.receiver),
            own,
            inlet: channel.inlet(),
            identity,
            counters: Arc::clone(&counters),
            is_closed: Arc::clone(&whole.is_closed),
        };
        let thread = std::thread::Builder::new().name("multicast".to_owned());
        let thread = thread.spawn(move || run.serve());
        whole.thread = Some(thread.map_err(MulticastError::Thread)?);
        let headers: BTreeSet<_> = options
            .sent
            .iter()
            .map(|it| (it.source, it.event_type))
            .collect();
        let headers = if headers.is_empty() {
            BTreeSet::from([(0, 0)])
        } else {
            headers
        };
        let sending = Sending {
            socket: sender,
            counters,
            state: PiMutex::default(),
        };
        let link = Link::subscribe(orb, channel.reference(), headers, identity, sending);
        whole.link = Some(link.map_err(MulticastError::Channel)?);
        Ok(whole)
    }

    /// The counters.
    #[must_use]
    pub fn counts(&self) -> MulticastCounts {
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        let counters = &self.counters;
        MulticastCounts {
            sent: count(&counters.sent),
            unsent: count(&counters.unsent),
            received: count(&counters.received),
            own: count(&counters.own),
            doubled: count(&counters.doubled),
            malformed: count(&counters.malformed),
            corrupt: count(&counters.corrupt),
            incomplete: count(&counters.incomplete),
            displaced: count(&counters.displaced),
            overflowed: socket::dropped(&*self.receiver).map_or(0, u64::from),
        }
    }

    /// Leaves the group. Call it before the ORB is shut down.
    pub fn close(&mut self) {
        self.is_closed.store(true, Release);
        if let Some(link) = self.link.take() {
            link.disconnect();
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // It does not panic.
        }
    }
}

impl Drop for Multicast {
    fn drop(&mut self) {
        self.close();
    }
}

/// The consumer that sends to the group.
struct Sending {
    socket: UdpSocket,
    counters: Arc<Counters>,
    state: PiMutex<Request>,
}

/// The request that is sent, one after the other.
#[derive(Default)]
struct Request {
    number: u32,
    datagram: Vec<u8>,
}

impl Sending {
    fn send(&self, octets: &[u8], order: ByteOrder) -> io::Result<()> {
        if octets.len() > MULTICAST_REQUEST_SIZE_MAX as usize {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut request = self.state.lock("multicast.send");
        let Request { number, datagram } = &mut *request;
        *number = number.wrapping_add(1);
        let size_max = MULTICAST_DATAGRAM_SIZE - HEADER_SIZE;
        for fragment in fragments(octets, order, *number, size_max) {
            if fragment.number > 0 && fragment.number.is_multiple_of(MULTICAST_BURST) {
                std::thread::sleep(MULTICAST_PAUSE);
            }
            fragment.write(datagram);
            self.socket.send(datagram)?;
        }
        Ok(())
    }
}

impl Takes for Sending {
    /// The octets of the set are the request as they are: they start at a multiple of 8.
    fn forward(&self, arguments: Reader<'_>) -> Result<(), SystemException> {
        let mut r = arguments;
        EventId::parse(&mut r)?;
        u64::parse(&mut r)?;
        let sent = match r.bytes().get(r.position()..) {
            Some(octets) if !r.is_divided() => self.send(octets, r.order()),
            _ => Err(io::ErrorKind::Unsupported.into()),
        };
        let counter = if sent.is_ok() {
            &self.counters.sent
        } else {
            &self.counters.unsent
        };
        counter.fetch_add(1, Relaxed);
        Ok(())
    }

    fn push(&self, _: &[Event]) -> Result<(), SystemException> {
        // The channel is one of ours: it calls `forward`.
        Err(raise(Kind::NoImplement))
    }
}

/// What the receiving thread has.
struct Run {
    socket: Arc<UdpSocket>,
    own: SocketAddr,
    inlet: Inlet,
    identity: u64,
    counters: Arc<Counters>,
    is_closed: Arc<AtomicBool>,
}

impl Run {
    fn serve(self) {
        let mut datagram = vec![0; usize::from(u16::MAX)];
        let mut requests = Reassembly::default();
        let mut expired_ns = 0;
        while !self.is_closed.load(Acquire) && self.inlet.identity().is_some() {
            let received = self.socket.recv_from(&mut datagram);
            let now_ns = clock::monotonic_ns() as u64;
            if let Ok((size, from)) = received {
                self.take(&datagram[..size], from, &mut requests, now_ns);
            }
            if now_ns.saturating_sub(expired_ns) >= MULTICAST_TURN.as_nanos() as u64 {
                expired_ns = now_ns;
                requests.expire(now_ns);
            }
            self.counters.incomplete.store(requests.incomplete, Relaxed);
            self.counters.displaced.store(requests.displaced, Relaxed);
        }
    }

    fn take(&self, datagram: &[u8], from: SocketAddr, requests: &mut Reassembly, now_ns: u64) {
        let count = |counter: &AtomicU64| {
            counter.fetch_add(1, Relaxed);
        };
        if from == self.own {
            return count(&self.counters.own);
        }
        let fragment = match Fragment::parse(datagram) {
            Ok(fragment) => fragment,
            Err(Fault::Checksum) => return count(&self.counters.corrupt),
            Err(Fault::Malformed | Fault::TooLarge) => return count(&self.counters.malformed),
        };
        let octets = match requests.take(from, &fragment, now_ns) {
            Taken::Whole(octets) => octets,
            Taken::Pending => return,
            Taken::Doubled => return count(&self.counters.doubled),
            Taken::Malformed => return count(&self.counters.malformed),
        };
        let Some(events) = events(&octets, fragment.order) else {
            return count(&self.counters.malformed);
        };
        for event in events {
            // The channel has ended: the next turn does, too.
            if self.inlet.take(event, self.identity).is_ok() {
                count(&self.counters.received);
            }
        }
    }
}

/// The events of a request.
pub(crate) fn events(octets: &[u8], order: ByteOrder) -> Option<Vec<Event>> {
    Vec::parse(&mut Reader::new(octets, order)).ok()
}

#[cfg(test)]
mod tests {
    use deckwatch_cdr::Divided;

    use super::*;

    /// A sender, and the socket that it sends to.
    fn sending() -> (Sending, UdpSocket) {
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let to = receiver.local_addr().expect("bound");
        socket.connect(to).expect("loopback");
        let sending = Sending {
            socket,
            counters: Arc::default(),
            state: PiMutex::default(),
        };
        (sending, receiver)
    }

    #[test]
    fn event_whose_octets_are_divided_by_fragments_is_not_sent() {
        let (sending, _receiver) = sending();
        // The identity of the event, the sender, and a set without an event.
        let octets = [0; 32];
        let whole = Reader::new(&octets, ByteOrder::NATIVE);
        sending.forward(whole).expect("it is counted");
        // The alignment of the second fragment counts from its own header.
        let divided = Divided::new(&octets, &[28]);
        sending
            .forward(whole.with_parts(&divided))
            .expect("it is counted");
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        let counters = &sending.counters;
        assert_eq!((count(&counters.sent), count(&counters.unsent)), (1, 1));
    }

    #[test]
    fn request_beyond_its_bound_is_not_sent() {
        let (sending, receiver) = sending();
        let octets = vec![0; MULTICAST_REQUEST_SIZE_MAX as usize + 1];
        let refused = sending.send(&octets, ByteOrder::NATIVE).expect_err("large");
        assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
        let sent = sending.send(&octets[1..], ByteOrder::NATIVE);
        sent.expect("within the bound");
        // The request that was refused took no number.
        let mut datagram = [0; MULTICAST_DATAGRAM_SIZE];
        receiver.recv(&mut datagram).expect("the first datagram");
        assert_eq!(Fragment::parse(&datagram).expect("whole").request, 1);
    }
}
