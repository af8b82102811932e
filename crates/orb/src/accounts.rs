//! What each peer holds of the bounds of a lane: connections, unfinished messages, replies that it does not read.
//!
//! The rule of all of them: a peer may hold as much as is free afterwards. So one peer alone holds at most a half; of n
//! peers that take all they can, each holds one part of n + 1, and as much stays free for the others. No peer needs a
//! share that is set aside for it, and a peer that is alone may use much.
//!
//! A connection finds the account of its peer when it is accepted. After that, an account is a few counters: no lock
//! and no search.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use deckwatch_sync::{Budget, PiMutex, Share};

use crate::limits::ACCEPT_REST;
use crate::peers::Peer;
use crate::transport::Instant64;

/// A bound of a lane that its peers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Open connections.
    Connections = 0,
    /// Those of them through shared memory.
    SharedMemory = 1,
    /// Octets of unfinished messages.
    Inbound = 2,
    /// Octets of replies that peers have not read.
    Outbound = 3,
}

/// How many bounds there are.
const KINDS: usize = 4;

/// The bounds of a lane, and the accounts of the peers that have connections.
#[derive(Debug)]
pub(crate) struct Accounts {
    bounds: [Budget; KINDS],
    open: PiMutex<HashMap<Peer, Weak<Account>>>,
}

/// What one peer holds.
#[derive(Debug)]
pub(crate) struct Account {
    accounts: Arc<Accounts>,
    peer: Peer,
    held: [Share; KINDS],
    /// Requests that wait for a thread, and their octets.
    waiting: [AtomicUsize; 2],
    /// Until when a further connection is refused without a search for one that could be closed for it.
    refused_until: AtomicU64,
}

impl Accounts {
    /// The bounds, in the order of [`Bound`].
    pub(crate) fn new(bounds: [usize; KINDS]) -> Arc<Self> {
        Arc::new(Self {
            bounds: bounds.map(Budget::new),
            open: PiMutex::default(),
        })
    }

    /// The account of a peer.
    pub(crate) fn of(self: &Arc<Self>, peer: Peer) -> Arc<Account> {
        let mut open = self.open.lock("accounts.of");
        if let Some(account) = open.get(&peer).and_then(Weak::upgrade) {
            return account;
        }
        let account = Arc::new(Account {
            accounts: Arc::clone(self),
            peer,
            held: Default::default(),
            waiting: Default::default(),
            refused_until: AtomicU64::new(0),
        });
        open.insert(peer, Arc::downgrade(&account));
        account
    }

    /// One bound, for what no peer holds alone.
    pub(crate) const fn bound(&self, bound: Bound) -> &Budget {
        &self.bounds[bound as usize]
    }

    /// What all peers hold together, in the order of [`Bound`].
    pub(crate) fn held(&self) -> [usize; KINDS] {
        self.bounds.each_ref().map(Budget::held)
    }

    /// The peer that holds most.
    pub(crate) fn largest(&self, bound: Bound) -> Option<Peer> {
        let open = self.open.lock("accounts.largest");
        let accounts: Vec<_> = open.values().filter_map(Weak::upgrade).collect();
        // The end of an account takes the lock: none may end under it.
        drop(open);
        let largest = accounts.iter().max_by_key(|account| account.held(bound));
        largest.map(|account| account.peer)
    }
}

/// A request that waits. It counts for its peer until this is dropped.
#[derive(Debug)]
pub(crate) struct Waits {
    account: Arc<Account>,
    octets: usize,
}

/// What a peer holds of what waits, a request included that comes now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) requests: usize,
    pub(crate) octets: usize,
}

impl Waits {
    /// Counts a request for a peer, whether or not there is room for it.
    pub(crate) fn new(account: &Arc<Account>, octets: usize) -> (Self, Own) {
        let [requests, size] = &account.waiting;
        let own = Own {
            requests: requests.fetch_add(1, Ordering::Relaxed) + 1,
            octets: size.fetch_add(octets, Ordering::Relaxed) + octets,
        };
        let account = Arc::clone(account);
        (Self { account, octets }, own)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let [requests, octets] = &self.account.waiting;
        requests.fetch_sub(1, Ordering::Relaxed);
        octets.fetch_sub(self.octets, Ordering::Relaxed);
    }
}

impl Own {
    /// Whether the peer leaves as much free as it holds. One request is always allowed if there is room for it.
    pub(crate) const fn leaves(self, requests_free: usize, octets_free: usize) -> bool {
        self.requests <= 1 || self.requests <= requests_free && self.octets <= octets_free
    }
}

impl Account {
    /// As [`Account::take`] of octets of unfinished messages, for a request that waits behind others of its connection.
    pub(crate) fn take_queued(&self, octets: usize, own: Own) -> bool {
        let held = self.held(Bound::Inbound);
        let is_share = |free| own.leaves(usize::MAX, free) && held <= free;
        self.accounts
            .bound(Bound::Inbound)
            .take_if(octets, is_share)
    }

    /// Takes `count`. Returns false if the peer would then hold more than is free; one connection is always allowed if
    /// there is room for it.
    pub(crate) fn take(&self, bound: Bound, count: usize) -> bool {
        self.share(bound).take(self.accounts.bound(bound), count)
    }

    /// As [`Account::take`], whatever the peer holds.
    pub(crate) fn take_beyond_share(&self, bound: Bound, count: usize) -> bool {
        let whole = self.accounts.bound(bound);
        self.share(bound).take_beyond(whole, count)
    }

    /// As [`Account::take`], whatever is free.
    pub(crate) fn take_anyway(&self, bound: Bound, count: usize) {
        let whole = self.accounts.bound(bound);
        self.share(bound).take_anyway(whole, count);
    }

    /// Gives `count` back. Returns whether nothing was free before.
    pub(crate) fn give(&self, bound: Bound, count: usize) -> bool {
        let whole = self.accounts.bound(bound);
        self.share(bound).give(whole, count) >= whole.max()
    }

    /// How much the peer holds.
    pub(crate) fn held(&self, bound: Bound) -> usize {
        self.share(bound).held()
    }

    fn share(&self, bound: Bound) -> &Share {
        &self.held[bound as usize]
    }

    /// The peer.
    pub(crate) const fn peer(&self) -> Peer {
        self.peer
    }

    /// Notes that none of its connections can be closed for another one.
    pub(crate) fn note_refusal(&self, now: Instant64) {
        let until = now.after(ACCEPT_REST).0;
        self.refused_until.store(until, Ordering::Relaxed);
    }

    /// Whether that was so a moment ago: a peer that connects without end must not cost a search each time.
    pub(crate) fn is_refused(&self, now: Instant64) -> bool {
        now.0 < self.refused_until.load(Ordering::Relaxed)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let mut open = self.accounts.open.lock("accounts.end");
        // Its peer may have another account already.
        let is_over = |account: &Weak<Self>| account.strong_count() == 0;
        if open.get(&self.peer).is_some_and(is_over) {
            open.remove(&self.peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRANGER: Peer = Peer::User(1);
    const OTHER: Peer = Peer::User(2);

    fn accounts(max: usize) -> Arc<Accounts> {
        Accounts::new([max; KINDS])
    }

    #[test]
    fn peer_alone_holds_a_half_and_each_further_one_leaves_as_much_free_as_it_holds() {
        let accounts = accounts(120);
        let mut free = 120;
        for (number, share) in [(1, 60), (2, 30), (3, 15)] {
            let account = accounts.of(Peer::User(number));
            let count = std::iter::repeat_with(|| account.take(Bound::Inbound, 1));
            assert_eq!(count.take_while(|is_taken| *is_taken).count(), share);
            free -= share;
            assert!(free >= share);
            std::mem::forget(account);
        }
    }

    #[test]
    fn connections_of_one_peer_share_an_account_which_ends_with_the_last_of_them() {
        let accounts = accounts(100);
        let (one, again) = (accounts.of(STRANGER), accounts.of(STRANGER));
        assert!(one.take(Bound::Outbound, 50));
        assert!(!again.take(Bound::Outbound, 1));
        assert!(accounts.of(OTHER).take(Bound::Outbound, 1));
        assert!(again.take_beyond_share(Bound::Outbound, 49));
        assert_eq!(one.held(Bound::Outbound), 99);
        one.give(Bound::Outbound, 99);
        assert_eq!(accounts.largest(Bound::Outbound), Some(STRANGER));
        drop(one);
        drop(again);
        assert!(accounts.open.lock("test").is_empty());
    }

    #[test]
    fn peer_that_was_refused_costs_no_search_for_a_moment() {
        let accounts = accounts(2);
        let (stranger, other) = (accounts.of(STRANGER), accounts.of(OTHER));
        let now = Instant64(7);
        stranger.note_refusal(now);
        assert!(stranger.is_refused(now) && !other.is_refused(now));
        assert!(!stranger.is_refused(now.after(ACCEPT_REST)));
    }

    #[test]
    fn requests_that_wait_leave_as_much_of_the_room_for_unfinished_messages_as_they_take() {
        let accounts = accounts(100);
        let (one, other) = (accounts.of(STRANGER), accounts.of(OTHER));
        let wait = |account: &Arc<Account>, octets| {
            let (waits, own) = Waits::new(account, octets);
            account.take_queued(octets, own).then_some(waits)
        };
        let held: Vec<_> = (0..9).filter_map(|_| wait(&one, 10)).collect();
        assert_eq!(held.len(), 5, "a half");
        assert!(wait(&other, 30).is_some(), "the first");
        accounts.bound(Bound::Inbound).give(30);
        assert!(other.take(Bound::Inbound, 20));
        assert!(wait(&other, 12).is_none(), "with its unfinished messages");
        assert!(wait(&other, 10).is_some());
        drop(held);
        assert_eq!(one.waiting[0].load(Ordering::Relaxed), 0);
    }

    #[test]
    fn bounds_are_apart_and_one_connection_is_allowed_however_few_there_may_be() {
        let accounts = accounts(2);
        let stranger = accounts.of(STRANGER);
        assert!(stranger.take(Bound::Connections, 1));
        assert!(!stranger.take(Bound::Connections, 1));
        assert!(stranger.take(Bound::SharedMemory, 1));
        assert!(accounts.of(OTHER).take(Bound::Connections, 1));
        assert!(!accounts.of(Peer::User(3)).take(Bound::Connections, 1));
        assert!(stranger.give(Bound::Connections, 1), "all were taken");
        assert!(!stranger.give(Bound::SharedMemory, 1));
    }
}
