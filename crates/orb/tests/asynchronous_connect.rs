//! What happens to asynchronous calls while the connection that is to carry them comes about.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deckwatch_cdr::Write;
use deckwatch_orb::transport::{
    Endpoint, Instant64, Listener, Poller, SocketTransport, Stream, StreamOptions, Transport,
    TransportError,
};
use deckwatch_orb::{Orb, SystemExceptionKind as Kind};

type Hook = Box<dyn FnOnce() + Send>;

/// Sockets; what the test says is done before the next connection is made.
#[derive(Default)]
struct Hooked {
    sockets: SocketTransport,
    before: Mutex<Option<Hook>>,
}

impl Transport for Hooked {
    fn now(&self) -> Instant64 {
        self.sockets.now()
    }

    fn connect(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        let before = self.before.lock().unwrap().take();
        if let Some(before) = before {
            before();
        }
        self.sockets.connect(endpoint, options, deadline)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
    ) -> Result<Box<dyn Listener>, TransportError> {
        self.sockets.listen(endpoint, options)
    }

    fn poller(&self) -> Result<Box<dyn Poller>, TransportError> {
        self.sockets.poller()
    }

    fn outward_hosts(&self, over_ipv6: bool) -> Vec<String> {
        self.sockets.outward_hosts(over_ipv6)
    }

    fn host_name(&self) -> String {
        self.sockets.host_name()
    }
}

/// Somebody who takes connections and says nothing, and a client of his object.
fn silent() -> (std::net::TcpListener, Arc<Hooked>, Orb, String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let transport = Arc::new(Hooked::default());
    let client = Orb::builder()
        .transport(Arc::clone(&transport) as Arc<dyn Transport>)
        .build()
        .unwrap();
    (
        listener,
        transport,
        client,
        format!("corbaloc::127.0.0.1:{port}/key"),
    )
}

#[test]
fn the_end_of_the_orb_meanwhile_ends_the_call() {
    let (_listener, transport, client, url) = silent();
    let (_another, _, _, elsewhere) = silent();
    let object = client.string_to_object(&url).unwrap().unwrap();
    let other = client.string_to_object(&elsewhere).unwrap().unwrap();
    let under_way = other.send_poller("text", |w| "b".write(w)).unwrap();
    let ends = client.clone();
    let hook: Hook = Box::new(move || {
        std::thread::spawn(move || ends.shutdown(true));
        assert_eq!(under_way.is_ready(u32::MAX), Ok(true));
    });
    *transport.before.lock().unwrap() = Some(hook);
    let sent = object.send_callback("text", |w| "a".write(w), None);
    assert_eq!(
        sent.map_err(|exception| exception.kind),
        Err(Kind::BadInvOrder)
    );
}

#[test]
fn who_waits_for_another_to_connect_waits_no_longer_than_he_has_time() {
    let (_listener, transport, client, url) = silent();
    let object = client.string_to_object(&url).unwrap().unwrap();
    let (begins, has_begun) = channel();
    let (let_go, may_go): (_, Receiver<()>) = channel();
    let hook: Hook = Box::new(move || {
        begins.send(()).unwrap();
        let _the_test_lets = may_go.recv();
    });
    *transport.before.lock().unwrap() = Some(hook);
    let first = object.clone();
    let connects = std::thread::spawn(move || first.send_poller("text", |w| "a".write(w)));
    has_begun.recv().unwrap();
    let hurried = object.with_round_trip_timeout(Some(Duration::from_millis(20)));
    let late = hurried.send_poller("text", |w| "b".write(w));
    assert_eq!(
        late.map(drop).map_err(|exception| exception.kind),
        Err(Kind::Timeout)
    );
    let_go.send(()).unwrap();
    assert!(connects.join().unwrap().is_ok());
}
