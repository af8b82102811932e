//! Every kind of `deckwatch bench` in its short form: its document has the pairs, the ends as they were read back, and
//! figures for what was asked for.

use std::process::Command;

use crate::measuring::folder;
use deckwatch_meter::experiment::{EndNote, ExperimentDocument, Measurement};

/// Runs a bench without foreign ORBs. Returns its document and its progress.
fn bench(test: &str, words: &[&str]) -> (ExperimentDocument, String) {
    let folder = folder(test);
    let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .arg("bench")
        .args(words)
        .args(["--without", "omniorb,jacorb,rustorb,zenoh"])
        .arg("--output")
        .arg(&folder)
        .output()
        .expect("it runs");
    let progress = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{progress}");
    let document = ExperimentDocument::load(&folder.join("result.json")).expect("a document");
    std::fs::remove_dir_all(&folder).expect("removed");
    (document, progress)
}

/// Runs a kind in its short form, in the time-sharing class.
fn quick(kind: &str, more: &[&str]) -> ExperimentDocument {
    let words = [&[kind, "--quick", "--condition", "default"], more].concat();
    bench(&format!("bench-quick-{kind}"), &words).0
}

/// Our own measurements that have a ratio.
fn ours(document: &ExperimentDocument) -> Vec<&Measurement> {
    let all = document.measurements.iter();
    all.filter(|it| it.system == "deckwatch" && it.runs.contains_key("rate_ratio"))
        .collect()
}

const NOT_JUDGED: &str = "targets are not judged in this condition";

fn end<'d>(of: &'d Measurement, name: &str) -> &'d EndNote {
    let found = of.ends.iter().find(|end| end.end == name);
    found.unwrap_or_else(|| panic!("{}: {:?}", of.case, of.ends))
}

/// Each case has one pair of runs in the short form, and no more than was measured.
fn check_one_pair(document: &ExperimentDocument, cases: usize) {
    let ours = ours(document);
    assert_eq!(ours.len(), cases);
    check_pairs(ours);
}

fn check_pairs(ours: Vec<&Measurement>) {
    for of in ours {
        assert_eq!(of.runs["rate_ratio"].len(), 1, "{}", of.case);
        assert!(of.values["rate_ratio"] > 0.0, "{}", of.case);
        let counted: u64 = of.histogram.iter().map(|(_, count)| count).sum();
        assert!(counted == of.samples || counted == 0, "{}", of.case);
        for name in ["server", "client", "baseline's server", "baseline's client"] {
            let end = end(of, name);
            assert_eq!(end.differs, None, "{}", of.case);
            assert_eq!(end.classes, ["SCHED_OTHER"], "{}", of.case);
        }
    }
}

#[test]
fn calls_at_a_rate_are_paced() {
    let document = quick("rate", &[]);
    check_one_pair(&document, 1);
    // 300 ms of calls every 10 ms, and no run more.
    let made = ours(&document)[0].samples;
    assert!((20..=30).contains(&made), "{made}");
}

#[test]
fn calls_over_tls_are_compared_with_plain_ones() {
    let document = quick("call", &["--tls", "--octets", "64"]);
    check_one_pair(&document, 2);
    let of = ours(&document);
    let cases: Vec<&str> = of.iter().map(|it| it.case.as_str()).collect();
    assert_eq!(cases, ["octets", "octets beside plain calls"]);
    let measures: Vec<&str> = document
        .standings
        .iter()
        .map(|it| it.measure.as_str())
        .collect();
    assert_eq!(
        measures,
        [
            "two-way 64 B over TLS, p50 over plain TCP",
            "two-way 64 B over TLS, p50 over omniORB's over SSL"
        ]
    );
    assert_eq!(document.standings[0].target, "at most 1.35");
}

#[test]
fn names_are_resolved_under_attacks_beside_a_service_that_nobody_attacks() {
    const ATTACKS: &str = "silent-contexts,circular-contexts";
    // Long enough for one step of each attack on a busy machine.
    let words = ["attacks", "--rounds", "1", "--run-time", "150ms"];
    let more = ["--condition", "default", "--attacks", ATTACKS];
    let (document, _) = bench("bench-attacks-names", &[&words[..], &more].concat());
    check_one_pair(&document, 2);
    for (of, attack) in ours(&document).into_iter().zip(ATTACKS.split(',')) {
        assert_eq!(of.case, format!("resolve, under {attack}"));
        assert_eq!(end(of, "load").differs, None, "{}", of.case);
        // The name of 16 letters is in the request, and a reference in the reply.
        assert!(of.factors["request_octets"] > 64.0, "{:?}", of.factors);
        assert!(of.factors["reply_octets"] > 64.0, "{:?}", of.factors);
    }
    assert_eq!(document.standings.len(), 2);
    for standing in &document.standings {
        assert_eq!(standing.target, "at most 2.00", "{}", standing.measure);
        assert_eq!(standing.reason.as_deref(), Some(NOT_JUDGED));
    }
}

#[test]
fn high_lane_is_called_under_attacks_beside_a_server_that_nobody_attacks() {
    // One of each service; the others connect and write as these do.
    const ATTACKS: &str = "outward-calls,silent-consumer,places,shared-memory,cancels";
    // Long enough for one step of each attack on a busy machine.
    let words = ["attacks", "--rounds", "1", "--run-time", "150ms"];
    let more = ["--condition", "default", "--attacks", ATTACKS];
    let (document, _) = bench("bench-attacks", &[&words[..], &more].concat());
    check_one_pair(&document, 5);
    for of in ours(&document) {
        assert_eq!(end(of, "load").differs, None, "{}", of.case);
    }
    assert_eq!(document.standings.len(), 5);
    for standing in &document.standings {
        assert_eq!(standing.target, "at most 1.50", "{}", standing.measure);
        assert_eq!(standing.reason.as_deref(), Some(NOT_JUDGED));
    }
}

#[test]
fn streams_are_compared_with_raw_tcp_of_the_same_send_buffer_and_untuned() {
    let document = quick("stream", &[]);
    check_one_pair(&document, 5);
    let of = |case: &str| {
        let mut all = ours(&document).into_iter();
        all.find(|it| it.case == case && it.factors["payload_octets"] == 65_536.0)
            .expect("measured")
    };
    let alike = of("stream-octets");
    let (own, raw) = (end(alike, "client"), end(alike, "baseline's client"));
    if own.is_send_buffer_fixed == Some(true) {
        assert_eq!(raw.send_buffer_octets, own.send_buffer_octets);
        assert_eq!(raw.is_send_buffer_fixed, Some(true));
    }
    assert_eq!(raw.is_send_buffer_fixed, own.is_send_buffer_fixed);
    let untuned = of("stream-octets beside untuned raw TCP");
    let raw = end(untuned, "baseline's client");
    assert_eq!(raw.is_send_buffer_fixed, Some(false));
    let measures = document.standings.iter().map(|it| it.measure.as_str());
    let both: Vec<&str> = measures.filter(|it| it.contains("64 KiB octets")).collect();
    assert_eq!(
        both,
        [
            "one-way 64 KiB octets, rate over raw TCP with the same send buffer",
            "one-way 64 KiB octets, rate over untuned raw TCP"
        ]
    );
}

#[test]
fn many_objects_are_called_beside_one() {
    let document = quick("objects", &["--objects", "200"]);
    check_one_pair(&document, 1);
    let [standing] = &document.standings[..] else {
        panic!("{:?}", document.standings);
    };
    let reason = standing.reason.as_deref();
    assert_eq!(reason, Some(NOT_JUDGED));
}

#[test]
fn a_high_priority_is_measured_beside_its_load() {
    let document = quick("priority", &["--low-clients", "3"]);
    check_one_pair(&document, 1);
    let of = ours(&document)[0];
    assert_eq!(end(of, "load").differs, None);
    assert!(of.samples >= 20, "{}", of.samples);
}

/// Events are received by all consumers, beside a raw fan-out.
fn check_events(document: &ExperimentDocument) {
    let mut cases = ours(document);
    cases.retain(|it| it.group.starts_with("events: "));
    assert_eq!(cases.len(), 14);
    check_pairs(cases);
    let of = |measure: &str| {
        let mut all = document.standings.iter();
        let found = all.find(|it| it.measure.contains(measure));
        found.unwrap_or_else(|| panic!("{measure}: {:?}", document.standings))
    };
    for kind in ["channel", "real-time channel"] {
        for place in ["all at one endpoint", "an endpoint each"] {
            let idle = of(&format!("idle consumer at the {kind}, {place}"));
            let idle = idle.ours.expect("measured").median;
            assert!(
                (100.0..1_000_000.0).contains(&idle),
                "{kind}, {place}: {idle}"
            );
        }
    }
    for event in ["an event", "a real-time event"] {
        for who in [" at one endpoint", ", an endpoint each"] {
            let to = format!("at the channel, {event} to 35 consumers{who}");
            let counted = of(&format!("system calls {to}"));
            match counted.ours {
                // An event is read and written once; a channel that was late reads several at once.
                Some(calls) => assert!(calls.median >= 1.0, "{counted:?}"),
                None => deckwatch_testkit::skip_part("perf events", "nothing is counted here"),
            }
            // A machine that takes the processor away lets more events be alive at once, and pools grow: up to 2.4 for
            // each of the 400 events. One allocation for each consumer would be 35. The tests of the channel itself
            // count exactly.
            if let Some(allocations) = of(&format!("heap allocations {to}")).ours {
                assert!(allocations.median < 10.0, "{to}: {allocations:?}");
            }
            // A consumer of the bench reads an event in its message. One that decodes would take 3 allocations or more.
            let ends = format!("{event} to 35 consumers{who}");
            let supplier = of(&format!("heap allocations at the supplier, {ends}"));
            if let Some(allocations) = supplier.ours {
                assert_eq!(supplier.target, "at most 0");
                assert!(allocations.median < 10.0, "{ends}: {allocations:?}");
                let consumers = of(&format!("heap allocations at all consumers, {ends}"));
                let each = consumers.ours.expect("counted with it").median / 35.0;
                assert!(each < 1.0, "{ends}: {each}");
            }
            // A one-way takes the lock of its connection once and that of its outlet twice, and a write for each
            // connection.
            if event == "a real-time event" {
                if let Some(locks) = of(&format!("mutex locks {to}")).ours {
                    assert!(locks.median < 35.0 * 3.5, "{to}: {locks:?}");
                }
                if let Some(calls) = counted.ours {
                    let writes = if who.contains("each") { 35.0 } else { 1.0 };
                    assert!(calls.median < writes * 1.5 + 5.0, "{to}: {calls:?}");
                }
            }
        }
    }
    // A flow of high priority is measured beside one of low priority, and alone.
    let loaded = of("beside a flow of low priority");
    assert_eq!(loaded.reason.as_deref(), Some(NOT_JUDGED), "{loaded:?}");
    let all = ours(document).into_iter();
    let urgent = all
        .filter(|it| it.case.starts_with("rt-push") && it.case.contains("a load of low priority"));
    let [urgent] = &urgent.collect::<Vec<_>>()[..] else {
        panic!("{:?}", document.measurements);
    };
    assert_eq!(end(urgent, "load").differs, None);
    // Times are compared by no amount: a machine may take the processor from one of two runs alone.
    for case in [
        "push to one consumer",
        "push to 35 consumers at one endpoint",
    ] {
        let all = ours(document).into_iter();
        let raw = all
            .filter(|it| it.case == case)
            .map(|it| it.values["beside_p50_ns"]);
        assert!(raw.sum::<f64>() > 0.0, "{case}");
    }
    // An event of a mission takes two hops where a call takes one.
    let mut all = document.measurements.iter();
    let mission = all.find(|it| it.case == "a mission").expect("measured");
    let p50_ns = |carrier: &str| mission.values[&format!("{carrier}_p50_ns")];
    for (carrier, value) in [("`event`", "event"), ("`rt-event`", "rt_event")] {
        let ratio = of(&format!("{carrier} in a mission")).ours;
        let ratio = ratio.expect("measured").median;
        let over_two_hops = p50_ns(value) / (2.0 * p50_ns("corba"));
        // Both are rounded on their way through the document.
        let is_it = (ratio - over_two_hops).abs() < 1e-9 * over_two_hops;
        assert!(is_it, "{carrier}: {ratio} and {over_two_hops}");
    }
    assert!(
        document.skipped.iter().any(|it| it.what == "zenoh"),
        "{:?}",
        document.skipped
    );
}

/// Events of other systems are measured in the cases that they have.
fn check_event_peers(document: &ExperimentDocument) {
    let of = |name: &str| -> Vec<&str> {
        let all = document.measurements.iter();
        all.filter(|it| it.system == name && it.runs.contains_key("rate_ratio"))
            .map(|it| it.case.as_str())
            .collect()
    };
    let skip_of = |name: &str| document.skipped.iter().find(|it| it.what == name);
    match skip_of("tao") {
        Some(skip) => deckwatch_testkit::skip_part("tao", &skip.reason),
        None => assert_eq!(of("tao").len(), 3, "{:?}", document.measurements),
    }
    if deckwatch_testkit::program("omniEvents").is_none() {
        return deckwatch_testkit::did_a_part();
    }
    let cases = of("omnievents");
    assert_eq!(cases.len(), 6, "{cases:?}: {:?}", document.skipped);
    assert!(
        cases.iter().all(|case| case.starts_with("push")),
        "{cases:?}"
    );
    match skip_of("cyclone-dds") {
        Some(skip) => deckwatch_testkit::skip_part("cyclone-dds", &skip.reason),
        None => assert_eq!(of("cyclone-dds").len(), 4, "{:?}", document.measurements),
    }
    let over: Vec<_> = (document.standings.iter())
        .filter(|it| it.measure.contains("over omniEvents'"))
        .collect();
    assert_eq!(over.len(), 2);
    assert!(over.iter().all(|it| it.ours.is_some()), "{over:?}");
}

#[test]
fn memory_with_connections_is_that_of_a_server_that_has_them() {
    const CONNECTIONS: usize = 500;
    let (document, _) = bench(
        "bench-memory",
        &[
            "memory",
            "--rounds",
            "2",
            "--connections",
            "500",
            "--condition",
            "default",
        ],
    );
    let resident = |connections: usize| {
        let mut all = document.measurements.iter();
        let of = all.find(|it| it.factors["connections"] == connections as f64);
        of.expect("measured").runs["resident_octets"].clone()
    };
    let (idle, full) = (resident(0), resident(CONNECTIONS));
    assert_eq!((idle.len(), full.len()), (2, 2));
    for (idle, full) in idle.into_iter().zip(full) {
        // A connection takes at least some hundred octets, and no more than its limits allow.
        let each = (full - idle) / CONNECTIONS as f64;
        assert!((100.0..100_000.0).contains(&each), "{idle}, {full}");
    }
}

#[test]
fn all_kinds_are_measured_and_the_state_of_the_machine_before_and_after() {
    let words = "all --quick --run-time 150ms --condition default --objects 50 --low-clients 2 --connections 200";
    let words: Vec<&str> = words.split(' ').collect();
    let (document, progress) = bench("bench-quick-all", &words);
    check_kinds(&document);
    check_events(&document);
    check_event_peers(&document);
    assert!(
        progress.contains("This will probably take about "),
        "{progress}"
    );
    assert!(progress.contains(" left\n"), "{progress}");
}

/// Each kind is measured, and the state of the machine before and after.
fn check_kinds(document: &ExperimentDocument) {
    for kind in [
        "call", "rate", "stream", "objects", "priority", "events", "memory",
    ] {
        let mut groups = document.measurements.iter().map(|it| &it.group);
        assert!(
            groups.any(|group| group.starts_with(&format!("{kind}: "))),
            "{kind}"
        );
    }
    let whens: Vec<&str> = document
        .machine_states
        .iter()
        .map(|it| it.when.as_str())
        .collect();
    assert_eq!(whens, ["before", "after"]);
    for state in &document.machine_states {
        assert!(
            state.raw_round_trips > 0 && state.system_calls > 0,
            "{state:?}"
        );
        // A round trip takes some system calls.
        assert!(state.system_call_p50_ns > 0.0, "{state:?}");
        assert!(
            state.raw_p50_ns > 2.0 * state.system_call_p50_ns,
            "{state:?}"
        );
    }
}

#[test]
fn every_end_and_the_guard_have_the_class_and_the_processor_that_were_asked_for() {
    let words = [
        "call",
        "--octets",
        "64",
        "--rounds",
        "2",
        "--condition",
        "pinned",
    ];
    let words = [&words[..], &["--run-time", "100ms"]].concat();
    let (document, _) = bench("bench-pinned", &words);
    if document.condition.contains("for want of permission") {
        return deckwatch_testkit::skip("real-time-class", "SCHED_FIFO needs CAP_SYS_NICE");
    }
    for of in &document.measurements {
        assert!(of.ends.len() >= 2, "{} {}", of.system, of.case);
        for end in &of.ends {
            let what = format!("{} {}: {end:?}", of.system, of.case);
            assert_eq!(end.differs, None, "{what}");
            assert_eq!(end.classes, ["SCHED_FIFO 50"], "{what}");
            assert_eq!(end.processors.len(), 1, "{what}");
        }
    }
    for of in ours(&document) {
        // The warm-up is not among the pairs, and the order alternates.
        assert_eq!(of.runs["p50_ratio"].len(), 2, "{}", of.group);
        assert_eq!(of.runs["system_first"], [0.0, 1.0], "{}", of.group);
    }
    let guard = document
        .measurements
        .iter()
        .find(|it| it.case == "beside sockperf");
    let Some(guard) = guard else {
        return deckwatch_testkit::skip_part("sockperf", "the baseline is unguarded");
    };
    assert_eq!(guard.runs["p50_ratio"].len(), 2);
    assert!(guard.ends.iter().any(|end| end.end == "sockperf server"));
    assert!(guard.ends.iter().any(|end| end.end == "client"));
}
