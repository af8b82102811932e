//! The peers of a channel, and the share of its places that each of them may hold: a stranger that takes its whole
//! share leaves the others served.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_orb::{
    Caller, CallerConnection, Completion, Orb, PoaCurrent, SystemException,
    SystemExceptionKind as Kind, own_minor,
};
use deckwatch_sync::PiMutex;

use crate::limits;

/// Who holds a place. All processes of one address, or of one user of this host, are one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    /// The process that serves: it has no share.
    ThisProcess,
    Address(IpAddr),
    User(u32),
    Unknown,
}

impl From<Caller> for Peer {
    fn from(caller: Caller) -> Self {
        match caller {
            Caller::ThisProcess => Self::ThisProcess,
            Caller::Tcp(address) => Self::Address(address.ip()),
            Caller::Unix(process) | Caller::SharedMemory(process) => Self::User(process.uid),
            _ => Self::Unknown,
        }
    }
}

/// The places of one kind.
pub(crate) struct Places {
    /// How many one peer may hold.
    pub(crate) share: usize,
    /// The minor code of a refusal, which says what is full.
    minor: u32,
    held: PiMutex<HashMap<Peer, usize>>,
    refused: Arc<AtomicU64>,
}

/// A place that a peer holds, until it is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    pub(crate) peer: Peer,
}

impl Places {
    fn with(share: usize, minor: u32, refused: &Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self {
            share,
            minor,
            held: PiMutex::default(),
            refused: Arc::clone(refused),
        })
    }

    #[cfg(test)]
    pub(crate) fn new(share: usize) -> Arc<Self> {
        Self::with(share, own_minor::CONSUMER_SHARE_FULL, &Arc::default())
    }

    /// Takes a place for a peer.
    ///
    /// # Errors
    /// IMP_LIMIT if the peer holds its share.
    pub(crate) fn take(self: &Arc<Self>, peer: Peer) -> Result<Place, SystemException> {
        if peer != Peer::ThisProcess {
            let mut held = self.held.lock("event.shares");
            let count = held.entry(peer).or_default();
            if *count >= self.share {
                self.refused.fetch_add(1, Relaxed);
                return Err(SystemException::new(
                    Kind::ImpLimit,
                    self.minor,
                    Completion::No,
                ));
            }
            *count += 1;
        }
        Ok(Place {
            places: Arc::clone(self),
            peer,
        })
    }

    /// Returns true if a peer holds its share.
    pub(crate) fn is_full_for(&self, peer: Peer) -> bool {
        let held = self.held.lock("event.shares");
        held.get(&peer).is_some_and(|count| *count >= self.share)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.peer == Peer::ThisProcess {
            return;
        }
        let mut held = self.places.held.lock("event.shares");
        if let Some(count) = held.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.peer);
            }
        }
    }
}

/// The shares of one channel.
pub(crate) struct Shares {
    current: PoaCurrent,
    percent: u8,
    refused: Arc<AtomicU64>,
    /// Push consumers.
    pub(crate) consumers: Arc<Places>,
    /// Consumers that pull.
    pub(crate) pullers: Arc<Places>,
    /// Push consumers of the typed side.
    pub(crate) typed: Arc<Places>,
    /// Suppliers that push.
    pub(crate) suppliers: Arc<Places>,
    /// Suppliers that the channel pulls from.
    pub(crate) sources: Arc<Places>,
}

impl Shares {
    /// The shares of a peer in percent: 1 to 100.
    pub(crate) fn new(orb: &Orb, percent: u8, pullers_max: usize) -> Self {
        let refused = Arc::<AtomicU64>::default();
        let places =
            |total: usize, minor: u32| Places::with(share_of(total, percent), minor, &refused);
        let consumers = own_minor::CONSUMER_SHARE_FULL;
        let suppliers = own_minor::SUPPLIER_SHARE_FULL;
        Self {
            current: orb.poa_current(),
            percent,
            consumers: places(limits::CONSUMERS_MAX, consumers),
            pullers: places(pullers_max, consumers),
            typed: places(limits::TYPED_CONSUMERS_MAX, consumers),
            suppliers: places(limits::SUPPLIERS_MAX, suppliers),
            sources: places(limits::SOURCES_MAX, suppliers),
            refused,
        }
    }

    /// The peer whose request the calling thread serves.
    pub(crate) fn caller(&self) -> Peer {
        match self.current.caller() {
            Ok(caller) => caller.into(),
            // Outside of a request: the channel connects the clients of its store.
            Err(_) if !self.current.caller_connection().is_remote() => Peer::ThisProcess,
            Err(_) => Peer::Unknown,
        }
    }

    /// The number of the connection that brought the request of the calling thread.
    pub(crate) fn connection(&self) -> u64 {
        self.current.caller_connection().number()
    }

    /// The numbers of the connections over which a request may come, that of collocated calls included.
    pub(crate) fn open_connections(&self) -> HashSet<u64> {
        let open = self.current.open_connections();
        open.into_iter().map(CallerConnection::number).collect()
    }

    /// Connects that were refused because the peer held its share.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Proxies without a connected client that one peer may hold.
    pub(crate) fn waiting_max(&self) -> usize {
        share_of(limits::PROXIES_WAITING_MAX, self.percent)
    }
}

/// Returns true for a percentage that a peer's share may have.
pub(crate) const fn is_share(percent: u8) -> bool {
    1 <= percent && percent <= 100
}

/// At least one place, whatever the percentage.
fn share_of(total: usize, percent: u8) -> usize {
    (total * usize::from(percent) / 100).max(1)
}

/// Proxies without a connected client, the oldest first.
#[derive(Default)]
pub(crate) struct WaitingProxies(VecDeque<(u64, Peer)>);

impl WaitingProxies {
    /// Adds the proxy of a peer. If that peer has more than `share`, or all peers have too many, returns the proxy that
    /// gives way: the oldest of that peer, or the oldest of all.
    pub(crate) fn push(&mut self, number: u64, peer: Peer, share: usize) -> Option<u64> {
        self.0.push_back((number, peer));
        let is_of_peer = |waiting: &&(u64, Peer)| waiting.1 == peer;
        let oldest =
            if peer != Peer::ThisProcess && self.0.iter().filter(is_of_peer).count() > share {
                self.0.iter().position(|waiting| waiting.1 == peer)
            } else {
                (self.0.len() > limits::PROXIES_WAITING_MAX).then_some(0)
            };
        oldest
            .and_then(|oldest| self.0.remove(oldest))
            .map(|(number, _)| number)
    }

    /// Removes a proxy that waits no longer.
    pub(crate) fn remove(&mut self, number: u64) {
        self.0.retain(|waiting| waiting.0 != number);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_at_its_share_is_refused_and_others_are_not() {
        let places = Places::new(2);
        let (one, other) = (Peer::User(1), Peer::User(2));
        let held: Vec<_> = (0..2).map(|_| places.take(one)).collect();
        let refused = places.take(one).err().expect("a full share");
        assert_eq!(
            (refused.kind, refused.minor),
            (Kind::ImpLimit, own_minor::CONSUMER_SHARE_FULL)
        );
        assert!(places.is_full_for(one) && !places.is_full_for(other));
        assert!(places.take(other).is_ok());
        assert!((0..9).all(|_| places.take(Peer::ThisProcess).is_ok()));
        drop(held);
        assert!(places.take(one).is_ok());
        assert!(places.held.lock("test").is_empty(), "no peer is remembered");
        assert_eq!(places.refused.load(Relaxed), 1);
    }

    #[test]
    fn share_is_a_part_of_the_places_and_at_least_one() {
        assert_eq!(share_of(16_384, 25), 4_096);
        assert_eq!(share_of(512, 100), 512);
        assert_eq!(share_of(10, 1), 1);
    }

    #[test]
    fn proxies_of_one_peer_give_way_to_its_own() {
        let mut waiting = WaitingProxies::default();
        let (stranger, other) = (Peer::User(1), Peer::User(2));
        assert_eq!(waiting.push(0, other, 2), None);
        assert_eq!(waiting.push(1, stranger, 2), None);
        assert_eq!(waiting.push(2, stranger, 2), None);
        assert_eq!(waiting.push(3, stranger, 2), Some(1));
        waiting.remove(2);
        assert_eq!(waiting.push(4, stranger, 2), None);
        let max = limits::PROXIES_WAITING_MAX as u64;
        for number in 5..max + 2 {
            assert_eq!(waiting.push(number, Peer::ThisProcess, 2), None);
        }
        assert_eq!(
            waiting.push(max + 2, other, 2),
            Some(0),
            "the oldest of all"
        );
    }
}
