//! The functions that the fuzz targets run; each panics where a promise of this crate is broken.

use std::net::SocketAddr;

use deckwatch_cdr::{ByteOrder, Parse, Reader, Write};

use crate::channel_group::{Change, KeptPush, ProxyRecord};
use crate::federation::fragment::Fragment;
use crate::federation::multicast::events;
use crate::federation::reassembly::{Reassembly, Taken};
use crate::filter::{Entry, Filter, Header, Index, Input, MatchState};
use crate::limits::{MULTICAST_PENDING_SIZE_MAX, MULTICAST_TIMEOUT};
use crate::rtec_event_channel_admin::{ConsumerQOS, SupplierQOS};
use crate::store::{encapsulate, encapsulated};

/// Parses what a store and the members of a group keep: what is read is written again as it was meant.
fn records(octets: &[u8]) {
    fn again<T: for<'a> Parse<'a> + Write + PartialEq + std::fmt::Debug>(octets: &[u8]) {
        if let Some(value) = encapsulated::<T>(octets) {
            let written = encapsulate(&value).expect("it was read");
            assert_eq!(encapsulated(&written), Some(value));
        }
    }
    again::<ProxyRecord>(octets);
    again::<KeptPush>(octets);
    again::<Vec<Change>>(octets);
}

/// Parses a ConsumerQOS, or a SupplierQOS, in the byte order that the first octet selects; or records of a store. An accepted list of a
/// consumer is a filter that can be matched: it emits only what it matches, the index finds it for all that it matches,
/// and it keeps no more events than it has entries.
///
/// # Panics
/// When one of these does not hold.
pub fn qos(octets: &[u8]) {
    let Some((flags, octets)) = octets.split_first() else {
        return;
    };
    let order = if flags & 1 == 0 {
        ByteOrder::Little
    } else {
        ByteOrder::Big
    };
    if flags & 4 != 0 {
        return records(octets);
    }
    let mut r = Reader::new(octets, order);
    if flags & 2 != 0 {
        let _ = SupplierQOS::parse(&mut r);
        return;
    }
    let Ok(qos) = ConsumerQOS::parse(&mut r) else {
        return;
    };
    let headers = qos.dependencies.iter().map(|each| &each.event.header);
    let list: Vec<Entry> = headers
        .map(|header| Entry {
            event_type: header.r#type,
            source: header.source,
            time: header.creation_time,
        })
        .collect();
    match Filter::build(&list) {
        Ok(filter) => match_list(&filter, &list),
        Err(error) => assert!((error.entry as usize) < list.len(), "{error}"),
    }
}

/// Offers the filter the events that its own entries name, and their neighbours.
fn match_list(filter: &Filter, list: &[Entry]) {
    let mut index = Index::default();
    index.insert(1, filter, &());
    let mut state = MatchState::new(filter, 0);
    let near = |entry: &Entry| {
        let Entry {
            event_type, source, ..
        } = *entry;
        [
            (event_type, source),
            (event_type.wrapping_add(1), source),
            (0, source),
            (event_type, 0),
        ]
    };
    for (now_ns, (event_type, source)) in (0_u64..).zip(list.iter().flat_map(near)) {
        let event = Header { event_type, source };
        let matches = filter.matches(Input::Event(event));
        assert!(
            !matches || !index.is_unwanted(event),
            "{event:?} is not found"
        );
        let mut out = Vec::new();
        let emits = filter.offer(&mut state, Input::Event(event), &event, now_ns, &mut out);
        assert_eq!(emits, !out.is_empty());
        assert!(!emits || matches, "{event:?} is emitted, not matched");
        assert!(out.len() <= list.len() && state.held() <= list.len());
    }
    for _ in 0..=filter.timers().len() {
        let Some(timer) = filter.expired(&mut state, u64::MAX) else {
            break;
        };
        let mut out = Vec::new();
        let own = Header {
            event_type: 0,
            source: 0,
        };
        filter.offer(&mut state, Input::Timer(timer), &own, u64::MAX, &mut out);
    }
    index.remove(1, filter);
    assert!(index.is_unwanted(Header {
        event_type: 0,
        source: 0
    }));
}

/// Parses datagrams of a multicast group, each behind two octets with its length, and joins the requests of two
/// senders. What is kept stays within its bounds, and a whole request is read as a set of events.
///
/// # Panics
/// When one of these does not hold.
pub fn multicast(mut octets: &[u8]) {
    let mut requests = Reassembly::default();
    let mut now_ns = 0;
    while let Some(([low, high], rest)) = octets.split_first_chunk() {
        // The highest bit chooses the sender; the next one lets time pass.
        let size = usize::from(u16::from_be_bytes([*high & 0x3f, *low])).min(rest.len());
        let (datagram, next) = rest.split_at(size);
        octets = next;
        let from = SocketAddr::from(([192, 0, 2, 1], u16::from(high >> 7)));
        if high & 0x40 != 0 {
            now_ns += MULTICAST_TIMEOUT.as_nanos() as u64;
            requests.expire(now_ns);
        }
        let Ok(fragment) = Fragment::parse(datagram) else {
            continue;
        };
        let mut written = Vec::new();
        fragment.write(&mut written);
        assert_eq!(Fragment::parse(&written), Ok(fragment));
        if let Taken::Whole(request) = requests.take(from, &fragment, now_ns) {
            assert_eq!(request.len(), fragment.request_size as usize);
            let _ = events(&request, fragment.order);
        }
        assert!(requests.size() <= MULTICAST_PENDING_SIZE_MAX);
    }
    requests.expire(u64::MAX);
    assert_eq!(requests.size(), 0, "all were given up");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corpus_is_taken() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/rt_qos");
        let mut filters = 0;
        for file in std::fs::read_dir(folder).expect("the committed corpus") {
            let octets = std::fs::read(file.expect("an entry").path()).expect("a file");
            qos(&octets);
            let mut r = Reader::new(&octets[1..], ByteOrder::Little);
            filters += usize::from(ConsumerQOS::parse(&mut r).is_ok());
        }
        assert!(filters >= 4, "{filters}");
    }

    #[test]
    fn corpus_of_datagrams_is_taken() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/multicast");
        let mut sets = 0;
        for file in std::fs::read_dir(folder).expect("the committed corpus") {
            let octets = std::fs::read(file.expect("an entry").path()).expect("a file");
            multicast(&octets);
            if let Ok(fragment) = Fragment::parse(&octets[2..])
                && fragment.count == 1
            {
                sets += events(fragment.octets, fragment.order).map_or(0, |events| events.len());
            }
        }
        assert_eq!(sets, 1, "the one that is alone");
    }
}
