//! A channel of TAO's real-time event service (`RtecEventChannelAdmin`), ours or TAO's.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use deckwatch_event::RtecEventData;
use deckwatch_event::client::Connected;
use deckwatch_event::limits::PUBLICATIONS_MAX;
use deckwatch_event::received::{EventConsumer, EventConsumerServant, ReceivedEvents};
use deckwatch_event::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerAdminRef, ConsumerQOS, Dependency, EventChannelRef, ProxyPushConsumerRef, Publication,
    SupplierAdminRef, SupplierQOS,
};
use deckwatch_event::rtec_event_comm::{self, EventHeader, PushConsumerRef};
use deckwatch_giop::UtcT;
use deckwatch_orb::{ObjectRef, Orb, SystemException};
use deckwatch_os::clock::realtime_ns;

use super::channel::{CONSUMER, Channel, SUPPLIER, Sink, Source, activate, proxy, refused};
use super::inbox::Inbox;
use super::{Event, EventsError, HEADER_DEFAULT};

/// A real-time event channel.
pub(super) struct RealTimeChannel(EventChannelRef);

impl RealTimeChannel {
    /// Returns the channel that a reference leads to; `None` if its object is of another interface.
    pub(super) fn of(object: &ObjectRef) -> Result<Option<Self>, EventsError> {
        let found = EventChannelRef::narrow(object).map_err(EventsError::Unreachable)?;
        Ok(found.map(Self))
    }
}

impl Channel for RealTimeChannel {
    fn kind(&self) -> &'static str {
        "real-time event channel"
    }

    fn has_headers(&self) -> bool {
        true
    }

    fn subscribe(&self, orb: &Orb, inbox: Inbox) -> Result<Box<dyn Source>, EventsError> {
        let qos = consumer_qos(&inbox.wanted().headers());
        let own = activate(orb, Arc::new(EventConsumerServant::new(Consumer(inbox))))?;
        let own = PushConsumerRef::unchecked_narrow(own);
        let proxy = proxy(
            CONSUMER,
            self.0.for_consumers(),
            ConsumerAdminRef::obtain_push_supplier,
        )?;
        let connected = proxy.connect_push_consumer(Some(&own), &qos);
        connected.map_err(|error| refused(CONSUMER, &error))?;
        Ok(Box::new(proxy))
    }

    fn supply(&self, headers: &[(i32, i32)]) -> Result<Box<dyn Sink>, EventsError> {
        let published = bounded(headers.iter().copied().collect());
        Ok(Box::new(RealTimeSink {
            proxy: connect(&self.0, &published)?,
            channel: self.0.clone(),
            published,
        }))
    }
}

/// The designator of a disjunction; its `source` is the number of its operands.
const DISJUNCTION: i32 = 9;

/// Type and source that stand for any.
const ANY: i32 = 0;

/// Returns the QoS of a consumer of events with one of these headers (type and source, 0 for any).
fn consumer_qos(headers: &[(i32, i32)]) -> ConsumerQOS {
    let count = i32::try_from(headers.len()).unwrap_or(i32::MAX);
    let entries = std::iter::once((DISJUNCTION, count)).chain(headers.iter().copied());
    let dependencies = entries.map(|(r#type, source)| Dependency {
        event: bare(r#type, source),
        rt_info: 0,
    });
    ConsumerQOS {
        dependencies: dependencies.collect(),
        is_gateway: false,
    }
}

/// Returns the QoS of a supplier of events with these headers.
fn supplier_qos(headers: &BTreeSet<(i32, i32)>) -> SupplierQOS {
    let publications = headers.iter().map(|&(r#type, source)| Publication {
        event: bare(r#type, source),
        dependency_info: DependencyInfo {
            dependency_type: DependencyTypeT::TwoWayCall,
            number_of_calls: 1,
            rt_info: 0,
            rt_info_depended_on: 0,
            enabled: DependencyEnabledTypeT::DependencyEnabled,
        },
    });
    SupplierQOS {
        publications: publications.collect(),
        is_gateway: false,
    }
}

/// Returns these headers, or any if a channel does not take so many publications of one supplier.
fn bounded(headers: BTreeSet<(i32, i32)>) -> BTreeSet<(i32, i32)> {
    if headers.len() > PUBLICATIONS_MAX {
        BTreeSet::from([(ANY, ANY)])
    } else {
        headers
    }
}

/// Connects a supplier of events with these headers.
fn connect(
    channel: &EventChannelRef,
    headers: &BTreeSet<(i32, i32)>,
) -> Result<Connected<ProxyPushConsumerRef>, EventsError> {
    let proxy = proxy(
        SUPPLIER,
        channel.for_suppliers(),
        SupplierAdminRef::obtain_push_consumer,
    )?;
    let connected = proxy.connect_push_supplier(None, &supplier_qos(headers));
    connected.map_err(|error| refused(SUPPLIER, &error))?;
    Ok(proxy)
}

/// Returns an event of a header alone.
fn bare(r#type: i32, source: i32) -> rtec_event_comm::Event {
    rtec_event_comm::Event {
        header: EventHeader {
            r#type,
            source,
            ..EventHeader::default()
        },
        data: RtecEventData::default(),
    }
}

/// The servant that the channel pushes to.
struct Consumer(Inbox);

impl EventConsumer for Consumer {
    fn push(&self, events: ReceivedEvents<'_>) -> Result<(), SystemException> {
        for event in events {
            let event = event?;
            self.0.offer(Event {
                header: Some(event.header),
                payload: event.payload.to_vec(),
                data: event.any.decode()?,
            });
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.0.end();
        Ok(())
    }
}

/// Our supplier.
struct RealTimeSink {
    channel: EventChannelRef,
    /// The channel's proxy of it.
    proxy: Connected<ProxyPushConsumerRef>,
    /// The headers that it publishes: the channel sends its events to consumers that may want one of these, and an access
    /// table is asked for each.
    published: BTreeSet<(i32, i32)>,
}

impl RealTimeSink {
    /// Connects anew if events with this header are not published yet.
    fn publish(&mut self, header: (i32, i32)) -> Result<(), EventsError> {
        if self.published.contains(&header) || self.published.contains(&(ANY, ANY)) {
            return Ok(());
        }
        let mut published = self.published.clone();
        published.insert(header);
        let published = bounded(published);
        let proxy = connect(&self.channel, &published)?;
        // The channel takes what was sent before by another connection.
        self.flush()?;
        (self.proxy, self.published) = (proxy, published);
        Ok(())
    }
}

impl Sink for RealTimeSink {
    /// The push is one-way: the channel has not taken the event when this returns.
    fn push(&mut self, event: &Event) -> Result<(), EventsError> {
        let mut header = event.header.unwrap_or(HEADER_DEFAULT);
        self.publish((header.r#type, header.source))?;
        if header.creation_time == 0 {
            let now_ns = u64::try_from(realtime_ns()).unwrap_or(0);
            header.creation_time = UtcT::from_unix_ns(now_ns, Duration::ZERO).time;
        }
        let event = rtec_event_comm::Event {
            header,
            data: RtecEventData {
                pad1: 0,
                payload: event.payload.clone(),
                any_value: event.data.clone(),
            },
        };
        let pushed = self.proxy.push(&[event]);
        pushed.map_err(|exception| refused("an event", &exception))
    }

    fn flush(&mut self) -> Result<(), EventsError> {
        let flushed = self.proxy.flush();
        flushed.map_err(|exception| refused("the last events", &exception))
    }
}

#[cfg(test)]
mod tests;
