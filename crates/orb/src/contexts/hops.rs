//! The hop count: how many services have passed on the request that a call belongs to. A service that calls others for
//! its callers ends by it what leads in a circle.
//!
//! The data of the context is an encapsulation of one octet.

use std::sync::LazyLock;

use deckwatch_giop::{Request, context_id};

use super::ExtraContext;
use crate::limits::HOPS_MAX;

/// One context for each count. The count above the limit says no more than that.
static CONTEXTS: LazyLock<Vec<ExtraContext>> = LazyLock::new(|| {
    let context = |hops| (context_id::DECKWATCH_HOPS, vec![0, hops]);
    (0..=HOPS_MAX.saturating_add(1)).map(context).collect()
});

/// The service contexts of a call with this count; none for 0.
pub(crate) fn contexts_of(hops: u8) -> &'static [ExtraContext] {
    match hops {
        0 => &[],
        hops => {
            let index = usize::from(hops).min(CONTEXTS.len() - 1);
            std::slice::from_ref(&CONTEXTS[index])
        }
    }
}

/// The count of a request; 0 if it has none that can be read.
pub(super) fn hops_of(request: &Request<'_>) -> u8 {
    match request.contexts.find(context_id::DECKWATCH_HOPS) {
        Some([_, hops]) => *hops,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_carries_its_count_up_to_one_above_the_limit() {
        assert!(contexts_of(0).is_empty());
        let octets = |hops| contexts_of(hops)[0].1.clone();
        assert_eq!(octets(1), [0, 1]);
        assert_eq!(octets(HOPS_MAX), [0, HOPS_MAX]);
        assert_eq!(octets(u8::MAX), [0, HOPS_MAX + 1]);
    }
}
