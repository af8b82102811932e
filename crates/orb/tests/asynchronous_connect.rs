//! Asynchronous calls while their connection is being established.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::around::Around;
use deckwatch_cdr::Write;
use deckwatch_dynamic::Poller;
use deckwatch_orb::{Orb, SystemExceptionKind as Kind};

type Hook = Box<dyn FnOnce() + Send>;

/// An action that runs before the next connection is made.
type Next = Arc<Mutex<Option<Hook>>>;

/// A listener that accepts connections and sends nothing, and a client with a reference to its object.
fn silent() -> (std::net::TcpListener, Next, Orb, String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let next = Next::default();
    let before = Arc::clone(&next);
    let transport = Around::asking(move |_, _| {
        let hook = before.lock().unwrap().take();
        hook.into_iter().for_each(|hook| hook());
        Ok(())
    });
    let client = Orb::builder()
        .transport(Arc::new(transport))
        .build()
        .unwrap();
    (
        listener,
        next,
        client,
        format!("corbaloc::127.0.0.1:{port}/key"),
    )
}

#[test]
fn the_end_of_the_orb_meanwhile_ends_the_call() {
    let (_listener, next, client, url) = silent();
    let (_another, _, _, elsewhere) = silent();
    let object = client.string_to_object(&url).unwrap().unwrap();
    let other = client.string_to_object(&elsewhere).unwrap().unwrap();
    let under_way = Poller::send(&other, "text", |w| "b".write(w)).unwrap();
    let ends = client.clone();
    let hook: Hook = Box::new(move || {
        std::thread::spawn(move || ends.shutdown(true));
        assert_eq!(under_way.is_ready(u32::MAX), Ok(true));
    });
    *next.lock().unwrap() = Some(hook);
    let sent = object.send_callback("text", |w| "a".write(w), None);
    assert_eq!(
        sent.map_err(|exception| exception.kind),
        Err(Kind::BadInvOrder)
    );
}

#[test]
fn who_waits_for_another_to_connect_waits_no_longer_than_he_has_time() {
    let (_listener, next, client, url) = silent();
    let object = client.string_to_object(&url).unwrap().unwrap();
    let (begins, has_begun) = channel();
    let (let_go, may_go): (_, Receiver<()>) = channel();
    let hook: Hook = Box::new(move || {
        begins.send(()).unwrap();
        let _ = may_go.recv(); // Sent, or the test is over.
    });
    *next.lock().unwrap() = Some(hook);
    let first = object.clone();
    let connects = std::thread::spawn(move || Poller::send(&first, "text", |w| "a".write(w)));
    has_begun.recv().unwrap();
    let hurried = object.with_round_trip_timeout(Some(Duration::from_millis(20)));
    let late = Poller::send(&hurried, "text", |w| "b".write(w));
    assert_eq!(
        late.map(drop).map_err(|exception| exception.kind),
        Err(Kind::Timeout)
    );
    let_go.send(()).unwrap();
    assert!(connects.join().unwrap().is_ok());
}
