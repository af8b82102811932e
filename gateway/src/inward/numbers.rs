//! Finds events of other gateways that never arrived, by gaps in their numbers.

use std::collections::HashMap;

use crate::attachment::Attachment;
use crate::limits::NUMBERS_MAX;

/// The numbers that are expected next, by gateway, type and source.
#[derive(Default)]
pub(super) struct Numbers(HashMap<(u64, i32, i32), u64>);

impl Numbers {
    /// Returns how many events before this one never arrived. Numbers begin at 0, and again when the publisher was
    /// declared anew.
    pub(super) fn gap_before(&mut self, attachment: &Attachment) -> u64 {
        let header = &attachment.header;
        let name = (attachment.gateway, header.r#type, header.source);
        if self.0.len() >= NUMBERS_MAX && !self.0.contains_key(&name) {
            self.0.clear();
        }
        let number = attachment.number;
        let expected = self.0.get(&name).copied();
        // An event that was overtaken does not lower what is expected.
        let is_late = number != 0 && expected.is_some_and(|expected| number < expected);
        if !is_late {
            self.0.insert(name, number.saturating_add(1));
        }
        expected.map_or(0, |expected| number.saturating_sub(expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deckwatch_cdr::Any;
    use deckwatch_event::rtec_event_comm::EventHeader;

    fn attachment(gateway: u64, number: u64) -> Attachment {
        Attachment {
            gateway,
            number,
            header: EventHeader::default(),
            value: Any::empty(),
        }
    }

    #[test]
    fn gaps_are_counted_and_a_new_beginning_is_none() {
        let mut numbers = Numbers::default();
        // The first event that arrives has none before it: the subscriber may have come late.
        let gaps = [
            (5, 0),
            (6, 0),
            (9, 2),
            (8, 0),
            (10, 0),
            (0, 0),
            (1, 0),
            (3, 1),
        ];
        for (number, gap) in gaps {
            assert_eq!(numbers.gap_before(&attachment(7, number)), gap, "{number}");
        }
        assert_eq!(
            numbers.gap_before(&attachment(8, 4)),
            0,
            "each gateway has its own"
        );
        assert_eq!(numbers.gap_before(&attachment(8, u64::MAX)), u64::MAX - 5);
        assert_eq!(numbers.gap_before(&attachment(8, u64::MAX)), 0);
    }

    #[test]
    fn remembered_keys_are_bounded() {
        let mut numbers = Numbers::default();
        for gateway in 0..=NUMBERS_MAX as u64 {
            numbers.gap_before(&attachment(gateway, 0));
        }
        assert_eq!(numbers.0.len(), 1);
    }
}
