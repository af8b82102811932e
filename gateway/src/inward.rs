//! From zenoh to the channel: the callback of the subscriber, and the thread that pushes.

mod numbers;

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Release;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use deckwatch_cdr::Any;
use deckwatch_event::RtecEventData;
use deckwatch_event::limits::TTL_MAX;
use deckwatch_event::rtec_event_channel_admin::ProxyPushConsumerRef;
use deckwatch_event::rtec_event_comm::{Event, EventHeader};
use zenoh::sample::{Sample, SampleKind};

use crate::Way;
use crate::attachment::Attachment;
use crate::counts::InCounters;
use crate::limits::EVENT_SIZE_MAX;
use crate::queue::{Queue, QueueEnd};
use numbers::Numbers;

/// The channel's proxy of a mapping's supplier, while the channel is connected.
#[derive(Clone, Default)]
pub(crate) struct Supplier(Arc<Mutex<Option<ProxyPushConsumerRef>>>);

impl Supplier {
    pub(crate) fn set(&self, proxy: Option<ProxyPushConsumerRef>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = proxy;
    }

    fn get(&self) -> Option<ProxyPushConsumerRef> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Takes the samples of a mapping, on zenoh's threads. It never waits: what does not fit into the queue is dropped and
/// counted.
pub(crate) struct Taker {
    way: Way<InCounters>,
    queue: QueueEnd<Event>,
    numbers: Mutex<Numbers>,
}

impl Taker {
    pub(crate) fn new(way: Way<InCounters>, queue: QueueEnd<Event>) -> Self {
        Self {
            way,
            queue,
            numbers: Mutex::default(),
        }
    }

    pub(crate) fn take(&self, sample: &Sample) {
        let counts = &self.way.counts;
        counts.received.add();
        let key = self.way.mapping.read_key(sample.key_expr().as_str());
        let Some(named) = key.filter(|_| sample.kind() == SampleKind::Put) else {
            counts.unmapped.add();
            return;
        };
        let (header, value) = match sample.attachment() {
            None => (plain(named), Any::empty()),
            Some(attachment) if attachment.len() > EVENT_SIZE_MAX => {
                counts.malformed.add();
                return;
            }
            Some(attachment) => match self.open(&attachment.to_bytes(), &named) {
                Some(opened) => opened,
                None => return,
            },
        };
        let size = sample.payload().len();
        if size > EVENT_SIZE_MAX {
            counts.dropped.add();
            return;
        }
        let kept = size + value.size();
        let event = Event {
            header,
            data: RtecEventData {
                pad1: self.way.identity.mark(),
                payload: sample.payload().to_bytes().into_owned(),
                any_value: value,
            },
        };
        if !self.queue.offer(event, kept) {
            counts.dropped.add();
        }
    }

    /// Returns header and value of an event that a gateway has published. `None` if it must not go on; it is counted.
    fn open(&self, octets: &[u8], named: &EventHeader) -> Option<(EventHeader, Any)> {
        let counts = &self.way.counts;
        let attachment = Attachment::decode(octets);
        // A header that contradicts its key would bring in events that no mapping allows.
        let fitting = attachment.filter(|it| {
            let header = &it.header;
            (header.r#type, header.source) == (named.r#type, named.source)
                || (!self.way.mapping.key.has_source()
                    && header.r#type == named.r#type
                    && self.way.mapping.fits(header))
        });
        let Some(attachment) = fitting else {
            counts.malformed.add();
            return None;
        };
        if attachment.gateway == self.way.identity.0 {
            counts.own.add();
            return None;
        }
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        counts.lost.add_many(numbers.gap_before(&attachment));
        drop(numbers);
        let mut header = attachment.header;
        header.ttl = header.ttl.clamp(0, TTL_MAX);
        Some((header, attachment.value))
    }
}

/// The header of a plain publication.
fn plain(named: EventHeader) -> EventHeader {
    EventHeader {
        ttl: 1,
        creation_time: time_t(SystemTime::now()),
        ..named
    }
}

/// Returns a moment as a `TimeBase::TimeT`: units of 100 ns since 15 October 1582 (Time Service 1.1, clause 1.3.2.1).
fn time_t(moment: SystemTime) -> u64 {
    /// 1 January 1970.
    const EPOCH_1970: u64 = 0x01b2_1dd2_1381_4000;
    let since_1970 = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    EPOCH_1970 + u64::try_from(since_1970.as_nanos() / 100).unwrap_or(0)
}

/// Pushes the events of a mapping into the channel.
pub(crate) struct Inward {
    pub(crate) way: Way<InCounters>,
    pub(crate) supplier: Supplier,
    /// Set when a push fails: the channel is looked for again.
    pub(crate) is_broken: Arc<AtomicBool>,
}

impl Inward {
    /// Pushes until `ends` is set and the queue is empty.
    pub(crate) fn run(self, queue: Queue<Event>, ends: &AtomicBool) {
        queue.drain(ends, &self.way.counts.dropped, |event| self.push(event));
    }

    fn push(&self, event: Event) {
        let Some(proxy) = self.supplier.get() else {
            self.way.counts.without_channel.add();
            return;
        };
        if proxy.push(&[event]).is_ok() {
            self.way.counts.pushed.add();
        } else {
            self.way.counts.without_channel.add();
            self.is_broken.store(true, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_count_from_1582() {
        let moment = UNIX_EPOCH + Duration::from_secs(1);
        assert_eq!(time_t(moment), 122_192_928_000_000_000 + 10_000_000);
    }
}
