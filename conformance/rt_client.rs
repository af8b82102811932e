//! Real-time CORBA by clause (RTCORBA 1.2), at the client: references made by hand as TAO makes them, and
//! servers of the tests' own behind their endpoints.

#[path = "common/mod.rs"]
mod common;

use std::sync::{Arc, Mutex};

use common::message::{
    CLOSE_CONNECTION, LOCATE_REQUEST, LOCATION_FORWARD, SYSTEM_EXCEPTION, message, reply,
};
use common::rt::{Reference, at, client, client_of, done, fresh, said_priority, said_range};
use common::servant::{call, note};
use common::{Order, Over, Peer};
use deckwatch_orb::transport::{
    Endpoint, Instant64, Listener, PacketPriority, Poller, SocketTransport, Stream, StreamOptions,
    Transport, TransportError,
};
use deckwatch_orb::{
    Completion, Counter, ObjectRef, Orb, Policy, PolicyType, Priority, PriorityBand, PriorityBands,
    Protocol, Protocols, SetOverrideType, SyncScope, SystemException, SystemExceptionKind as Kind,
    TcpProtocolProperties, UnixDomainProtocolProperties, minor, own_minor, protocol_type,
};

/// A server that answers everything.
fn lane() -> Peer {
    Peer::answering_all(Over::Tcp, |_, heard| done(heard))
}

/// Two lanes, at priorities 5 and 20.
fn two_lanes() -> (Peer, Peer, Reference) {
    let (low, high) = (lane(), lane());
    let reference = Reference::with_lanes(&[(&low, 5), (&high, 20)]);
    (low, high, reference)
}

fn with(object: &ObjectRef, policies: &[Policy]) -> ObjectRef {
    let with = object.set_policy_overrides(policies, SetOverrideType::AddOverride);
    with.expect("one of a kind")
}

fn banded(bands: &[(i16, i16)]) -> Policy {
    let priority = |number| Priority::new(number).expect("not negative");
    let band = |&(low, high): &(i16, i16)| PriorityBand {
        low: priority(low),
        high: priority(high),
    };
    let bands: Vec<_> = bands.iter().map(band).collect();
    Policy::PriorityBandedConnection(PriorityBands::new(&bands).expect("in order"))
}

fn protocols(list: &[Protocol]) -> Policy {
    Policy::ClientProtocol(Protocols::new(list).expect("sound"))
}

fn refused(minor: u32) -> Result<(), SystemException> {
    Err(SystemException::new(Kind::InvPolicy, minor, Completion::No))
}

#[test]
fn a_call_goes_to_the_lane_of_its_callers_priority_and_says_it() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference.propagated(5).seen_by(&client);
    for (peer, number) in [(&high, 20), (&low, 5), (&high, 20)] {
        assert_eq!(at(&client, number, || call(&object, "ping")), Ok(()));
        let asked = peer.heard().asked();
        assert_eq!(
            (asked.operation.as_str(), said_priority(&asked)),
            ("ping", Some(number))
        );
    }
    assert_eq!((low.heard_so_far(), high.heard_so_far()), (0, 0));
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 2);
}

#[test]
fn a_thread_that_changes_its_priority_changes_the_lane() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference.propagated(5).seen_by(&client);
    at(&client, 5, || {
        call(&object, "ping").expect("a lane");
        low.heard();
        let priority = Priority::new(20).expect("not negative");
        client
            .rt_current()
            .set_the_priority(priority)
            .expect("any is permitted");
        call(&object, "ping").expect("a lane");
        assert_eq!(said_priority(&high.heard().asked()), Some(20));
    });
}

#[test]
fn a_caller_without_a_priority_goes_to_the_servers_and_says_none() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference.propagated(20).seen_by(&client);
    assert_eq!(fresh(|| call(&object, "ping")), Ok(()));
    assert_eq!(said_priority(&high.heard().asked()), None);
    assert_eq!(low.heard_so_far(), 0);
}

#[test]
fn an_object_that_declares_its_priority_is_asked_at_that_lane_and_is_told_none() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference.declared(20).seen_by(&client);
    for number in [5, 20, 100] {
        assert_eq!(at(&client, number, || call(&object, "ping")), Ok(()));
        assert_eq!(said_priority(&high.heard().asked()), None);
    }
    assert_eq!(low.heard_so_far(), 0);
}

#[test]
fn a_priority_without_a_lane_is_inv_policy_and_nobody_is_asked() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference.propagated(5).seen_by(&client);
    at(&client, 6, || {
        assert_eq!(call(&object, "ping"), refused(own_minor::LANES_MISSED));
        assert_eq!(
            object.validate_connection().map(drop),
            refused(own_minor::LANES_MISSED)
        );
        assert_eq!(
            object.inconsistent_policies(),
            Ok(&[PolicyType::PRIORITY_MODEL][..])
        );
    });
    assert_eq!((low.heard_so_far(), high.heard_so_far()), (0, 0));
}

#[test]
fn a_server_without_lanes_is_asked_at_its_one_endpoint_whatever_the_priority() {
    let peer = lane();
    let client = client();
    // TAO tells of its endpoint without a priority; others of none.
    let told = Reference::with_lanes(&[(&peer, -1)]).propagated(0);
    for reference in [Reference::without_lanes(&peer).propagated(0), told] {
        let object = reference.seen_by(&client);
        for number in [0, 7, i16::MAX] {
            assert_eq!(at(&client, number, || call(&object, "ping")), Ok(()));
            assert_eq!(said_priority(&peer.heard().asked()), Some(number));
        }
    }
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
}

#[test]
fn an_object_without_a_priority_model_is_told_none() {
    let peer = lane();
    let client = client();
    let object = Reference::without_lanes(&peer).seen_by(&client);
    assert_eq!(at(&client, 9, || call(&object, "ping")), Ok(()));
    assert_eq!(peer.heard().asked().contexts, []);
}

#[test]
fn one_ways_go_to_the_lane_of_their_caller_and_say_his_priority() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference.propagated(5).seen_by(&client);
    for scope in [
        SyncScope::None,
        SyncScope::WithTransport,
        SyncScope::WithServer,
        SyncScope::WithTarget,
    ] {
        let object = with(&object, &[Policy::SyncScope(scope)]);
        assert_eq!(at(&client, 20, || note(&object, 1)), Ok(()));
        assert_eq!(said_priority(&high.heard().asked()), Some(20), "{scope:?}");
    }
    assert_eq!(low.heard_so_far(), 0);
}

#[test]
fn a_request_says_the_priority_that_its_caller_had_when_he_sent_it() {
    let (_low, high, reference) = two_lanes();
    let client = client();
    let object = reference.propagated(5).seen_by(&client);
    let priority = |number| Priority::new(number).expect("not negative");
    at(&client, 20, || {
        let mut request = object.create_request("ping");
        request.send_deferred().expect("a lane");
        client
            .rt_current()
            .set_the_priority(priority(5))
            .expect("any is permitted");
        assert_eq!(
            request.response().map_err(|error| error.to_string()),
            Ok(())
        );
    });
    assert_eq!(said_priority(&high.heard().asked()), Some(20));
}

#[test]
fn forwarded_calls_go_to_the_lanes_of_where_they_were_forwarded_to() {
    let (low, high, reference) = two_lanes();
    let to = reference.propagated(5).ior();
    let origin = Peer::answering_all(Over::Tcp, move |_, heard| {
        let asked = heard.asked();
        reply(asked.form, asked.id, LOCATION_FORWARD, |o| to.write(o))
    });
    let client = client();
    let object = Reference::without_lanes(&origin)
        .propagated(0)
        .seen_by(&client);
    for (peer, number) in [(&high, 20), (&low, 5)] {
        assert_eq!(at(&client, number, || call(&object, "ping")), Ok(()));
        assert_eq!(said_priority(&peer.heard().asked()), Some(number));
    }
}

#[test]
fn a_band_has_a_connection_of_its_own_and_the_server_is_told_its_priorities_first() {
    let peer = lane();
    let client = client();
    let reference = Reference::without_lanes(&peer).propagated(0);
    let object = with(
        &reference.seen_by(&client),
        &[banded(&[(0, 9), (10, 32_767)])],
    );
    for (numbers, band) in [([3, 9], (0, 9)), ([10, 11], (10, 32_767))] {
        assert_eq!(at(&client, numbers[0], || call(&object, "ping")), Ok(()));
        let told = peer.heard().asked();
        assert_eq!(
            (told.operation.as_str(), said_range(&told)),
            ("_bind_priority_band", Some(band))
        );
        assert_eq!(told.body.rest(), b"");
        assert_eq!(said_range(&peer.heard().asked()), None);
        // The next call of the band finds the connection bound.
        assert_eq!(at(&client, numbers[1], || call(&object, "ping")), Ok(()));
        let asked = peer.heard().asked();
        assert_eq!(
            (asked.operation.as_str(), said_priority(&asked)),
            ("ping", Some(numbers[1]))
        );
    }
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 2);
}

#[test]
fn a_band_goes_to_the_first_lane_in_it() {
    let (low, high, reference) = two_lanes();
    let client = client();
    // The bands may come from the server too.
    let object = reference
        .propagated(5)
        .bands(&[(0, 10), (15, 32_767)])
        .seen_by(&client);
    for (peer, number) in [(&low, 7), (&high, 25)] {
        assert_eq!(at(&client, number, || call(&object, "ping")), Ok(()));
        assert_eq!(peer.heard().asked().operation, "_bind_priority_band");
        assert_eq!(said_priority(&peer.heard().asked()), Some(number));
    }
    let missed = at(&client, 12, || {
        let policies = [
            PolicyType::PRIORITY_BANDED_CONNECTION,
            PolicyType::PRIORITY_MODEL,
        ];
        assert_eq!(object.inconsistent_policies(), Ok(&policies[..]));
        call(&object, "ping")
    });
    assert_eq!(missed, refused(own_minor::BANDS_MISSED));
    let laneless = with(
        &two_lanes().2.propagated(5).seen_by(&client),
        &[banded(&[(6, 9)])],
    );
    let missed = at(&client, 7, || call(&laneless, "ping"));
    assert_eq!(missed, refused(own_minor::LANES_MISSED));
}

#[test]
fn a_band_of_an_object_that_declares_its_priority_is_that_of_its_priority() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference
        .declared(20)
        .bands(&[(0, 10), (15, 30)])
        .seen_by(&client);
    assert_eq!(at(&client, 3, || call(&object, "ping")), Ok(()));
    assert_eq!(said_range(&high.heard().asked()), Some((15, 30)));
    assert_eq!(low.heard_so_far(), 0);
}

/// Answers the question of the band by this exception, and closes the connection after the next answer.
fn refusing(repository_id: &'static str) -> Peer {
    Peer::start(Over::Tcp, move |_, wire, tell| {
        while let Some(heard) = wire.hear() {
            let asked = heard.asked();
            let is_question = asked.operation == "_bind_priority_band";
            tell(heard.clone());
            if is_question {
                wire.say(&reply(asked.form, asked.id, SYSTEM_EXCEPTION, |o| {
                    o.string(repository_id).u32(0).u32(1);
                }));
                continue;
            }
            wire.say(&done(&heard));
            wire.say(&message(asked.form, CLOSE_CONNECTION, |_| ()));
            break;
        }
    })
}

#[test]
fn a_server_that_does_not_know_bands_is_asked_for_one_once() {
    let peer = refusing("IDL:omg.org/CORBA/BAD_OPERATION:1.0");
    let client = client();
    let reference = Reference::without_lanes(&peer)
        .propagated(0)
        .bands(&[(0, 9)]);
    let object = reference.seen_by(&client);
    let mut operations = Vec::new();
    for _ in 0..3 {
        assert_eq!(at(&client, 1, || call(&object, "ping")), Ok(()));
        loop {
            operations.push(peer.heard().asked().operation);
            if operations.last().is_some_and(|last| last == "ping") {
                break;
            }
        }
        // The next call finds the connection closed, and makes another.
    }
    assert_eq!(operations, ["_bind_priority_band", "ping", "ping", "ping"]);
}

#[test]
fn a_band_that_the_server_refuses_is_refused_to_the_caller_before_his_request() {
    let peer = refusing("IDL:omg.org/CORBA/INV_POLICY:1.0");
    let client = client();
    let reference = Reference::without_lanes(&peer)
        .propagated(0)
        .bands(&[(0, 9)]);
    let object = reference.seen_by(&client);
    assert_eq!(at(&client, 1, || call(&object, "ping")), refused(0));
    assert_eq!(peer.heard().asked().operation, "_bind_priority_band");
    assert_eq!(peer.heard_so_far(), 0);
}

#[test]
fn bands_of_both_sides_cannot_be_reconciled_and_an_empty_list_leaves_it_to_the_other() {
    let peer = lane();
    let client = client();
    let reference = Reference::without_lanes(&peer).propagated(0);
    let said = reference.clone().bands(&[(0, 9)]).seen_by(&client);
    let both = with(&said, &[banded(&[(0, 9)])]);
    let irreconcilable = refused(minor::omg(1));
    at(&client, 1, || {
        assert_eq!(call(&both, "ping"), irreconcilable);
        assert_eq!(both.validate_connection().map(drop), irreconcilable);
        let kinds = &[PolicyType::PRIORITY_BANDED_CONNECTION][..];
        assert_eq!(both.inconsistent_policies(), Ok(kinds));
        assert_eq!(both.policy(kinds[0]).map(drop), irreconcilable);
    });
    assert_eq!(peer.heard_so_far(), 0);
    let left = with(&said, &[banded(&[])]);
    let right = with(&reference.bands(&[]).seen_by(&client), &[banded(&[(0, 9)])]);
    for object in [left, right] {
        let kind = PolicyType::PRIORITY_BANDED_CONNECTION;
        assert_eq!(object.policy(kind), Ok(Some(banded(&[(0, 9)]))));
        assert_eq!(at(&client, 1, || call(&object, "ping")), Ok(()));
        assert_eq!(object.inconsistent_policies(), Ok(&[][..]));
    }
    assert_eq!(said_range(&peer.heard().asked()), Some((0, 9)));
}

#[test]
fn bands_for_an_object_without_a_priority_model_are_inv_policy() {
    let peer = lane();
    let client = client();
    let object = with(
        &Reference::without_lanes(&peer).seen_by(&client),
        &[banded(&[(0, 9)])],
    );
    let outcome = at(&client, 1, || call(&object, "ping"));
    assert_eq!(outcome, refused(own_minor::BANDS_WITHOUT_MODEL));
    assert_eq!(peer.heard_so_far(), 0);
}

/// A server that notes over which connection each request came.
fn noting() -> (Peer, Arc<Mutex<Vec<usize>>>) {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&noted);
    let peer = Peer::answering_all(Over::Tcp, move |connection, heard| {
        notes
            .lock()
            .expect("nobody panics with it")
            .push(connection);
        done(heard)
    });
    (peer, noted)
}

#[test]
fn a_private_connection_is_that_of_its_reference_alone_and_ends_with_it() {
    let (peer, noted) = noting();
    let client = client();
    let reference = Reference::without_lanes(&peer);
    let shared = [reference.seen_by(&client), reference.seen_by(&client)];
    let own = shared
        .each_ref()
        .map(|object| with(object, &[Policy::PrivateConnection]));
    for object in shared.iter().chain(&own).chain(&shared).chain(&own) {
        assert_eq!(call(object, "ping"), Ok(()));
    }
    let noted = || noted.lock().expect("nobody panics with it").clone();
    assert_eq!(noted(), [0, 0, 1, 2, 0, 0, 1, 2]);
    drop(own);
    let again = with(&shared[0], &[Policy::PrivateConnection]);
    assert_eq!(call(&again, "ping"), Ok(()));
    assert_eq!(noted().last(), Some(&3));
}

#[test]
fn a_private_connection_may_be_asked_for_by_the_thread_and_the_orb() {
    let (peer, noted) = noting();
    let client = client();
    let reference = Reference::without_lanes(&peer);
    let objects = [reference.seen_by(&client), reference.seen_by(&client)];
    fresh(|| {
        let thread = client.policy_current();
        thread
            .set_policy_overrides(&[Policy::PrivateConnection], SetOverrideType::SetOverride)
            .expect("one of a kind");
        objects
            .iter()
            .for_each(|object| call(object, "ping").expect("it answers"));
    });
    client
        .policy_manager()
        .set_policy_overrides(&[Policy::PrivateConnection], SetOverrideType::SetOverride)
        .expect("one of a kind");
    objects
        .iter()
        .for_each(|object| call(object, "ping").expect("it answers"));
    assert_eq!(*noted.lock().expect("nobody panics with it"), [0, 1, 0, 1]);
}

/// The kind of an endpoint that a transport was asked to connect to, and how.
type Connected = Arc<Mutex<Vec<(Endpoint, StreamOptions)>>>;

/// Sockets, with a note of how each was asked for. What needs a permission is denied.
struct Noting(SocketTransport, Connected);

impl Transport for Noting {
    fn now(&self) -> Instant64 {
        self.0.now()
    }

    fn connect(
        &self,
        endpoint: &Endpoint,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        self.connect_with(endpoint, &StreamOptions::default(), deadline)
    }

    fn connect_with(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        let mut connected = self.1.lock().expect("nobody panics with it");
        connected.push((endpoint.clone(), *options));
        if options.packets.is_some_and(|packets| packets.queue > 6) {
            return Err(TransportError::Denied);
        }
        self.0.connect_with(endpoint, options, deadline)
    }

    fn listen(&self, endpoint: &Endpoint) -> Result<Box<dyn Listener>, TransportError> {
        self.0.listen(endpoint)
    }

    fn poller(&self) -> Result<Box<dyn Poller>, TransportError> {
        self.0.poller()
    }

    fn outward_hosts(&self, over_ipv6: bool) -> Vec<String> {
        self.0.outward_hosts(over_ipv6)
    }

    fn host_name(&self) -> String {
        self.0.host_name()
    }
}

/// A client, and the connections it has asked for.
fn noting_client() -> (Orb, Connected) {
    let connected = Connected::default();
    let transport = Noting(SocketTransport::default(), Arc::clone(&connected));
    (
        client_of(Orb::builder().transport(Arc::new(transport))),
        connected,
    )
}

fn taken(connected: &Connected) -> Vec<(Endpoint, StreamOptions)> {
    std::mem::take(&mut *connected.lock().expect("nobody panics with it"))
}

#[test]
fn protocols_are_tried_in_the_order_of_the_policy_with_its_properties() {
    let (tcp_peer, unix_peer) = (
        lane(),
        Peer::answering_all(Over::Unix, |_, heard| done(heard)),
    );
    let (client, connected) = noting_client();
    // The unix socket is a component of a profile of its own address.
    let (_, profile) = unix_peer.profile(2, b"Fake", &[]);
    let component = common::ior::Profile::read(&profile).components.remove(0);
    let reference = Reference::without_lanes(&tcp_peer).component(component.0, &component.1);
    let object = reference.seen_by(&client);
    let tcp = Protocol::tcp(TcpProtocolProperties {
        send_buffer_size: 20_000,
        recv_buffer_size: 30_000,
        keep_alive: false,
        no_delay: false,
        ..TcpProtocolProperties::default()
    });
    let unix = Protocol::unix_domain(UnixDomainProtocolProperties {
        send_buffer_size: 40_000,
        recv_buffer_size: 0,
    });
    let memory = Protocol {
        protocol_type: protocol_type::SHARED_MEMORY,
        properties: None,
    };
    let by_tcp = (20_000, 30_000, false, false);
    let by_unix = (40_000, 0, true, true);
    // The last finds the connection of the first: it is made the same way.
    let cases = [
        (vec![tcp.clone()], &tcp_peer, Some(by_tcp)),
        (
            vec![memory.clone(), unix.clone(), tcp.clone()],
            &unix_peer,
            Some(by_unix),
        ),
        (vec![tcp, unix], &tcp_peer, None),
    ];
    for (list, peer, made) in cases {
        assert_eq!(call(&with(&object, &[protocols(&list)]), "ping"), Ok(()));
        peer.heard();
        let options = taken(&connected).into_iter().map(|(_, options)| options);
        let expected =
            made.map(
                |(send_buffer, receive_buffer, keep_alive, no_delay)| StreamOptions {
                    send_buffer,
                    receive_buffer,
                    keep_alive,
                    no_delay,
                    dont_route: false,
                    packets: None,
                },
            );
        assert_eq!(options.collect::<Vec<_>>(), Vec::from_iter(expected));
    }
    let none = with(&object, &[protocols(&[memory])]);
    assert_eq!(call(&none, "ping"), refused(own_minor::PROTOCOLS_MISSED));
    let kinds = [PolicyType::CLIENT_PROTOCOL];
    assert_eq!(none.inconsistent_policies(), Ok(&kinds[..]));
}

#[test]
fn protocols_that_the_reference_names_count_and_those_of_both_sides_are_inv_policy() {
    let peer = lane();
    let (client, connected) = noting_client();
    let said = Reference::without_lanes(&peer).policy(43, |o| {
        // One that is not known here, then TCP.
        o.u32(2)
            .u32(0x5441_4F04)
            .u32(0)
            .u32(11_000)
            .u32(12_000)
            .raw(&[0, 0, 1]);
    });
    let object = said.seen_by(&client);
    assert_eq!(call(&object, "ping"), Ok(()));
    let [(_, options)] = taken(&connected).try_into().expect("one connection");
    assert_eq!(
        (options.send_buffer, options.receive_buffer),
        (11_000, 12_000)
    );
    assert!(!options.keep_alive && options.no_delay);
    let tcp = Protocol::tcp(TcpProtocolProperties::default());
    let both = with(&object, &[protocols(&[tcp])]);
    assert_eq!(call(&both, "ping"), refused(minor::omg(1)));
    assert_eq!(
        both.policy(PolicyType::CLIENT_PROTOCOL).map(drop),
        refused(minor::omg(1))
    );
}

/// Connections whose packets have the priority of their calls.
fn with_network_priority(object: &ObjectRef) -> ObjectRef {
    let tcp = Protocol::tcp(TcpProtocolProperties {
        enable_network_priority: true,
        ..TcpProtocolProperties::default()
    });
    with(object, &[protocols(&[tcp])])
}

#[test]
fn packets_have_the_network_priority_of_their_call_where_that_is_enabled() {
    let peer = lane();
    let (client, connected) = noting_client();
    let plain = Reference::without_lanes(&peer)
        .propagated(0)
        .seen_by(&client);
    let object = with_network_priority(&plain);
    for (number, packets) in [
        (0, PacketPriority { dscp: 0, queue: 0 }),
        (16_384, PacketPriority { dscp: 14, queue: 3 }),
        (32_767, PacketPriority { dscp: 46, queue: 6 }),
    ] {
        assert_eq!(at(&client, number, || call(&object, "ping")), Ok(()));
        assert_eq!(at(&client, number, || call(&object, "ping")), Ok(()));
        let [(_, options)] = taken(&connected).try_into().expect("one connection");
        assert_eq!(options.packets, Some(packets));
    }
    assert_eq!(at(&client, 32_767, || call(&plain, "ping")), Ok(()));
    let [(_, options)] = taken(&connected).try_into().expect("one connection");
    assert_eq!(options.packets, None);
}

#[test]
fn a_network_priority_that_is_not_permitted_or_not_mapped_is_raised_when_the_connection_is_made() {
    struct Own;
    impl deckwatch_orb::NetworkPriorityMapping for Own {
        fn to_network(&self, corba: Priority) -> Option<deckwatch_orb::NetworkPriority> {
            let queue = u8::try_from(corba.value()).ok()?;
            Some(deckwatch_orb::NetworkPriority { dscp: 46, queue })
        }
        fn to_corba(&self, network: deckwatch_orb::NetworkPriority) -> Option<Priority> {
            Priority::new(i16::from(network.queue))
        }
    }
    let peer = lane();
    let (client, _) = noting_client();
    client
        .network_priority_mapping_manager()
        .set_mapping(Own)
        .expect("the first");
    let object = Reference::without_lanes(&peer)
        .propagated(0)
        .seen_by(&client);
    let object = with_network_priority(&object);
    let denied = SystemException::new(
        Kind::NoPermission,
        own_minor::NETWORK_PRIORITY_DENIED,
        Completion::No,
    );
    assert_eq!(at(&client, 7, || call(&object, "ping")), Err(denied));
    assert_eq!(at(&client, 7, || object.validate_connection()), Err(denied));
    let unmapped = SystemException::new(Kind::DataConversion, minor::omg(2), Completion::No);
    assert_eq!(at(&client, 300, || call(&object, "ping")), Err(unmapped));
    assert_eq!(at(&client, 6, || call(&object, "ping")), Ok(()));
}

#[test]
fn explicit_binding_makes_the_connection_of_the_threads_priority_and_its_calls_use_it() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference
        .propagated(5)
        .bands(&[(0, 9), (10, 99)])
        .seen_by(&client);
    at(&client, 20, || {
        assert_eq!(object.validate_connection(), Ok(true));
        assert_eq!(high.heard().asked().operation, "_bind_priority_band");
        assert_eq!(high.heard().kind(), LOCATE_REQUEST);
        assert_eq!(call(&object, "ping"), Ok(()));
        assert_eq!(high.heard().asked().operation, "ping");
    });
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
    assert_eq!(low.heard_so_far(), 0);
}

#[test]
fn what_cannot_be_read_of_a_real_time_reference_is_passed_over() {
    let peer = lane();
    let client = client();
    for (tag, data) in [
        (2, vec![]),
        (2, vec![1, 0, 0, 0, 255, 255, 255, 255]),
        (
            2,
            vec![1, 0, 0, 0, 1, 0, 0, 0, 40, 0, 0, 0, 2, 0, 0, 0, 1, 0],
        ),
        (0x5441_4F02, vec![1, 0, 0, 0, 255, 255, 255, 127]),
        (0x5441_4F02, vec![]),
    ] {
        let reference = Reference::without_lanes(&peer).component(tag, &data);
        let object = reference.seen_by(&client);
        assert_eq!(
            at(&client, 3, || call(&object, "ping")),
            Ok(()),
            "{tag} {data:?}"
        );
        assert_eq!(said_priority(&peer.heard().asked()), None);
        assert_eq!(object.priority_model(), Ok(None));
    }
    let negative = Reference::without_lanes(&peer)
        .propagated(-1)
        .seen_by(&client);
    assert_eq!(negative.priority_model(), Ok(None));
    assert_eq!(at(&client, 3, || call(&negative, "ping")), Ok(()));
}

#[test]
fn references_of_the_other_byte_order_lead_to_the_same_lanes() {
    let (low, high) = (lane(), lane());
    let mut endpoints = common::Octets::encapsulation(Order::Big);
    endpoints.u32(2);
    for (peer, number) in [(&low, 5), (&high, 20)] {
        endpoints.string("127.0.0.1").u16(peer.port()).u16(number);
    }
    let mut policies = common::Octets::encapsulation(Order::Big);
    policies
        .u32(1)
        .u32(40)
        .sequence(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
    let reference = Reference::without_lanes(&low)
        .component(0x5441_4F02, &endpoints.octets)
        .component(2, &policies.octets);
    let client = client();
    let object = reference.seen_by(&client);
    assert_eq!(at(&client, 20, || call(&object, "ping")), Ok(()));
    assert_eq!(said_priority(&high.heard().asked()), Some(20));
    assert_eq!(low.heard_so_far(), 0);
}
