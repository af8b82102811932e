//! The function that the fuzz target runs; it panics where a promise of this crate is broken.

use deckwatch_cdr::{ByteOrder, Parse as _, Reader};

use crate::filter::{Entry, Filter, Header, Index, Input, MatchState};
use crate::rtec_event_channel_admin::{ConsumerQOS, SupplierQOS};

/// Parses a ConsumerQOS, or a SupplierQOS, in the byte order that the first octet selects. An accepted list of a
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
}
