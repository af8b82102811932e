//! Private connections, client protocols and packet priorities by clause (RTCORBA 1.2), at the client: references made
//! by hand in TAO's form, and hand-written servers at their endpoints.

use std::sync::{Arc, Mutex};

use crate::common;
use crate::common::noting::Asked;
use crate::common::rt::{
    Reference, at, client, client_of, done, fresh, lane, protocols, refused, with,
};
use crate::common::servant::call;
use crate::common::{Over, Peer};
use deckwatch_orb::transport::{PacketPriority, StreamOptions};
use deckwatch_orb::{
    Completion, ObjectRef, Orb, Policy, PolicyType, Priority, Protocol, SetOverrideType,
    SystemException, SystemExceptionKind as Kind, TcpProtocolProperties,
    UnixDomainProtocolProperties, minor, own_minor, protocol_type,
};

/// A server that records the connection of each request.
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

/// A client, and the record of the connections it opens.
fn noting_client() -> (Orb, Asked) {
    let connected = Asked::default();
    let transport = connected.transport();
    let client = client_of(Orb::builder().transport(Arc::new(transport)));
    (client, connected)
}

#[test]
fn protocols_are_tried_in_the_order_of_the_policy_with_its_properties() {
    let (tcp_peer, unix_peer) = (
        lane(),
        Peer::answering_all(Over::Unix, |_, heard| done(heard)),
    );
    let (client, connected) = noting_client();
    // The unix socket is a component of the peer's own profile.
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
    // The last case reuses the first connection, because its socket options are the same.
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
        let options = connected.take().into_iter().map(|(_, options)| options);
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
        // An unknown protocol, then TCP.
        o.u32(2)
            .u32(0x5441_4F04)
            .u32(0)
            .u32(11_000)
            .u32(12_000)
            .raw(&[0, 0, 1]);
    });
    let object = said.seen_by(&client);
    assert_eq!(call(&object, "ping"), Ok(()));
    let [(_, options)] = connected.take().try_into().expect("one connection");
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

/// A reference whose connections give packets the priority of their calls.
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
        let [(_, options)] = connected.take().try_into().expect("one connection");
        assert_eq!(options.packets, Some(packets));
    }
    assert_eq!(at(&client, 32_767, || call(&plain, "ping")), Ok(()));
    let [(_, options)] = connected.take().try_into().expect("one connection");
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
    client.network_priority_mapping_manager().set_mapping(Own);
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
