//! The fragments of requests from several senders, until each request is whole. Pure: no socket, no clock.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use deckwatch_cdr::ByteOrder;
use deckwatch_orb::Caller;
use deckwatch_orb::peers::Peer;

use super::fragment::Fragment;
use crate::limits::{
    MULTICAST_PENDING_MAX, MULTICAST_PENDING_SIZE_MAX, MULTICAST_QUIET, MULTICAST_SENDERS_MAX,
    MULTICAST_SENDERS_SHARE, MULTICAST_TIMEOUT,
};
use crate::rt::Window;

/// Requests that are not whole yet.
#[derive(Default)]
pub(crate) struct Reassembly {
    senders: HashMap<SocketAddr, Sender>,
    /// Octets of all requests that are not whole.
    size: usize,
    /// Requests given up because fragments are missing after [`MULTICAST_TIMEOUT`].
    pub(crate) incomplete: u64,
    /// Requests given up because others needed their place.
    pub(crate) displaced: u64,
}

/// What a fragment has led to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken<'a> {
    /// The request is whole.
    Whole(Cow<'a, [u8]>),
    /// Others are missing.
    Pending,
    /// It, or its whole request, has come before; or the request was given up.
    Doubled,
    /// It contradicts an earlier fragment of its request.
    Malformed,
}

/// A sender: an address and a port.
struct Sender {
    /// Requests that are whole or given up.
    done: Window,
    pending: BTreeMap<u64, Pending>,
    heard_ns: u64,
}

/// A request of which fragments are missing.
struct Pending {
    order: ByteOrder,
    count: u32,
    octets: Vec<u8>,
    /// A bit for each fragment that has come.
    has: Vec<u64>,
    missing: u32,
    /// Octets that have come.
    filled: usize,
    began_ns: u64,
}

impl Pending {
    fn new(fragment: &Fragment<'_>, now_ns: u64) -> Self {
        Self {
            order: fragment.order,
            count: fragment.count,
            octets: vec![0; fragment.request_size as usize],
            has: vec![0; fragment.count.div_ceil(u64::BITS) as usize],
            missing: fragment.count,
            filled: 0,
            began_ns: now_ns,
        }
    }

    /// Returns false for a fragment that has come before.
    fn fill(&mut self, fragment: &Fragment<'_>) -> bool {
        let (word, bit) = (fragment.number as usize / 64, 1 << (fragment.number % 64));
        if self.has[word] & bit != 0 {
            return false;
        }
        self.has[word] |= bit;
        let at = fragment.offset as usize;
        self.octets[at..at + fragment.octets.len()].copy_from_slice(fragment.octets);
        self.missing -= 1;
        self.filled += fragment.octets.len();
        true
    }

    fn size(&self) -> usize {
        self.octets.len() + self.has.len() * size_of::<u64>()
    }
}

impl Reassembly {
    /// Takes a fragment. Its parser has bounded its numbers.
    pub(crate) fn take<'a>(
        &mut self,
        from: SocketAddr,
        fragment: &Fragment<'a>,
        now_ns: u64,
    ) -> Taken<'a> {
        self.make_place(from, now_ns);
        let sender = self.senders.entry(from).or_insert_with(|| Sender {
            // Offset, so that the numbers before the first one received do not fall below 0.
            done: Window::at((1 << 32) + u64::from(fragment.request)),
            pending: BTreeMap::new(),
            heard_ns: now_ns,
        });
        sender.heard_ns = now_ns;
        let number = sender.done.nearest(fragment.request);
        if sender.done.has(number) {
            return Taken::Doubled;
        }
        if fragment.count == 1 {
            // An earlier fragment may have told another count.
            if sender.pending.contains_key(&number) {
                return Taken::Malformed;
            }
            sender.done.is_new(number);
            return Taken::Whole(Cow::Borrowed(fragment.octets));
        }
        let new = !sender.pending.contains_key(&number);
        if new {
            let made = Pending::new(fragment, now_ns);
            self.size += made.size();
            sender.pending.insert(number, made);
        }
        let taken = sender.add(number, fragment);
        if let Taken::Whole(octets) = &taken {
            self.size -= octets.len() + bits_size(fragment.count);
        }
        if new {
            self.keep_within(from);
        }
        taken
    }

    /// Drops requests that are too old, and removes senders without a recent datagram.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        let is_over = |since_ns: u64, limit: std::time::Duration| {
            now_ns.saturating_sub(since_ns) >= limit.as_nanos() as u64
        };
        for sender in self.senders.values_mut() {
            while let Some((number, size)) = sender.oldest(|it| is_over(it, MULTICAST_TIMEOUT)) {
                sender.give_up(number);
                self.size -= size;
                self.incomplete += 1;
            }
        }
        self.senders.retain(|_, sender| {
            !sender.pending.is_empty() || !is_over(sender.heard_ns, MULTICAST_QUIET)
        });
    }

    /// Octets of all requests that are not whole.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// If there is no place for a new sender, forgets the one that was quiet longest, of the peer with most senders. At its
    /// share that is the peer of the new one.
    fn make_place(&mut self, from: SocketAddr, now_ns: u64) {
        if self.senders.contains_key(&from) {
            return;
        }
        let peer = peer_of(from);
        let is_full = |all: &Self| {
            let own = all.senders.keys().filter(|from| peer_of(**from) == peer);
            let is_share_full = own.count() >= MULTICAST_SENDERS_SHARE;
            (is_share_full || all.senders.len() >= MULTICAST_SENDERS_MAX).then_some(is_share_full)
        };
        if is_full(self).is_none() {
            return;
        }
        self.expire(now_ns);
        let Some(is_share_full) = is_full(self) else {
            return;
        };
        let whose = if is_share_full {
            peer
        } else {
            self.largest(|_| 1)
        };
        let quiet = self
            .senders
            .iter()
            .filter(|(from, _)| peer_of(**from) == whose)
            .min_by_key(|(_, sender)| sender.heard_ns);
        if let Some(quiet) = quiet.map(|(address, _)| *address)
            && let Some(sender) = self.senders.remove(&quiet)
        {
            self.size -= sender.size();
            self.displaced += sender.pending.len() as u64;
        }
    }

    /// The peer whose senders weigh most together.
    fn largest(&self, weight: impl Fn(&Sender) -> usize) -> Peer {
        let mut weights = HashMap::new();
        for (from, sender) in &self.senders {
            *weights.entry(peer_of(*from)).or_insert(0) += weight(sender);
        }
        let largest = weights.into_iter().max_by_key(|(_, weight)| *weight);
        largest.map_or(Peer::Unknown, |(peer, _)| peer)
    }

    /// Gives up the oldest requests beyond the bounds: those of this sender first, then those of the sender with most
    /// octets, of the peer with most.
    fn keep_within(&mut self, from: SocketAddr) {
        loop {
            let is_crowded = |sender: &Sender| sender.pending.len() > MULTICAST_PENDING_MAX;
            let crowded = self.senders.get(&from).is_some_and(is_crowded);
            let whose = if crowded {
                from
            } else if self.size > MULTICAST_PENDING_SIZE_MAX {
                let whose = self.largest(Sender::size);
                let own = self.senders.iter();
                let own = own.filter(|(from, _)| peer_of(**from) == whose);
                let largest = own.max_by_key(|(_, sender)| sender.size());
                let Some((largest, _)) = largest else { return };
                *largest
            } else {
                return;
            };
            let Some(sender) = self.senders.get_mut(&whose) else {
                return;
            };
            let Some((number, size)) = sender.oldest(|_| true) else {
                return;
            };
            sender.give_up(number);
            self.size -= size;
            self.displaced += 1;
        }
    }
}

/// Octets of the bits of so many fragments.
fn bits_size(count: u32) -> usize {
    count.div_ceil(u64::BITS) as usize * size_of::<u64>()
}

/// The address of a sender, as shares of peers know it.
fn peer_of(from: SocketAddr) -> Peer {
    Caller::Tcp(from).into()
}

impl Sender {
    /// Octets of its requests that are not whole.
    fn size(&self) -> usize {
        self.pending.values().map(Pending::size).sum()
    }

    fn add<'a>(&mut self, number: u64, fragment: &Fragment<'_>) -> Taken<'a> {
        let Some(pending) = self.pending.get_mut(&number) else {
            return Taken::Doubled;
        };
        let is_alike = pending.order == fragment.order
            && pending.count == fragment.count
            && pending.octets.len() == fragment.request_size as usize;
        if !is_alike {
            return Taken::Malformed;
        }
        if !pending.fill(fragment) {
            return Taken::Doubled;
        }
        // Overlapping fragments never fill a request: it is given up in time.
        if pending.missing > 0 || pending.filled != pending.octets.len() {
            return Taken::Pending;
        }
        let octets = self.pending.remove(&number).map(|whole| whole.octets);
        self.done.is_new(number);
        Taken::Whole(Cow::Owned(octets.unwrap_or_default()))
    }

    /// The oldest request that began at such a time, and its octets.
    fn oldest(&self, is_due: impl Fn(u64) -> bool) -> Option<(u64, usize)> {
        let due = self.pending.iter().filter(|(_, it)| is_due(it.began_ns));
        let oldest = due.min_by_key(|(_, it)| it.began_ns);
        oldest.map(|(number, it)| (*number, it.size()))
    }

    fn give_up(&mut self, number: u64) {
        self.pending.remove(&number);
        self.done.is_new(number);
    }
}

#[cfg(test)]
mod tests;
