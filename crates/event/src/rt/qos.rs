//! The qualities of service that consumers and suppliers connect with, and those that observers receive.

use std::collections::BTreeSet;
use std::time::Duration;

use deckwatch_orb::Priority;

use super::scheduling::Table;
use crate::filter::designator::{ANY, DISJUNCTION, SOURCE_ANY};
use crate::filter::{Entry, Header};
use crate::limits::OBSERVED_HEADERS_MAX;
use crate::rtec_event_channel_admin::{ConsumerQOS, Dependency, Publication, SupplierQOS};
use crate::rtec_event_comm::{Event, EventHeader};

/// What the channel knows of an RT_Info: how urgent the events of a dependency are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtInfo {
    /// The priority at which its events are dispatched.
    pub priority: Priority,
    /// The time from an event's arrival at the channel to the end of its handling.
    pub deadline: Duration,
    /// The worst-case execution time of the handler.
    pub worst_case: Duration,
}

pub(super) fn entries(qos: &ConsumerQOS) -> Vec<Entry> {
    let entry = |dependency: &Dependency| {
        let header = &dependency.event.header;
        Entry {
            event_type: header.r#type,
            source: header.source,
            time: header.creation_time,
        }
    };
    qos.dependencies.iter().map(entry).collect()
}

/// The RT_Info that each dependency names, 0 for none; empty if none names one.
pub(super) fn consumer_handles(qos: &ConsumerQOS) -> Box<[i32]> {
    let handles: Box<[i32]> = qos.dependencies.iter().map(|each| each.rt_info).collect();
    if handles.iter().all(|handle| *handle == 0) {
        return Box::default();
    }
    handles
}

/// The most urgent of the RT_Infos that the dependencies name.
pub(super) fn most_urgent(qos: &ConsumerQOS, table: &Table) -> Option<RtInfo> {
    let named = qos.dependencies.iter();
    named
        .filter_map(|dependency| table.infos.get(&dependency.rt_info).copied())
        .max_by_key(|info| info.priority)
}

/// The publications that name an RT_Info.
pub(super) fn supplier_handles(qos: &SupplierQOS) -> Box<[(Header, i32)]> {
    let named = qos.publications.iter().map(|publication| {
        let handle = publication.dependency_info.rt_info;
        (header_of(publication), handle)
    });
    named.filter(|(_, handle)| *handle != 0).collect()
}

fn header_of(publication: &Publication) -> Header {
    Header {
        event_type: publication.event.header.r#type,
        source: publication.event.header.source,
    }
}

pub(super) fn published(qos: &SupplierQOS) -> Box<[Header]> {
    let all: BTreeSet<_> = qos
        .publications
        .iter()
        .map(|publication| {
            let header = header_of(publication);
            (header.source, header.event_type)
        })
        .collect();
    all.into_iter()
        .map(|(source, event_type)| Header { event_type, source })
        .collect()
}

/// The headers (source, type) that an observer is told; too many become any.
fn bounded(headers: impl Iterator<Item = (i32, i32)>) -> BTreeSet<(i32, i32)> {
    let mut all = BTreeSet::new();
    for header in headers {
        all.insert(header);
        if all.len() > OBSERVED_HEADERS_MAX {
            return BTreeSet::from([(SOURCE_ANY, ANY)]);
        }
    }
    all
}

/// A disjunction of these headers.
pub(super) fn consumer_qos(headers: impl Iterator<Item = (i32, i32)>) -> ConsumerQOS {
    let headers = bounded(headers);
    let group = (headers.len() as i32, DISJUNCTION);
    let dependencies = std::iter::once(group)
        .chain(headers)
        .map(|header| Dependency {
            event: bare(header),
            rt_info: 0,
        });
    ConsumerQOS {
        dependencies: dependencies.collect(),
        is_gateway: false,
    }
}

pub(super) fn supplier_qos(headers: impl Iterator<Item = (i32, i32)>) -> SupplierQOS {
    let publications = bounded(headers).into_iter().map(|header| Publication {
        event: bare(header),
        ..Publication::default()
    });
    SupplierQOS {
        publications: publications.collect(),
        is_gateway: false,
    }
}

/// An event of which the source and the type count.
fn bare((source, event_type): (i32, i32)) -> Event {
    Event {
        header: EventHeader {
            r#type: event_type,
            source,
            ..EventHeader::default()
        },
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observer_gets_every_header_up_to_the_maximum_and_any_beyond() {
        let of = |count: usize| bounded((1..=count as i32).map(|number| (number, 20)));
        assert_eq!(of(OBSERVED_HEADERS_MAX).len(), OBSERVED_HEADERS_MAX);
        let any = BTreeSet::from([(SOURCE_ANY, ANY)]);
        assert_eq!(of(OBSERVED_HEADERS_MAX + 1), any);
        assert_eq!(of(OBSERVED_HEADERS_MAX + 2), any);
    }
}
