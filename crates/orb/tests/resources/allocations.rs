//! After the seal, neither side allocates memory for a call. The count is also checked to detect an allocation.
//!
//! The test has a process of its own, because the allocator counts the whole process.

use std::sync::Arc;
use std::time::Duration;

use crate::around::Around;
use crate::counting;
use crate::support;
use crate::support::{Server, call, call_octets, note, noted};
use deckwatch_orb::limits::EARLY_REQUESTS_MAX;
use deckwatch_orb::transport::Transport;
use deckwatch_orb::{
    Counter, IdUniqueness, Lifespan, ObjectRef, Orb, OrbBuilder, Policies, Policy, Priority,
    PriorityBand, PriorityBands, PriorityModel, PriorityModelPolicy, Protocol, Protocols,
    RebindMode, RequestBuffering, RequestProcessing, Scheduling, ServantRetention, SetOverrideType,
    SyncScope, SystemException, TcpProtocolProperties, ThreadPolicy, ThreadpoolLane, UtcT,
};
use deckwatch_testkit::alone;

const CALLS: usize = 1_000;

/// Allocations of the whole process, client and server, during `CALLS` calls of the server's first object.
fn allocations_of(prepare: impl Fn(&Server, &ObjectRef), one: impl Fn(&ObjectRef)) -> usize {
    allocations_with(|_, _, bench| bench.clone(), prepare, one)
}

/// The same for another reference: `configure` derives it from the first object's, or it denotes another object.
fn allocations_with(
    configure: impl Fn(&Server, &Orb, &ObjectRef) -> ObjectRef,
    prepare: impl Fn(&Server, &ObjectRef),
    one: impl Fn(&ObjectRef),
) -> usize {
    allocations_at("127.0.0.1:0", Orb::builder(), configure, prepare, one)
}

fn allocations_at(
    endpoint: &str,
    client: OrbBuilder,
    configure: impl Fn(&Server, &Orb, &ObjectRef) -> ObjectRef,
    prepare: impl Fn(&Server, &ObjectRef),
    one: impl Fn(&ObjectRef),
) -> usize {
    // Threads started under load allocate memory; a sealed server with a fixed number of threads starts none.
    let fixed = Orb::builder()
        .listen(endpoint)
        .unwrap()
        .dynamic_threads(0)
        .scheduling(Scheduling::Other)
        .buffer_size(64 << 10)
        .build()
        .unwrap();
    let server = Server::with(fixed);
    let client = client
        .scheduling(Scheduling::Other)
        .buffer_size(64 << 10)
        .build()
        .unwrap();
    let bench = client.string_to_object(&server.text).unwrap().unwrap();
    let bench = configure(&server, &client, &bench);
    prepare(&server, &bench);
    server.orb.seal();
    client.seal();
    // First, threads are started, connections opened and adopted.
    for _ in 0..200 {
        one(&bench);
    }
    let before = counting::allocations();
    for _ in 0..CALLS {
        one(&bench);
    }
    let counted = counting::allocations() - before;
    server.orb.shutdown(true).expect("it ends");
    counted
}

/// Echoes octets and compares the result without copying it.
fn octets_borrowed(reference: &ObjectRef, octets: &[u8]) {
    let equal: Result<bool, SystemException> = reference.invoke(
        "octets",
        |w| w.write_octet_sequence(octets),
        |r| Ok(r.read_octet_sequence()? == octets),
        |_, _| Ok(None),
    );
    assert_eq!(equal, Ok(true));
}

fn calls_take_no_memory() {
    assert_eq!(
        allocations_of(|_, _| {}, |bench| call(bench, "ping").unwrap()),
        0
    );
    for len in [64, 4_096, 60_000] {
        let octets = vec![7; len];
        assert_eq!(
            allocations_of(|_, _| {}, |bench| octets_borrowed(bench, &octets)),
            0,
            "{len}"
        );
    }
    assert_eq!(
        allocations_of(|_, _| {}, |bench| assert!(call(bench, "fail").is_err())),
        0
    );
}

fn calls_through_shared_memory_take_no_memory() {
    let octets = vec![7; 60_000];
    let endpoint = format!("shm:{}", support::socket_path());
    let configure = |_: &Server, _: &Orb, bench: &ObjectRef| bench.clone();
    let one = |bench: &ObjectRef| {
        call(bench, "ping").unwrap();
        octets_borrowed(bench, &octets);
    };
    assert_eq!(
        allocations_at(&endpoint, Orb::builder(), configure, |_, _| {}, one),
        0
    );
}

/// The fragments are joined in the buffer that messages are written to.
fn fragmented_calls_take_no_memory() {
    for len in [8_000, 20_000, 60_000] {
        let octets = vec![7; len];
        let client = Orb::builder().fragment_size(4_096);
        let configure = |_: &Server, _: &Orb, bench: &ObjectRef| bench.clone();
        let one = |bench: &ObjectRef| octets_borrowed(bench, &octets);
        let counted = allocations_at("127.0.0.1:0", client, configure, |_, _| {}, one);
        assert_eq!(counted, 0, "{len}");
    }
}

fn oneways_take_no_memory() {
    let reserve =
        |server: &Server, _: &ObjectRef| server.bench.order.lock().unwrap().reserve(CALLS * 2);
    let one = |bench: &ObjectRef| {
        note(bench, 1).unwrap();
        noted(bench).unwrap();
    };
    assert_eq!(allocations_of(reserve, one), 0);
}

/// The policies of all levels are combined again for each call. A one-way with one of these scopes has a reply.
fn policies_take_no_memory() {
    let timeout = |seconds| Policy::RelativeRoundtripTimeout(Duration::from_secs(seconds));
    let add = SetOverrideType::AddOverride;
    for scope in [SyncScope::WithServer, SyncScope::WithTarget] {
        let one = |bench: &ObjectRef| {
            let sent = bench.invoke_oneway("ping", |_| Ok(()));
            assert_eq!(sent, Ok(()));
            call(bench, "ping").unwrap();
        };
        let counted = allocations_with(
            |_, client, bench| {
                let orb_wide = [timeout(60), Policy::SyncScope(scope)];
                let manager = client.policy_manager();
                manager.set_policy_overrides(&orb_wide, add).unwrap();
                let current = client.policy_current();
                current.set_policy_overrides(&[timeout(50)], add).unwrap();
                let own = Policy::Rebind(RebindMode::NoReconnect);
                bench.set_policy_overrides(&[own], add).unwrap()
            },
            |_, _| {},
            one,
        );
        assert_eq!(counted, 0, "{scope:?}");
    }
}

/// One-ways that wait in a queue, in borrowed buffers.
fn posted_oneways_take_no_memory() {
    let reserve =
        |server: &Server, _: &ObjectRef| server.bench.order.lock().unwrap().reserve(CALLS * 2);
    let configure = |_: &Server, _: &Orb, bench: &ObjectRef| {
        let none = Policy::SyncScope(SyncScope::None);
        let how = SetOverrideType::AddOverride;
        bench.set_policy_overrides(&[none], how).unwrap()
    };
    let one = |bench: &ObjectRef| {
        let before = noted(bench).unwrap();
        note(bench, 1).unwrap();
        while noted(bench).unwrap() == before {
            std::thread::yield_now();
        }
    };
    assert_eq!(allocations_with(configure, reserve, one), 0);
}

fn objects_of_every_adapter_take_no_memory() {
    let persistent = Policies::persistent();
    let by_default = Policies {
        request_processing: RequestProcessing::UseDefaultServant,
        id_uniqueness: IdUniqueness::MultipleId,
        ..persistent
    };
    let not_retained = Policies {
        servant_retention: ServantRetention::NonRetain,
        ..by_default
    };
    let single = Policies {
        thread: ThreadPolicy::SingleThreadModel,
        ..persistent
    };
    let transient = Policies {
        lifespan: Lifespan::Transient,
        ..persistent
    };
    for policies in [persistent, by_default, not_retained, single, transient] {
        let refer = |server: &Server, client: &Orb, _: &ObjectRef| {
            let manager = server.root.the_poa_manager();
            let poa = server.root.create_poa("other", Some(manager), &policies);
            let poa = poa.unwrap();
            if policies.request_processing == RequestProcessing::UseDefaultServant {
                poa.set_servant(server.bench.clone()).unwrap();
            } else {
                poa.activate_object_with_id(b"id", server.bench.clone())
                    .unwrap();
            }
            let made = poa.create_reference_with_id(b"id", support::TEST_ID);
            let text = made.unwrap().to_string();
            client.string_to_object(&text).unwrap().unwrap()
        };
        let counted = allocations_with(refer, |_, _| {}, |object| call(object, "ping").unwrap());
        assert_eq!(counted, 0, "{policies:?}");
    }
}

/// Objects of the caller's own ORB: no network, and one marshalling in each direction.
fn collocated_calls_take_no_memory() {
    let own = |server: &Server, _: &Orb, _: &ObjectRef| {
        server.orb.string_to_object(&server.text).unwrap().unwrap()
    };
    let octets = vec![7; 60_000];
    let plain = allocations_with(
        own,
        |_, _| {},
        |bench| {
            call(bench, "ping").unwrap();
            octets_borrowed(bench, &octets);
            assert!(call(bench, "fail").is_err());
        },
    );
    assert_eq!(plain, 0);
    let reserve =
        |server: &Server, _: &ObjectRef| server.bench.order.lock().unwrap().reserve(CALLS * 2);
    let sent = allocations_with(own, reserve, |bench| note(bench, 1).unwrap());
    assert_eq!(sent, 0);
}

/// Requests served by threads of lanes; by threads of a pool without lanes, which change their priority for each call;
/// and requests that wait.
fn requests_of_threadpools_take_no_memory() {
    let priority = |number| Priority::new(number).expect("not negative");
    let model = |priority_model| {
        Some(PriorityModelPolicy {
            priority_model,
            server_priority: priority(7),
        })
    };
    let lane = |number| ThreadpoolLane {
        lane_priority: priority(number),
        static_threads: 1,
        dynamic_threads: 0,
    };
    let buffering = Some(RequestBuffering::default());
    for (has_lanes, buffering, priority_model) in [
        (true, None, PriorityModel::ServerDeclared),
        (true, buffering, PriorityModel::ClientPropagated),
        (false, None, PriorityModel::ServerDeclared),
    ] {
        let refer = |server: &Server, client: &Orb, _: &ObjectRef| {
            let rt = server.orb.rt_orb();
            let pool = if has_lanes {
                rt.create_threadpool_with_lanes(0, &[lane(7), lane(9)], true, buffering)
            } else {
                rt.create_threadpool(0, 1, 0, priority(3), buffering)
            };
            let policies = Policies {
                threadpool: Some(pool.unwrap()),
                priority_model: model(priority_model),
                ..Policies::default()
            };
            let manager = server.root.the_poa_manager();
            let poa = server.root.create_poa("pool", Some(manager), &policies);
            let poa = poa.unwrap();
            let id = poa.activate_object(server.bench.clone()).unwrap();
            let text = poa.id_to_reference(&id).unwrap().to_string();
            client.string_to_object(&text).unwrap().unwrap()
        };
        let counted = allocations_with(refer, |_, _| {}, |object| call(object, "ping").unwrap());
        assert_eq!(counted, 0, "{has_lanes} {buffering:?} {priority_model:?}");
    }
}

/// Bands, a private connection, client protocols, and a caller that changes its priority and so its lane.
fn ways_of_real_time_take_no_memory() {
    let priority = |number| Priority::new(number).expect("not negative");
    let band = |low, high| PriorityBand {
        low: priority(low),
        high: priority(high),
    };
    let lane = |number| ThreadpoolLane {
        lane_priority: priority(number),
        static_threads: 1,
        dynamic_threads: 0,
    };
    let current = std::cell::OnceCell::new();
    let refer = |server: &Server, client: &Orb, _: &ObjectRef| {
        let rt = server.orb.rt_orb();
        let pool = rt.create_threadpool_with_lanes(0, &[lane(5), lane(90)], false, None);
        let policies = Policies {
            threadpool: Some(pool.unwrap()),
            priority_model: Some(PriorityModelPolicy {
                priority_model: PriorityModel::ClientPropagated,
                server_priority: priority(5),
            }),
            ..Policies::default()
        };
        let manager = server.root.the_poa_manager();
        let poa = server.root.create_poa("ways", Some(manager), &policies);
        let poa = poa.unwrap();
        let id = poa.activate_object(server.bench.clone()).unwrap();
        let text = poa.id_to_reference(&id).unwrap().to_string();
        let _first = current.set(client.rt_current());
        let tcp = Protocol::tcp(TcpProtocolProperties {
            enable_network_priority: true,
            ..TcpProtocolProperties::default()
        });
        let own = [
            Policy::PrivateConnection,
            Policy::ClientProtocol(Protocols::new(&[tcp]).unwrap()),
            Policy::PriorityBandedConnection(
                PriorityBands::new(&[band(0, 9), band(10, 99)]).unwrap(),
            ),
        ];
        let object = client.string_to_object(&text).unwrap().unwrap();
        let how = SetOverrideType::SetOverride;
        object.set_policy_overrides(&own, how).unwrap()
    };
    let one = |object: &ObjectRef| {
        let current = current.get().expect("set before the first call");
        for number in [5, 7, 60, 99] {
            current.set_the_priority(priority(number)).unwrap();
            call(object, "ping").unwrap();
        }
    };
    assert_eq!(allocations_with(refer, |_, _| {}, one), 0);
}

/// As many requests as may be kept until their start time, and calls meanwhile.
fn requests_that_come_too_early_take_no_memory() {
    let second_ns = 1_000_000_000;
    let fixed = Orb::builder()
        .listen("127.0.0.1:0")
        .unwrap()
        .threads(2)
        .dynamic_threads(0)
        .scheduling(Scheduling::Other)
        .clock_bound(Duration::ZERO);
    let server = Server::with(fixed.build().unwrap());
    // The caller does not wait: the start time has passed by the caller's clock.
    let hasty = Around::with_utc_ahead(50 * second_ns);
    let start_ns = hasty.utc_ns().saturating_add_signed(-second_ns);
    let start = Policy::RequestStartTime(UtcT::from_unix_ns(start_ns, Duration::ZERO));
    let client = Orb::builder().scheduling(Scheduling::Other);
    let client = client.transport(Arc::new(hasty)).build().unwrap();
    let bench = client.string_to_object(&server.text).unwrap().unwrap();
    let how = SetOverrideType::AddOverride;
    let early = bench.set_policy_overrides(&[start], how).unwrap();
    server.orb.seal();
    client.seal();
    let put_aside = || server.orb.counters().read(Counter::RequestsEarly);
    let put_one_aside = |number| {
        note(&early, number).unwrap();
        while put_aside() != u64::from(number) {
            std::thread::yield_now();
        }
    };
    // Opens the connections.
    call(&bench, "ping").unwrap();
    put_one_aside(1);
    let before = counting::allocations();
    // One peer may hold a half.
    let max = u32::try_from(EARLY_REQUESTS_MAX / 2).unwrap();
    (2..=max).for_each(put_one_aside);
    call(&bench, "ping").unwrap();
    assert_eq!(counting::allocations() - before, 0);
    server.orb.shutdown(true).expect("it ends");
}

fn an_allocation_on_the_way_is_counted() {
    let counted = allocations_of(
        |_, _| {},
        |bench| drop(call_octets(bench, b"a reply that is kept")),
    );
    assert_eq!(counted, CALLS);
}

#[test]
fn calls_and_oneways_take_no_memory_and_an_allocation_on_the_way_is_counted() {
    alone(|| {
        counting::start();
        calls_take_no_memory();
        calls_through_shared_memory_take_no_memory();
        fragmented_calls_take_no_memory();
        oneways_take_no_memory();
        policies_take_no_memory();
        posted_oneways_take_no_memory();
        objects_of_every_adapter_take_no_memory();
        collocated_calls_take_no_memory();
        requests_of_threadpools_take_no_memory();
        // In a thread of its own, because the thread keeps the priority that the test sets.
        std::thread::scope(|scope| {
            scope
                .spawn(ways_of_real_time_take_no_memory)
                .join()
                .unwrap()
        });
        requests_that_come_too_early_take_no_memory();
        an_allocation_on_the_way_is_counted();
    });
}
