//! Values of every IDL type between this ORB and foreign ORBs, each as client and as server, in each version of GIOP.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::{Capture, Running, free_port, omniorb_program, port_of, scratch, try_run};
use crate::gaps::gap;
use crate::jacorb::{JavaProgram, jacorb_program};
use crate::tables::caller::{Caller, Scope};
use crate::tables::servant;
use deckwatch_giop::Ior;
use deckwatch_orb::{Orb, OrbBuilder};

/// A listening ORB of ours that sends fragments where the GIOP version has them.
fn our_orb() -> Orb {
    our_orb_with(Orb::builder().fragment_size(8 * 1024))
}

fn our_orb_with(builder: OrbBuilder) -> Orb {
    let builder = builder.round_trip_timeout(Duration::from_secs(30));
    let builder = builder.listen("127.0.0.1:0").expect("an endpoint");
    builder.build().expect("an ORB")
}

/// omniORB's client, with `version` as its highest GIOP version.
fn omniorb_calls(
    program: &Path,
    reference: &str,
    version: &str,
    words: &[&str],
) -> Result<String, String> {
    try_run(
        Command::new(program)
            .args(["client", reference])
            .args(["-ORBmaxGIOPVersion", version])
            .args(["-ORBclientCallTimeOutPeriod", "60000"])
            .args(words),
    )
}

/// omniORB's server, with `version` as its highest GIOP version, and its reference.
fn omniorb_serves(program: &Path, version: &str, port: u16, words: &[&str]) -> (Running, String) {
    let endpoint = format!("giop:tcp:127.0.0.1:{port}");
    let mut server = Running::start(
        Command::new(program)
            .arg("server")
            .args(["-ORBmaxGIOPVersion", version])
            .args(["-ORBendPoint", &endpoint])
            // Otherwise omniORB serves the requests of one connection concurrently, one-ways too.
            .args(["-ORBmaxServerThreadPerConnection", "1"])
            .args(words),
    );
    let reference = server.line_with("IOR:");
    (server, reference)
}

/// The tests of omniORB in each version. Wide characters are in 1.2 only. From 1.1 on, both sides choose UTF-8, which
/// has no letter of one octet beyond ASCII.
const OMNIORB_RUNS: [(&str, &[&str], Scope); 4] = [
    (
        "1.0",
        &["latin"],
        Scope {
            latin: true,
            ..Scope::NARROW
        },
    ),
    ("1.1", &[], Scope::NARROW),
    (
        "1.2",
        &["wide"],
        Scope {
            wide: true,
            ..Scope::NARROW
        },
    ),
    (
        "1.2",
        &["wide", "utf8", "-ORBnativeCharCodeSet", "UTF-8"],
        Scope {
            wide: true,
            ..Scope::NARROW
        },
    ),
];

/// Ends a capture that must contain every version of GIOP and nothing malformed. Removes its directory.
#[track_caller]
fn expect_well_formed(capture: Capture, folder: &Path) {
    let (messages, malformed) = capture.finish();
    assert!(
        messages.iter().all(|count| *count > 500),
        "only {messages:?} frames of GIOP captured"
    );
    assert_eq!(malformed, Vec::<String>::new());
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn omniorb_and_we_pass_every_type_in_every_version_and_tshark_finds_nothing_malformed() {
    let folder = scratch("types-omniorb");
    let Some(program) = omniorb_program("types/types", &["deckwatch/types.idl"]) else {
        return;
    };
    let orb = our_orb();
    let reference = servant::activate(&orb).to_string();
    let mut ports = vec![orb.endpoints()[0].port().expect("TCP")];
    let their_ports = OMNIORB_RUNS.map(|_| free_port());
    ports.extend(their_ports);
    let Some(capture) = Capture::start(&folder, &ports) else {
        return;
    };
    let mut failed = Vec::new();
    for ((version, words, scope), port) in OMNIORB_RUNS.into_iter().zip(their_ports) {
        if let Err(said) = omniorb_calls(&program, &reference, version, words) {
            failed.push(format!(
                "omniORB calls us by GIOP {version} {words:?}: {said}"
            ));
        }
        let (_server, theirs) = omniorb_serves(&program, version, port, words);
        if let Err(wrong) = Caller::call_all(&orb, &theirs, scope) {
            failed.push(format!(
                "we call omniORB by GIOP {version} {words:?}: {wrong:#?}"
            ));
        }
    }
    orb.shutdown(true).expect("it ends");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    expect_well_formed(capture, &folder);
}

#[test]
fn the_gaps_of_omniorb_are_those_that_are_listed() {
    let Some(program) = omniorb_program("types/types", &["deckwatch/types.idl"]) else {
        return;
    };
    let orb = our_orb();
    let reference = servant::activate(&orb).to_string();
    let (_server, theirs) = omniorb_serves(&program, "1.2", free_port(), &[]);
    for (name, operation) in [
        ("omniorb-exceptions-in-any", "raised"),
        ("omniorb-long-double", "longdouble"),
    ] {
        gap(
            name,
            &omniorb_calls(&program, &reference, "1.2", &["only", operation]),
        );
        gap(name, &Caller::pass_only(&orb, &theirs, operation));
    }
    orb.shutdown(true).expect("it ends");
}

/// The tests of JacORB in the versions from 1.0 on. Wide characters exist since 1.1.
const JACORB_RUNS: [(&str, Scope); 3] = [
    (
        "1.0",
        Scope {
            latin: true,
            beyond_jacorb: false,
            raised: true,
            ..Scope::NARROW
        },
    ),
    (
        "1.1",
        Scope {
            wide_aligned: false,
            ..JACORB_WIDE
        },
    ),
    ("1.2", JACORB_WIDE),
];
const JACORB_WIDE: Scope = Scope {
    wide: true,
    beyond_jacorb: false,
    raised: true,
    ..Scope::NARROW
};

/// The reference with a profile of IIOP 1.`minor`, which is the version that JacORB's client then uses.
fn with_version(reference: &str, minor: u8) -> String {
    let ior: Ior = reference.parse().expect("an IOR");
    let profile = ior.iiop_profiles().next().expect("an IIOP profile");
    let mut profile = profile.expect("a whole one");
    profile.minor = minor;
    if minor == 0 {
        // Components exist since IIOP 1.1.
        profile.components.clear();
    }
    let ior = Ior::with_iiop(&ior.type_id, &profile);
    ior.expect("it can be written").to_string()
}

/// JacORB's server, and its reference in each version from 1.0 on.
fn jacorb_serves(program: &JavaProgram, ports: [u16; 3]) -> (Running, [String; 3]) {
    let mut command = program.command();
    command
        .arg("server")
        .args(ports.map(|port| port.to_string()));
    let mut server = Running::start(&mut command);
    let references = ports.map(|_| server.line_with("IOR:"));
    (server, references)
}

#[test]
fn the_gaps_of_jacorb_are_those_that_are_listed() {
    let Some(program) = jacorb_program("deckwatch/types.idl") else {
        return;
    };
    let (_server, [_, theirs, _]) = jacorb_serves(&program, [0, 1, 2].map(|_| free_port()));
    let whole = our_orb_with(Orb::builder());
    let dividing = our_orb();
    for (name, operation) in [
        ("jacorb-wchar-alignment", "wide"),
        ("jacorb-fixed-zeros", "little"),
        ("jacorb-bounded-wstring", "wide_sign"),
    ] {
        gap(name, &Caller::pass_only(&whole, &theirs, operation));
    }
    gap(
        "jacorb-giop-1.1-fragments",
        &Caller::mirror_only(&dividing, &theirs, 100_000),
    );
    dividing.shutdown(true).expect("it ends");
    whole.shutdown(true).expect("it ends");
}

#[test]
fn jacorb_and_we_pass_every_type_in_every_version_and_tshark_finds_nothing_malformed() {
    let folder = scratch("types-jacorb");
    let Some(program) = jacorb_program("deckwatch/types.idl") else {
        return;
    };
    // JacORB reads fragments of GIOP 1.2 only.
    let whole = our_orb_with(Orb::builder());
    let orb = our_orb();
    let references = [
        with_version(&servant::activate(&whole).to_string(), 0),
        with_version(&servant::activate(&whole).to_string(), 1),
        servant::activate(&orb).to_string(),
    ];
    let mut ports: Vec<u16> = references.iter().map(|ior| port_of(ior)).collect();
    let their_ports = JACORB_RUNS.map(|_| free_port());
    ports.extend(their_ports);
    let Some(capture) = Capture::start(&folder, &ports) else {
        return;
    };
    let mut failed = Vec::new();
    let mut client = program.command();
    if let Err(said) = try_run(client.arg("client").args(references)) {
        failed.push(format!("JacORB calls us: {said}"));
    }
    let (_server, theirs) = jacorb_serves(&program, their_ports);
    for ((version, scope), theirs) in JACORB_RUNS.into_iter().zip(theirs) {
        let caller = if version == "1.2" { &orb } else { &whole };
        if let Err(wrong) = Caller::call_all(caller, &theirs, scope) {
            failed.push(format!("we call JacORB by GIOP {version}: {wrong:#?}"));
        }
    }
    orb.shutdown(true).expect("it ends");
    whole.shutdown(true).expect("it ends");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    expect_well_formed(capture, &folder);
}
