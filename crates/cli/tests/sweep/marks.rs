//! `deckwatch sweep --dscp`: nftables, in a network namespace of the sweep's own, counts how its packets are marked.

use std::process::Command;

use super::{document, folder};

/// Counts packets with content, which are longer than the bare headers: those with the mark, and the others.
const RULES: &str = "table ip marked {
    counter expedited { }
    counter others { }
    chain sent {
        type filter hook output priority 0;
        ip protocol tcp ip length <= 60 accept
        ip dscp 46 counter name expedited accept
        counter name others
    }
}";

/// Runs a sweep of 64 octets over these carriers. Returns the marked packets and the others, or `None` if this machine
/// has no network namespaces.
fn packets(carriers: &str) -> Option<[u64; 2]> {
    deckwatch_testkit::program("nft")?;
    let isolated = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--net", "--map-root-user", "sh", "-ec", script]);
        command
    };
    let probe = isolated(r#"ip link set lo up; nft "$RULES""#)
        .env("RULES", RULES)
        .output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        deckwatch_testkit::skip("namespaces", "no network namespace with nftables");
        return None;
    }
    let folder = folder(&format!("sweep-marks-{}", carriers.replace(',', "-")));
    let script = r#"ip link set lo up
        nft "$RULES"
        "$PROGRAM" sweep --output "$FOLDER" --carriers "$CARRIERS" --dscp 46 \
            --sizes 64 --iterations 1 --messages 100 >&2
        nft list counters table ip marked"#;
    let output = isolated(script)
        .env("RULES", RULES)
        .env("PROGRAM", env!("CARGO_BIN_EXE_deckwatch"))
        .env("FOLDER", &folder)
        .env("CARRIERS", carriers)
        .output()
        .expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert_eq!(document(&folder).parameters["codepoint of packets"], "46");
    std::fs::remove_dir_all(folder).expect("removed");
    let listing = String::from_utf8(output.stdout).expect("text");
    let counted = |name: &str| {
        let (_, rest) = listing.split_once(name).expect("a counter");
        let mut words = rest.split_whitespace();
        words.find(|word| *word == "packets").expect("a count");
        words.next().expect("a number").parse().expect("a number")
    };
    Some(["counter expedited", "counter others"].map(counted))
}

#[test]
fn all_packets_of_both_ends_carry_the_codepoint() {
    let Some([marked, others]) = packets("udp,tcp,corba,corba-oneway") else {
        return;
    };
    // 100 transactions of each carrier, there and back.
    assert!(marked >= 800 && others == 0, "{marked} and {others}");
}

#[test]
fn packets_of_the_channels_carry_the_codepoint() {
    let Some([marked, others]) = packets("rt-event") else {
        return;
    };
    // A transaction has two messages, each to a channel and from it. Calls to the naming service are not marked.
    assert!(marked >= 400 && others < 100, "{marked} and {others}");
}
