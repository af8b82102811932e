//! The echo interface between this ORB and omniORB, each as client and as server, in each version of GIOP; and what a
//! dissector of neither thinks of the octets.
//!
//! A [`gap`] that begins to pass fails its test, so that `gaps.toml` stays true.

mod common;
#[allow(
    dead_code,
    reason = "an example is a program: its `main` is not called"
)]
#[path = "../crates/orb/examples/echo.rs"]
mod echo;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Running, capture, finish, omniorb_program, root, run, scratch};
use deckwatch_giop::Ior;
use deckwatch_orb::{Counter, Orb, SystemExceptionKind};
use serde::Deserialize;

const VERSIONS: [&str; 3] = ["1.0", "1.1", "1.2"];

/// Structs in one message: 64 kB, several of omniORB's fragments.
const MANY: i16 = 2_000;

/// Structs that go well in a version: see the gap `giop-1.1-aligned-fragments`.
fn structs(version: &str) -> &'static str {
    if version == "1.1" { "200" } else { "2000" }
}

/// An ORB of ours that serves echo objects, its reference, and its port.
fn our_server() -> (Orb, String, u16) {
    let (orb, reference) = our_server_at("127.0.0.1:0");
    let port = orb.endpoints()[0].port().expect("TCP");
    (orb, reference, port)
}

fn our_server_at(endpoint: &str) -> (Orb, String) {
    let orb = Orb::builder()
        .listen(endpoint)
        .expect("an endpoint")
        .build()
        .expect("an ORB");
    let reference = echo::activate(&orb).expect("an echo object");
    (orb, reference.to_string())
}

/// omniORB's server, speaking at most `version`, and its reference.
fn their_server(program: &Path, version: &str) -> (Running, String) {
    their_server_at(program, version, "giop:tcp:127.0.0.1:")
}

fn their_server_at(program: &Path, version: &str, endpoint: &str) -> (Running, String) {
    let mut process = Running::start(
        Command::new(program)
            .args(["-ORBmaxGIOPVersion", version])
            .args(["-ORBendPoint", endpoint])
            // Else it serves one connection's requests side by side, one-ways too.
            .args(["-ORBmaxServerThreadPerConnection", "1"]),
    );
    let ior = process.line_with("IOR:");
    (process, ior)
}

fn their_client(program: &Path, version: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(["-ORBmaxGIOPVersion", version])
        .args(["-ORBclientCallTimeOutPeriod", "20000"])
        .args(arguments)
        .output()
        .expect("the client runs");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    if output.status.success() {
        Ok(said)
    } else {
        Err(said)
    }
}

/// What is known not to work, by the name that stands in `gaps.toml`. Fails where it is not listed there, and where it works.
fn gap(name: &str, outcome: &Result<String, String>) {
    #[derive(Deserialize)]
    struct Gaps {
        gap: Vec<Gap>,
    }
    #[derive(Deserialize)]
    struct Gap {
        name: String,
        reason: String,
    }
    let text = std::fs::read_to_string(root().join("interop/gaps.toml")).expect("gaps.toml");
    let gaps: Gaps = toml::from_str(&text).expect("gaps.toml has gaps");
    let listed = gaps.gap.iter().find(|gap| gap.name == name);
    let listed = listed
        .unwrap_or_else(|| panic!("gaps.toml does not list {name}, and it fails: {outcome:?}"));
    assert!(!listed.reason.trim().is_empty(), "{name} has no reason");
    assert!(
        outcome.is_err(),
        "{name} works now: take it out of gaps.toml"
    );
}

/// Both programs of omniORB, or a counted skip.
fn their_programs(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let idl = ["deckwatch/echo.idl"];
    let client = omniorb_program("echo/client", &idl, folder)?;
    let server = omniorb_program("echo/server", &idl, folder)?;
    Some((client, server))
}

#[test]
fn omniorb_calls_us_and_we_call_omniorb_in_every_version_and_tshark_finds_nothing_malformed() {
    let folder = scratch("echo-calls");
    let Some((client, server)) = their_programs(&folder) else {
        return;
    };
    let Some((mut capturing, file)) = capture(&folder) else {
        return;
    };
    let (ours, reference, our_port) = our_server();
    let corbaloc = format!("corbaloc::127.0.0.1:{our_port}/Echo");
    let mut ports = vec![our_port];
    let caller = Orb::builder().build().expect("an ORB");
    for version in VERSIONS {
        for target in [&reference, &corbaloc] {
            let outcome = their_client(&client, version, &[target, structs(version)]);
            outcome.unwrap_or_else(|said| panic!("omniORB calls us by GIOP {version}: {said}"));
        }
        let (_process, theirs) = their_server(&server, version);
        echo::call(
            &caller,
            &theirs,
            structs(version).parse().expect("a number"),
        )
        .unwrap_or_else(|error| panic!("we call omniORB by GIOP {version}: {error}"));
        ports.push(port_of(&theirs));
    }
    caller.shutdown();
    ours.shutdown();
    let (messages, mut malformed) = finish(&mut capturing, &file, &ports);
    // Only omniORB divides messages of GIOP 1.1, and tshark looks for a request id that their fragments do not have.
    malformed.retain(|line| !line.contains("GIOP 1.1 Fragment"));
    // Nine times some seventeen calls and their replies; one-ways share their frames.
    assert!(messages > 300, "only {messages} frames of GIOP captured");
    assert_eq!(malformed, Vec::<String>::new());
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn omniorb_and_we_call_each_other_over_unix_sockets() {
    let folder = scratch("echo-unix");
    let Some((client, server)) = their_programs(&folder) else {
        return;
    };
    let our_path = folder.join("ours.sock");
    let (ours, reference) = our_server_at(&format!("unix:{}", our_path.display()));
    // A profile of IIOP 1.0 has no components, where the socket stands.
    for version in &VERSIONS[1..] {
        their_client(&client, version, &[&reference, structs(version)])
            .unwrap_or_else(|said| panic!("omniORB calls us by GIOP {version}: {said}"));
    }
    assert_ne!(ours.counters().read(Counter::Requests), 0);
    let their_path = folder.join("theirs.sock");
    let endpoint = format!("giop:unix:{}", their_path.display());
    let (_process, theirs) = their_server_at(&server, "1.2", &endpoint);
    assert_eq!(port_of(&theirs), 0);
    let caller = Orb::builder().build().expect("an ORB");
    echo::call(&caller, &theirs, MANY).expect("we call omniORB");
    caller.shutdown();
    ours.shutdown();
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

/// The port in a reference.
fn port_of(ior: &str) -> u16 {
    let ior: Ior = ior.parse().expect("an IOR");
    let profile = ior.iiop_profiles().flatten().next();
    profile.expect("an IIOP profile").port
}

#[test]
fn the_gaps_of_giop_1_1_are_those_that_are_listed() {
    let folder = scratch("echo-gaps");
    let Some((client, server)) = their_programs(&folder) else {
        return;
    };
    let (ours, reference, _) = our_server();
    gap(
        "giop-1.1-aligned-fragments",
        &their_client(&client, "1.1", &[&reference, "2000"]),
    );
    let (_process, theirs) = their_server(&server, "1.1");
    let caller = Orb::builder().build().expect("an ORB");
    gap(
        "giop-1.1-aligned-fragments",
        &echo::call(&caller, &theirs, MANY)
            .map(|()| String::new())
            .map_err(|error| error.to_string()),
    );
    caller.shutdown();
    ours.shutdown();
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn an_object_bound_in_omninames_is_found_by_corbaname_from_both_sides() {
    let folder = scratch("echo-corbaname");
    let Some((client, server)) = their_programs(&folder) else {
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
    caller.shutdown();
    ours.shutdown();
    drop(names);
    std::fs::remove_dir_all(folder).expect("the folder goes");
}
