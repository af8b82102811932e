//! Messages whose transmit stamps are still to come, by the kernel's own count of what a socket has sent.

use std::collections::VecDeque;

use crate::limits::PENDING_STAMPS_MAX;

/// A bounded queue, oldest first; takes no memory after it was made.
#[derive(Debug)]
pub(crate) struct PendingStamps {
    queue: VecDeque<(u32, u64)>,
}

impl PendingStamps {
    pub(crate) fn new() -> Self {
        Self {
            queue: VecDeque::with_capacity(PENDING_STAMPS_MAX),
        }
    }

    /// Message `sequence` is the kernel's `id`; ids grow, modulo 2^32.
    pub(crate) fn push(&mut self, id: u32, sequence: u64) {
        if self.queue.len() == PENDING_STAMPS_MAX {
            self.queue.pop_front();
        }
        self.queue.push_back((id, sequence));
    }

    /// The message of a stamp. It stays, because its other stamp may come yet; older ones are given up, for stamps of
    /// one kind come in order and a message's two are no further apart than the queueing discipline is long.
    pub(crate) fn sequence_at(&mut self, id: u32) -> Option<u64> {
        let position = self.queue.iter().rposition(|&(of, _)| of == id)?;
        let sequence = self.queue[position].1;
        if position > KEPT_BEHIND {
            self.queue.drain(..position - KEPT_BEHIND);
        }
        Some(sequence)
    }

    pub(crate) fn clear(&mut self) {
        self.queue.clear();
    }
}

/// More packets than the usual queueing discipline holds (1000).
const KEPT_BEHIND: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_find_their_messages_though_one_never_comes() {
        let mut pending = PendingStamps::new();
        for (sequence, id) in [u32::MAX - 1, u32::MAX, 0, 1].into_iter().enumerate() {
            pending.push(id, sequence as u64);
        }
        // That of u32::MAX never comes, and the two of 0 come one after the other.
        assert_eq!(pending.sequence_at(u32::MAX - 1), Some(0));
        assert_eq!(pending.sequence_at(0), Some(2));
        assert_eq!(pending.sequence_at(0), Some(2));
        assert_eq!(pending.sequence_at(1), Some(3));
        assert_eq!(pending.sequence_at(7), None);
    }

    #[test]
    fn the_queue_is_bounded_by_giving_up_the_oldest() {
        let mut pending = PendingStamps::new();
        let most = u32::try_from(PENDING_STAMPS_MAX).expect("small");
        for id in 0..=most {
            pending.push(id, u64::from(id));
        }
        assert_eq!(pending.sequence_at(0), None);
        assert_eq!(pending.sequence_at(1), Some(1));
        assert_eq!(pending.sequence_at(most), Some(u64::from(most)));
        assert!(pending.queue.len() <= KEPT_BEHIND + 1);
    }
}
