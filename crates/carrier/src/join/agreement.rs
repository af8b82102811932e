//! Compares two methods of stamping the same packets.

use deckwatch_meter::caution::Caution;
use deckwatch_meter::result::Warning;
use serde::{Deserialize, Serialize};

use crate::carriers::CarrierRef;
use crate::limits::{AGREEMENT_BOUND_NS, AGREEMENT_USUAL_NS, DISAGREEMENTS_ONE_IN};

/// The differences between the stamps of a raw carrier's own sockets and those of the taps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// Number of stamp pairs compared, at both ends.
    pub compared: u64,
    /// Number of these pairs that differ by at most [`AGREEMENT_USUAL_NS`].
    pub as_usual: u64,
    /// Number of these pairs that differ by more than [`AGREEMENT_BOUND_NS`].
    pub beyond_bound: u64,
    /// The largest difference.
    pub difference_ns_max: u64,
}

impl Agreement {
    /// Compares the two stamps of one message at one end, if both exist.
    pub(super) fn compare(&mut self, socket_ns: Option<i64>, tap_ns: Option<i64>) {
        if let (Some(socket_ns), Some(tap_ns)) = (socket_ns, tap_ns) {
            let difference_ns = socket_ns.abs_diff(tap_ns);
            self.compared += 1;
            self.as_usual += u64::from(difference_ns <= AGREEMENT_USUAL_NS);
            self.beyond_bound += u64::from(difference_ns > AGREEMENT_BOUND_NS);
            self.difference_ns_max = self.difference_ns_max.max(difference_ns);
        }
    }

    /// Returns a warning if the methods disagree.
    pub(super) fn warning(&self, name: &str, carrier: CarrierRef) -> Option<Warning> {
        let disagrees = self.beyond_bound * DISAGREEMENTS_ONE_IN > self.compared;
        disagrees.then(|| {
            let caution = Caution::StampsDisagree {
                flow: name.to_owned(),
                carrier: carrier.name(),
                compared: self.compared,
                beyond: self.beyond_bound,
                bound_ns: AGREEMENT_BOUND_NS,
                most_ns: self.difference_ns_max,
            };
            caution.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carriers::tcp::Tcp;

    const TCP: CarrierRef = CarrierRef::new(&Tcp);

    #[test]
    fn one_pair_in_a_hundred_may_be_apart() {
        let mut agreement = Agreement::default();
        for _ in 0..97 {
            agreement.compare(Some(1_000), Some(900));
        }
        agreement.compare(None, Some(900));
        agreement.compare(Some(0), Some(200_000));
        agreement.compare(Some(6_000), Some(1_000));
        agreement.compare(Some(6_001), Some(1_000));
        assert_eq!((agreement.compared, agreement.beyond_bound), (100, 1));
        assert_eq!(agreement.as_usual, 98);
        assert_eq!(agreement.warning("NAV", TCP), None);
        agreement.compare(Some(300_000), Some(0));
        assert!(agreement.warning("NAV", TCP).is_some());
        assert_eq!(agreement.difference_ns_max, 300_000);
    }
}
