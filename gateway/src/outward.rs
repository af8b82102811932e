//! From the channel to zenoh: the servant that the channel pushes to, and the thread that publishes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Release;

use deckwatch_event::limits::TTL_MAX;
use deckwatch_event::rtec_event_comm::{Event, PushConsumer};
use deckwatch_orb::SystemException;
use zenoh::Wait as _;
use zenoh::pubsub::Publisher;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::sample::Locality;

use crate::attachment::Attachment;
use crate::config::{Congestion, MapPriority, Mapping};
use crate::counts::OutCounters;
use crate::limits::{EVENT_SIZE_MAX, KEYS_MAX};
use crate::queue::{Queue, QueueEnd};
use crate::{Identity, Way};

/// The servant of a mapping's consumer. It never waits: what does not fit into the queue is dropped and counted.
pub(crate) struct Consumer {
    pub(crate) mapping: Arc<Mapping>,
    pub(crate) identity: Identity,
    pub(crate) queue: QueueEnd<Event>,
    pub(crate) counts: Arc<OutCounters>,
    /// Set when the channel says that it ends.
    pub(crate) has_ended: Arc<AtomicBool>,
}

impl Consumer {
    fn take(&self, event: &Event) {
        self.counts.received.add();
        if !self.mapping.fits(&event.header) {
            self.counts.unmapped.add();
        } else if event.data.pad1 == self.identity.mark() {
            self.counts.returned.add();
        } else if event.header.ttl <= 0 {
            self.counts.expired.add();
        } else {
            let size = event.data.payload.len() + event.data.any_value.size();
            if !self.queue.offer(event.clone(), size) {
                self.counts.dropped.add();
            }
        }
    }
}

impl PushConsumer for Consumer {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        data.iter().for_each(|event| self.take(event));
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.has_ended.store(true, Release);
        Ok(())
    }
}

/// Publishes the events of a mapping.
pub(crate) struct Outward {
    pub(crate) mapping: Arc<Mapping>,
    pub(crate) identity: Identity,
    pub(crate) session: zenoh::Session,
    pub(crate) counts: Arc<OutCounters>,
    /// By type and source.
    keys: HashMap<(i32, i32), Key>,
}

/// One key, and the number of its next event.
struct Key {
    publisher: Publisher<'static>,
    number: u64,
}

impl Outward {
    pub(crate) fn new(way: Way<OutCounters>, session: zenoh::Session) -> Self {
        Self {
            mapping: way.mapping,
            identity: way.identity,
            session,
            counts: way.counts,
            keys: HashMap::new(),
        }
    }

    /// Publishes until `ends` is set and the queue is empty.
    pub(crate) fn run(mut self, queue: Queue<Event>, ends: &AtomicBool) {
        let counts = Arc::clone(&self.counts);
        queue.drain(ends, &counts.dropped, |event| {
            if self.publish(event).is_err() {
                counts.failed.add();
            }
        });
    }

    fn publish(&mut self, event: Event) -> Result<(), Refused> {
        let mut header = event.header;
        header.ttl = (header.ttl - 1).min(TTL_MAX);
        if event.data.payload.len() > EVENT_SIZE_MAX {
            return Err(Refused);
        }
        let gateway = self.identity.0;
        let key = self.key(header.r#type, header.source)?;
        let attachment = Attachment {
            gateway,
            number: key.number,
            header,
            value: event.data.any_value,
        };
        let attachment = attachment.encode().map_err(|_| Refused)?;
        key.number += 1;
        let is_heard = key.publisher.matching_status().wait();
        let is_heard = is_heard.is_ok_and(|status| status.matching());
        let put = key.publisher.put(event.data.payload).attachment(attachment);
        put.wait().map_err(|_| Refused)?;
        if is_heard {
            self.counts.published.add();
        } else {
            self.counts.unheard.add();
        }
        Ok(())
    }

    fn key(&mut self, event_type: i32, source: i32) -> Result<&mut Key, Refused> {
        let name = (event_type, source);
        if !self.keys.contains_key(&name) {
            if self.keys.len() >= KEYS_MAX {
                self.keys.clear();
            }
            let key = Key {
                publisher: self.declare(event_type, source)?,
                number: 0,
            };
            self.keys.insert(name, key);
        }
        self.keys.get_mut(&name).ok_or(Refused)
    }

    fn declare(&self, event_type: i32, source: i32) -> Result<Publisher<'static>, Refused> {
        let key = self.mapping.key.key(event_type, source);
        let congestion = match self.mapping.congestion {
            Congestion::Drop => CongestionControl::Drop,
            Congestion::Block => CongestionControl::Block,
        };
        let publisher = self.session.declare_publisher(key);
        let publisher = publisher
            .priority(priority(self.mapping.priority))
            .congestion_control(congestion)
            .express(self.mapping.express)
            .allowed_destination(Locality::Remote);
        publisher.wait().map_err(|_| Refused)
    }
}

/// Zenoh does not take an event.
struct Refused;

fn priority(priority: MapPriority) -> Priority {
    match priority {
        MapPriority::RealTime => Priority::RealTime,
        MapPriority::InteractiveHigh => Priority::InteractiveHigh,
        MapPriority::InteractiveLow => Priority::InteractiveLow,
        MapPriority::DataHigh => Priority::DataHigh,
        MapPriority::Data => Priority::Data,
        MapPriority::DataLow => Priority::DataLow,
        MapPriority::Background => Priority::Background,
    }
}
