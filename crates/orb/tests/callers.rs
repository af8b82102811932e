//! What a servant learns of its caller: over each transport, in a collocated call, over a bidirectional connection.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex};

use crate::support::{TEST_ID, call, request_of, seen_by, socket_path};
use deckwatch_cdr::{Parse as _, Write as _};
use deckwatch_orb::{
    BidirectionalPolicyValue, Caller, CallerConnection, LocalProcess, NoContext, ObjectRef, Orb,
    OrbBuilder, Poa, PoaCurrent, Policies, Policy, Servant, ServerRequest, SystemException,
    ThreadPolicy,
};

/// A servant that records its callers.
struct Witness {
    current: PoaCurrent,
    seen: Mutex<Vec<(Caller, CallerConnection)>>,
}

impl Witness {
    fn look(&self) {
        let caller = self.current.caller().expect("it serves a request");
        let connection = self.current.caller_connection();
        self.seen.lock().unwrap().push((caller, connection));
    }

    fn callers(&self) -> Vec<Caller> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|(caller, _)| *caller).collect()
    }

    fn connections(&self) -> Vec<CallerConnection> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|(_, connection)| *connection).collect()
    }
}

impl Servant for Witness {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[TEST_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        self.look();
        if request.operation() == b"call" {
            let other = Option::<ObjectRef>::parse(&mut request.arguments())?;
            call(&other.expect("a reference"), "ping")?;
            self.look();
        }
        request.reply().map(drop)
    }
}

/// An ORB with a witness in an adapter with these policies.
fn witness(builder: OrbBuilder, policies: &Policies) -> (Orb, Arc<Witness>, ObjectRef) {
    let orb = builder.build().unwrap();
    let root = orb.root_poa().unwrap();
    let manager = root.the_poa_manager();
    manager.activate().unwrap();
    let poa: Poa = root.create_poa("witness", Some(manager), policies).unwrap();
    let witness = Arc::new(Witness {
        current: orb.poa_current(),
        seen: Mutex::default(),
    });
    let servant: Arc<dyn Servant> = witness.clone();
    let object = poa.servant_to_reference(&servant).unwrap();
    (orb, witness, object)
}

fn at(endpoint: &str) -> OrbBuilder {
    Orb::builder().listen(endpoint).unwrap()
}

fn call_with(reference: &ObjectRef, other: &ObjectRef) -> Result<(), SystemException> {
    let write = |w: &mut deckwatch_cdr::Writer<'_>| Some(other).write(w);
    reference.invoke("call", write, |_| Ok(()), |_, _| Ok(None))
}

/// This process, as the kernel reports it.
fn this_process() -> LocalProcess {
    LocalProcess {
        uid: std::fs::metadata("/proc/self").unwrap().uid(),
        pid: std::process::id(),
    }
}

#[test]
fn caller_over_tcp_has_the_address_of_its_end_of_the_connection() {
    let (orb, witness, object) = witness(at("127.0.0.1:0"), &Policies::root());
    let address = orb.endpoints()[0].to_string();
    let mut addresses = Vec::new();
    for id in 0..2 {
        let mut peer = TcpStream::connect(&address).unwrap();
        for _ in 0..2 {
            peer.write_all(&request_of(&object, (id, 3), "ping", &[]))
                .unwrap();
            peer.read_exact(&mut [0; 24]).unwrap();
            addresses.push(Caller::Tcp(peer.local_addr().unwrap()));
        }
    }
    assert_eq!(witness.callers(), addresses);
    let connections = witness.connections();
    assert_eq!(connections[0], connections[1]);
    assert_ne!(connections[1], connections[2]);
    assert_ne!(connections[1].number(), connections[2].number());
    assert_eq!(
        witness.current.caller(),
        Err(NoContext),
        "outside of a request"
    );
}

#[test]
fn caller_over_ipv6_that_has_an_ipv4_address_is_known_by_that() {
    let (orb, witness, object) = witness(at("[::]:0"), &Policies::root());
    let port = orb.endpoints()[0].to_string();
    let port: u16 = port.rsplit(':').next().unwrap().parse().unwrap();
    let mut peer = TcpStream::connect(("127.0.0.1", port)).unwrap();
    peer.write_all(&request_of(&object, (1, 3), "ping", &[]))
        .unwrap();
    peer.read_exact(&mut [0; 24]).unwrap();
    assert_eq!(witness.callers(), [Caller::Tcp(peer.local_addr().unwrap())]);
}

#[test]
fn caller_over_a_unix_socket_or_shared_memory_has_its_user_and_process() {
    type OverLocal = fn(LocalProcess) -> Caller;
    let over: [(&str, OverLocal); 2] = [("unix", Caller::Unix), ("shm", Caller::SharedMemory)];
    for (protocol, caller) in over {
        let at = at(&format!("{protocol}:{}", socket_path()));
        let (_orb, witness, object) = witness(at, &Policies::root());
        let client = Orb::builder().build().unwrap();
        assert_eq!(call(&seen_by(&client, &object), "ping"), Ok(()));
        assert_eq!(witness.callers(), [caller(this_process())]);
    }
}

#[test]
fn caller_of_a_collocated_call_is_this_process_and_the_outer_caller_is_known_again() {
    let (orb, outer, object) = witness(at("127.0.0.1:0"), &Policies::root());
    let poa = orb.root_poa().unwrap();
    let inner = Arc::new(Witness {
        current: orb.poa_current(),
        seen: Mutex::default(),
    });
    let servant: Arc<dyn Servant> = inner.clone();
    let inner_object = poa.servant_to_reference(&servant).unwrap();
    assert_eq!(call(&inner_object, "ping"), Ok(()));
    let client = Orb::builder().build().unwrap();
    let inner_seen = seen_by(&client, &inner_object);
    assert_eq!(call_with(&seen_by(&client, &object), &inner_seen), Ok(()));
    assert_eq!(inner.callers(), [Caller::ThisProcess; 2]);
    let outer = outer.callers();
    assert!(matches!(outer[0], Caller::Tcp(_)), "{outer:?}");
    assert_eq!(outer[0], outer[1]);
}

#[test]
fn caller_is_known_on_the_main_thread() {
    let policies = Policies {
        thread: ThreadPolicy::MainThreadModel,
        ..Policies::root()
    };
    let (orb, witness, object) = witness(at("127.0.0.1:0"), &policies);
    std::thread::scope(|scope| {
        let main = orb.clone();
        scope.spawn(move || main.run());
        let client = Orb::builder().build().unwrap();
        assert_eq!(call(&seen_by(&client, &object), "ping"), Ok(()));
        orb.shutdown(true).unwrap();
    });
    assert!(matches!(witness.callers()[..], [Caller::Tcp(_)]));
}

#[test]
fn caller_over_a_bidirectional_connection_is_the_server_that_was_connected_to() {
    let both = || Policies {
        bidirectional: BidirectionalPolicyValue::Both,
        ..Policies::root()
    };
    let (server, served, object) = witness(at("127.0.0.1:0"), &both());
    let opener = at("127.0.0.1:0").policy(Policy::Bidirectional(BidirectionalPolicyValue::Both));
    let (opener, called_back, own) = witness(opener, &both());
    assert_eq!(call_with(&seen_by(&opener, &object), &own), Ok(()));
    let address = server.endpoints()[0].to_string().parse().unwrap();
    assert_eq!(called_back.callers(), [Caller::Tcp(address)]);
    assert!(matches!(
        served.callers()[..],
        [Caller::Tcp(_), Caller::Tcp(_)]
    ));
}
