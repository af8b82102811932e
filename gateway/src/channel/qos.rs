//! The qualities of service with which the gateway connects.
//!
//! It is an ordinary client, no `is_gateway`: the programs behind zenoh are consumers of the channel, so that observers
//! (gateways to other channels) bring in what those programs want. The gateway takes one off the `ttl` by itself.

use deckwatch_event::filter::designator::DISJUNCTION;
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerQOS, Dependency, Publication, SupplierQOS,
};
use deckwatch_event::rtec_event_comm::{Event, EventHeader};

/// Returns the QoS of a consumer of events with one of these headers (type and source, 0 for any).
pub(super) fn consumer_qos(headers: &[(i32, i32)]) -> ConsumerQOS {
    let count = i32::try_from(headers.len()).unwrap_or(i32::MAX);
    let group = Dependency {
        event: bare(DISJUNCTION, count),
        ..Dependency::default()
    };
    let wanted = headers.iter().map(|&(event_type, source)| Dependency {
        event: bare(event_type, source),
        ..Dependency::default()
    });
    ConsumerQOS {
        dependencies: std::iter::once(group).chain(wanted).collect(),
        is_gateway: false,
    }
}

/// Returns the QoS of a supplier of events with one of these headers.
pub(super) fn supplier_qos(headers: &[(i32, i32)]) -> SupplierQOS {
    let published = headers.iter().map(|&(event_type, source)| Publication {
        event: bare(event_type, source),
        ..Publication::default()
    });
    SupplierQOS {
        publications: published.collect(),
        is_gateway: false,
    }
}

/// Returns an event of a header alone.
fn bare(event_type: i32, source: i32) -> Event {
    Event {
        header: EventHeader {
            r#type: event_type,
            source,
            ..EventHeader::default()
        },
        ..Event::default()
    }
}
