//! The server protocol policy: the socket options of accepted connections, as the kernel reports them.

use deckwatch_orb::delivery::{
    Deliveries, DeliveryOptions, End, Outlet, OutletOptions, OutletOwner, WhenFull,
};
use deckwatch_orb::transport::Endpoint;
use deckwatch_orb::{
    Completion, LinearNetwork, NetworkPriority, NetworkPriorityMapping, ObjectRef, Orb, OrbBuilder,
    Poa, PoaError, Policies, Policy, Priority, PriorityModel, PriorityModelPolicy, Protocol,
    Protocols, Scheduling, Servant, ServerRequest, SetOverrideType, SystemException,
    SystemExceptionKind as Kind, TcpProtocolProperties, ThreadpoolId, ThreadpoolLane,
    UnixDomainProtocolProperties, own_minor,
};
use deckwatch_testkit::alone_as_nobody;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;

const SEND: i32 = 40_000;
const RECEIVE: i32 = 50_000;

fn orb(endpoints: &[&str]) -> Orb {
    let builder = Orb::builder().scheduling(Scheduling::Other);
    let mut all = endpoints.iter();
    let builder = all.try_fold(builder, |builder, endpoint| builder.listen(endpoint));
    builder.and_then(OrbBuilder::build).expect("free endpoints")
}

fn priority(number: i16) -> Priority {
    Priority::new(number).expect("not negative")
}

fn pool(orb: &Orb) -> ThreadpoolId {
    let lane = ThreadpoolLane {
        lane_priority: priority(30_000),
        static_threads: 1,
        dynamic_threads: 0,
    };
    let rt = orb.rt_orb();
    rt.create_threadpool_with_lanes(0, &[lane], false, None)
        .expect("no permission is needed")
}

fn adapter(
    orb: &Orb,
    name: &str,
    threadpool: Option<ThreadpoolId>,
    protocols: &[Protocol],
) -> Result<Poa, PoaError> {
    let root = orb.root_poa().expect("it listens");
    let policies = Policies {
        threadpool,
        priority_model: Some(PriorityModelPolicy {
            priority_model: PriorityModel::ClientPropagated,
            server_priority: priority(30_000),
        }),
        server_protocol: Some(Protocols::new(protocols).expect("sound")),
        ..Policies::default()
    };
    root.create_poa(name, None, &policies)
}

fn refer(poa: &Poa) -> ObjectRef {
    poa.create_reference("IDL:deckwatch.test/Nothing:1.0")
        .expect("a system id")
}

fn small() -> TcpProtocolProperties {
    TcpProtocolProperties {
        send_buffer_size: SEND,
        recv_buffer_size: RECEIVE,
        keep_alive: false,
        enable_network_priority: true,
        ..TcpProtocolProperties::default()
    }
}

/// The output of `ss` for the server's end of a connection from this port. Returns `None` if `ss` is not installed.
fn server_end(client: u16) -> Option<String> {
    deckwatch_testkit::program("ss")?;
    let filter = format!("dport = :{client}");
    for _ in 0..1_000 {
        let told = Command::new("ss").args(["-tnmoHi", &filter]).output();
        let told = told.expect("it starts").stdout;
        let told = String::from_utf8(told).expect("plain words");
        if !told.trim().is_empty() {
            return Some(told);
        }
        std::thread::yield_now();
    }
    panic!("no connection from {client}");
}

#[test]
fn connections_of_a_lane_have_the_buffers_and_the_keep_alive_of_its_policy() {
    let orb = orb(&["127.0.0.1:0"]);
    let pool = pool(&orb);
    let poa = adapter(&orb, "a", Some(pool), &[Protocol::tcp(small())]).expect("they go together");
    let ior = refer(&poa).ior().clone();
    let profile = ior.iiop_profiles().next().expect("one").expect("IIOP");
    let of_lane = TcpStream::connect((profile.host.as_str(), profile.port)).expect("it listens");
    let Some(Endpoint::Tcp { host, port }) = orb.endpoints().into_iter().next() else {
        panic!("it listens by TCP");
    };
    let of_default = TcpStream::connect((host.as_str(), port)).expect("it listens");
    let port_of = |stream: &TcpStream| stream.local_addr().expect("bound").port();
    let (Some(lane), Some(default)) = (
        server_end(port_of(&of_lane)),
        server_end(port_of(&of_default)),
    ) else {
        return;
    };
    // The kernel doubles the requested sizes.
    let buffers = |told: &str| {
        let has = |word: &str, octets: i32| told.contains(&format!("{word}{}", 2 * octets));
        (has(",rb", RECEIVE), has(",tb", SEND))
    };
    assert_eq!(buffers(&lane), (true, true), "{lane}");
    assert_eq!(buffers(&default), (false, false), "{default}");
    assert!(!lane.contains("keepalive"), "{lane}");
    assert!(default.contains("keepalive"), "{default}");
    orb.shutdown(true).expect("once");
}

#[test]
fn packets_of_a_lane_have_the_network_priority_of_its_own() {
    let orb = orb(&["127.0.0.1:0"]);
    let pool = pool(&orb);
    let poa = adapter(&orb, "a", Some(pool), &[Protocol::tcp(small())]).expect("permitted up to 6");
    let ior = refer(&poa).ior().clone();
    let profile = ior.iiop_profiles().next().expect("one").expect("IIOP");
    let _connected = TcpStream::connect((profile.host.as_str(), profile.port)).expect("it listens");
    let mapped = LinearNetwork.to_network(priority(30_000)).expect("mapped");
    assert_ne!(mapped.dscp, 0);
    if deckwatch_testkit::program("ss").is_none() {
        return deckwatch_testkit::did_a_part();
    }
    let filter = format!("sport = :{}", profile.port);
    let told = Command::new("ss")
        .args(["-tnaH", "--tos", &filter])
        .output();
    let told = String::from_utf8(told.expect("it starts").stdout).expect("plain words");
    let tos = format!("tos:{:#x}", u32::from(mapped.dscp) << 2);
    assert!(told.contains(&tos), "{tos}: {told}");
    orb.shutdown(true).expect("once");
}

/// Maps priority 0 to a codepoint of its own, others to another.
struct TwoCodepoints;

impl NetworkPriorityMapping for TwoCodepoints {
    fn to_network(&self, corba: Priority) -> Option<NetworkPriority> {
        let dscp = if corba == Priority::MIN { 10 } else { 46 };
        Some(NetworkPriority { dscp, queue: 0 })
    }

    fn to_corba(&self, _: NetworkPriority) -> Option<Priority> {
        None
    }
}

/// An owner of outlets that does not care about their end.
struct Nobody;

impl OutletOwner for Nobody {
    fn outlet_ended(&self, _: &Arc<Outlet>, _: End) {}
}

/// The codepoints of the connections to or from this port, as `ss` tells, in order.
fn codepoints(filter: &str) -> Vec<u32> {
    let told = Command::new("ss").args(["-tnH", "--tos", filter]).output();
    let told = String::from_utf8(told.expect("it starts").stdout).expect("plain words");
    let words = told.split_whitespace();
    let tos = words.filter_map(|word| word.strip_prefix("tos:0x"));
    let mut found: Vec<_> = tos
        .map(|tos| u32::from_str_radix(tos, 16).expect("a number") >> 2)
        .collect();
    found.sort_unstable();
    found
}

/// An ORB all of whose packets are marked.
fn marking() -> OrbBuilder {
    let protocols = Protocols::with_network_priority().expect("sound");
    Orb::builder()
        .scheduling(Scheduling::Other)
        .network_priority_mapping(TwoCodepoints)
        .policy(Policy::ClientProtocol(protocols))
        .server_protocols(protocols)
}

#[test]
fn deliveries_have_the_network_priority_of_their_outlet() {
    if deckwatch_testkit::program("ss").is_none() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it listens").port();
    let orb = marking().build().expect("a client needs nothing");
    let deliveries = Deliveries::start(&orb, DeliveryOptions::default()).expect("it starts");
    let receiver = orb.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/receiver"));
    let receiver = receiver.expect("a URL").expect("not nil");
    let owner: Arc<dyn OutletOwner> = Arc::new(Nobody);
    let outlet = |priority| {
        let options = OutletOptions {
            number: 0,
            operation: "push",
            farewell: None,
            window: 0,
            queue_len: 1,
            queue_size_max: 1_024,
            when_full: WhenFull::DropOldest,
            priority,
            is_private: false,
            failures_max: 1,
            final_exceptions: &[],
        };
        let outlet = deliveries.outlet(&receiver, options, Arc::downgrade(&owner));
        outlet.expect("a plain reference")
    };
    let _outlets = [None, Some(priority(5))].map(outlet);
    let _accepted = [(); 2].map(|()| listener.accept().expect("they connect"));
    assert_eq!(codepoints(&format!("dport = :{port}")), [10, 46]);
    deliveries.close();
    orb.shutdown(true).expect("once");
}

#[test]
fn calls_and_endpoints_without_a_priority_have_the_network_priority_of_priority_0() {
    if deckwatch_testkit::program("ss").is_none() {
        return;
    }
    let server = marking().listen("127.0.0.1:0").and_then(OrbBuilder::build);
    let server = server.expect("a free port");
    let root = server.root_poa().expect("it listens");
    root.the_poa_manager().activate().expect("a fresh manager");
    let witness: Arc<dyn Servant> = Arc::new(Witness(server.clone()));
    let object = root.servant_to_reference(&witness).expect("an id");
    let profile = object
        .ior()
        .iiop_profiles()
        .next()
        .expect("one")
        .expect("IIOP");
    let client = marking().build().expect("a client needs nothing");
    let object = client.string_to_object(&object.to_string());
    let object = object.expect("ours").expect("not nil");
    assert_eq!(object.is_a("IDL:deckwatch.test/Other:1.0"), Ok(false));
    assert_eq!(codepoints(&format!("dport = :{}", profile.port)), [10]);
    assert_eq!(codepoints(&format!("sport = :{}", profile.port)), [10]);
    client.shutdown(true).expect("once");
    server.shutdown(true).expect("once");
}

#[test]
fn references_lead_by_the_protocols_of_the_policy_alone() {
    let path = std::env::temp_dir().join(format!("deckwatch-rt-protocols-{}", std::process::id()));
    let orb = orb(&["127.0.0.1:0", &format!("unix:{}", path.display())]);
    let unix = || Protocol::unix_domain(UnixDomainProtocolProperties::default());
    let tcp = || Protocol::tcp(TcpProtocolProperties::default());
    for (name, protocols, has_tcp, has_unix) in [
        ("tcp", vec![tcp()], true, false),
        ("unix", vec![unix()], false, true),
        ("both", vec![unix(), tcp()], true, true),
    ] {
        let poa = adapter(&orb, name, Some(pool(&orb)), &protocols).expect("it listens by them");
        let ior = refer(&poa).ior().clone();
        let profile = ior.iiop_profiles().next().expect("one").expect("IIOP");
        assert_eq!(profile.port != 0, has_tcp, "{name}");
        assert_eq!(
            profile.unix_addresses().next().is_some(),
            has_unix,
            "{name}"
        );
    }
    orb.shutdown(true).expect("once");
}

#[test]
fn protocols_that_the_pool_does_not_have_or_that_contradict_another_adapter_make_none() {
    let orb = orb(&["127.0.0.1:0"]);
    let refused = |made: Result<Poa, PoaError>| match made {
        Err(PoaError::System(exception)) => exception.kind,
        other => panic!("a system exception: {:?}", other.map(drop)),
    };
    let unix = Protocol::unix_domain(UnixDomainProtocolProperties::default());
    assert_eq!(refused(adapter(&orb, "a", None, &[unix])), Kind::InvPolicy);
    let usual = Protocol::tcp(TcpProtocolProperties::default());
    adapter(&orb, "b", None, &[Protocol::tcp(small())]).expect("the first says it");
    adapter(&orb, "c", None, &[Protocol::tcp(small())]).expect("the same");
    let other = adapter(&orb, "d", None, std::slice::from_ref(&usual));
    assert_eq!(refused(other), Kind::InvPolicy);
    let own = Some(pool(&orb));
    adapter(&orb, "e", own, &[usual]).expect("a pool of its own");
    orb.shutdown(true).expect("once");
}

#[test]
fn protocols_that_cannot_be_had_leave_the_pool_to_others() {
    /// Maps priority 5 only.
    struct Five;
    impl NetworkPriorityMapping for Five {
        fn to_network(&self, corba: Priority) -> Option<NetworkPriority> {
            let highest = NetworkPriority { dscp: 46, queue: 6 };
            (corba == priority(5)).then_some(highest)
        }
        fn to_corba(&self, _: NetworkPriority) -> Option<Priority> {
            None
        }
    }
    let orb = orb(&["127.0.0.1:0"]);
    let manager = orb.network_priority_mapping_manager();
    manager.set_mapping(Five);
    let lanes = [5, 30_000].map(|number| ThreadpoolLane {
        lane_priority: priority(number),
        static_threads: 1,
        dynamic_threads: 0,
    });
    let rt = orb.rt_orb();
    let pool = rt.create_threadpool_with_lanes(0, &lanes, false, None);
    let pool = Some(pool.expect("no permission is needed"));
    match adapter(&orb, "a", pool, &[Protocol::tcp(small())]) {
        Err(PoaError::System(exception)) => assert_eq!(exception.kind, Kind::DataConversion),
        other => panic!("a system exception: {:?}", other.map(drop)),
    }
    let usual = Protocol::tcp(TcpProtocolProperties::default());
    let made = adapter(&orb, "a", pool, &[usual]).map(drop);
    assert_eq!(made, Ok(()), "no adapter has said anything else");
    orb.shutdown(true).expect("once");
}

/// Maps every priority to the highest queue, which needs CAP_NET_ADMIN.
struct Highest;

impl NetworkPriorityMapping for Highest {
    fn to_network(&self, _: Priority) -> Option<NetworkPriority> {
        Some(NetworkPriority { dscp: 46, queue: 7 })
    }

    fn to_corba(&self, _: NetworkPriority) -> Option<Priority> {
        None
    }
}

/// Whether this process has CAP_NET_ADMIN.
fn may_have_any_queue() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel tells");
    let mut lines = status.lines();
    let effective = lines.find_map(|line| line.strip_prefix("CapEff:"));
    let effective = u64::from_str_radix(effective.expect("it is told").trim(), 16);
    effective.expect("a number") & (1 << 12) != 0
}

#[test]
fn a_queue_that_is_not_permitted_makes_no_lane_no_adapter_and_no_connection() {
    alone_as_nobody(|| {
        if may_have_any_queue() {
            return deckwatch_testkit::skip("net-admin-refused", "this user has CAP_NET_ADMIN");
        }
        let denied = SystemException::new(
            Kind::NoPermission,
            own_minor::NETWORK_PRIORITY_DENIED,
            Completion::No,
        );
        let protocols = [Protocol::tcp(small())];
        let orb = orb(&["127.0.0.1:0"]);
        let manager = orb.network_priority_mapping_manager();
        manager.set_mapping(Highest);
        match adapter(&orb, "a", Some(pool(&orb)), &protocols) {
            Err(PoaError::System(exception)) => assert_eq!(exception, denied),
            other => panic!("a system exception: {:?}", other.map(drop)),
        }
        // The object asks for no packet priority; the caller does.
        let usual = Protocol::tcp(TcpProtocolProperties::default());
        let poa = adapter(&orb, "b", Some(pool(&orb)), &[usual]).expect("permitted");
        let client = Orb::builder().scheduling(Scheduling::Other).build();
        let client = client.expect("a client needs nothing");
        let manager = client.network_priority_mapping_manager();
        manager.set_mapping(Highest);
        let object = client.string_to_object(&refer(&poa).to_string());
        let object = object.expect("ours").expect("not nil");
        let asks = Policy::ClientProtocol(Protocols::new(&protocols).expect("sound"));
        let object = object.set_policy_overrides(&[asks], SetOverrideType::AddOverride);
        let object = object.expect("one policy");
        assert_eq!(object.validate_connection().map(drop), Err(denied));
        assert_eq!(object.is_a("IDL:a:1.0"), Err(denied));
        orb.shutdown(true).expect("once");

        let strict = Orb::builder()
            .scheduling(Scheduling::Other)
            .server_protocols(Protocols::new(&protocols).expect("sound"));
        let strict = strict.listen("127.0.0.1:0").and_then(OrbBuilder::build);
        let strict = strict.expect("its own endpoint has no priority");
        let manager = strict.network_priority_mapping_manager();
        manager.set_mapping(Highest);
        let made = strict
            .rt_orb()
            .create_threadpool(0, 1, 0, priority(5), None);
        assert_eq!(made, Err(denied));
        strict.shutdown(true).expect("once");
    });
}

/// With unix sockets alone too, a caller finds the lane of its priority.
#[test]
fn lanes_that_listen_at_sockets_of_the_host_alone_are_told_apart() {
    let path = std::env::temp_dir().join(format!("deckwatch-rt-lanes-{}", std::process::id()));
    let orb = orb(&[&format!("unix:{}", path.display())]);
    let lanes = [5, 90].map(|number| ThreadpoolLane {
        lane_priority: priority(number),
        static_threads: 1,
        dynamic_threads: 0,
    });
    let rt = orb.rt_orb();
    let pool = rt.create_threadpool_with_lanes(0, &lanes, false, None);
    let policies = Policies {
        threadpool: Some(pool.expect("no permission is needed")),
        priority_model: Some(PriorityModelPolicy {
            priority_model: PriorityModel::ClientPropagated,
            server_priority: priority(5),
        }),
        ..Policies::default()
    };
    let root = orb.root_poa().expect("it listens");
    root.the_poa_manager().activate().expect("a fresh manager");
    let poa = root.create_poa("a", Some(root.the_poa_manager()), &policies);
    let poa = poa.expect("they go together");
    let witness: Arc<dyn Servant> = Arc::new(Witness(orb.clone()));
    let id = poa.activate_object(witness).expect("an id");
    let text = poa.id_to_reference(&id).expect("it is active").to_string();
    let client = Orb::builder().scheduling(Scheduling::Other).build();
    let client = client.expect("a client needs nothing");
    let object = client
        .string_to_object(&text)
        .expect("ours")
        .expect("not nil");
    for number in [5, 90, 5] {
        client
            .rt_current()
            .set_the_priority(priority(number))
            .expect("the time-sharing class needs no permission");
        let served: Result<u32, SystemException> = object.invoke(
            "the_priority",
            |_| Ok(()),
            |r| r.read_u32(),
            |_, _| Ok(None),
        );
        assert_eq!(served, Ok(u32::from(number.cast_unsigned())));
    }
    client.shutdown(true).expect("once");
    orb.shutdown(true).expect("once");
}

/// A servant that returns the priority of its thread.
struct Witness(Orb);

impl Servant for Witness {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:deckwatch.test/Witness:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let priority = self.0.rt_current().the_priority()?.value();
        Ok(request
            .reply()?
            .write_u32(u32::from(priority.cast_unsigned()))?)
    }
}
