//! The shares of the peers of a channel: a stranger that takes its whole share leaves the others served.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use deckwatch_orb::peers::share_of;
pub(crate) use deckwatch_orb::peers::{Peer, Place, Places};
use deckwatch_orb::{CallerConnection, Orb, PoaCurrent, SystemException, own_minor};

use crate::farewells::Farewells;
use crate::limits;

/// The shares of one channel.
pub(crate) struct Shares {
    current: PoaCurrent,
    percent: u8,
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
    /// Observers.
    pub(crate) observers: Arc<Places>,
    /// Pairs of a consumer and a supplier whose RT_Infos depend on each other.
    pub(crate) pairs: Arc<Places>,
    /// Clients that are called back.
    pub(crate) farewells: Arc<Farewells>,
    /// Entries of filters.
    entries: Arc<Places>,
    /// Timeouts of filters in a second.
    timeouts: Arc<Places>,
    /// Publications of suppliers.
    publications: Arc<Places>,
}

/// What a client of a real-time channel holds of the shares of its peer.
pub(crate) struct Holding {
    place: Place,
    /// Entries of its filter, or publications.
    parts: Place,
    /// Timeouts of its filter in a second.
    timeouts: Option<Place>,
}

impl Holding {
    /// The peer that holds it.
    pub(crate) const fn peer(&self) -> Peer {
        self.place.peer()
    }

    /// Holds so many parts and timeouts in place of those before, which it keeps if it is refused.
    ///
    /// # Errors
    /// IMP_LIMIT or NO_RESOURCES.
    pub(crate) fn resize(&mut self, parts: usize, timeouts: usize) -> Result<(), SystemException> {
        // Only one of them may be refused after the other has grown.
        if let Some(place) = &mut self.timeouts {
            let before = place.count();
            place.resize(timeouts)?;
            return self.parts.resize(parts).inspect_err(|_| {
                let _ = place.resize(before); // The caller's lock keeps others from it.
            });
        }
        self.parts.resize(parts)
    }
}

impl Shares {
    /// The shares of a peer in percent: 1 to 100.
    pub(crate) fn new(orb: &Orb, percent: u8, pullers_max: usize) -> Self {
        let places = |total: usize, minor: u32| Places::new(share_of(total, percent), minor);
        let within =
            |total: usize, minor: u32| Places::within(total, share_of(total, percent), minor);
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
            observers: places(limits::OBSERVERS_MAX, consumers),
            pairs: places(limits::ADMITTED_PAIRS_MAX, consumers),
            farewells: Arc::default(),
            entries: within(limits::CHANNEL_ENTRIES_MAX, consumers),
            timeouts: within(limits::CHANNEL_TIMEOUT_RATE_MAX, consumers),
            publications: within(limits::CHANNEL_PUBLICATIONS_MAX, suppliers),
        }
    }

    /// Takes the place of a consumer of a real-time channel, and room for its filter.
    ///
    /// # Errors
    /// IMP_LIMIT if its peer holds its share of one of them; NO_RESOURCES if all peers hold all of it.
    pub(crate) fn take_consumer(
        &self,
        peer: Peer,
        entries: usize,
        timeouts: usize,
    ) -> Result<Holding, SystemException> {
        Ok(Holding {
            place: self.consumers.take(peer)?,
            parts: self.entries.take_many(peer, entries)?,
            timeouts: Some(self.timeouts.take_many(peer, timeouts)?),
        })
    }

    /// Takes the place of a supplier of a real-time channel, and room for its publications.
    ///
    /// # Errors
    /// As [`Shares::take_consumer`].
    pub(crate) fn take_supplier(
        &self,
        peer: Peer,
        publications: usize,
    ) -> Result<Holding, SystemException> {
        Ok(Holding {
            place: self.suppliers.take(peer)?,
            parts: self.publications.take_many(peer, publications)?,
            timeouts: None,
        })
    }

    /// The peer whose request the calling thread serves.
    pub(crate) fn caller(&self) -> Peer {
        caller(&self.current)
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
        let Self {
            consumers,
            pullers,
            typed,
            suppliers,
            sources,
            observers,
            pairs,
            entries,
            timeouts,
            publications,
            ..
        } = self;
        let clients = [consumers, pullers, typed, suppliers, sources, observers];
        let parts = [pairs, entries, timeouts, publications];
        let all = clients.iter().chain(&parts);
        all.map(|places| places.refused()).sum()
    }

    /// Proxies without a connected client that one peer may hold.
    pub(crate) fn waiting_max(&self) -> usize {
        share_of(limits::PROXIES_WAITING_MAX, self.percent)
    }
}

/// The peer whose request the calling thread serves.
pub(crate) fn caller(current: &PoaCurrent) -> Peer {
    match current.peer() {
        Ok(peer) => peer,
        // Outside of a request: the channel connects the clients of its store.
        Err(_) if !current.caller_connection().is_remote() => Peer::ThisProcess,
        Err(_) => Peer::Unknown,
    }
}

/// Returns true for a percentage that a peer's share may have.
pub(crate) const fn is_share(percent: u8) -> bool {
    1 <= percent && percent <= 100
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
    use std::sync::Mutex;

    use deckwatch_cdr::Any;
    use deckwatch_orb::Servant;

    use super::*;
    use crate::cos_event_comm::{
        PushConsumer, PushConsumerPushError, PushConsumerRef, PushConsumerSkeleton,
    };

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

    #[test]
    fn holding_grows_in_both_kinds_of_parts_or_in_none() {
        let peer = Peer::User(1);
        let (parts, timeouts) = (Places::new(5, 0), Places::new(7, 0));
        let mut holding = Holding {
            place: Places::new(1, 0).take(peer).expect("a place"),
            parts: parts.take_many(peer, 1).expect("room"),
            timeouts: Some(timeouts.take_many(peer, 1).expect("room")),
        };
        assert_eq!(holding.peer(), peer);
        let held = |holding: &Holding| {
            let timeouts = holding.timeouts.as_ref().map(Place::count);
            (holding.parts.count(), timeouts)
        };
        assert!(holding.resize(2, 3).is_ok());
        assert_eq!(held(&holding), (2, Some(3)));
        assert!(holding.resize(6, 4).is_err(), "too many parts");
        assert_eq!(held(&holding), (2, Some(3)));
        assert!(holding.resize(4, 8).is_err(), "too many timeouts");
        assert_eq!(held(&holding), (2, Some(3)));
        assert!(timeouts.take_many(peer, 4).is_ok(), "what is left of 7");
        holding.timeouts = None;
        assert!(holding.resize(5, 99).is_ok(), "a supplier has no timeouts");
        assert_eq!(held(&holding), (5, None));
    }

    #[test]
    fn proxies_that_were_retired_no_longer_wait() {
        let mut waiting = WaitingProxies::default();
        let peer = Peer::User(1);
        assert_eq!(waiting.push(0, peer, 1), None);
        waiting.clear();
        assert_eq!(waiting.push(1, peer, 1), None);
        assert_eq!(waiting.push(2, peer, 1), Some(1));
    }

    /// Asks who calls it.
    struct Asks {
        currents: [PoaCurrent; 2],
        callers: Mutex<Vec<Peer>>,
    }

    impl PushConsumer for Arc<Asks> {
        fn push<'a>(&'a self, _: &'a Any) -> Result<(), PushConsumerPushError> {
            Ok(())
        }

        fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
            let callers = self.currents.each_ref().map(caller);
            *self.callers.lock().expect("whole") = callers.to_vec();
            Ok(())
        }
    }

    #[test]
    fn caller_of_another_orb_is_unknown_and_a_thread_without_a_request_is_this_process() {
        let orb = || {
            let builder = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
            builder.build().expect("an ORB")
        };
        let (called, other, calling) = (orb(), orb(), orb());
        let root = called.root_poa().expect("a root adapter");
        root.the_poa_manager()
            .activate()
            .expect("an active manager");
        let asks = Arc::new(Asks {
            currents: [&called, &other].map(Orb::poa_current),
            callers: Mutex::default(),
        });
        let servant: Arc<dyn Servant> = Arc::new(PushConsumerSkeleton::new(Arc::clone(&asks)));
        let object = root.servant_to_reference(&servant).expect("a reference");
        let seen = calling.string_to_object(&called.object_to_string(&object));
        let seen = PushConsumerRef::unchecked_narrow(seen.expect("an IOR").expect("not nil"));
        seen.disconnect_push_consumer().expect("served");
        let callers = asks.callers.lock().expect("whole").clone();
        assert!(matches!(callers[0], Peer::Address(_)), "{:?}", callers[0]);
        assert_eq!(callers[1], Peer::Unknown);
        assert_eq!(caller(&other.poa_current()), Peer::ThisProcess);
        for orb in [calling, called, other] {
            orb.shutdown(true).expect("it ends");
        }
    }

    #[test]
    fn a_share_is_a_percentage_above_0() {
        let shares = [0, 1, 100, 101].map(is_share);
        assert_eq!(shares, [false, true, true, false]);
    }
}
