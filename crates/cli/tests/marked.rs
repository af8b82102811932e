//! A mission whose flows have a priority and a DSCP: nftables, in the hosts' namespaces, counts how its packets are
//! marked.

use std::process::Command;

use deckwatch_testbed::Testbed;

use super::watched::WatchedRun;

/// The supplier, the consumer and the carrier of each flow.
const FLOWS: [[&str; 3]; 2] = [
    ["RTS", "SONAR", "corba"],
    ["SHORE", "RADAR", "corba-oneway"],
];

fn mission() -> String {
    let host = |name: &str| {
        format!(
            "[[hosts]]\nname = \"{name}\"\nscheduling = {{ class = \"fifo\", native_priority = 20 }}\n"
        )
    };
    let flow = |[from, to, carrier]: [&str; 3]| {
        format!(
            "{}{}[[flows]]\nname = \"NAV-{carrier}\"\noctets = 384\nfrom = \"{from}\"\nto = [\"{to}\"]\n\
             carrier = \"{carrier}\"\npriority = 10_000\ndscp = 46\nrate_hz = 50\ndeadline = \"500ms\"\n\
             late = \"1 in 2\"\ncount = 100\nwarm_up = \"500ms\"\n",
            host(from),
            host(to)
        )
    };
    let flows = FLOWS.map(flow).concat();
    format!("name = \"marked\"\nnetwork = {{ preset = \"gigabit-ethernet\" }}\n{flows}")
}

/// Counts what a host sends over TCP in packets with content, which are longer than the 60 octets of bare headers: all
/// such packets, and those with the mark.
const RULES: &str = "table ip marked {
    counter content { }
    counter expedited { }
    chain sent {
        type filter hook postrouting priority 0;
        ip protocol tcp ip length > 60 counter name content
        ip protocol tcp ip length > 60 ip dscp 46 counter name expedited
    }
}";

fn nft(namespace: &str, words: &[&str]) -> String {
    let output = Command::new("ip")
        .args(["netns", "exec", namespace, "nft"])
        .args(words)
        .output()
        .expect("iproute2 is there");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the packets that a counter of a host has counted.
fn counted(namespace: &str, name: &str) -> u64 {
    let listing = nft(namespace, &["list", "counter", "ip", "marked", name]);
    let mut words = listing.split_whitespace();
    words.find(|word| *word == "packets").expect("a count");
    let count = words.next().expect("a number");
    count.parse().expect("a number")
}

#[test]
fn packets_of_a_mission_carry_the_dscp_of_their_flow_both_ways() {
    if let Some(reason) = Testbed::obstacle() {
        return deckwatch_testkit::skip("namespaces", &reason);
    }
    let run = WatchedRun::start("marked", &mission(), &[]);
    let testbed = run.testbed();
    let namespace = |host: &str| testbed.namespace_of(host).expect("a host");
    let hosts: Vec<_> = FLOWS
        .iter()
        .flat_map(|[from, to, _]| [namespace(from), namespace(to)])
        .collect();
    for host in &hosts {
        nft(host, &[RULES]);
    }
    // The hosts last until the run ends, so the counts are read when the consumers have had a second's messages.
    let counts = || {
        hosts
            .iter()
            .map(|host| ["content", "expedited"].map(|name| counted(host, name)))
    };
    let [requests, replies, oneways, answers] = loop {
        let seen: Vec<_> = counts().collect();
        let seen: [[u64; 2]; 4] = seen.try_into().expect("four hosts");
        if seen[0][0] >= 50 && seen[1][0] >= 50 && seen[2][0] >= 50 {
            break seen;
        }
    };
    run.finish();
    for [all, expedited] in [requests, replies, oneways] {
        // Between the two readings a packet may pass.
        assert!(expedited >= all, "{expedited} of {all} packets are marked");
    }
    assert_eq!(answers, [0, 0], "a one-way request has no reply");
}
