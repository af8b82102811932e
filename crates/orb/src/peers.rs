//! Peers, and the places that each of them may hold: a stranger that takes its whole share leaves the others served.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};

use deckwatch_sync::PiMutex;

use crate::{Caller, Completion, SystemException, SystemExceptionKind, minor};

/// The holder of a share. All processes of one address, or of one user of this host, are one peer. A process that has
/// shown a certificate is known by the name in it instead, whatever its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Peer {
    /// The process that serves: it has no share.
    ThisProcess,
    /// An IPv4 address, or the first address of an IPv6 network of 64 bits: one host may use all addresses of such a
    /// network. So all link-local addresses are one peer.
    Address(IpAddr),
    /// A user of this host.
    User(u32),
    /// A fingerprint of the name in a certificate. Its key is random for each process, so that nobody can find another
    /// name with the same one.
    Named(u64),
    /// All peers that the transport does not know, together.
    Unknown,
}

impl From<Caller> for Peer {
    fn from(caller: Caller) -> Self {
        match caller {
            Caller::ThisProcess => Self::ThisProcess,
            Caller::Tcp(address) => Self::Address(network_of(address.ip())),
            Caller::Unix(process) | Caller::SharedMemory(process) => Self::User(process.uid),
            Caller::Unknown => Self::Unknown,
        }
    }
}

impl Peer {
    /// The peer at the other end of a connection, whose certificate contains `name`.
    #[must_use]
    pub fn of(caller: Caller, name: Option<&str>) -> Self {
        static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        name.map_or_else(|| caller.into(), |name| Self::Named(KEY.hash_one(name)))
    }
}

fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let network = address.to_bits() & (u128::MAX << 64);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
    }
}

/// The places of one kind, which peers share.
#[derive(Debug)]
pub struct Places {
    share: usize,
    total: usize,
    minor: u32,
    held: PiMutex<Held>,
    refused: AtomicU64,
}

/// The places that are held: of each peer, and of all together.
#[derive(Debug, Default)]
struct Held {
    of: HashMap<Peer, usize>,
    all: usize,
}

/// A place, or several, that a peer holds until the value is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    peer: Peer,
    count: usize,
}

impl Places {
    /// Places of which each peer may hold `share`; the caller bounds their sum. `minor`: the minor code of a refusal,
    /// which names what is full.
    #[must_use]
    pub fn new(share: usize, minor: u32) -> Arc<Self> {
        Self::within(usize::MAX, share, minor)
    }

    /// As [`Places::new`], of which all peers together may hold `total`. This process does not count.
    #[must_use]
    pub fn within(total: usize, share: usize, minor: u32) -> Arc<Self> {
        Arc::new(Self {
            share,
            total,
            minor,
            held: PiMutex::default(),
            refused: AtomicU64::new(0),
        })
    }

    /// Takes a place for a peer.
    ///
    /// # Errors
    /// IMP_LIMIT if the peer holds its share.
    pub fn take(self: &Arc<Self>, peer: Peer) -> Result<Place, SystemException> {
        self.take_many(peer, 1)
    }

    /// Takes so many places for a peer.
    ///
    /// # Errors
    /// IMP_LIMIT if the peer would hold more than its share; NO_RESOURCES if all peers hold all that there are.
    pub fn take_many(self: &Arc<Self>, peer: Peer, count: usize) -> Result<Place, SystemException> {
        let mut place = Place {
            places: Arc::clone(self),
            peer,
            count: 0,
        };
        place.resize(count)?;
        Ok(place)
    }

    /// How many one peer may hold.
    #[must_use]
    pub const fn share(&self) -> usize {
        self.share
    }

    /// Returns true if a peer holds its share.
    #[must_use]
    pub fn is_full_for(&self, peer: Peer) -> bool {
        let held = self.held.lock("peers.full");
        held.of.get(&peer).is_some_and(|count| *count >= self.share)
    }

    /// Requests for a place that were refused because the peer held its share.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }
}

impl Place {
    /// The peer that holds it.
    #[must_use]
    pub const fn peer(&self) -> Peer {
        self.peer
    }

    /// How many places it is.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Holds so many places in place of those before, which it keeps if it is refused.
    ///
    /// # Errors
    /// As [`Places::take_many`].
    pub fn resize(&mut self, count: usize) -> Result<(), SystemException> {
        if self.peer == Peer::ThisProcess {
            return Ok(());
        }
        let places = &self.places;
        let mut held = places.held.lock("peers.take");
        let own = held.of.get(&self.peer).copied().unwrap_or(0) - self.count;
        let others = held.all - self.count;
        let refusal = if count > places.share.saturating_sub(own) {
            Some((SystemExceptionKind::ImpLimit, places.minor))
        } else if count > places.total.saturating_sub(others) {
            Some((SystemExceptionKind::NoResources, minor::NONE))
        } else {
            None
        };
        if let Some((kind, minor)) = refusal.filter(|_| count > self.count) {
            places.refused.fetch_add(1, Relaxed);
            return Err(SystemException::new(kind, minor, Completion::No));
        }
        held.all = others + count;
        if own + count == 0 {
            held.of.remove(&self.peer);
        } else {
            held.of.insert(self.peer, own + count);
        }
        drop(held);
        self.count = count;
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.resize(0); // Fewer places are never refused.
    }
}

/// Returns so many percent of `total`, and at least one.
#[must_use]
pub fn share_of(total: usize, percent: u8) -> usize {
    (total * usize::from(percent) / 100).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalProcess;

    #[test]
    fn peer_at_its_share_is_refused_and_others_are_not() {
        let places = Places::new(2, 7);
        let (one, other) = (Peer::User(1), Peer::User(2));
        let held: Vec<_> = (0..2).map(|_| places.take(one)).collect();
        let refused = places.take(one).expect_err("a full share");
        assert_eq!(
            (refused.kind, refused.minor),
            (SystemExceptionKind::ImpLimit, 7)
        );
        assert!(places.is_full_for(one) && !places.is_full_for(other));
        assert!(places.take(other).is_ok());
        assert!((0..9).all(|_| places.take(Peer::ThisProcess).is_ok()));
        drop(held);
        assert!(places.take(one).is_ok());
        assert!(
            places.held.lock("test").of.is_empty(),
            "no peer is remembered"
        );
        assert_eq!(places.refused(), 1);
    }

    #[test]
    fn several_places_are_taken_together_or_none_of_them() {
        let places = Places::within(10, 4, 7);
        let kind = |taken: Result<Place, SystemException>| taken.map_err(|refused| refused.kind);
        let [one, two, three] = [1, 2, 3].map(Peer::User);
        let mut held = places.take_many(one, 3).expect("room");
        let share = SystemExceptionKind::ImpLimit;
        assert_eq!(kind(places.take_many(one, 2)).err(), Some(share));
        assert_eq!(held.resize(5).map_err(|refused| refused.kind), Err(share));
        held.resize(4).expect("its share");
        assert_eq!(kind(places.take(one)).err(), Some(share));
        held.resize(1).expect("fewer");
        let again = places.take_many(one, 3).expect("what it gave back");
        let other = places.take_many(two, 4).expect("another share");
        let total = SystemExceptionKind::NoResources;
        assert_eq!(kind(places.take_many(three, 3)).err(), Some(total));
        let last = places.take_many(three, 2).expect("what is left");
        assert!(places.take_many(Peer::ThisProcess, 99).is_ok());
        drop((held, again, other, last));
        let left = places.held.lock("test");
        assert!(left.of.is_empty() && left.all == 0, "{:?}", *left);
    }

    #[test]
    fn share_is_a_part_of_the_places_and_at_least_one() {
        assert_eq!(share_of(16_384, 25), 4_096);
        assert_eq!(share_of(512, 100), 512);
        assert_eq!(share_of(10, 1), 1);
    }

    #[test]
    fn peers_are_told_apart_by_address_by_ipv6_network_by_user_and_by_certificate() {
        let over_tcp = |text: &str| Peer::from(Caller::Tcp(text.parse().expect("an address")));
        assert_eq!(over_tcp("192.0.2.1:1"), over_tcp("192.0.2.1:2"));
        assert_ne!(over_tcp("192.0.2.1:1"), over_tcp("192.0.2.2:1"));
        assert_eq!(
            over_tcp("[2001:db8::1]:1"),
            over_tcp("[2001:db8::ffff:0:0:9]:1")
        );
        assert_ne!(over_tcp("[2001:db8::1]:1"), over_tcp("[2001:db8:0:1::1]:1"));
        let at = Caller::Tcp("192.0.2.1:1".parse().expect("an address"));
        let named = |name| Peer::of(at, Some(name));
        assert_eq!(Peer::of(at, None), Peer::from(at));
        assert_eq!(named("nav"), Peer::of(Caller::Unknown, Some("nav")));
        assert!(named("nav") != named("bridge") && named("nav") != at.into());
        let process = |pid| LocalProcess { uid: 5, pid };
        assert_eq!(
            Peer::from(Caller::Unix(process(1))),
            Peer::from(Caller::SharedMemory(process(2)))
        );
    }
}
