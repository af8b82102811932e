//! Policies of real-time CORBA by clause (RTCORBA 1.2: RTCORBA::RTORB, and the policies that it creates), with client
//! and server together.

use crate::common;
use crate::common::lanes::{
    DecodedReference, LaneWorld, RT_CORBA_PRIORITY_RANGE, declared, heard_priority, propagated,
};
use crate::common::message::NO_EXCEPTION;
use crate::common::noting::Asked;
use crate::common::octets::Octets;
use crate::common::rt::{Reference, at, client, done, fresh};
use crate::common::servant::call;
use crate::common::{Order, Over, Peer, Wire};
use std::sync::Arc;

use deckwatch_cdr::{Any, DecodeError, Reader};
use deckwatch_orb::transport::{PacketPriority, StreamOptions};
use deckwatch_orb::{
    Completion, NetworkPriority, NetworkPriorityMapping, ObjectRef, Orb, Policies, Policy,
    PolicyErrorCode, PolicyType, Priority, PriorityBand, PriorityModel, Protocol, SetOverrideType,
    SharedMemoryProtocolProperties, SystemException, SystemExceptionKind as Kind,
    TcpProtocolProperties, ThreadpoolError, ThreadpoolId, UnixDomainProtocolProperties, minor,
    own_minor,
};

fn priority(number: i16) -> Priority {
    Priority::new(number).expect("not negative")
}

fn band(low: i16, high: i16) -> PriorityBand {
    PriorityBand {
        low: priority(low),
        high: priority(high),
    }
}

#[test]
fn policies_have_what_they_were_made_with() {
    let orb = client();
    let rt = orb.rt_orb();
    let model = rt.create_priority_model_policy(PriorityModel::ServerDeclared, priority(9));
    assert_eq!(
        (model.priority_model, model.server_priority),
        (PriorityModel::ServerDeclared, priority(9))
    );
    let bands = rt.create_priority_banded_connection_policy(&[band(0, 4), band(5, 9)]);
    assert_eq!(
        bands.map(|bands| bands.to_vec()),
        Ok(vec![band(0, 4), band(5, 9)])
    );
    let tcp = rt.create_tcp_protocol_properties(1, 2, true, false, true, false);
    let expected = TcpProtocolProperties {
        send_buffer_size: 1,
        recv_buffer_size: 2,
        ..TcpProtocolProperties::default()
    };
    assert_eq!(tcp, expected);
    let unix = rt.create_unix_domain_protocol_properties(3, 4);
    let expected = UnixDomainProtocolProperties {
        send_buffer_size: 3,
        recv_buffer_size: 4,
    };
    assert_eq!(unix, expected);
    let memory = rt.create_shared_memory_protocol_properties(5, "file", "lock");
    let expected = SharedMemoryProtocolProperties {
        preallocate_buffer_size: 5,
        mmap_filename: "file".to_owned(),
        mmap_lockname: "lock".to_owned(),
    };
    assert_eq!(memory, expected);
    let list = [
        Protocol::shared_memory(memory),
        Protocol::tcp(tcp),
        Protocol::unix_domain(unix),
    ];
    for made in [
        rt.create_client_protocol_policy(&list),
        rt.create_server_protocol_policy(&list),
    ] {
        assert_eq!(made.map(|made| made.to_vec()), Ok(list.to_vec()));
    }
    assert_eq!(
        rt.create_private_connection_policy(),
        Policy::PrivateConnection
    );
}

#[test]
fn what_cannot_be_meant_is_refused_when_the_policy_is_made() {
    let orb = client();
    let rt = orb.rt_orb();
    let refused = SystemException::new(Kind::BadParam, 0, Completion::No);
    let bands = rt.create_priority_banded_connection_policy(&[band(5, 4)]);
    assert_eq!(bands, Err(refused));
    let negative = rt.create_tcp_protocol_properties(-1, 0, true, false, true, false);
    assert_eq!(
        rt.create_client_protocol_policy(&[Protocol::tcp(negative)]),
        Err(refused)
    );
    let tcp = Protocol::tcp(TcpProtocolProperties::default());
    assert_eq!(
        rt.create_server_protocol_policy(&[tcp.clone(), tcp]),
        Err(refused)
    );
    let pool = rt.create_threadpool_policy(ThreadpoolId(99));
    assert!(
        matches!(pool, Err(ThreadpoolError::InvalidThreadpool)),
        "{pool:?}"
    );
    let absent = SystemException::new(Kind::NoImplement, 0, Completion::No);
    assert_eq!(rt.create_user_datagram_protocol_properties(), Err(absent));
    assert_eq!(rt.create_stream_control_protocol_properties(), Err(absent));
}

#[test]
fn a_threadpool_policy_is_made_of_a_pool_that_there_is() {
    let world = LaneWorld::new(Over::Tcp);
    let pool = world.pool(&[5]);
    let policy = world.orb.rt_orb().create_threadpool_policy(pool);
    assert!(policy.is_ok_and(|policy| policy == pool));
}

#[test]
fn numbers_of_policies_are_the_standards() {
    let numbers = [
        PolicyType::PRIORITY_MODEL,
        PolicyType::CLIENT_PROTOCOL,
        PolicyType::PRIVATE_CONNECTION,
        PolicyType::PRIORITY_BANDED_CONNECTION,
    ];
    assert_eq!(numbers.map(|kind| kind.0), [40, 43, 44, 45]);
    let value = Any::from_value(&0_u32).expect("short");
    assert_eq!(
        Policy::create(PolicyType(44), &value),
        Ok(Policy::PrivateConnection)
    );
    // Only RTORB creates the other policies.
    for number in [40, 41, 42, 43, 45] {
        let made = Policy::create(PolicyType(number), &value);
        assert_eq!(made, Err(PolicyErrorCode::UnsupportedPolicy));
    }
}

#[test]
fn policies_may_be_set_for_the_orb_the_thread_and_the_object_and_the_closest_counts() {
    let peer = Peer::answering_all(Over::Tcp, |_, heard| done(heard));
    let orb = client();
    let object = Reference::without_lanes(&peer).propagated(0).seen_by(&orb);
    let kind = PolicyType::PRIORITY_BANDED_CONNECTION;
    let policy = |high| {
        let made = orb
            .rt_orb()
            .create_priority_banded_connection_policy(&[band(0, high)]);
        Policy::PriorityBandedConnection(made.expect("in order"))
    };
    assert_eq!(object.policy(kind), Ok(None));
    let set = SetOverrideType::SetOverride;
    let of_orb = orb.policy_manager();
    of_orb
        .set_policy_overrides(&[policy(1)], set)
        .expect("one of a kind");
    assert_eq!(object.policy(kind), Ok(Some(policy(1))));
    fresh(|| {
        let of_thread = orb.policy_current();
        of_thread
            .set_policy_overrides(&[policy(2)], set)
            .expect("one of a kind");
        assert_eq!(object.policy(kind), Ok(Some(policy(2))));
        let own = object
            .set_policy_overrides(&[policy(3)], set)
            .expect("one of a kind");
        assert_eq!(own.policy(kind), Ok(Some(policy(3))));
        assert_eq!(own.client_policy(kind), Ok(Some(policy(3))));
        assert_eq!(own.policy_overrides(&[kind]), [policy(3)]);
    });
    assert_eq!(object.policy(kind), Ok(Some(policy(1))));
    let twice = object
        .set_policy_overrides(&[policy(1), policy(2)], set)
        .map(drop);
    assert_eq!(
        twice,
        Err(SystemException::new(
            Kind::BadParam,
            minor::omg(30),
            Completion::No
        ))
    );
}

#[test]
fn a_reference_tells_the_priority_model_of_its_object() {
    let world = LaneWorld::new(Over::Tcp);
    let pool = Some(world.pool(&[5, 90]));
    let client = client();
    for (name, priority_model) in [
        ("open", None),
        ("declared", declared(90)),
        ("propagated", propagated(5)),
    ] {
        let policies = Policies {
            threadpool: pool.filter(|_| priority_model.is_some()),
            priority_model,
            ..Policies::default()
        };
        let told = world.object(&world.adapter(name, &policies));
        let object = seen(&client, &told);
        assert_eq!(object.priority_model(), Ok(priority_model));
        assert_eq!(
            object
                .client_policy(PolicyType::PRIORITY_MODEL)
                .map_err(|error| error.kind),
            Err(Kind::InvPolicy)
        );
    }
}

fn seen(client: &Orb, told: &DecodedReference) -> ObjectRef {
    let object = client.string_to_object(&told.text).expect("a reference");
    object.expect("not nil")
}

/// Policies of an adapter with lanes 5 and 90; objects are served at their callers' priority.
fn two_lanes(world: &LaneWorld) -> Policies {
    Policies {
        threadpool: Some(world.pool(&[5, 90])),
        priority_model: propagated(5),
        ..Policies::default()
    }
}

/// The priority and the name of the servant's thread.
fn served(object: &ObjectRef) -> Result<(i16, String), SystemException> {
    let read = |r: &mut Reader<'_>| -> Result<(i16, String), DecodeError> {
        let octets = r.read_octets(2)?;
        let priority = i16::from_ne_bytes([octets[0], octets[1]]);
        let name = r.read_octet_sequence()?.to_vec();
        Ok((priority, String::from_utf8(name).expect("plain names")))
    };
    object.invoke("the_priority", |_| Ok(()), read, |_, _| Ok(None))
}

#[test]
fn a_caller_is_served_at_his_priority_by_the_lane_that_has_it() {
    let world = LaneWorld::new(Over::Tcp);
    let told = world.object(&world.adapter("propagated", &two_lanes(&world)));
    let client = client();
    let object = seen(&client, &told);
    let mut threads = Vec::new();
    for number in [5, 90] {
        let (priority, thread) = at(&client, number, || served(&object)).expect("a lane");
        assert_eq!(priority, number);
        threads.push(thread);
    }
    assert_ne!(threads[0], threads[1]);
    assert_eq!(
        fresh(|| served(&object)).map(|(priority, _)| priority),
        Ok(5)
    );
    let missed = at(&client, 6, || served(&object));
    assert_eq!(
        missed.map_err(|exception| exception.kind),
        Err(Kind::InvPolicy)
    );
}

#[test]
fn lanes_that_listen_within_the_host_are_found_there() {
    for over in [Over::Unix, Over::Shared] {
        let world = LaneWorld::new(over);
        let told = world.object(&world.adapter("local", &two_lanes(&world)));
        let client = client();
        let object = seen(&client, &told);
        let lane_of = |number| at(&client, number, || served(&object)).expect("a lane");
        let (low, high) = (lane_of(5), lane_of(90));
        assert_eq!((low.0, high.0), (5, 90), "{over:?}");
        assert_ne!(low.1, high.1, "{over:?}");
        let missed = at(&client, 6, || served(&object));
        assert_eq!(
            missed.map_err(|exception| exception.kind),
            Err(Kind::InvPolicy)
        );
    }
}

#[test]
fn a_caller_of_a_pool_without_lanes_is_served_at_his_priority() {
    let world = LaneWorld::new(Over::Tcp);
    let pool = world
        .orb
        .rt_orb()
        .create_threadpool(0, 2, 0, priority(3), None);
    let policies = Policies {
        threadpool: Some(pool.expect("the time-sharing class needs no permission")),
        priority_model: propagated(3),
        ..Policies::default()
    };
    let told = world.object(&world.adapter("laneless", &policies));
    let client = client();
    let object = seen(&client, &told);
    for number in [0, 77, 32_767] {
        let priority = at(&client, number, || served(&object)).map(|(priority, _)| priority);
        assert_eq!(priority, Ok(number));
    }
}

#[test]
fn bands_that_the_server_tells_lead_callers_of_a_band_to_its_lane() {
    let world = LaneWorld::new(Over::Tcp);
    let client = client();
    let rt = client.rt_orb();
    let bands = rt.create_priority_banded_connection_policy(&[band(0, 49), band(50, 32_767)]);
    let policies = Policies {
        priority_bands: Some(bands.expect("in order")),
        ..two_lanes(&world)
    };
    let object = seen(&client, &world.object(&world.adapter("banded", &policies)));
    let lane_of = |number| at(&client, number, || served(&object)).expect("a lane").1;
    let lanes = [0, 49, 50, 32_767].map(lane_of);
    assert_eq!((&lanes[0], &lanes[2]), (&lanes[1], &lanes[3]));
    assert_ne!(lanes[0], lanes[2]);
    assert_eq!(at(&client, 60, || object.validate_connection()), Ok(true));
    assert_eq!(at(&client, 60, || call(&object, "ping")), Ok(()));
}

#[test]
fn a_server_takes_a_band_that_its_lane_lies_in_and_refuses_others() {
    let world = LaneWorld::new(Over::Tcp);
    let told = world.object(&world.adapter("propagated", &two_lanes(&world)));
    let bind = |number, order, range: Option<(i16, i16)>| {
        let mut request = told.request("_bind_priority_band");
        request.form.1 = order;
        if let Some((low, high)) = range {
            let mut data = Octets::encapsulation(order);
            data.u16(low.cast_unsigned()).u16(high.cast_unsigned());
            request = request.context(RT_CORBA_PRIORITY_RANGE, &data.octets);
        }
        let mut wire = Wire::at(&told.lane(number));
        let reply = wire.ask(&request.bare()).reply();
        // The connection still serves, whatever the request contained.
        let after = wire.ask(&told.request("the_priority").id(2).bare()).reply();
        assert_eq!(heard_priority(after).0, number);
        reply
    };
    for order in [Order::Big, Order::Little] {
        for (number, range) in [(5, (0, 9)), (90, (90, 90)), (90, (0, 32_767))] {
            let reply = bind(number, order, Some(range));
            assert_eq!((reply.status, reply.body.rest()), (NO_EXCEPTION, &b""[..]));
        }
        for (number, range, refused) in [
            (5, Some((6, 9)), "INV_POLICY"),
            (90, Some((0, 89)), "INV_POLICY"),
            (90, Some((9, 0)), "BAD_PARAM"),
            (90, Some((-1, 99)), "BAD_PARAM"),
            (5, None, "BAD_PARAM"),
        ] {
            let (id, _, _) = bind(number, order, range).exception();
            assert_eq!(id, format!("IDL:omg.org/CORBA/{refused}:1.0"), "{range:?}");
        }
    }
}

#[test]
fn a_server_takes_connections_as_its_protocol_policy_has_it_and_lanes_their_network_priority() {
    let asked = Asked::default();
    let transport = asked.transport();
    let rt = client().rt_orb();
    let tcp = rt.create_tcp_protocol_properties(20_000, 30_000, false, false, false, true);
    let protocols = rt.create_server_protocol_policy(&[Protocol::tcp(tcp)]);
    let builder = Orb::builder()
        .transport(Arc::new(transport))
        .server_protocols(protocols.expect("sound"));
    let world = LaneWorld::with(Over::Tcp, builder);
    world.pool(&[0, 32_767]);
    let listened = asked.take().into_iter().map(|(_, options)| options);
    let packets = |dscp, queue| Some(PacketPriority { dscp, queue });
    // The endpoint of the root adapter has no priority, which counts as 0.
    let expected = [packets(0, 0), packets(0, 0), packets(46, 6)].map(|packets| StreamOptions {
        send_buffer: 20_000,
        receive_buffer: 30_000,
        keep_alive: false,
        no_delay: false,
        dont_route: false,
        packets,
    });
    assert_eq!(listened.collect::<Vec<_>>(), expected);
    // A pool is not created if the host does not permit the mapped priority.
    let manager = world.orb.network_priority_mapping_manager();
    manager.set_mapping(Highest);
    let lanes = [common::lanes::lane(5)];
    let pool = world
        .orb
        .rt_orb()
        .create_threadpool_with_lanes(0, &lanes, false, None);
    let denied = SystemException::new(
        Kind::NoPermission,
        own_minor::NETWORK_PRIORITY_DENIED,
        Completion::No,
    );
    assert_eq!(pool.map(drop), Err(denied));
}

/// A mapping to a priority that needs a privilege.
struct Highest;

impl NetworkPriorityMapping for Highest {
    fn to_network(&self, _: Priority) -> Option<NetworkPriority> {
        Some(NetworkPriority { dscp: 46, queue: 7 })
    }

    fn to_corba(&self, _: NetworkPriority) -> Option<Priority> {
        None
    }
}
