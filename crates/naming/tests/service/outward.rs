//! Names that lead to other services: what they may hold of this one, where they may lead, and how they end.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use deckwatch_naming::NamingService;
use deckwatch_naming::limits::{COMPONENTS_MAX, OUTWARD_MAX, OUTWARD_SHARE};
use deckwatch_naming::store::Store;
use deckwatch_orb::cos_naming::{NamingContextRef, NamingContextResolveError};
use deckwatch_orb::limits::{HOPS_MAX, OUTWARD_FAILED_AFTER, PASSES_MAX};
use deckwatch_orb::transport::Transport as _;
use deckwatch_orb::{
    ObjectRef, Orb, OrbBuilder, SystemException, SystemExceptionKind as Kind, own_minor,
};

use crate::around::Around;
use crate::masked::Masked;
use crate::{client, path, some_object};

/// A naming service on loopback.
struct Service {
    orb: Orb,
    _service: NamingService,
    port: u16,
}

fn service(shape: impl FnOnce(OrbBuilder) -> OrbBuilder) -> Service {
    let builder = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let orb = shape(builder).build().expect("an ORB");
    let store = Store::in_memory().expect("memory");
    let service = NamingService::start(&orb, store).expect("a naming service");
    let root = orb.root_poa().expect("a root adapter");
    root.the_poa_manager().activate().expect("it serves");
    let port = orb.endpoints()[0].port().expect("TCP");
    Service {
        orb,
        _service: service,
        port,
    }
}

/// A client from one address of the host.
fn client_from(address: [u8; 4], port: u16) -> NamingContextRef {
    let around = Around::from_address(IpAddr::from(address));
    let orb = Orb::builder()
        .transport(Arc::new(around))
        .build()
        .expect("an ORB");
    context_at(&orb, port)
}

fn context_at(orb: &Orb, port: u16) -> NamingContextRef {
    let url = format!("corbaloc::127.0.0.1:{port}/NameService");
    let root = orb.string_to_object(&url).expect("sound").expect("not nil");
    NamingContextRef::unchecked_narrow(root)
}

/// A port whose server reads requests and never answers.
struct Silent {
    listener: TcpListener,
    held: Vec<TcpStream>,
}

impl Silent {
    fn start() -> Self {
        Self {
            listener: TcpListener::bind("127.0.0.1:0").expect("a port"),
            held: Vec::new(),
        }
    }

    fn port(&self) -> u16 {
        self.listener.local_addr().expect("it listens").port()
    }

    /// Waits until one more request has come.
    fn hold_one(&mut self) {
        let (mut stream, _) = self.listener.accept().expect("a connection");
        stream.read_exact(&mut [0; 12]).expect("a request");
        self.held.push(stream);
    }
}

fn bind_context(root: &NamingContextRef, name: &str, port: u16) {
    let there = context_at(&Orb::builder().build().expect("an ORB"), port);
    root.bind_context(&path(name), Some(&there)).expect("bound");
}

type Resolved = Result<Option<ObjectRef>, NamingContextResolveError>;

fn resolve_in_thread(root: &NamingContextRef, name: &'static str) -> JoinHandle<Resolved> {
    let root = root.clone();
    std::thread::spawn(move || root.resolve(&path(name)))
}

#[track_caller]
fn raised(resolved: Resolved) -> (Kind, u32) {
    match resolved {
        Err(NamingContextResolveError::System(SystemException { kind, minor, .. })) => {
            (kind, minor)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn peers_hold_their_share_of_calls_to_silent_services_and_all_others_are_served() {
    let service = service(|builder| builder);
    let mut silent = Silent::start();
    let (_orb, good) = client(service.port);
    bind_context(
        &context_at(&service.orb, service.port),
        "silent",
        silent.port(),
    );
    good.bind(&path("thing"), Some(&some_object(&service.orb)))
        .expect("bound");
    let is_served = || good.resolve(&path("thing")).expect("bound").is_some();

    let mut waiting = Vec::new();
    for number in 0..OUTWARD_MAX / OUTWARD_SHARE {
        let peer = client_from([127, 0, 0, 10 + number as u8], service.port);
        for _ in 0..OUTWARD_SHARE {
            waiting.push(resolve_in_thread(&peer, "silent/thing"));
            silent.hold_one();
            assert!(is_served());
        }
        let refused = raised(peer.resolve(&path("silent/thing")));
        assert_eq!(refused, (Kind::Transient, own_minor::OUTWARD_SHARE_FULL));
        assert!(peer.resolve(&path("thing")).expect("bound").is_some());
    }
    let refused = raised(good.resolve(&path("silent/thing")));
    assert_eq!(refused, (Kind::Transient, own_minor::OUTWARD_FULL));
    assert!(is_served());
    drop(silent);
    for resolved in waiting {
        let resolved = resolved.join().expect("whole");
        assert!(matches!(
            resolved,
            Err(NamingContextResolveError::CannotProceed(_))
        ));
    }
    // Their places are free again.
    let peer = client_from([127, 0, 0, 10], service.port);
    let again = peer.resolve(&path("silent/thing"));
    assert!(
        matches!(again, Err(NamingContextResolveError::CannotProceed(_))),
        "{again:?}"
    );
}

#[test]
fn name_that_leads_in_a_circle_ends_with_an_exception_that_says_so() {
    let (one, other) = (service(|builder| builder), service(|builder| builder));
    let roots = [&one, &other].map(|service| context_at(&service.orb, service.port));
    bind_context(&roots[0], "other", other.port);
    bind_context(&roots[1], "one", one.port);
    let (_orb, root) = client(one.port);
    let object = some_object(&one.orb);
    root.bind(&path("thing"), Some(&object)).expect("bound");

    let round = |count: usize| format!("{}thing", "other/one/".repeat(count));
    let resolve = |name: &str| root.resolve(&path(name));
    let found = resolve(&round(PASSES_MAX)).expect("bound");
    assert_eq!(found.expect("not nil").ior(), object.ior());
    // The first service would pass it on once more, to the other, which has the name too.
    let there = context_at(&other.orb, other.port);
    there.bind(&path("thing"), Some(&object)).expect("bound");
    let one_more = format!("{}other/thing", "other/one/".repeat(PASSES_MAX));
    let refused = raised(resolve(&one_more));
    assert_eq!(refused, (Kind::ImpLimit, own_minor::TOO_MANY_RETURNS));
}

#[test]
fn name_that_more_services_would_pass_on_than_may_ends_with_an_exception_that_says_so() {
    let services: Vec<Service> = (0..HOPS_MAX + 2).map(|_| service(|own| own)).collect();
    let object = some_object(&services[0].orb);
    for (number, one) in services.iter().enumerate() {
        let root = context_at(&one.orb, one.port);
        root.bind(&path("thing"), Some(&object)).expect("bound");
        if let Some(next) = services.get(number + 1) {
            bind_context(&root, "next", next.port);
        }
    }
    let (_orb, root) = client(services[0].port);
    let at = |hops: u8| format!("{}thing", "next/".repeat(usize::from(hops)));
    let found = root.resolve(&path(&at(HOPS_MAX))).expect("bound");
    assert_eq!(found.expect("not nil").ior(), object.ior());
    let refused = raised(root.resolve(&path(&at(HOPS_MAX + 1))));
    assert_eq!(refused, (Kind::ImpLimit, own_minor::TOO_MANY_HOPS));
}

#[test]
fn name_may_lead_back_to_other_contexts_of_a_service_that_has_passed_it_on() {
    let hub = service(|builder| builder);
    let (left, right) = (service(|builder| builder), service(|builder| builder));
    let root = context_at(&hub.orb, hub.port);
    let object = some_object(&hub.orb);
    for (name, spoke) in [("left", &left), ("right", &right)] {
        bind_context(&root, name, spoke.port);
        let there = context_at(&spoke.orb, spoke.port);
        let fleet = root.bind_new_context(&path(&format!("of-{name}")));
        let fleet = fleet.expect("new").expect("not nil");
        fleet.bind(&path("thing"), Some(&object)).expect("bound");
        there
            .bind_context(&path("fleet"), Some(&fleet))
            .expect("bound");
        // The one context of the hub leads on to the other spoke.
        let opposite = if name == "left" { &right } else { &left };
        bind_context(&fleet, "opposite", opposite.port);
    }
    let (_orb, root) = client(hub.port);
    for name in ["left/fleet/thing", "left/fleet/opposite/fleet/thing"] {
        let found = root.resolve(&path(name)).expect(name);
        assert_eq!(found.expect("not nil").ior(), object.ior(), "{name}");
    }
    // All operations pass a name on.
    let fresh = path("left/fleet/opposite/fleet/fresh");
    root.bind(&fresh, Some(&object)).expect("bound");
    assert!(
        root.resolve(&path("of-right/fresh"))
            .expect("bound")
            .is_some()
    );
    root.unbind(&fresh).expect("bound");
}

#[test]
fn circle_through_a_relay_ends_when_the_service_has_passed_the_name_on_twice() {
    let service = service(|builder| builder);
    let relay = Relay::start(service.port);
    let (orb, root) = client(service.port);
    root.bind(&path("thing"), Some(&some_object(&orb)))
        .expect("bound");
    bind_context(&context_at(&orb, service.port), "again", relay.port);
    let resolve = |name: &str| root.resolve(&path(name));
    assert!(resolve("again/again/thing").expect("bound").is_some());
    assert_eq!(relay.requests.swap(0, Relaxed), PASSES_MAX);
    let refused = raised(resolve(&format!(
        "{}thing",
        "again/".repeat(COMPONENTS_MAX - 1)
    )));
    assert_eq!(refused, (Kind::ImpLimit, own_minor::TOO_MANY_RETURNS));
    assert_eq!(relay.requests.load(Relaxed), PASSES_MAX);
}

/// A relay that leads to a service, and counts the requests that it carries.
struct Relay {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Relay {
    fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it listens").port();
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let far = TcpStream::connect(("127.0.0.1", to)).expect("it listens");
                let clone = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
                let (there, back) = ((clone(&near), clone(&far)), (far, near));
                let count = Arc::clone(&count);
                std::thread::spawn(move || carry(there, || _ = count.fetch_add(1, Relaxed)));
                std::thread::spawn(move || carry(back, || ()));
            }
        });
        Self { port, requests }
    }
}

/// Carries whole messages until one end closes.
fn carry((mut from, mut to): (TcpStream, TcpStream), mut note: impl FnMut()) {
    let mut header = [0; 12];
    while from.read_exact(&mut header).is_ok() {
        let size: [u8; 4] = header[8..].try_into().expect("four octets");
        let is_little = header[6] & 1 == 1;
        let size = if is_little {
            u32::from_le_bytes(size)
        } else {
            u32::from_be_bytes(size)
        };
        let mut message = header.to_vec();
        message.resize(header.len() + size as usize, 0);
        if from.read_exact(&mut message[header.len()..]).is_err() {
            break;
        }
        note();
        if to.write_all(&message).is_err() {
            break;
        }
    }
}

/// A service whose clients over TCP seem to be strangers.
fn among_strangers(reach: &str) -> (Service, Arc<Masked>) {
    let transport = Arc::new(Masked::default());
    let service = service(|builder| {
        let builder = builder.transport(Arc::clone(&transport) as _);
        builder.reach(reach.parse().expect("networks"))
    });
    (service, transport)
}

#[test]
fn context_that_a_stranger_bound_leads_to_no_address_that_is_not_permitted() {
    let victim = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (service, _) = among_strangers("any");
    let client = Orb::builder().build().expect("an ORB");
    let root = &context_at(&client, service.port);
    let port = victim.local_addr().expect("it listens").port();
    bind_context(root, "inside", port);
    let refused = raised(root.resolve(&path("inside/thing")));
    assert_eq!(refused, (Kind::NoPermission, own_minor::OUT_OF_REACH));
    // The program's own client is led no further by what a stranger bound.
    let own = context_at(&service.orb, service.port);
    let refused = raised(own.resolve(&path("inside/thing")));
    assert_eq!(refused, (Kind::NoPermission, own_minor::OUT_OF_REACH));
    // What the program bound leads on, for strangers too.
    let (federated, _) = among_strangers("any");
    let object = some_object(&federated.orb);
    let there = context_at(&federated.orb, federated.port);
    there.bind(&path("thing"), Some(&object)).expect("bound");
    bind_context(&own, "federated", federated.port);
    assert!(
        root.resolve(&path("federated/thing"))
            .expect("bound")
            .is_some()
    );
    victim.set_nonblocking(true).expect("ours");
    assert!(victim.accept().is_err(), "nothing was connected");
}

#[test]
fn failed_call_for_a_stranger_ends_at_the_same_time_however_it_fails() {
    let (service, transport) = among_strangers("127.0.0.0/8");
    let client = Orb::builder().build().expect("an ORB");
    let root = &context_at(&client, service.port);
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("it listens").port()
    };
    bind_context(root, "closed", closed);
    let open = TcpListener::bind("127.0.0.1:0").expect("a port");
    bind_context(root, "open", open.local_addr().expect("it listens").port());
    let garbage = std::thread::spawn(move || {
        let (mut stream, _) = open.accept().expect("a connection");
        stream.write_all(b"220 mail ready\r\n").expect("it reads");
        let _ = stream.read_to_end(&mut Vec::new()); // Until the service closes it.
    });
    for (count, name) in ["closed/thing", "open/thing"].into_iter().enumerate() {
        let begun = transport.now();
        let resolved = root.resolve(&path(name));
        assert!(
            matches!(resolved, Err(NamingContextResolveError::CannotProceed(_))),
            "{resolved:?}"
        );
        let sleeps = transport.sleeps.lock().expect("whole");
        assert_eq!(sleeps.len(), count + 1, "{name}");
        assert!(sleeps[count] >= begun.after(OUTWARD_FAILED_AFTER));
    }
    garbage.join().expect("whole");
    // What the program itself bound fails when it fails.
    let own = context_at(&service.orb, service.port);
    bind_context(&own, "own", closed);
    assert!(root.resolve(&path("own/thing")).is_err());
    assert_eq!(transport.sleeps.lock().expect("whole").len(), 2);
}
