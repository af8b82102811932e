//! Events between two channels, each with a gateway.

use deckwatch_cdr::Any;
use tempfile::tempdir;

use crate::support::{
    Channel, acquaint, event, free_endpoint, gateway, linked, only, pair, session, until,
};

const OUT: &str =
    "[[map]]\ndirection = \"out\"\ntype = \"16..=99\"\nkey = \"ship/{type}/{source}\"\n";
const IN: &str =
    "[[map]]\ndirection = \"in\"\ntype = \"16..=99\"\nkey = \"ship/{type}/{source}\"\n";

#[test]
fn an_event_crosses_with_header_payload_and_value_and_a_lower_ttl() {
    let folder = tempdir().expect("a folder");
    let (near, far) = pair(folder.path());
    let (out, r#in) = linked((&near, &far), OUT, IN);
    acquaint(&near, &far, 16);
    let mut sent = event(17, -3, 5, &[1, 2, 3, 0, 255]);
    sent.data.any_value = Any::from_value("näv").expect("a value");
    near.push(sent.clone());
    let came = far.next();
    assert_eq!(came.header.ttl, 4);
    let mut header = came.header;
    header.ttl = 5;
    assert_eq!(header, sent.header);
    assert_eq!(came.data.payload, sent.data.payload);
    assert_eq!(came.data.any_value, sent.data.any_value);
    near.push(event(99, 0, 1, b""));
    assert_eq!(far.next().header.ttl, 0);
    let before = *only(&out.counts()).out.as_ref().expect("it goes out");
    // What must not cross is received by the gateway and counted.
    near.push(event(18, 0, 0, b"expired"));
    near.push(event(100, 0, 1, b"unmapped"));
    near.push(event(19, 0, i32::MAX, b"crosses"));
    let came = far.next();
    assert_eq!((came.header.r#type, came.header.ttl), (19, 64));
    let counts = out.stop();
    let after = only(&counts).out.expect("it goes out");
    assert_eq!(after.expired - before.expired, 1);
    assert_eq!(after.published - before.published, 1);
    assert_eq!(after.unmapped, 0, "the channel's filter has left it out");
    assert_eq!(after.dropped + after.failed + after.returned, 0);
    assert_eq!(only(&counts).r#in, None);
    let counts = r#in.stop();
    let came = only(&counts).r#in.expect("it goes in");
    assert_eq!(came.pushed, came.received);
    assert_eq!((came.malformed, came.lost), (0, 0));
    assert_eq!(
        (near.consumers(), far.consumers()),
        (1, 1),
        "only our own are left"
    );
}

#[test]
fn a_channel_that_starts_anew_is_connected_again() {
    let folder = tempdir().expect("a folder");
    let (near, far) = pair(folder.path());
    let (out, r#in) = linked((&near, &far), OUT, IN);
    acquaint(&near, &far, 16);
    far.die();
    near.die();
    let (near, far) = pair(folder.path());
    until("both are connected again", || {
        out.counts().connects >= 2 && r#in.counts().connects >= 2
    });
    near.push(event(20, 4, 1, b"again"));
    assert_eq!(far.next().data.payload, b"again");
    // A channel that is destroyed says so.
    let connects = r#in.counts().connects;
    far.served.reference().destroy().expect("it ends");
    let far = Channel::start(folder.path(), "far");
    until("it is connected again", || {
        r#in.counts().connects > connects
    });
    near.push(event(21, 4, 1, b"once more"));
    assert_eq!(far.next().data.payload, b"once more");
    drop((out, r#in));
    until("no proxy is left", || near.consumers() == 1);
}

#[test]
fn a_router_may_go_and_come_back_and_the_gap_is_counted_on_both_sides() {
    let folder = tempdir().expect("a folder");
    let (near, far) = pair(folder.path());
    let endpoint = free_endpoint();
    let router = || session("router", &[&endpoint], &[]);
    let running = router();
    let zenoh = format!("mode = \"client\"\nconnect = [{endpoint:?}]");
    let out = gateway(&near, &zenoh, OUT);
    let r#in = gateway(&far, &zenoh, IN);
    acquaint(&near, &far, 16);
    zenoh::Wait::wait(running.close()).expect("closed");
    let unheard = || only(&out.counts()).out.expect("it goes out").unheard;
    let before = unheard();
    until("an event finds no subscriber", || {
        near.push(event(16, 1, 1, b"lost"));
        unheard() > before
    });
    let _running = router();
    acquaint(&near, &far, 16);
    let came = only(&r#in.counts()).r#in.expect("it goes in");
    assert!(came.lost >= 1, "{came:?}");
}
