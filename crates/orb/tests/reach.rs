//! Where references lead that peers give in their requests, by who gave them and by what the ORB permits.

use std::sync::{Arc, Mutex};

use deckwatch_cdr::{Parse as _, Write as _};
use deckwatch_orb::transport::TransportError;
use deckwatch_orb::{
    Caller, Counter, ObjectRef, Orb, OrbBuilder, Origin, PoaCurrent, Servant, ServerRequest,
    SystemException, SystemExceptionKind as Kind, own_minor,
};

use crate::masked::Masked;
use crate::support::fake::{fake_server, ior_octets, read_request, reply};
use crate::support::{Server, TEST_ID, call, client_of, seen_by, socket_path};

/// A servant that calls what its callers name.
struct Visitor {
    orb: Orb,
    current: PoaCurrent,
    seen: Mutex<Vec<(Caller, u8)>>,
}

impl Servant for Visitor {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[TEST_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let hops = self.current.hops();
        let caller = self.current.caller().expect("it serves a request");
        self.seen.lock().expect("whole").push((caller, hops));
        let mut arguments = request.arguments();
        let named = match request.operation() {
            b"visit" => Option::<ObjectRef>::parse(&mut arguments)?,
            b"visit_text" => self.orb.string_to_object(&String::parse(&mut arguments)?)?,
            _ => None,
        };
        if let Some(named) = named {
            call(&named.with_hops(hops + 1), "ping")?;
        }
        request.reply().map(drop)
    }
}

/// A server whose servant is a visitor, and a client's reference to it.
struct Visited {
    orb: Orb,
    visitor: Arc<Visitor>,
    client: Orb,
    object: ObjectRef,
}

fn visited(shape: impl FnOnce(OrbBuilder) -> OrbBuilder) -> Visited {
    let builder = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let orb = shape(builder).build().expect("an ORB");
    let root = orb.root_poa().expect("it listens");
    root.the_poa_manager().activate().expect("it serves");
    let visitor = Arc::new(Visitor {
        orb: orb.clone(),
        current: orb.poa_current(),
        seen: Mutex::default(),
    });
    let servant: Arc<dyn Servant> = visitor.clone();
    let object = root.servant_to_reference(&servant).expect("a reference");
    let client = Orb::builder().build().expect("an ORB");
    let object = seen_by(&client, &object);
    Visited {
        orb,
        visitor,
        client,
        object,
    }
}

/// An ORB whose peers over TCP are strangers.
fn with_strangers(reach: &str) -> Visited {
    visited(|builder| {
        let builder = builder.transport(Arc::new(Masked::default()));
        builder.reach(reach.parse().expect("networks"))
    })
}

/// An ORB whose peers over TCP are at loopback, as they are.
fn with_neighbours() -> Visited {
    visited(|builder| builder.reach("any".parse().expect("it is known")))
}

impl Visited {
    fn visit(&self, named: &ObjectRef) -> Result<(), SystemException> {
        let write = |w: &mut deckwatch_cdr::Writer<'_>| Some(named).write(w);
        let none = |_: &str, _: &mut deckwatch_cdr::Reader<'_>| Ok(None);
        self.object.invoke("visit", write, |_| Ok(()), none)
    }

    fn visit_text(&self, text: &str) -> Result<(), SystemException> {
        let write = |w: &mut deckwatch_cdr::Writer<'_>| text.write(w);
        let none = |_: &str, _: &mut deckwatch_cdr::Reader<'_>| Ok(None);
        self.object.invoke("visit_text", write, |_| Ok(()), none)
    }

    fn callers(&self) -> Vec<Caller> {
        let seen = self.visitor.seen.lock().expect("whole");
        seen.iter().map(|(caller, _)| *caller).collect()
    }
}

#[track_caller]
fn assert_refused(outcome: Result<(), SystemException>) {
    let exception = outcome.expect_err("out of reach");
    let refused = (Kind::NoPermission, own_minor::OUT_OF_REACH);
    assert_eq!((exception.kind, exception.minor), refused);
}

fn accepted(server: &Server) -> u64 {
    server.orb.counters().read(Counter::ConnectionsAccepted)
}

#[test]
fn stranger_has_nothing_called_outside_the_networks_that_are_permitted() {
    let victim = Server::start();
    let (_client, target) = client_of(&victim);
    let (port, text) = (victim.address().port(), &victim.text);
    let inside = with_strangers("any");
    assert_refused(inside.visit(&target));
    assert_refused(inside.visit_text(text));
    assert_refused(inside.visit_text(&format!("corbaloc::localhost:{port}/x")));
    assert_refused(inside.visit_text(&format!("corbaloc::0.0.0.0:{port}/x")));
    assert_refused(inside.visit_text(&format!("corbaname::127.0.0.1:{port}#x")));
    assert_refused(inside.visit_text("corbaloc::no-such-host.invalid:9/x"));
    assert_eq!(accepted(&victim), 0);
    let permitted = with_strangers("127.0.0.0/8");
    assert_eq!(permitted.visit(&target), Ok(()));
    assert_eq!(permitted.visit_text(text), Ok(()));
    assert!(accepted(&victim) > 0);
}

#[test]
fn name_of_a_server_over_tls_is_not_resolved_again_once_its_address_was_checked() {
    let over_tls_at = |at| {
        let mut masked = Masked::default();
        masked.over_tls_at = Some(at);
        let connected = Arc::clone(&masked.over_tls);
        let inside = visited(|builder| {
            let builder = builder.transport(Arc::new(masked));
            builder.reach("192.0.2.0/24".parse().expect("a network"))
        });
        let called = inside.visit_text("corbaloc:ssliop:changes.invalid:9/x");
        let connected = connected.lock().expect("whole").clone();
        (called, connected)
    };
    let (called, connected) = over_tls_at("192.0.2.1");
    assert!(called.is_err());
    let checked = "tls:changes.invalid:9 at 192.0.2.1:9";
    assert!(
        !connected.is_empty() && connected.iter().all(|to| to == checked),
        "{connected:?}"
    );
    let (called, connected) = over_tls_at("127.0.0.1");
    assert_refused(called);
    assert!(connected.is_empty(), "{connected:?}");
}

#[test]
fn connection_that_the_program_has_is_not_lent_to_what_a_stranger_names() {
    let victim = Server::start();
    let inside = with_strangers("any");
    let own = seen_by(
        &inside.orb,
        &inside
            .client
            .string_to_object(&victim.text)
            .expect("sound")
            .expect("not nil"),
    );
    assert_eq!(own.origin(), Origin::Own);
    assert_eq!(call(&own, "ping"), Ok(()));
    let before = victim.bench.calls.load(std::sync::atomic::Ordering::SeqCst);
    assert_refused(inside.visit_text(&victim.text));
    let after = victim.bench.calls.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(after, before);
}

#[test]
fn peer_at_loopback_names_every_address_but_no_socket_of_this_user() {
    let by_address = Server::start();
    let (_client, target) = client_of(&by_address);
    let path = socket_path();
    let by_path = Server::at(&format!("unix:{path}"));
    let (_other, hidden) = client_of(&by_path);
    assert_eq!(call(&hidden, "ping"), Ok(()));
    let before = accepted(&by_path);

    let neighbours = with_neighbours();
    assert_eq!(neighbours.visit(&target), Ok(()));
    assert_refused(neighbours.visit(&hidden));
    assert_refused(with_strangers("any").visit(&hidden));
    assert_eq!(accepted(&by_path), before);

    // A process of the same user is known by its socket.
    let own = visited(|builder| {
        let builder = builder.listen(&format!("unix:{}", socket_path()));
        builder
            .expect("an endpoint")
            .reach("any".parse().expect("it is known"))
    });
    assert_eq!(own.visit(&hidden), Ok(()));
    assert!(matches!(own.callers()[..], [Caller::Unix(_)]));
}

#[test]
fn forward_leads_no_further_than_the_reference_that_it_takes_the_place_of() {
    let victim = Server::at("127.0.0.2:0");
    let (_client, target) = client_of(&victim);
    let body = ior_octets(&target);
    let (_fake, forwarding) = fake_server(move |mut stream| {
        let request = read_request(&mut stream);
        reply(&mut stream, &request, 3, &body);
    });
    assert_refused(with_strangers("127.0.0.1/32").visit(&forwarding));
    assert_eq!(accepted(&victim), 0);
}

#[test]
fn permanent_forward_is_given_by_whoever_gave_the_reference() {
    let victim = Server::at("127.0.0.2:0");
    let (_client, target) = client_of(&victim);
    let body = ior_octets(&target);
    let (_next, forwarding) = fake_server(move |mut stream| {
        let request = read_request(&mut stream);
        reply(&mut stream, &request, 3, &body);
    });
    let body = ior_octets(&forwarding);
    let (_first, for_good) = fake_server(move |mut stream| {
        let request = read_request(&mut stream);
        reply(&mut stream, &request, 4, &body);
    });
    assert_refused(with_strangers("127.0.0.1/32").visit(&for_good));
    assert_eq!(accepted(&victim), 0);
}

#[test]
fn reference_to_the_server_itself_gives_a_stranger_no_rights_of_the_process() {
    let inside = with_strangers("127.0.0.0/8");
    let itself = inside.object.clone();
    assert_refused(inside.visit(&itself));
    let port = inside.orb.endpoints()[0].port().expect("TCP");
    assert_refused(inside.visit_text(&format!("corbaloc::127.0.0.9:{port}/x")));
    assert_refused(inside.visit_text(&format!("corbaloc::localhost:{port}/x")));
    assert!(!inside.callers().contains(&Caller::ThisProcess));

    // A peer at loopback has it called, but with its own rights.
    let neighbours = with_neighbours();
    let itself = neighbours.object.clone();
    assert_eq!(neighbours.visit(&itself), Ok(()));
    let callers = neighbours.callers();
    assert_eq!(callers.len(), 2);
    assert!(
        callers
            .iter()
            .all(|caller| matches!(caller, Caller::Tcp(_))),
        "{callers:?}"
    );

    // The program's own reference takes the short way.
    let own = visited(|builder| builder);
    let itself = own.object.clone();
    assert_eq!(own.visit(&itself), Ok(()));
    assert_eq!(own.callers()[1], Caller::ThisProcess);
}

#[test]
fn program_without_a_reach_calls_what_it_is_given() {
    let victim = Server::start();
    let (_client, target) = client_of(&victim);
    let plain = visited(|builder| builder.transport(Arc::new(Masked::default())));
    assert_eq!(plain.visit(&target), Ok(()));
}

#[test]
fn request_says_how_many_services_have_passed_it_on() {
    let (first, last) = (with_neighbours(), with_neighbours());
    let next = last.object.clone();
    assert_eq!(first.visit(&next), Ok(()));
    let hops = |visited: &Visited| visited.visitor.seen.lock().expect("whole")[0].1;
    assert_eq!((hops(&first), hops(&last)), (0, 1));
    assert_eq!(first.visitor.current.hops(), 0, "outside of a request");
}

#[test]
fn address_is_tried_before_a_name_that_no_server_answers_for() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let around = crate::around::Around::asking(move |endpoint, _| {
        log.lock().expect("whole").push(endpoint.to_string());
        Err(TransportError::Refused)
    });
    let orb = Orb::builder()
        .transport(Arc::new(around))
        .build()
        .expect("an ORB");
    let url = "corbaloc::silent.invalid:9,:127.0.0.1:9/x";
    let object = orb.string_to_object(url).expect("sound").expect("not nil");
    assert!(call(&object, "ping").is_err());
    let asked = asked.lock().expect("whole");
    assert_eq!(asked.first().map(String::as_str), Some("127.0.0.1:9"));
    assert_eq!(asked.last().map(String::as_str), Some("silent.invalid:9"));
}
