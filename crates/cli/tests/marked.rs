//! A mission whose flows have a priority and a DSCP: nftables, in the hosts' namespaces, counts how its packets are
//! marked.

use std::process::Command;

use deckwatch_testbed::Testbed;

use super::watched::WatchedRun;

/// The supplier, the consumer and the carrier of a flow.
type Flow = [&'static str; 3];

fn mission(flows: [Flow; 2]) -> String {
    let host = |name: &str| {
        format!(
            "[[hosts]]\nname = \"{name}\"\nscheduling = {{ class = \"fifo\", native_priority = 20 }}\n"
        )
    };
    let flow = |[from, to, carrier]: Flow| {
        format!(
            "{}{}[[flows]]\nname = \"NAV-{carrier}\"\noctets = 384\nfrom = \"{from}\"\nto = [\"{to}\"]\n\
             carrier = \"{carrier}\"\npriority = 10_000\ndscp = 46\nrate_hz = 50\ndeadline = \"500ms\"\n\
             late = \"1 in 2\"\ncount = 150\nwarm_up = \"500ms\"\n",
            host(from),
            host(to)
        )
    };
    let flows = flows.map(flow).concat();
    format!("name = \"marked\"\nnetwork = {{ preset = \"gigabit-ethernet\" }}\n{flows}")
}

/// Counts what a host sends over TCP in packets with content, which are longer than the 60 octets of bare headers: all
/// such packets, and those with the mark; to other hosts, and within the host.
const RULES: &str = "table ip marked {
    counter content { }
    counter expedited { }
    counter content-within { }
    counter expedited-within { }
    chain sent {
        type filter hook postrouting priority 0;
        oifname != \"lo\" ip protocol tcp ip length > 60 counter name content
        oifname != \"lo\" ip protocol tcp ip length > 60 ip dscp 46 counter name expedited
        oifname \"lo\" ip protocol tcp ip length > 60 counter name content-within
        oifname \"lo\" ip protocol tcp ip length > 60 ip dscp 46 counter name expedited-within
    }
}";

const OUT: [&str; 2] = ["content", "expedited"];
const WITHIN: [&str; 2] = ["content-within", "expedited-within"];

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

/// Runs a mission of two flows until hosts have sent 50 packets of each of these kinds: the number of the host, and the
/// counters of all packets and of marked ones. Checks that all are marked. Returns the namespaces' counts of what
/// `others` names.
fn check(
    test: &str,
    flows: [Flow; 2],
    kinds: &[(usize, [&str; 2])],
    others: &[(usize, [&str; 2])],
) -> Option<Vec<[u64; 2]>> {
    if let Some(reason) = Testbed::obstacle() {
        deckwatch_testkit::skip("namespaces", &reason);
        return None;
    }
    let run = WatchedRun::start(test, &mission(flows), &[]);
    let testbed = run.testbed();
    let namespace = |host: &str| testbed.namespace_of(host).expect("a host");
    let hosts: Vec<_> = flows
        .iter()
        .flat_map(|[from, to, _]| [namespace(from), namespace(to)])
        .collect();
    for host in &hosts {
        nft(host, &[RULES]);
    }
    // The hosts last until the run ends, so the counts are read when the consumers have had a second's messages.
    for (host, [all, _]) in kinds {
        while counted(&hosts[*host], all) < 50 {}
    }
    let read = |(host, names): &(usize, [&str; 2])| names.map(|name| counted(&hosts[*host], name));
    let seen: Vec<_> = kinds.iter().map(read).collect();
    let others = others.iter().map(read).collect();
    run.finish();
    for ([all, expedited], kind) in seen.into_iter().zip(kinds) {
        // Between the two readings a packet may pass.
        assert!(
            expedited >= all,
            "{expedited} of {all} packets are marked: {kind:?}"
        );
    }
    Some(others)
}

#[test]
fn packets_of_a_mission_carry_the_dscp_of_their_flow_both_ways() {
    let flows = [
        ["RTS", "SONAR", "corba"],
        ["SHORE", "RADAR", "corba-oneway"],
    ];
    let [requests, replies, oneways, answers] = [0, 1, 2, 3].map(|host| (host, OUT));
    if let Some(answers) = check("marked", flows, &[requests, replies, oneways], &[answers]) {
        assert_eq!(answers, [[0, 0]], "a one-way request has no reply");
    }
}

#[test]
fn packets_of_event_channels_carry_the_dscp_of_their_flow_on_both_hops() {
    let flows = [["RTS", "SONAR", "event"], ["SHORE", "RADAR", "rt-event"]];
    // The channel is on the supplier's host: pushes to it, and its replies, stay within that host.
    let kinds = [(0, WITHIN), (0, OUT), (1, OUT), (2, WITHIN), (2, OUT)];
    if let Some(answers) = check("marked-events", flows, &kinds, &[(3, OUT)]) {
        assert_eq!(answers, [[0, 0]], "a one-way push has no reply");
    }
}
