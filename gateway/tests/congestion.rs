//! A side that does not read costs its own events and nothing else.

use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Mutex, PoisonError};

use tempfile::tempdir;
use zenoh::Wait as _;

use crate::support::{Channel, PATIENCE, event, free_endpoint, gateway, only, session, until};

#[test]
fn a_subscriber_that_does_not_read_costs_events_of_its_mapping_alone() {
    let folder = tempdir().expect("a folder");
    let near = Channel::start(folder.path(), "near");
    let endpoint = free_endpoint();
    let maps = "[[map]]\ndirection = \"out\"\ntype = 17\nkey = \"slow/{source}\"\ncongestion = \"block\"\nqueue = 8\n";
    let running = gateway(&near, &format!("listen = [{endpoint:?}]"), maps);
    let program = session("peer", &[], &[&endpoint]);
    // The callback holds the thread of the link until the test lets it go.
    let (go, wait) = sync_channel::<()>(0);
    let (told, first) = channel();
    let wait = Mutex::new(wait);
    let subscriber = program.declare_subscriber("slow/**").callback(move |_| {
        let _ = told.send(()); // The test has seen the first.
        let _ = wait.lock().unwrap_or_else(PoisonError::into_inner).recv(); // Until the test ends.
    });
    let _subscriber = subscriber.wait().expect("declared");
    let large = vec![1; 256 << 10];
    let dropped = || only(&running.counts()).out.expect("it goes out").dropped;
    until("the first event is heard", || {
        near.push(event(17, 1, 1, &large));
        near.next();
        first.try_recv().is_ok()
    });
    until("an event has no place in the queue", || {
        near.push(event(17, 1, 1, &large));
        // The channel goes on delivering to others.
        assert_eq!(near.next().data.payload.len(), large.len());
        dropped() > 0
    });
    drop(go);
    let counts = running.stop();
    let out = only(&counts).out.expect("it goes out");
    let known = out.published + out.unheard + out.dropped + out.failed;
    assert_eq!(out.received, known, "every event is counted: {out:?}");
    assert!(
        PATIENCE.as_secs() > 5,
        "zenoh gives up a blocked link after 5 s"
    );
}
