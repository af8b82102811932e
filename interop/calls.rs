//! The echo interface between this ORB and omniORB, each as client and as server, in each version of GIOP. tshark
//! checks the octets.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common;
use crate::common::{Capture, Running, free_port, omniorb_program, port_of, run, scratch, try_run};
use crate::echo;
use crate::watched::Watched;
use deckwatch_orb::{
    Counter, Orb, OrbBuilder, Policies, Policy, Priority, PriorityModel, PriorityModelPolicy,
    RequestBuffering, Scheduling, SetOverrideType, SyncScope, SystemExceptionKind, ThreadpoolLane,
};

const VERSIONS: [&str; 3] = ["1.0", "1.1", "1.2"];

/// Number of structs in one message: 64 kB, several of omniORB's fragments.
const MANY: i16 = 2_000;
/// The same number for omniORB's programs.
const MANY_TEXT: &str = "2000";

/// Number of structs when tshark captures. tshark takes the first four octets of each GIOP 1.1 fragment for a request
/// id, which the fragment does not have. So it joins fragments that do not belong together.
fn structs_in_sight(version: &str) -> i16 {
    if version == "1.1" { 200 } else { MANY }
}

/// The fragment size of this ORB where the test sets one.
const FRAGMENT_SIZE: usize = 2_048;

/// A server of this ORB with echo objects, its reference, and its port.
fn our_server() -> (Orb, String, u16) {
    serve_with(Orb::builder())
}

fn serve_with(builder: OrbBuilder) -> (Orb, String, u16) {
    let (orb, reference) = serve_at(builder, "127.0.0.1:0");
    let port = orb.endpoints()[0].port().expect("TCP");
    (orb, reference, port)
}

fn our_server_at(endpoint: &str) -> (Orb, String) {
    serve_at(Orb::builder(), endpoint)
}

fn serve_at(builder: OrbBuilder, endpoint: &str) -> (Orb, String) {
    let orb = builder
        .listen(endpoint)
        .expect("an endpoint")
        .build()
        .expect("an ORB");
    let reference = echo::activate(&orb).expect("an echo object");
    (orb, reference.to_string())
}

/// omniORB's server, with `version` as its highest GIOP version, and its reference.
fn their_server(program: &Path, version: &str) -> (Running, String) {
    their_server_at(program, version, "giop:tcp:127.0.0.1:")
}

fn their_server_at(program: &Path, version: &str, endpoint: &str) -> (Running, String) {
    let mut process = Running::start(
        Command::new(program)
            .args(["-ORBmaxGIOPVersion", version])
            .args(["-ORBendPoint", endpoint])
            // Otherwise omniORB serves the requests of one connection concurrently, one-ways too.
            .args(["-ORBmaxServerThreadPerConnection", "1"]),
    );
    let ior = process.line_with("IOR:");
    (process, ior)
}

fn their_client(program: &Path, version: &str, arguments: &[&str]) -> Result<String, String> {
    try_run(
        Command::new(program)
            .args(["-ORBmaxGIOPVersion", version])
            .args(["-ORBclientCallTimeOutPeriod", "20000"])
            .args(arguments),
    )
}

/// Both programs of omniORB, or a counted skip.
fn their_programs() -> Option<(PathBuf, PathBuf)> {
    let idl = ["deckwatch/echo.idl"];
    let client = omniorb_program("echo/client", &idl)?;
    let server = omniorb_program("echo/server", &idl)?;
    Some((client, server))
}

#[test]
fn omniorb_calls_us_and_we_call_omniorb_in_every_version_and_tshark_finds_nothing_malformed() {
    let folder = scratch("echo-calls");
    let Some((client, server)) = their_programs() else {
        return;
    };
    let (ours, reference, our_port) = our_server();
    let their_ports = VERSIONS.map(|_| free_port());
    let mut ports = vec![our_port];
    ports.extend(their_ports);
    let Some(capture) = Capture::start(&folder, &ports) else {
        return;
    };
    let corbaloc = format!("corbaloc::127.0.0.1:{our_port}/Echo");
    let caller = Orb::builder().build().expect("an ORB");
    for (version, port) in VERSIONS.into_iter().zip(their_ports) {
        for target in [&reference, &corbaloc] {
            let structs = structs_in_sight(version).to_string();
            let outcome = their_client(&client, version, &[target, &structs]);
            outcome.unwrap_or_else(|said| panic!("omniORB calls us by GIOP {version}: {said}"));
        }
        let endpoint = format!("giop:tcp:127.0.0.1:{port}");
        let (_process, theirs) = their_server_at(&server, version, &endpoint);
        echo::call(&caller, &theirs, structs_in_sight(version))
            .unwrap_or_else(|error| panic!("we call omniORB by GIOP {version}: {error}"));
    }
    caller.shutdown(true).expect("it ends");
    ours.shutdown(true).expect("it ends");
    let (messages, malformed) = capture.finish();
    // Three runs of some seventeen calls and their replies in each version. One-ways share frames.
    assert!(
        messages.iter().all(|count| *count > 100),
        "only {messages:?} frames of GIOP captured"
    );
    assert_eq!(malformed, Vec::<String>::new());
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn omniorb_and_we_call_each_other_over_unix_sockets() {
    let folder = scratch("echo-unix");
    let Some((client, server)) = their_programs() else {
        return;
    };
    let our_path = folder.join("ours.sock");
    let (ours, reference) = our_server_at(&format!("unix:{}", our_path.display()));
    // A unix socket is in a component, and a profile of IIOP 1.0 has no components.
    for version in &VERSIONS[1..] {
        their_client(&client, version, &[&reference, MANY_TEXT])
            .unwrap_or_else(|said| panic!("omniORB calls us by GIOP {version}: {said}"));
    }
    let url = format!("corbaloc:{}/Echo", ours.endpoints()[0].url_address());
    their_client(&client, "1.2", &[&url, MANY_TEXT]).expect("omniORB finds us by URL");
    assert_ne!(ours.counters().read(Counter::Requests), 0);
    let their_path = folder.join("theirs.sock");
    let endpoint = format!("giop:unix:{}", their_path.display());
    let (_process, theirs) = their_server_at(&server, "1.2", &endpoint);
    assert_eq!(port_of(&theirs), 0);
    let caller = Orb::builder().build().expect("an ORB");
    echo::call(&caller, &theirs, MANY).expect("we call omniORB");
    caller.shutdown(true).expect("it ends");
    ours.shutdown(true).expect("it ends");
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

/// An ORB without real-time CORBA does not use the lanes in a reference. It calls the lane of the server's priority or
/// of the object's. With a URL, it is forwarded there.
#[test]
fn omniorb_calls_objects_that_lanes_serve() {
    let Some((client, _)) = their_programs() else {
        return;
    };
    let builder = Orb::builder().scheduling(Scheduling::Other);
    let orb = builder.listen("127.0.0.1:0").and_then(OrbBuilder::build);
    let orb = orb.expect("an ORB");
    let root = orb.root_poa().expect("it listens");
    root.the_poa_manager().activate().expect("a fresh manager");
    let priority = |number| Priority::new(number).expect("not negative");
    let lanes = [10, 20].map(|number| ThreadpoolLane {
        lane_priority: priority(number),
        static_threads: 2,
        dynamic_threads: 0,
    });
    let pool = orb.rt_orb().create_threadpool_with_lanes(
        0,
        &lanes,
        true,
        Some(RequestBuffering::default()),
    );
    let pool = pool.expect("the time-sharing class needs no permission");
    for (name, priority_model) in [
        ("ClientPropagated", PriorityModel::ClientPropagated),
        ("ServerDeclared", PriorityModel::ServerDeclared),
    ] {
        let policies = Policies {
            threadpool: Some(pool),
            priority_model: Some(PriorityModelPolicy {
                priority_model,
                server_priority: priority(20),
            }),
            ..Policies::default()
        };
        let poa = root.create_poa(name, Some(root.the_poa_manager()), &policies);
        let poa = poa.expect("policies that go together");
        let watched = Watched::new(&orb, echo::servant());
        let id = poa.activate_object(watched.clone()).expect("an id");
        let reference = poa.id_to_reference(&id).expect("it is active");
        for version in VERSIONS {
            let said = their_client(&client, version, &[&reference.to_string(), "20"]);
            said.unwrap_or_else(|said| panic!("{name}, GIOP {version}: {said}"));
            assert_eq!(watched.take(), [20], "{name}, GIOP {version}");
        }
        assert_eq!(orb.counters().read(Counter::LanesMissed), 0);
        orb.register_plain_key(name.as_bytes(), &reference)
            .expect("a fresh key");
    }
    let url = format!(
        "corbaloc:{}/ServerDeclared",
        orb.endpoints()[0].url_address()
    );
    their_client(&client, "1.2", &[&url, "20"]).expect("omniORB follows to the lane");
    assert_ne!(orb.counters().read(Counter::LanesMissed), 0);
    orb.shutdown(true).expect("it ends");
}

#[test]
fn omniorb_and_we_call_each_other_over_ipv6() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return deckwatch_testkit::skip("ipv6", "this host has no IPv6");
    }
    let Some((client, server)) = their_programs() else {
        return;
    };
    let (ours, reference) = our_server_at("[::1]:0");
    their_client(&client, "1.2", &[&reference, MANY_TEXT]).expect("omniORB calls us");
    let (_process, theirs) = their_server_at(&server, "1.2", "giop:tcp:[::1]:");
    let caller = Orb::builder().build().expect("an ORB");
    echo::call(&caller, &theirs, MANY).expect("we call omniORB");
    caller.shutdown(true).expect("it ends");
    ours.shutdown(true).expect("it ends");
}

#[test]
fn omniorb_and_we_read_each_others_fragments_of_giop_1_1_and_1_2() {
    let folder = scratch("echo-fragments");
    let Some((client, server)) = their_programs() else {
        return;
    };
    let (ours, reference, _) = serve_with(Orb::builder().fragment_size(FRAGMENT_SIZE));
    let caller = Orb::builder()
        .fragment_size(FRAGMENT_SIZE)
        .build()
        .expect("an ORB");
    for version in ["1.1", "1.2"] {
        their_client(&client, version, &[&reference, MANY_TEXT])
            .unwrap_or_else(|said| panic!("omniORB reads our replies by GIOP {version}: {said}"));
        let (_process, theirs) = their_server(&server, version);
        echo::call(&caller, &theirs, MANY).unwrap_or_else(|error| {
            panic!("omniORB reads our requests by GIOP {version}: {error}")
        });
    }
    caller.shutdown(true).expect("it ends");
    ours.shutdown(true).expect("it ends");
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn omniorb_answers_each_sync_scope_and_says_where_its_objects_are() {
    let Some((_, server)) = their_programs() else {
        return;
    };
    let scopes = [
        SyncScope::None,
        SyncScope::WithTransport,
        SyncScope::WithServer,
        SyncScope::WithTarget,
    ];
    for version in VERSIONS {
        let (_process, theirs) = their_server(&server, version);
        let caller = Orb::builder()
            .round_trip_timeout(Duration::from_secs(20))
            .build()
            .expect("an ORB");
        let object = caller.string_to_object(&theirs);
        let object = object.expect("a reference").expect("not nil");
        assert_eq!(object.validate_connection(), Ok(true), "GIOP {version}");
        assert_eq!(object.non_existent(), Ok(false), "GIOP {version}");
        let url = format!(
            "corbaloc:iiop:{version}@127.0.0.1:{}/Nobody",
            port_of(&theirs)
        );
        let nobody = caller.string_to_object(&url);
        let nobody = nobody.expect("a reference").expect("not nil");
        assert_eq!(nobody.validate_connection(), Ok(false), "GIOP {version}");
        assert_eq!(nobody.non_existent(), Ok(true), "GIOP {version}");
        for scope in scopes {
            let how = SetOverrideType::SetOverride;
            let scoped = object.set_policy_overrides(&[Policy::SyncScope(scope)], how);
            let sent = scoped
                .expect("one policy")
                .invoke_oneway("_non_existent", |_| Ok(()));
            assert_eq!(sent, Ok(()), "{scope:?} by GIOP {version}");
        }
        // These calls have not broken the connections.
        assert_eq!(object.non_existent(), Ok(false), "GIOP {version}");
        assert_eq!(caller.counters().read(Counter::RepliesToNobody), 0);
    }
}

#[test]
fn an_object_bound_in_omninames_is_found_by_corbaname_from_both_sides() {
    let folder = scratch("echo-corbaname");
    let Some((client, server)) = their_programs() else {
        return;
    };
    if deckwatch_testkit::program("omniNames").is_none()
        || deckwatch_testkit::program("nameclt").is_none()
    {
        return;
    }
    let probe = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = probe.local_addr().expect("its number").port();
    drop(probe);
    let mut names = Running::start(
        Command::new("omniNames")
            .args(["-start", &port.to_string(), "-logdir"])
            .arg(&folder)
            .args(["-errlog", "/dev/stderr"]),
    );
    names.line_with("IOR:");
    let initial = format!("NameService=corbaloc::127.0.0.1:{port}/NameService");
    let bind = |name: &str, ior: &str| {
        run(Command::new("nameclt").args(["-ORBInitRef", &initial, "bind", name, ior]));
    };
    let (ours, reference, _) = our_server();
    let (_process, theirs) = their_server(&server, "1.2");
    bind("ours.echo", &reference);
    bind("theirs.echo", &theirs);
    let url = |name: &str| format!("corbaname::127.0.0.1:{port}#{name}");
    their_client(&client, "1.2", &[&url("ours.echo")]).expect("omniORB finds us");
    let caller = Orb::builder().build().expect("an ORB");
    echo::call(&caller, &url("theirs.echo"), MANY).expect("we find omniORB");
    let nobody = caller.string_to_object(&url("nobody")).unwrap_err();
    assert_eq!(nobody.kind, SystemExceptionKind::BadParam);
    caller.shutdown(true).expect("it ends");
    ours.shutdown(true).expect("it ends");
    drop(names);
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn a_build_that_fails_leaves_no_folder() {
    let mut folder = PathBuf::new();
    let built = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        common::built_once("no-peer", &[], |at| {
            folder = at.to_owned();
            panic!("a compiler that is not there");
        })
    }));
    assert!(built.is_err() && !folder.as_os_str().is_empty() && !folder.exists());
}
