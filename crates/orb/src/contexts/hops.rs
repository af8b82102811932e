//! Which services have passed on the request that a call belongs to, and how many. A service that calls others for its
//! callers ends by it what leads in a circle.
//!
//! Two contexts: the data of the one is an encapsulation of the count, an octet; that of the other an encapsulation of
//! the numbers that the services have given themselves, [`ServiceNumber`]s. A peer that lies in them ends its own
//! request too early, or loses no more than it could have with a new request.

use std::sync::Arc;

use deckwatch_giop::{Request, context_id};

use super::ExtraContext;
use crate::limits::HOPS_MAX;

/// The number of a service, by chance.
pub(crate) type ServiceNumber = [u8; 8];

/// The services that have passed on a request and gave their number, the first of them first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PassedBy {
    numbers: [ServiceNumber; HOPS_MAX as usize],
    count: u8,
}

impl PassedBy {
    pub(crate) const NOBODY: Self = Self {
        numbers: [[0; 8]; HOPS_MAX as usize],
        count: 0,
    };

    /// Reads the octets of a context. Numbers beyond [`HOPS_MAX`] and a part of a number are not kept.
    pub(crate) fn read(octets: &[u8]) -> Self {
        let mut passed_by = Self::NOBODY;
        for number in octets.as_chunks().0 {
            passed_by.push(*number);
        }
        passed_by
    }

    fn push(&mut self, number: ServiceNumber) {
        if let Some(place) = self.numbers.get_mut(usize::from(self.count)) {
            *place = number;
            self.count += 1;
        }
    }

    pub(crate) fn as_octets(&self) -> &[u8] {
        self.numbers[..usize::from(self.count)].as_flattened()
    }

    /// How often the service of this number has passed on the request.
    pub(crate) fn passes_of(&self, service: ServiceNumber) -> usize {
        let passed_by = &self.numbers[..usize::from(self.count)];
        passed_by.iter().filter(|&&by| by == service).count()
    }

    /// The same after one more service.
    pub(crate) fn and(mut self, service: ServiceNumber) -> Self {
        self.push(service);
        self
    }
}

/// The service contexts of a call that so many services have passed on, these among them.
pub(crate) fn contexts_of(hops: u8, passed_by: &PassedBy) -> Arc<[ExtraContext]> {
    // A count above the limit says no more than that.
    let hops = hops.min(HOPS_MAX.saturating_add(1));
    let count = (hops > 0).then(|| (context_id::DECKWATCH_HOPS, vec![BIG_ENDIAN, hops]));
    let numbers = (passed_by.count > 0).then(|| {
        let data = [&[BIG_ENDIAN], passed_by.as_octets()].concat();
        (context_id::DECKWATCH_PASSED_BY, data)
    });
    count.into_iter().chain(numbers).collect()
}

/// How many services have passed on a request, and the octets of their numbers; 0 and none if that cannot be read.
/// There are at least as many services as numbers.
pub(super) fn hops_of<'r>(request: &Request<'r>) -> (u8, &'r [u8]) {
    let count = match request.contexts.find(context_id::DECKWATCH_HOPS) {
        Some([_, hops]) => *hops,
        _ => 0,
    };
    let numbers = request.contexts.find(context_id::DECKWATCH_PASSED_BY);
    let numbers = numbers.and_then(<[u8]>::split_first);
    let numbers = numbers.map_or(&[][..], |(_, numbers)| numbers);
    (hops_by(count, numbers), numbers)
}

fn hops_by(count: u8, numbers: &[u8]) -> u8 {
    let named = numbers.len() / size_of::<ServiceNumber>();
    count.max(u8::try_from(named).unwrap_or(u8::MAX))
}

/// The byte order at the head of the encapsulations. No octet behind it depends on it.
const BIG_ENDIAN: u8 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ServiceNumber = *b"service1";
    const OTHER: ServiceNumber = *b"service2";

    #[test]
    fn call_carries_its_count_up_to_one_above_the_limit() {
        let octets = |hops| contexts_of(hops, &PassedBy::NOBODY)[0].1.clone();
        assert!(contexts_of(0, &PassedBy::NOBODY).is_empty());
        assert_eq!(octets(1), [0, 1]);
        assert_eq!(octets(HOPS_MAX), [0, HOPS_MAX]);
        assert_eq!(octets(u8::MAX), [0, HOPS_MAX + 1]);
    }

    #[test]
    fn call_carries_the_numbers_of_the_services_in_their_order() {
        let passed_by = PassedBy::NOBODY.and(ONE).and(OTHER).and(ONE);
        let contexts = contexts_of(3, &passed_by);
        let [count, numbers] = &contexts[..] else {
            panic!("{contexts:?}");
        };
        assert_eq!(*count, (context_id::DECKWATCH_HOPS, vec![0, 3]));
        assert_eq!(numbers.0, context_id::DECKWATCH_PASSED_BY);
        assert_eq!(numbers.1, b"\0service1service2service1");
        let read = PassedBy::read(&numbers.1[1..]);
        assert_eq!(read, passed_by);
        assert_eq!((read.passes_of(ONE), read.passes_of(OTHER)), (2, 1));
        assert_eq!(read.passes_of([0; 8]), 0, "an empty place is no service");
    }

    #[test]
    fn hostile_list_of_numbers_is_cut_off_at_the_limit_and_counts_at_its_length() {
        let limit = usize::from(HOPS_MAX);
        for length in [
            0,
            1,
            7,
            8,
            9,
            8 * limit,
            8 * limit + 7,
            8 * limit + 8,
            9_999,
        ] {
            let octets: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let read = PassedBy::read(&octets);
            let kept = length / 8 * 8;
            assert_eq!(read.as_octets(), &octets[..kept.min(8 * limit)]);
            let hops = u8::try_from(length / 8).unwrap_or(u8::MAX);
            assert_eq!(hops_by(0, &octets), hops);
            assert_eq!(hops_by(2, &octets), hops.max(2));
        }
        let full = PassedBy::read(&[1; 8 * HOPS_MAX as usize]);
        assert_eq!(full.and(ONE), full);
    }
}
