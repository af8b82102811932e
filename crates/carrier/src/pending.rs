//! Messages whose transmit stamps are still expected, keyed by the kernel's count of what the socket has sent.

use std::collections::VecDeque;

use crate::limits::PENDING_STAMPS_MAX;

/// A bounded queue, oldest entry first. It allocates nothing after it is created.
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

    /// Adds message `sequence`, which has the kernel's `id`. Ids increase modulo 2^32.
    pub(crate) fn push(&mut self, id: u32, sequence: u64) {
        if self.queue.len() == PENDING_STAMPS_MAX {
            self.queue.pop_front();
        }
        self.queue.push_back((id, sequence));
    }

    /// Returns the message that a stamp belongs to, and drops it and all older ones: stamps arrive in order.
    pub(crate) fn sequence_at(&mut self, id: u32) -> Option<u64> {
        let position = self.queue.iter().rposition(|&(of, _)| of == id)?;
        self.queue
            .drain(..=position)
            .next_back()
            .map(|(_, sequence)| sequence)
    }

    pub(crate) fn clear(&mut self) {
        self.queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_find_their_messages_though_one_never_comes() {
        let mut pending = PendingStamps::new();
        for (sequence, id) in [u32::MAX - 1, u32::MAX, 0, 1].into_iter().enumerate() {
            pending.push(id, sequence as u64);
        }
        // The stamp of id u32::MAX never arrives; that of id 0 arrives again, for a retransmission.
        assert_eq!(pending.sequence_at(u32::MAX - 1), Some(0));
        assert_eq!(pending.sequence_at(0), Some(2));
        assert_eq!(pending.sequence_at(0), None);
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
        assert!(pending.queue.is_empty());
    }
}
