//! The listings that clients have not destroyed, and the share of them that one peer may hold.

use std::collections::{HashMap, VecDeque};

use deckwatch_orb::peers::{Peer, share_of};

use crate::limits;

/// The open listings, the oldest first.
#[derive(Default)]
pub(crate) struct OpenListings {
    open: VecDeque<(u64, Peer)>,
    next: u64,
}

impl OpenListings {
    /// Returns the number of a new listing.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Adds a listing. Returns the one that gives way: the oldest of the same peer if that holds more than its share,
    /// or, of too many in all, the oldest of the peer that holds most.
    pub(crate) fn add(&mut self, number: u64, peer: Peer) -> Option<u64> {
        self.open.push_back((number, peer));
        let mut counts = HashMap::<Peer, usize>::new();
        for (_, peer) in &self.open {
            *counts.entry(*peer).or_default() += 1;
        }
        let share = share_of(limits::ITERATORS_MAX, limits::SHARE_PERCENT_DEFAULT);
        let gives_way = if peer != Peer::ThisProcess && counts[&peer] > share {
            peer
        } else if self.open.len() > limits::ITERATORS_MAX {
            counts.into_iter().max_by_key(|(_, count)| *count)?.0
        } else {
            return None;
        };
        let oldest = self.open.iter().position(|(_, peer)| *peer == gives_way)?;
        self.open.remove(oldest).map(|(number, _)| number)
    }

    pub(crate) fn remove(&mut self, number: u64) {
        self.open.retain(|(open, _)| *open != number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: u64 = 250;

    #[test]
    fn a_peer_at_its_share_of_listings_loses_its_own() {
        let (stranger, other) = (Peer::User(1), Peer::User(2));
        let mut open = OpenListings::default();
        let of_other = open.number();
        assert_eq!(open.add(of_other, other), None);
        let first = open.next;
        for _ in 0..SHARE {
            let number = open.number();
            assert_eq!(open.add(number, stranger), None);
        }
        for lost in first..first + 2 * SHARE {
            let number = open.number();
            assert_eq!(open.add(number, stranger), Some(lost));
        }
        let number = open.number();
        assert_eq!(open.add(number, other), None, "it keeps its first one");
        open.remove(of_other);
        assert!(open.open.iter().all(|(kept, _)| *kept != of_other));
        assert!(open.open.iter().any(|(kept, _)| *kept == number));
    }

    #[test]
    fn of_too_many_listings_the_oldest_of_the_largest_holder_gives_way() {
        let mut open = OpenListings::default();
        for peer in 1..=4 {
            for _ in 0..SHARE - u64::from(peer == 1) {
                let number = open.number();
                assert_eq!(open.add(number, Peer::User(peer)), None);
            }
        }
        let number = open.number();
        assert_eq!(open.add(number, Peer::User(9)), None, "the last place");
        let number = open.number();
        let lost = open.add(number, Peer::User(9)).expect("one gives way");
        assert!(lost >= SHARE - 1, "it is not of the peer that holds fewer");
        assert_eq!(open.open.len(), limits::ITERATORS_MAX);
    }
}
