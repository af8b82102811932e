//! Mappings both ways: an event crosses once and does not come back.

use tempfile::tempdir;

use crate::support::{acquaint, event, linked, only, pair};

const BOTH: &str =
    "[[map]]\ndirection = \"both\"\ntype = \"16..=99\"\nkey = \"ship/{type}/{source}\"\n";

#[test]
fn an_event_with_a_high_ttl_crosses_once_and_does_not_come_back() {
    let folder = tempdir().expect("a folder");
    let (near, far) = pair(folder.path());
    let (one, other) = linked((&near, &far), BOTH, BOTH);
    acquaint(&near, &far, 16);
    acquaint(&far, &near, 17);
    near.push(event(20, 1, 50, b"there"));
    assert_eq!(
        near.next().data.payload,
        b"there",
        "as a consumer of its own channel"
    );
    assert_eq!(far.next().header.ttl, 49);
    // Behind what might have come back.
    far.push(event(21, 1, 50, b"back"));
    assert_eq!(far.next().data.payload, b"back");
    assert_eq!(near.next().data.payload, b"back");
    near.push(event(22, 1, 50, b"last"));
    assert_eq!(near.next().data.payload, b"last");
    assert_eq!(far.next().data.payload, b"last");
    let counts = [one.stop(), other.stop()];
    let [one, other] = counts.each_ref().map(only);
    let returned =
        |counts: &deckwatch_gateway::MappingCounts| counts.out.expect("both ways").returned;
    assert!(returned(one) >= 1, "{one:?}");
    assert!(returned(other) >= 2, "{other:?}");
    for r#in in [one, other].map(|counts| counts.r#in.expect("both ways")) {
        assert_eq!(r#in.received, r#in.pushed, "{in:?}");
        assert_eq!(r#in.lost, 0);
    }
}
