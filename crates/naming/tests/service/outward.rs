//! Names that lead to other services: what they may hold of this one, where they may lead, and how they end.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use deckwatch_naming::NamingService;
use deckwatch_naming::limits::{OUTWARD_MAX, OUTWARD_SHARE};
use deckwatch_naming::store::Store;
use deckwatch_orb::cos_naming::{NamingContextRef, NamingContextResolveError};
use deckwatch_orb::limits::{HOPS_MAX, OUTWARD_FAILED_AFTER};
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
    let found = resolve(&round(usize::from(HOPS_MAX) / 2)).expect("bound");
    assert_eq!(found.expect("not nil").ior(), object.ior());
    // One service more, which has the name too.
    let there = context_at(&other.orb, other.port);
    there.bind(&path("thing"), Some(&object)).expect("bound");
    let one_more = format!(
        "{}other/thing",
        "other/one/".repeat(usize::from(HOPS_MAX) / 2)
    );
    let refused = raised(resolve(&one_more));
    assert_eq!(refused, (Kind::ImpLimit, own_minor::TOO_MANY_HOPS));
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
