//! Events that a channel keeps decoded, for consumers that pull and in conjunctions. Their octets count against the
//! channel's bound, and all of one kind together take a share of it.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_orb::delivery::{Charge, Deliveries};

use crate::limits::KEPT_SHARE;

/// What all kept events of one kind may take.
#[derive(Debug)]
pub(crate) struct Share {
    size: AtomicUsize,
    size_max: usize,
}

impl Share {
    /// The share of a channel with this bound of octets.
    pub(crate) fn of(size_max: usize) -> Arc<Self> {
        Arc::new(Self {
            size: AtomicUsize::new(0),
            size_max: size_max / KEPT_SHARE,
        })
    }

    /// While the kept events take more than their share, drops events. `largest` returns what the largest holder keeps;
    /// `drop_oldest` drops the oldest event of all that keep so much, and returns false if there is none.
    pub(crate) fn limit(&self, largest: impl Fn() -> usize, drop_oldest: impl Fn(usize) -> bool) {
        while self.is_exceeded() {
            let most = largest();
            if most == 0 || !drop_oldest(most) {
                return;
            }
        }
    }

    /// Returns true if the kept events take more than their share.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.size.load(Relaxed) > self.size_max
    }
}

/// One kept event. All that keep it share it, and its octets count once.
#[derive(Debug)]
pub(crate) struct Kept<E> {
    pub(crate) event: E,
    size: usize,
    share: Arc<Share>,
    _charge: Charge,
}

impl<E> Kept<E> {
    /// Returns `None` if the channel has no room for so many octets.
    pub(crate) fn new(
        event: E,
        size: usize,
        share: &Arc<Share>,
        deliveries: &Deliveries,
    ) -> Option<Arc<Self>> {
        let size = size.saturating_add(size_of::<Self>());
        let charge = deliveries.charge(size)?;
        share.size.fetch_add(size, Relaxed);
        Some(Arc::new(Self {
            event,
            size,
            share: Arc::clone(share),
            _charge: charge,
        }))
    }

    /// Its octets.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }
}

impl<E> Drop for Kept<E> {
    fn drop(&mut self) {
        self.share.size.fetch_sub(self.size, Relaxed);
    }
}
