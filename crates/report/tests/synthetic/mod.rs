//! Runs that never were: stamps drawn from distributions like those of real ones, judged by the real judge.

#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;
use std::time::Duration;

use deckwatch_meter::blame::Road;
use deckwatch_meter::disturbance::Disturbance;
use deckwatch_meter::experiment::{
    AxisNote, EXPERIMENT_SCHEMA_VERSION, ExperimentDocument, Figure, FigureKind, Measurement,
    Point, Skip, time_values,
};
use deckwatch_meter::host_entry::HostEntry;
use deckwatch_meter::judge::{Destination, Terms, judge};
use deckwatch_meter::pacing::Arrivals;
use deckwatch_meter::result::{
    ClockNote, Death, Environment, Fidelity, FlowResult, LateBudget, Provenance, ResultDocument,
    SCHEMA_VERSION, Verdict, VerdictKind, Warning,
};
use deckwatch_meter::sample::{NO_STAMP, Sample, SampleFlags};

/// A flow over one carrier.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) name: String,
    pub(crate) carrier: String,
    pub(crate) hosts: Vec<String>,
    pub(crate) rate_hz: f64,
    pub(crate) messages: u64,
    pub(crate) warm_up: u64,
    pub(crate) deadline: Duration,
    pub(crate) budget: LateBudget,
    /// Typical time of a layer, nanoseconds.
    pub(crate) scale_ns: f64,
    /// Share of messages that a layer holds up.
    pub(crate) stalled: f64,
    /// Share of messages that never come.
    pub(crate) lost: f64,
    /// Whether the kernel's stamps were to be had.
    pub(crate) kernel_stamps: bool,
}

impl Flow {
    /// The paper's: 384 octets at 20 Hz, 50 ms, 3 in 10,000.
    pub(crate) fn nav(carrier: &str) -> Self {
        let middleware =
            f64::from(u8::from(carrier != "udp")) * 0.4 + f64::from(u8::from(carrier == "event"));
        Self {
            name: "NAV".to_owned(),
            carrier: carrier.to_owned(),
            hosts: vec!["SONAR".to_owned()],
            rate_hz: 20.0,
            messages: 400,
            warm_up: 20,
            deadline: Duration::from_millis(50),
            budget: LateBudget {
                late: 3,
                of: 10_000,
            },
            scale_ns: 30_000.0 * (1.0 + middleware),
            stalled: 0.0,
            lost: 0.0,
            kernel_stamps: true,
        }
    }
}

/// A mission of these flows.
pub(crate) fn run(mission: &str, flows: &[Flow], seed: u64) -> (ResultDocument, Vec<Sample>) {
    let mut chance = Chance(seed);
    let mut samples = Vec::new();
    let mut results = Vec::new();
    let mut warnings = Vec::new();
    for (index, flow) in flows.iter().enumerate() {
        let (result, flow_samples, flow_warnings) = judged(index as u16, flow, &mut chance);
        samples.extend(flow_samples);
        results.push(result);
        warnings.extend(flow_warnings);
    }
    let worst = results
        .iter()
        .map(|flow| &flow.verdict)
        .max_by_key(|verdict| verdict.kind);
    let verdict = worst.cloned().unwrap_or(Verdict {
        kind: VerdictKind::Invalid,
        reasons: vec!["The mission has no flows.".to_owned()],
        remedies: Vec::new(),
        messages_needed: None,
    });
    let document = ResultDocument {
        schema_version: SCHEMA_VERSION,
        mission: mission.to_owned(),
        variant: None,
        published: None,
        provenance: provenance(mission),
        environment: environment(flows),
        flows: results,
        verdict,
        warnings,
        deaths: Vec::new(),
        left_out: Vec::new(),
    };
    (document, samples)
}

fn judged(index: u16, flow: &Flow, chance: &mut Chance) -> (FlowResult, Vec<Sample>, Vec<Warning>) {
    let mut all: Vec<Vec<Sample>> = (0..flow.hosts.len())
        .map(|destination| stamps(index, destination as u16, flow, chance))
        .collect();
    let mut destinations: Vec<Destination<'_>> = all
        .iter_mut()
        .zip(&flow.hosts)
        .enumerate()
        .map(|(index, (samples, host))| Destination {
            index: index as u16,
            host: host.clone(),
            samples,
            send_errors: 0,
            receive_overflows: 0,
        })
        .collect();
    let terms = Terms {
        deadline: flow.deadline,
        budget: flow.budget,
        clusters: None,
        arrivals: Arrivals::Periodic {
            period: Duration::from_secs_f64(1.0 / flow.rate_hz),
        },
        road: road_of(&flow.carrier),
        supplier_disturbed: true,
        supplier_host: HostEntry::named("RTS"),
        supplier_real_time: false,
        worst_case: None,
    };
    let judgement = judge(&mut destinations, &terms, &Disturbance::default());
    let result = FlowResult {
        index,
        name: flow.name.clone(),
        carrier: flow.carrier.clone(),
        carrier_index: ["udp", "tcp", "corba", "corba-oneway", "event"]
            .iter()
            .position(|carrier| *carrier == flow.carrier)
            .map(|index| index as u16),
        road: Some(road_of(&flow.carrier)),
        type_name: "Nav::Data".to_owned(),
        size_bytes: 384,
        from: "RTS".to_owned(),
        rate_hz: flow.rate_hz,
        arrivals: "periodic".to_owned(),
        deadline_ns: flow.deadline.as_nanos() as u64,
        budget: flow.budget,
        scheduling: "SCHED_FIFO 20 asked for and got; memory locked".to_owned(),
        settings: None,
        merged_layers: judgement.merged_layers,
        destinations: judgement.destinations,
        verdict: judgement.verdict,
    };
    (
        result,
        all.into_iter().flatten().collect(),
        judgement.warnings,
    )
}

fn road_of(carrier: &str) -> Road {
    match carrier {
        "udp" | "tcp" => Road::RAW,
        "event" => Road::CHANNEL,
        _ => Road::MIDDLEWARE,
    }
}

fn stamps(index: u16, destination: u16, flow: &Flow, chance: &mut Chance) -> Vec<Sample> {
    const START_NS: i64 = 1_000_000_000_000;
    let period_ns = 1e9 / flow.rate_hz;
    let slow = 1.0 + f64::from(destination % 7) * 0.12;
    let mut free_ns = i64::MIN;
    (0..flow.messages + flow.warm_up)
        .map(|sequence| {
            let due_ns = START_NS + (sequence as f64 * period_ns) as i64;
            let mut step = |share: f64| chance.lognormal(flow.scale_ns * share * slow, 0.35);
            let sent_ns = due_ns + step(1.2);
            let transmit_ns = sent_ns + step(0.6);
            let channel = flow.carrier == "event";
            let channel_receive_ns = transmit_ns + step(2.0);
            let channel_transmit_ns = channel_receive_ns + step(2.4);
            let hop_ns = if channel {
                channel_transmit_ns
            } else {
                transmit_ns
            };
            let mut receive_ns = hop_ns + step(2.5);
            let mut received_ns = receive_ns + step(1.5);
            if chance.share() < flow.stalled {
                let stall_ns = (chance.share() * 1.8 * flow.deadline.as_nanos() as f64) as i64;
                received_ns += stall_ns;
                if chance.share() < 0.4 {
                    receive_ns += stall_ns;
                }
            }
            received_ns = received_ns.max(free_ns.saturating_add(2_000));
            let lost = chance.share() < flow.lost;
            if !lost {
                free_ns = received_ns + chance.lognormal(flow.scale_ns, 0.3);
            }
            let unless = |missing: bool, stamp_ns: i64| if missing { NO_STAMP } else { stamp_ns };
            Sample {
                flow: index,
                destination,
                sequence,
                due_ns,
                sent_ns,
                returned_ns: transmit_ns + 4_000,
                channel_receive_ns: unless(!channel, channel_receive_ns),
                channel_transmit_ns: unless(!channel || lost, channel_transmit_ns),
                kernel_transmit_ns: unless(!flow.kernel_stamps, transmit_ns),
                kernel_receive_ns: unless(!flow.kernel_stamps || lost, receive_ns),
                received_ns: unless(lost, received_ns),
                handled_ns: unless(lost, free_ns),
                flags: SampleFlags {
                    warm_up: sequence < flow.warm_up,
                    ..SampleFlags::default()
                },
                ..Sample::NONE
            }
        })
        .collect()
}

fn provenance(mission: &str) -> Provenance {
    let machine = [
        ("cpu_model", "AMD EPYC 9R14"),
        ("cpus", "2"),
        ("kernel", "6.1.0-31-amd64"),
        ("governor", "performance"),
        ("clocksource", "tsc"),
        ("rt_runtime_us", "950000"),
    ];
    Provenance {
        command: ["deckwatch", "run", "scenarios/nav.toml", "--carriers", "udp,tcp,corba,event"].map(str::to_owned).to_vec(),
        version: "0.1.0 (1d0b011)".to_owned(),
        profile: "release".to_owned(),
        started_at: "2026-11-21T09:35:38Z".to_owned(),
        duration_s: 22.4,
        mission_path: "scenarios/nav.toml".to_owned(),
        mission_text: format!("name = \"{mission}\"\n\n[network]\nkind = \"gigabit-ethernet\"\n"),
        machine: machine.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        disturbance: BTreeMap::from([("stolen_us".to_owned(), 12_000.0), ("psi_cpu_some_us".to_owned(), 341_000.0)]),
        clock: ClockNote {
            shared: true,
            note: "CLOCK_MONOTONIC of one kernel; kernel stamps converted by bracketed readings of both clocks".to_owned(),
            conversion_error_ns: 180,
            latency_error_ns: None,
            latency_assumed_ns: None,
            sync: Default::default(),
        },
    }
}

fn environment(flows: &[Flow]) -> Environment {
    let mut hosts = BTreeMap::from([("RTS".to_owned(), "10.77.0.1, processors 0".to_owned())]);
    for host in flows.iter().flat_map(|flow| &flow.hosts) {
        let next = hosts.len() + 1;
        hosts
            .entry(host.clone())
            .or_insert_with(|| format!("10.77.0.{next}, processors 1"));
    }
    Environment {
        kind: "namespaces".to_owned(),
        network: "gigabit-ethernet, 1000 Mbit/s, MTU 1500".to_owned(),
        fidelity: Some(Fidelity {
            emulated: vec!["the rate of a port".to_owned()],
            not_emulated: vec!["transmission time at low load: 12 us a hop".to_owned()],
        }),
        fallback_reason: None,
        hosts,
        loads: Vec::new(),
        load_results: Vec::new(),
    }
}

/// Repeatable chance: SplitMix64.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// Even in [0, 1).
    pub(crate) fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn lognormal(&mut self, median: f64, sigma: f64) -> i64 {
        let (u, v) = (1.0 - self.share(), self.share());
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        (median * (sigma * normal).exp()) as i64
    }
}

/// The paper's mission over four carriers; the event channel has a few late messages, CORBA no kernel stamps.
pub(crate) fn nav() -> (ResultDocument, Vec<Sample>) {
    let flows = ["udp", "tcp", "corba", "event"].map(|carrier| Flow {
        stalled: if carrier == "event" { 0.05 } else { 0.0 },
        kernel_stamps: carrier != "corba",
        ..Flow::nav(carrier)
    });
    run("nav", &flows, 1)
}

/// Two flows to seventeen and eighteen destinations.
pub(crate) fn fleet() -> (ResultDocument, Vec<Sample>) {
    let hosts = |from: usize, to: usize| (from..=to).map(|n| format!("STATION-{n:02}")).collect();
    let fast = Flow {
        name: "NAV-16HZ".to_owned(),
        hosts: hosts(1, 17),
        rate_hz: 16.0,
        messages: 1600,
        stalled: 0.002,
        ..Flow::nav("event")
    };
    let slow = Flow {
        name: "NAV-1HZ".to_owned(),
        hosts: hosts(18, 35),
        rate_hz: 1.0,
        messages: 100,
        warm_up: 2,
        ..Flow::nav("event")
    };
    run("nav-fleet", &[fast, slow], 2)
}

/// Two million messages; a tenth of that where this test's own code is not optimised.
pub(crate) fn large() -> (ResultDocument, Vec<Sample>) {
    let flows = ["udp", "tcp"].map(|carrier| Flow {
        rate_hz: 2000.0,
        messages: if cfg!(debug_assertions) {
            100_000
        } else {
            1_000_000
        },
        deadline: Duration::from_micros(400),
        stalled: 0.0005,
        lost: if carrier == "udp" { 0.0001 } else { 0.0 },
        ..Flow::nav(carrier)
    });
    run("nav-stress", &flows, 3)
}

/// Nothing came, and the consumer died.
pub(crate) fn nothing() -> (ResultDocument, Vec<Sample>) {
    let (mut document, samples) = run(
        "nav-dead",
        &[Flow {
            lost: 1.1,
            ..Flow::nav("udp")
        }],
        4,
    );
    document.deaths.push(Death {
        process: "consumer of NAV over udp at SONAR".to_owned(),
        how: "killed by signal 9".to_owned(),
        at_ns: 13_000_000,
    });
    (document, samples)
}

/// Every text in it tries to become part of the page.
pub(crate) fn hostile() -> (ResultDocument, Vec<Sample>) {
    const EVIL: &str = "</title></svg></script><script>alert('evil')</script><img src=x onerror=alert(1)>\"' onload=alert(2) {{ 7*7 }} \u{202e}";
    let flow = Flow {
        name: EVIL.to_owned(),
        hosts: vec![EVIL.to_owned(), EVIL.repeat(50)],
        stalled: 0.05,
        ..Flow::nav(EVIL)
    };
    let (mut document, samples) = run(EVIL, &[flow], 5);
    let provenance = &mut document.provenance;
    provenance.command = vec![EVIL.to_owned()];
    provenance.version = EVIL.to_owned();
    provenance.started_at = EVIL.to_owned();
    provenance.mission_path = EVIL.to_owned();
    provenance.mission_text = EVIL.repeat(20_000);
    provenance.machine.insert(EVIL.to_owned(), EVIL.to_owned());
    provenance.disturbance.insert(EVIL.to_owned(), 1.0);
    provenance.clock = ClockNote {
        shared: false,
        note: EVIL.to_owned(),
        conversion_error_ns: 1,
        latency_error_ns: None,
        latency_assumed_ns: None,
        sync: Default::default(),
    };
    document
        .environment
        .hosts
        .insert(EVIL.to_owned(), EVIL.to_owned());
    document.environment.loads.push(EVIL.to_owned());
    document.environment.fallback_reason = Some(EVIL.to_owned());
    document.environment.kind = "loopback".to_owned();
    document.verdict.reasons.push(EVIL.to_owned());
    document.warnings.push(Warning {
        kind: EVIL.to_owned(),
        text: EVIL.to_owned(),
    });
    document.deaths.push(Death {
        process: EVIL.to_owned(),
        how: EVIL.to_owned(),
        at_ns: 1,
    });
    let flow = &mut document.flows[0];
    flow.type_name = EVIL.to_owned();
    flow.from = EVIL.to_owned();
    flow.arrivals = EVIL.to_owned();
    flow.scheduling = EVIL.to_owned();
    flow.merged_layers.push(EVIL.to_owned());
    flow.verdict.reasons.push(EVIL.to_owned());
    flow.destinations[0].verdict.reasons.push(EVIL.to_owned());
    flow.destinations[0]
        .layers_ns
        .insert(EVIL.to_owned(), 77_000);
    (document, samples)
}

/// An experiment with lines, bars, a warning, and names that would like to be markup.
pub(crate) fn experiment() -> ExperimentDocument {
    let measurements: Vec<Measurement> = ["ours", "<b>theirs</b>"]
        .into_iter()
        .enumerate()
        .flat_map(|(index, system)| {
            [1.0, 64.0, 65_536.0].map(|size| {
                let times: Vec<i64> = (0..200)
                    .map(|n| 10_000 * (index as i64 + 1) + size as i64 + n)
                    .collect();
                Measurement {
                    system: system.to_owned(),
                    case: "two-way".to_owned(),
                    group: String::new(),
                    runs: BTreeMap::new(),
                    factors: BTreeMap::from([("payload_octets".to_owned(), size)]),
                    values: time_values(&times),
                    ends: Vec::new(),
                    samples: 200,
                    histogram: vec![(20_000, 200)],
                }
            })
        })
        .collect();
    let curve = |system: &str| {
        ExperimentDocument::curve(&measurements, system, "payload_octets", "p50_ns", |one| {
            one.system == system
        })
    };
    let lines = Figure {
        title: "Latency over size".to_owned(),
        source: "figure 8".to_owned(),
        kind: FigureKind::Lines,
        x: AxisNote::new("payload", "octets", true),
        y: AxisNote::new("round trip, median", "ns", true),
        curves: vec![curve("ours"), curve("<b>theirs</b>")],
        notes: vec!["Both ways.".to_owned()],
    };
    let mut bars = lines.clone();
    bars.kind = FigureKind::Bars;
    bars.x.words = vec!["short".to_owned(), "long".to_owned()];
    bars.y = AxisNote::new("locks a request", "", false);
    for curve in &mut bars.curves {
        curve.points = vec![Point::new(0.0, 3.0), Point::new(1.0, 0.0)];
    }
    ExperimentDocument {
        schema_version: EXPERIMENT_SCHEMA_VERSION,
        experiment: "marshal".to_owned(),
        title: "What marshalling costs".to_owned(),
        source: "figures 7 to 9".to_owned(),
        provenance: provenance("none"),
        condition: "both ends on processor 1".to_owned(),
        parameters: BTreeMap::from([("rounds".to_owned(), "3".to_owned())]),
        standings: Vec::new(),
        machine_states: Vec::new(),
        notes: Vec::new(),
        measurements,
        figures: vec![lines, bars],
        skipped: vec![Skip {
            what: "omniorb".to_owned(),
            reason: "not installed".to_owned(),
        }],
        warnings: vec![Warning {
            kind: "debug-build".to_owned(),
            text: "This is a debug build.".to_owned(),
        }],
        fidelity: None,
        soak: None,
    }
}
