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

#[cfg(test)]
mod tests {
    use deckwatch_orb::Orb;
    use deckwatch_orb::delivery::DeliveryOptions;

    use super::*;

    #[test]
    fn kept_events_are_dropped_until_they_fit_into_their_share() {
        let share = Share::of(10 * KEPT_SHARE);
        share.size.store(10, Relaxed);
        share.limit(|| panic!("they fit"), |_| panic!("they fit"));
        share.size.store(13, Relaxed);
        assert!(share.is_exceeded());
        let drop_oldest = |most| {
            assert_eq!(most, 5);
            share.size.fetch_sub(2, Relaxed);
            true
        };
        share.limit(|| 5, drop_oldest);
        assert_eq!(share.size.load(Relaxed), 9);
        assert!(!share.is_exceeded());
    }

    #[test]
    fn without_an_event_to_drop_a_share_stays_exceeded() {
        let share = Share::of(10 * KEPT_SHARE);
        share.size.store(11, Relaxed);
        share.limit(|| 0, |_| panic!("nobody keeps an event"));
        share.limit(|| 5, |_| false);
        assert!(share.is_exceeded());
    }

    #[test]
    fn a_kept_event_counts_until_all_that_keep_it_have_let_it_go() {
        let orb = Orb::builder().build().unwrap();
        let options = DeliveryOptions {
            size_max: 10_000,
            ..DeliveryOptions::default()
        };
        let deliveries = Deliveries::start(&orb, options).unwrap();
        let share = Share::of(10_000);
        let kept = Kept::new("event", 100, &share, &deliveries).unwrap();
        let size = 100 + size_of::<Kept<&str>>();
        let counted = || (share.size.load(Relaxed), deliveries.size());
        assert_eq!((kept.size(), counted()), (size, (size, size)));
        let again = Arc::clone(&kept);
        drop(kept);
        assert_eq!(counted(), (size, size));
        drop(again);
        assert_eq!(counted(), (0, 0));
        assert!(Kept::new("event", 10_000, &share, &deliveries).is_none());
        assert_eq!(counted(), (0, 0));
    }
}
