//! Something of every IDL type between this ORB and foreign ones, each as client and as server, in each version of GIOP.

mod common;
#[path = "common/gaps.rs"]
mod gaps;
mod tables;

use std::path::Path;
use std::process::Command;

use common::{Running, capture, finish, omniorb_program, port_of, scratch, try_run};
use deckwatch_orb::Orb;
use gaps::gap;
use tables::caller::{Caller, Scope};
use tables::servant;

/// An ORB of ours that listens, and divides what it sends where the version has fragments.
fn our_orb() -> Orb {
    let builder = Orb::builder().fragment_size(8 * 1024);
    let builder = builder.listen("127.0.0.1:0").expect("an endpoint");
    builder.build().expect("an ORB")
}

/// omniORB's client, speaking at most `version`.
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

/// omniORB's server, speaking at most `version`, and its reference.
fn omniorb_serves(program: &Path, version: &str, words: &[&str]) -> (Running, String) {
    let mut server = Running::start(
        Command::new(program)
            .arg("server")
            .args(["-ORBmaxGIOPVersion", version])
            .args(["-ORBendPoint", "giop:tcp:127.0.0.1:"])
            // Else it serves one connection's requests side by side, one-ways too.
            .args(["-ORBmaxServerThreadPerConnection", "1"])
            .args(words),
    );
    let reference = server.line_with("IOR:");
    (server, reference)
}

/// What omniORB is asked and tested with in a version: wide characters in 1.2 alone; and where UTF-8 is agreed upon, which is from 1.1 on,
/// there are no letters of one octet beyond ASCII.
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

#[test]
fn omniorb_and_we_pass_every_type_in_every_version_and_tshark_finds_nothing_malformed() {
    let folder = scratch("types-omniorb");
    let Some(program) = omniorb_program("types/types", &["deckwatch/types.idl"]) else {
        return;
    };
    let Some((mut capturing, file)) = capture(&folder) else {
        return;
    };
    let orb = our_orb();
    let reference = servant::activate(&orb).to_string();
    let mut ports = vec![orb.endpoints()[0].port().expect("TCP")];
    let mut failed = Vec::new();
    for (version, words, scope) in OMNIORB_RUNS {
        if let Err(said) = omniorb_calls(&program, &reference, version, words) {
            failed.push(format!(
                "omniORB calls us by GIOP {version} {words:?}: {said}"
            ));
        }
        let (_server, theirs) = omniorb_serves(&program, version, words);
        if let Err(wrong) = Caller::call_all(&orb, &theirs, scope) {
            failed.push(format!(
                "we call omniORB by GIOP {version} {words:?}: {wrong:#?}"
            ));
        }
        ports.push(port_of(&theirs));
    }
    orb.shutdown(true).expect("it ends");
    let (messages, malformed) = finish(&mut capturing, &file, &ports);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(messages > 2_000, "only {messages} frames of GIOP captured");
    assert_eq!(malformed, Vec::<String>::new());
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn the_gaps_of_omniorb_are_those_that_are_listed() {
    let Some(program) = omniorb_program("types/types", &["deckwatch/types.idl"]) else {
        return;
    };
    let orb = our_orb();
    let reference = servant::activate(&orb).to_string();
    let (_server, theirs) = omniorb_serves(&program, "1.2", &[]);
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
