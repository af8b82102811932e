//! The state of a channel: what ours report, and what can be known of others.

pub use deckwatch_event::deckwatch::{ChannelReport, ConsumerReport};
use deckwatch_event::deckwatch::{ChannelStatusRef, ConsumerStatusRef};
use deckwatch_orb::{ObjectRef, SystemException};

/// Returns the report of a channel; `None` if it is not one of ours.
///
/// # Errors
/// The exception of a channel that does not answer.
pub fn report(object: &ObjectRef) -> Result<Option<ChannelReport>, SystemException> {
    let found = ChannelStatusRef::narrow(object)?;
    found.map(|channel| channel.report()).transpose()
}

/// Returns a consumer's own counters, which its proxy in the channel reports; `None` if that is not one of ours.
///
/// # Errors
/// The exception of a proxy that does not answer.
pub(super) fn consumer_report(
    proxy: &ObjectRef,
) -> Result<Option<ConsumerReport>, SystemException> {
    let found = ConsumerStatusRef::narrow(proxy)?;
    found.map(|proxy| proxy.report()).transpose()
}

/// Events a second between two reports of a channel.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Rates {
    /// Events that suppliers pushed.
    pub received_hz: f64,
    /// Events that consumers received, counted once for each consumer.
    pub delivered_hz: f64,
    /// Events that were dropped.
    pub dropped_hz: f64,
}

impl Rates {
    /// Returns the rates between two reports; `None` if no time passed between them.
    #[must_use]
    pub fn between(before: &ChannelReport, after: &ChannelReport) -> Option<Self> {
        let passed_ns = after
            .time_ns
            .checked_sub(before.time_ns)
            .filter(|passed| *passed > 0)?;
        let rate =
            |before: u64, after: u64| after.saturating_sub(before) as f64 * 1e9 / passed_ns as f64;
        Some(Self {
            received_hz: rate(before.received, after.received),
            delivered_hz: rate(before.delivered, after.delivered),
            dropped_hz: rate(before.dropped, after.dropped),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_differences_over_the_time_of_the_channel() {
        let before = ChannelReport {
            time_ns: 1_000,
            received: 10,
            delivered: 100,
            ..ChannelReport::default()
        };
        let after = ChannelReport {
            time_ns: 500_001_000,
            received: 20,
            delivered: 450,
            dropped: 1,
            ..ChannelReport::default()
        };
        let expected = Rates {
            received_hz: 20.0,
            delivered_hz: 700.0,
            dropped_hz: 2.0,
        };
        assert_eq!(Rates::between(&before, &after), Some(expected));
        assert_eq!(Rates::between(&after, &after), None);
    }
}
