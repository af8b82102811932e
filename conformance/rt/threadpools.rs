//! Threadpools and priority models by clause (RTCORBA 1.2): hand-made requests to the endpoints in references. TCP
//! only: the ports in references, the life cycle of pools, and policies, which do not depend on the transport.

use crate::common;
use crate::common::ior::Ior;
use crate::common::lanes::{
    DecodedReference, LaneWorld, RT_CORBA_PRIORITY, RT_CORBA_PRIORITY_RANGE, declared,
    heard_priority, lane, priority, priority_context, propagated,
};
use crate::common::message::{LOCATION_FORWARD, NO_EXCEPTION};
use crate::common::{Over, Wire, over_each, wait_for};
use deckwatch_orb::{
    Completion, Counter, ObjectRef, PoaError, Policies, PriorityBand, PriorityBands,
    SystemException, SystemExceptionKind as Kind, ThreadPolicy, ThreadpoolError, ThreadpoolId,
    ThreadpoolLane, minor,
};

/// A LocateStatusType.
const OBJECT_FORWARD: u32 = 2;

fn kind_of<T: std::fmt::Debug>(outcome: Result<T, SystemException>) -> Kind {
    outcome.expect_err("an exception").kind
}

fn bands(bands: &[(i16, i16)]) -> Option<PriorityBands> {
    let band = |&(low, high): &(i16, i16)| PriorityBand {
        low: priority(low),
        high: priority(high),
    };
    let bands: Vec<_> = bands.iter().map(band).collect();
    Some(PriorityBands::new(&bands).expect("in order"))
}

/// A server with lanes, and an object whose callers send their priority (CLIENT_PROPAGATED).
fn propagating(over: Over, priorities: &[i16]) -> (LaneWorld, DecodedReference) {
    let world = LaneWorld::new(over);
    let policies = Policies {
        threadpool: Some(world.pool(priorities)),
        priority_model: propagated(priorities[0]),
        ..Policies::default()
    };
    let poa = world.adapter("propagated", &policies);
    let told = world.object(&poa);
    (world, told)
}

#[test]
fn a_reference_tells_the_endpoint_of_each_lane_and_the_priority_model() {
    let (_world, told) = propagating(Over::Tcp, &[20, 5, 100]);
    assert_eq!(told.order(), [20, 5, 100]);
    let ports: std::collections::HashSet<_> = told.lanes.iter().map(|(_, port, _)| port).collect();
    assert_eq!(ports.len(), 3, "each lane has its own: {:?}", told.lanes);
    assert_eq!(told.address(), told.lane(20), "the first is the profile's");
    assert_eq!(told.model(), (0, 20));
}

/// Calls the witness as a client of ours. Returns the priority and the name of the serving thread.
fn ask_witness(object: &ObjectRef) -> (i16, String) {
    let asked: Result<(i16, Vec<u8>), SystemException> = object.invoke(
        "the_priority",
        |_| Ok(()),
        |r| {
            let octets = r.read_octets(2)?;
            let number = i16::from_ne_bytes([octets[0], octets[1]]);
            Ok((number, r.read_octet_sequence()?.to_vec()))
        },
        |_, _| Ok(None),
    );
    let (number, name) = asked.expect("it is served");
    (number, String::from_utf8(name).expect("plain names"))
}

over_each! {
    fn a_request_is_served_by_the_lane_whose_port_it_comes_to(over) {
        let (world, told) = propagating(over, &[20, 5, 100]);
        for number in [5, 20, 100] {
            let (served, thread) = told.ask_lane(number);
            assert_eq!(served, number, "{thread}");
        }
        assert_eq!(world.orb.counters().read(Counter::PriorityChanges), 0);
    }

    fn a_caller_without_a_priority_is_served_at_the_servers_wherever_its_lane_stands(over) {
        let world = LaneWorld::new(over);
        let pool = Some(world.pool(&[20, 5, 100]));
        let of = |number: i16, priority_bands| {
            let policies = Policies {
                threadpool: pool,
                priority_model: propagated(number),
                priority_bands,
                ..Policies::default()
            };
            let name = format!("{number}, {priority_bands:?}");
            world.object(&world.adapter(&name, &policies))
        };
        let two = || bands(&[(0, 10), (11, 100)]);
        for (told, order) in [
            (of(20, None), [20, 5, 100]),
            (of(5, None), [5, 20, 100]),
            (of(100, None), [100, 20, 5]),
            (of(100, two()), [100, 20, 5]),
            // No lane has this priority: the first lane of its band comes first, else the first lane of all.
            (of(7, two()), [5, 20, 100]),
            (of(7, None), [20, 5, 100]),
        ] {
            assert_eq!(told.order(), order);
            // TAO expects the profile's address to be that of the first lane.
            assert_eq!(told.place(), told.place_of(order[0]));
            assert_eq!(told.ask_over(told.dial(), None).0, order[0]);
        }
        assert_eq!(world.orb.counters().read(Counter::LanesMissed), 0);
    }

    fn the_priority_of_a_request_comes_back_with_its_reply_as_it_was(over) {
        let (_world, told) = propagating(over, &[20]);
        let data = priority_context(20);
        let request = told
            .request("ping")
            .context(RT_CORBA_PRIORITY, &data)
            .context(4_711, b"of nobody");
        let reply = told.dial().ask(&request.bare()).reply();
        assert_eq!(reply.status, NO_EXCEPTION);
        assert_eq!(reply.contexts, [(RT_CORBA_PRIORITY, data)]);
        let plain = told.request("ping").bare();
        let reply = told.dial().ask(&plain).reply();
        assert_eq!(reply.contexts, []);
    }

    fn objects_of_threadpools_are_served_by_its_threads_where_their_own_orb_calls_them_too(over) {
        let (world, told) = propagating(over, &[5, 90]);
        let laneless = Policies {
            threadpool: world.orb.rt_orb().create_threadpool(0, 1, 0, priority(30), None).ok(),
            ..Policies::default()
        };
        let laneless = world.object(&world.adapter("laneless", &laneless));
        for (told, caller, served) in [
            (&told, 90, (90, "orb-1.1-0")),
            (&told, 5, (5, "orb-1.0-0")),
            (&laneless, 90, (30, "orb-2.0-0")),
        ] {
            let object = world.orb.string_to_object(&told.text).expect("a reference");
            let object = object.expect("not nil");
            let (number, thread) = common::rt::at(&world.orb, caller, || ask_witness(&object));
            assert_eq!((number, thread.as_str()), served);
        }
        assert_eq!(world.orb.counters().read(Counter::CollocatedCalls), 0);
    }

    fn a_lane_whose_thread_is_kept_busy_holds_up_no_other(over) {
        let (world, told) = propagating(over, &[5, 90]);
        let mut low = told.dial_lane(5);
        low.say(&told.request("meet").bare());
        world.witness.probe.gate.wait_for_arrivals(1);
        for _ in 0..100 {
            assert_eq!(told.ask_lane(90).0, 90);
        }
        world.witness.probe.gate.open();
        assert_eq!(low.hear().expect("a reply").reply().status, NO_EXCEPTION);
    }

    fn an_object_of_a_declared_priority_is_told_at_its_lane_alone(over) {
        let world = LaneWorld::new(over);
        let policies = Policies {
            threadpool: Some(world.pool(&[5, 90])),
            priority_model: declared(90),
            ..Policies::default()
        };
        let told = world.object(&world.adapter("declared", &policies));
        assert_eq!(told.model(), (1, 90));
        assert_eq!(told.order(), [90]);
        // The priority in the request makes no difference.
        for said in [None, Some(5), Some(90)] {
            assert_eq!(told.ask_over(told.dial(), said).0, 90);
        }
    }

    fn a_request_at_the_lane_of_another_priority_or_another_pool_is_sent_to_its_own(over) {
        let world = LaneWorld::new(over);
        let pool = world.pool(&[5, 90]);
        let of = |priority_model, name| {
            let policies = Policies {
                threadpool: Some(pool),
                priority_model,
                ..Policies::default()
            };
            world.object(&world.adapter(name, &policies))
        };
        let (told, open) = (
            of(declared(90), "declared"),
            of(propagated(5), "propagated"),
        );
        let default = DecodedReference::of(
            &world
                .root
                .servant_to_reference(&world.servant())
                .expect("implicit"),
        );
        for (from, asked) in [(&open, &told), (&default, &told), (&told, &default)] {
            let request = asked.request("ping").bare();
            let mut reply = from.dial().ask(&request).reply();
            assert_eq!(reply.status, LOCATION_FORWARD);
            let forward = DecodedReference::of_ior("", &Ior::read(&mut reply.body));
            assert_eq!(forward.place(), asked.place());
            assert_eq!(forward.profile.key, asked.profile.key);
            let key = common::Address::Key(asked.profile.key.clone());
            let locate = common::message::locate((2, common::Order::Big), 7, &key);
            let mut located = from.dial().ask(&locate).body();
            assert_eq!((located.u32(), located.u32()), (7, OBJECT_FORWARD));
            let forward = DecodedReference::of_ior("", &Ior::read(&mut located));
            assert_eq!(forward.place(), asked.place());
        }
        assert_eq!(world.orb.counters().read(Counter::LanesMissed), 3);
    }

    fn a_thread_of_a_pool_without_lanes_takes_the_priority_of_each_request_and_gives_it_back(over) {
        let world = LaneWorld::new(over);
        let rt = world.orb.rt_orb();
        let pool = rt.create_threadpool(0, 1, 0, priority(30), None);
        let pool = Some(pool.expect("one thread"));
        let of = |priority_model, name| {
            let policies = Policies {
                threadpool: pool,
                priority_model,
                ..Policies::default()
            };
            world.object(&world.adapter(name, &policies))
        };
        let (plain, said, fixed) = (
            of(None, "a"),
            of(propagated(12), "b"),
            of(declared(44), "c"),
        );
        let changes = || world.orb.counters().read(Counter::PriorityChanges);
        let ask = |told: &DecodedReference, number| told.ask_over(told.dial(), number).0;
        assert_eq!((ask(&plain, None), changes()), (30, 0));
        assert_eq!((ask(&said, Some(70)), changes()), (70, 1));
        assert_eq!((ask(&plain, Some(70)), changes()), (30, 1));
        assert_eq!((ask(&said, None), changes()), (12, 2));
        assert_eq!((ask(&said, Some(30)), changes()), (30, 2));
        assert_eq!((ask(&fixed, Some(70)), changes()), (44, 3));
        assert!(plain.lanes.is_empty() && said.lanes.is_empty(), "no lanes");
        assert_eq!((said.model(), fixed.model()), ((0, 12), (1, 44)));
        assert!(plain.policies.is_empty());
    }

    fn the_pool_that_the_orb_begins_with_serves_priorities_too(over) {
        let world = LaneWorld::new(over);
        let policies = Policies {
            priority_model: propagated(3),
            ..Policies::default()
        };
        let told = world.object(&world.adapter("of the default pool", &policies));
        let plain = DecodedReference::of(
            &world
                .root
                .servant_to_reference(&world.servant())
                .expect("implicit"),
        );
        let mut wire = told.dial();
        for (said, served) in [(Some(9), 9), (None, 3)] {
            assert_eq!(told.ask_over(told.dial(), said).0, served);
            let reply = wire.ask(&plain.request("the_priority").bare()).reply();
            assert_eq!(heard_priority(reply).0, -1);
        }
    }

    fn a_priority_that_is_none_is_bad_param(over) {
        let world = LaneWorld::new(over);
        let policies = Policies {
            priority_model: propagated(3),
            ..Policies::default()
        };
        let told = world.object(&world.adapter("a", &policies));
        let request = told
            .request("ping")
            .context(RT_CORBA_PRIORITY, &priority_context(-1));
        let raised = told.dial().ask(&request.bare()).reply();
        assert_eq!(raised.exception().0, "IDL:omg.org/CORBA/BAD_PARAM:1.0");
    }
}

#[test]
fn a_threadpool_that_cannot_be_meant_is_bad_param() {
    let world = LaneWorld::new(Over::Tcp);
    let rt = world.orb.rt_orb();
    let idle = ThreadpoolLane {
        static_threads: 0,
        ..lane(5)
    };
    for lanes in [&[][..], &[idle], &[lane(5), lane(5)]] {
        let made = rt.create_threadpool_with_lanes(0, lanes, false, None);
        assert_eq!(kind_of(made), Kind::BadParam, "{lanes:?}");
    }
    let made = rt.create_threadpool(0, 0, 5, priority(5), None);
    assert_eq!(kind_of(made), Kind::BadParam);
    let endless = ThreadpoolLane {
        dynamic_threads: u32::MAX,
        ..lane(5)
    };
    let made = rt.create_threadpool_with_lanes(0, &[endless], false, None);
    assert_eq!(kind_of(made), Kind::ImpLimit);
}

#[test]
fn a_threadpool_is_destroyed_once_and_not_under_an_adapter() {
    let world = LaneWorld::new(Over::Tcp);
    let rt = world.orb.rt_orb();
    let invalid = Err(ThreadpoolError::InvalidThreadpool);
    assert_eq!(rt.destroy_threadpool(ThreadpoolId(0)), invalid);
    assert_eq!(rt.destroy_threadpool(ThreadpoolId(4_711)), invalid);
    let pool = world.pool(&[5]);
    let policies = Policies {
        threadpool: Some(pool),
        priority_model: propagated(5),
        ..Policies::default()
    };
    let poa = world.adapter("a", &policies);
    let address = world.object(&poa).address();
    let used = rt.destroy_threadpool(pool);
    let Err(ThreadpoolError::System(used)) = used else {
        panic!("an adapter uses it: {used:?}");
    };
    assert_eq!(used.kind, Kind::BadInvOrder);
    poa.destroy(false, true).expect("once");
    assert_eq!(rt.destroy_threadpool(pool), Ok(()));
    assert_eq!(rt.destroy_threadpool(pool), invalid);
    let (host, port) = address;
    let refused = std::net::TcpStream::connect((host.as_str(), port));
    assert!(refused.is_err(), "nobody listens there any more");
    let made = world.root.create_poa("b", None, &policies);
    assert_eq!(made.map(drop), Err(PoaError::InvalidPolicy(41)));
}

#[test]
fn policies_that_contradict_each_other_or_the_pool_make_no_adapter() {
    let world = LaneWorld::new(Over::Tcp);
    let lanes = Some(world.pool(&[5, 90]));
    let rt = world.orb.rt_orb();
    let pool = rt.create_threadpool(0, 1, 0, priority(30), None);
    let laneless = Some(pool.expect("one thread"));
    let refused = |policies: Policies| {
        let made = world.root.create_poa("refused", None, &policies);
        made.map(drop).expect_err("policies that contradict")
    };
    let with = |threadpool, priority_model, priority_bands| Policies {
        threadpool,
        priority_model,
        priority_bands,
        ..Policies::default()
    };
    let invalid = PoaError::InvalidPolicy;
    assert_eq!(refused(with(lanes, None, None)), invalid(41));
    assert_eq!(refused(with(lanes, declared(6), None)), invalid(40));
    let main = Policies {
        thread: ThreadPolicy::MainThreadModel,
        ..with(lanes, declared(5), None)
    };
    assert_eq!(refused(main), invalid(16));
    for (model, list) in [
        (propagated(5), &[][..]),
        (propagated(5), &[(0, 10), (11, 89)]),
        (declared(5), &[(80, 100)]),
    ] {
        assert_eq!(refused(with(lanes, model, bands(list))), invalid(45));
    }
    let without_model = refused(with(laneless, None, bands(&[(0, 10)])));
    let PoaError::System(exception) = without_model else {
        panic!("a system exception: {without_model:?}");
    };
    assert_eq!(exception.kind, Kind::InvPolicy);
    let together = [
        with(lanes, propagated(5), bands(&[(0, 10), (11, 90)])),
        with(lanes, declared(5), bands(&[(0, 10)])),
        with(laneless, propagated(1), bands(&[(0, 10)])),
    ];
    for (number, policies) in together.iter().enumerate() {
        world.adapter(&number.to_string(), policies);
    }
}

#[test]
fn bands_are_told_in_the_reference() {
    let world = LaneWorld::new(Over::Tcp);
    let policies = Policies {
        threadpool: Some(world.pool(&[5, 90])),
        priority_model: propagated(5),
        priority_bands: bands(&[(0, 10), (11, 90)]),
        ..Policies::default()
    };
    let told = world.object(&world.adapter("banded", &policies));
    let (_, value) = told
        .policies
        .iter()
        .find(|(number, _)| *number == 45)
        .expect("the bands");
    let mut value = common::Cursor::encapsulated(value);
    assert_eq!(value.u32(), 2);
    let numbers: Vec<_> = (0..4).map(|_| value.u16()).collect();
    assert_eq!(numbers, [0, 10, 11, 90]);
}

#[test]
fn a_lane_listens_where_it_is_told_to() {
    let path = common::fresh_path();
    let builder = deckwatch_orb::Orb::builder();
    let builder = builder.lane_listen("1:1", &format!("unix:{path}"));
    let world = LaneWorld::with(Over::Tcp, builder.expect("well written"));
    let pool = Some(world.pool(&[5, 90]));
    for (number, is_there) in [(5, false), (90, true)] {
        let policies = Policies {
            threadpool: pool,
            priority_model: declared(number),
            ..Policies::default()
        };
        let told = world.object(&world.adapter(&number.to_string(), &policies));
        // The port of a profile without TCP is 0.
        assert_eq!(told.profile.port == 0, is_there);
        let named = |(_, data): &(u32, Vec<u8>)| {
            data.windows(path.len()).any(|part| part == path.as_bytes())
        };
        assert_eq!(
            told.profile.components.iter().any(named),
            is_there,
            "{number}"
        );
    }
    assert!(std::path::Path::new(&path).exists());
    world.orb.shutdown(true).expect("once");
    assert!(!std::path::Path::new(&path).exists());
}

/// The data of an RTCorbaPriorityRange service context.
fn range(low: u16, high: u16) -> Vec<u8> {
    let mut data = common::Octets::encapsulation(common::Order::Big);
    data.u16(low).u16(high);
    data.octets
}

over_each! {
    fn a_band_is_bound_to_a_connection_of_a_lane_that_it_holds(over) {
        let (world, told) = propagating(over, &[20, 90]);
        let bind = |told: &DecodedReference, mut wire: Wire, context: Option<Vec<u8>>| {
            let mut request = told.request("_bind_priority_band");
            if let Some(data) = context {
                request = request.context(RT_CORBA_PRIORITY_RANGE, &data);
            }
            wire.ask(&request.bare()).reply()
        };
        for band in [range(90, 90), range(0, 32_767)] {
            let reply = bind(&told, told.dial_lane(90), Some(band));
            assert_eq!((reply.status, reply.body.rest().len()), (NO_EXCEPTION, 0));
        }
        let refused = |context| bind(&told, told.dial_lane(90), context).exception().0;
        assert_eq!(
            refused(Some(range(20, 89))),
            "IDL:omg.org/CORBA/INV_POLICY:1.0"
        );
        for context in [None, Some(range(90, 20)), Some(range(0x8000, 90))] {
            assert_eq!(refused(context), "IDL:omg.org/CORBA/BAD_PARAM:1.0");
        }
        // Threads of a pool without lanes accept any priority.
        let rt = world.orb.rt_orb();
        let pool = rt.create_threadpool(0, 1, 0, priority(30), None);
        let policies = Policies {
            threadpool: Some(pool.expect("one thread")),
            priority_model: propagated(30),
            ..Policies::default()
        };
        let open = world.object(&world.adapter("without lanes", &policies));
        let reply = bind(&open, open.dial(), Some(range(70, 90)));
        assert_eq!(reply.status, NO_EXCEPTION);
    }

    fn no_pool_is_made_while_the_orb_shuts_down(over) {
        let (world, told) = propagating(over, &[5]);
        let mut served = told.dial();
        served.say(&told.request("meet").bare());
        world.witness.probe.gate.wait_for_arrivals(1);
        world.orb.shutdown(false).expect("once");
        // The shutdown has begun once connecting fails; it waits for the request in progress.
        wait_for(|| Wire::reach(&told.place()).is_err());
        let rt = world.orb.rt_orb();
        let ended = SystemException::new(Kind::BadInvOrder, minor::omg(4), Completion::No);
        let made = rt.create_threadpool(0, 1, 0, priority(30), None);
        assert_eq!(made, Err(ended), "nobody would end it");
        world.witness.probe.gate.open();
        assert_eq!(served.hear().expect("a reply").reply().status, NO_EXCEPTION);
    }
}
