//! Compares the measurement with known delays. A known number of messages is delayed at the sender, in the network, at
//! the receiver and in the channel: by stopped processes, a held port and a busy servant. The verdict must count
//! exactly those messages and blame the right layer.
//!
//! This is a test program of its own, because other tests at the same time would make messages late.

mod bursts;
mod known_clocks;
mod own_limit;
mod relayed;
mod robbed;
mod second_instruments;
mod unread;
mod watched;
mod ways;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deckwatch_meter::result::{FlowResult, VerdictKind};
use deckwatch_meter::sample::{Layer, Sample};
use deckwatch_os::clock::{monotonic_ns, sleep_until};
use deckwatch_os::schedule::{self, Class};
use deckwatch_testbed::Testbed;
use rustix::process::Signal;

use watched::disturbance::{Failure, up_to_three_times_if_disturbed};
use watched::{Finished, WatchedRun, signal};

const CARRIERS: [&str; 5] = ["udp", "tcp", "corba", "corba-oneway", "event"];

/// The layer to blame for each late message, by sequence number.
type Blamed = BTreeMap<u64, Layer>;

/// Returns true, and counts a skip, if hosts cannot be emulated.
fn cannot_emulate() -> bool {
    let obstacle = Testbed::obstacle();
    if let Some(reason) = &obstacle {
        deckwatch_testkit::skip("namespaces", reason);
    }
    obstacle.is_some()
}

/// Returns true, and counts a skip, if there are no real-time threads on processors 0 and 1.
fn lacks_real_time_processors() -> bool {
    let permitted = std::thread::spawn(|| schedule::set_class(Class::Fifo(50)));
    if let Err(error) = permitted.join().expect("no panic") {
        deckwatch_testkit::skip("real-time-class", &error.to_string());
        return true;
    }
    let processors = schedule::affinity().expect("readable");
    let has_both = processors.contains(&0) && processors.contains(&1);
    if !has_both {
        deckwatch_testkit::skip("two-processors", "the mission names processors 0 and 1");
    }
    !has_both
}

/// Start and end of a disturbance. Each is known to be between two readings of the clock.
#[derive(Clone, Copy, Debug)]
struct Span {
    from_ns: (i64, i64),
    to_ns: (i64, i64),
}

/// The schedule of a flow in the mission.
#[derive(Clone, Copy)]
struct Beat {
    start_ns: i64,
}

impl Beat {
    const PERIOD_NS: i64 = 50_000_000;
    const DEADLINE_NS: i64 = 120_000_000;

    fn due_ns(self, sequence: u64) -> i64 {
        self.start_ns + i64::try_from(sequence).expect("small") * Self::PERIOD_NS
    }

    /// Returns the time half a period after a message is due.
    fn after(self, sequence: u64) -> i64 {
        self.due_ns(sequence) + Self::PERIOD_NS / 2
    }

    /// Calls `act` after message `before`, and `undo` so that of the messages delayed until then, those up to `last`
    /// are late and no others.
    fn between(self, before: u64, last: u64, act: impl FnOnce(), undo: impl FnOnce()) -> Span {
        let from_ns = bracket(self.after(before), act);
        let to_ns = bracket(self.after(last) + Self::DEADLINE_NS, undo);
        Span { from_ns, to_ns }
    }

    /// Returns the messages that are late if all messages during this span are delayed to its end.
    ///
    /// # Errors
    /// If this process was itself delayed, so that a message was due too near to an end of the span to decide.
    fn late_by(self, span: Span) -> Result<Vec<u64>, String> {
        let mut late = Vec::new();
        for sequence in 0..MESSAGES {
            let due_ns = self.due_ns(sequence);
            let passed_before = due_ns + PASSAGE_NS < span.from_ns.0;
            let held_up = due_ns > span.from_ns.1;
            let too_long = span.to_ns.0 - due_ns > Self::DEADLINE_NS;
            let in_time = span.to_ns.1 - due_ns + PASSAGE_NS < Self::DEADLINE_NS;
            if held_up && too_long {
                late.push(sequence);
            } else if !passed_before && !in_time {
                return Err(format!(
                    "message {sequence} was due too near to the ends of {span:?}"
                ));
            }
        }
        Ok(late)
    }
}

/// Number of messages in a schedule, warm-up included.
const MESSAGES: u64 = 70;
/// Upper bound of the time that a message and its reply take if nothing disturbs them.
const PASSAGE_NS: i64 = 10_000_000;

/// Calls `act` at an instant. Returns the clock before and after it.
fn bracket(at_ns: i64, act: impl FnOnce()) -> (i64, i64) {
    sleep_until(at_ns);
    let before_ns = monotonic_ns();
    act();
    (before_ns, monotonic_ns())
}

fn delays_mission() -> String {
    let flow = |name: &str, carrier: &str, to: &str, late: &str| {
        format!(
            "[[flows]]\nname = \"{name}\"\noctets = 384\nfrom = \"RTS\"\nto = [\"{to}\"]\ncarrier = \"{carrier}\"\nrate_hz = 20\n\
             deadline = \"120ms\"\nlate = \"{late}\"\ncount = 66\nwarm_up = \"200ms\"\nclusters = 1\n"
        )
    };
    let flows: String = CARRIERS
        .iter()
        .map(|carrier| flow(&format!("NAV-{carrier}"), carrier, "SONAR", "1 in 100"))
        .collect();
    format!(
        "name = \"delays\"\nnetwork = {{ preset = \"gigabit-ethernet\" }}\n\
         hosts = [{{ name = \"RTS\" }}, {{ name = \"SONAR\" }}, {{ name = \"RADAR\" }}, {{ name = \"PLOT\" }}]\n{flows}{}{}{}",
        flow("SLOW", "udp", "RADAR", "1 in 20"),
        flow("LOSSY", "udp", "PLOT", "1 in 20"),
        flow("CALM", "udp", "RADAR", "1 in 20")
    )
}

/// The disturbances of a run, and the messages that they affect.
struct Done {
    beat: Beat,
    sender: Span,
    network: Span,
    receiver: Span,
    channel: Span,
    losses: ((i64, i64), (i64, i64)),
    lost_count: u64,
}

fn disturb(run: &WatchedRun) -> Done {
    let sonar = run.port("SONAR");
    let plot = run.port("PLOT");
    let mut suppliers = run.parts("supplier of NAV");
    suppliers.extend(run.parts("supplier of SLOW"));
    let consumers = run.parts("consumer of NAV");
    let channel = run.parts("event channel of NAV");
    let beat = Beat {
        start_ns: run.start_ns(),
    };
    let stopped = |before, last, processes: &[u32]| {
        let (stop, go_on) = (
            || signal(processes, Signal::STOP),
            || signal(processes, Signal::CONT),
        );
        beat.between(before, last, stop, go_on)
    };
    let sender = stopped(7, 11, &suppliers);
    let network = beat.between(
        20,
        24,
        || sonar.hold().expect("held"),
        || sonar.release().expect("released"),
    );
    let receiver = stopped(34, 38, &consumers);
    let channel = stopped(48, 52, &channel);
    let third = NonZeroU32::new(3).expect("not zero");
    let losing_ns = bracket(beat.after(57), || plot.lose_every(third).expect("loses"));
    let keeping_ns = bracket(beat.after(64), || plot.lose_none().expect("keeps"));
    Done {
        beat,
        sender,
        network,
        receiver,
        channel,
        losses: (losing_ns, keeping_ns),
        lost_count: plot.lost_count().expect("a count"),
    }
}

impl Done {
    /// Returns the late messages that the run must have found in a flow over a carrier.
    fn expected(&self, name: &str, carrier: &str) -> Result<Blamed, String> {
        let is_nav = name.starts_with("NAV");
        let mut spans = Vec::new();
        if is_nav || name == "SLOW" {
            spans.push((self.sender, Layer::Sender));
        }
        if is_nav {
            spans.push((self.network, Layer::Network));
            spans.push((self.receiver, Layer::WakeUp));
        }
        if carrier == "event" {
            spans.push((self.channel, Layer::Channel));
        }
        let mut expected = Blamed::new();
        for (span, layer) in spans {
            expected.extend(
                self.beat
                    .late_by(span)?
                    .into_iter()
                    .map(|sequence| (sequence, layer)),
            );
        }
        if name == "LOSSY" {
            expected.extend(
                self.lost()?
                    .into_iter()
                    .map(|sequence| (sequence, Layer::Network)),
            );
        }
        Ok(expected)
    }

    /// Returns the first message that was sent while the port dropped frames, and every third one after it.
    fn lost(&self) -> Result<Vec<u64>, String> {
        let (losing_ns, keeping_ns) = self.losses;
        let near = |due_ns: i64, (before_ns, after_ns): (i64, i64)| {
            due_ns <= after_ns && due_ns + PASSAGE_NS >= before_ns
        };
        let dues = (0..MESSAGES).map(|sequence| (sequence, self.beat.due_ns(sequence)));
        if let Some((sequence, _)) = dues
            .clone()
            .find(|&(_, due_ns)| near(due_ns, losing_ns) || near(due_ns, keeping_ns))
        {
            return Err(format!(
                "message {sequence} was due too near to the ends of {:?}",
                self.losses
            ));
        }
        let met = dues.filter(|&(_, due_ns)| due_ns > losing_ns.1 && due_ns < keeping_ns.0);
        Ok(met.step_by(3).map(|(sequence, _)| sequence).collect())
    }
}

/// Returns the late messages of a flow, with the layers blamed.
fn found<'s>(samples: impl Iterator<Item = &'s Sample>) -> BTreeMap<u64, Option<Layer>> {
    samples
        .filter(|sample| sample.flags.late)
        .map(|sample| (sample.sequence, sample.blame))
        .collect()
}

/// Compares samples, counts and blame of a flow with the expected ones.
fn compare(finished: &Finished, flow: &FlowResult, expected: &Blamed) -> Result<(), String> {
    let title = format!("{} over {}", flow.name, flow.carrier);
    let found = found(finished.samples_of(flow));
    let wanted: BTreeMap<u64, Option<Layer>> = expected
        .iter()
        .map(|(&sequence, &layer)| (sequence, Some(layer)))
        .collect();
    if found != wanted {
        return Err(format!(
            "{title}: found late {found:?}, made late {expected:?}; layers {:?}, merged {:?}",
            flow.destinations[0].late_layers_ns, flow.merged_layers
        ));
    }
    let result = &flow.destinations[0];
    let mut blame: BTreeMap<String, u64> = BTreeMap::new();
    for layer in expected.values() {
        *blame.entry(layer.name().to_owned()).or_default() += 1;
    }
    if result.counts.late != expected.len() as u64 || result.blame != blame {
        return Err(format!(
            "{title}: counted {} and blamed {:?}, made late {blame:?}",
            result.counts.late, result.blame
        ));
    }
    Ok(())
}

fn check_delays() -> Result<(), Failure> {
    let run = WatchedRun::start("delays", &delays_mission(), &[]);
    let done = disturb(&run);
    let finished = run.finish();
    let mut wrong = Vec::new();
    for flow in &finished.document.flows {
        // If this process delayed a disturbance to a wrong instant, the run proves nothing.
        let expected = done.expected(&flow.name, &flow.carrier);
        let expected = expected.map_err(|held_up| Failure {
            what: held_up.clone(),
            disturbance: Some(held_up),
        })?;
        wrong.extend(compare(&finished, flow, &expected).err());
    }
    let lossy = &finished.flow("LOSSY").destinations[0].counts;
    if lossy.lost != done.lost_count || lossy.lost != lossy.late {
        wrong.push(format!(
            "the port lost {}, the run counted {lossy:?}",
            done.lost_count
        ));
    }
    for (name, kind) in verdicts() {
        let verdict = &finished.flow(&name).verdict;
        if verdict.kind != kind && !finished.is_invalid_by_disturbance(verdict) {
            wrong.push(format!("{name} is {verdict:?} and not {kind:?}"));
        }
    }
    if finished.status != Some(4) || finished.document.verdict.kind != VerdictKind::Invalid {
        wrong.push(format!(
            "exit status {:?} with {:?}",
            finished.status, finished.document.verdict
        ));
    }
    failure(wrong, &finished)
}

/// Returns the expected verdicts:
/// - late because of its network and its receiver: FAIL
/// - late only because of a supplier that was stopped on a host for which the mission declares no load: INVALID
/// - not disturbed: PASS
fn verdicts() -> Vec<(String, VerdictKind)> {
    let nav = CARRIERS.map(|carrier| (format!("NAV-{carrier}"), VerdictKind::Fail));
    let others = [
        ("SLOW".to_owned(), VerdictKind::Invalid),
        ("CALM".to_owned(), VerdictKind::Pass),
    ];
    nav.into_iter().chain(others).collect()
}

fn failure(wrong: Vec<String>, finished: &Finished) -> Result<(), Failure> {
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure {
        what: format!("{}\n{:#?}", wrong.join("\n"), finished.document.warnings),
        disturbance: finished.disturbance.clone(),
    })
}

/// Bursts of three messages to a servant that uses 100 ms of processor time for each. The second message of every burst
/// is received at least 100 ms after it was due, and the third at least 200 ms. Each takes longer than the servant
/// declares.
const BUSY: &str = r#"
name = "busy"
network = { preset = "gigabit-ethernet" }
hosts = [{ name = "RTS" }, { name = "SONAR" }]

[[flows]]
name = "NAV"
octets = 384
from = "RTS"
to = ["SONAR"]
carrier = "udp"
arrivals = "bursts"
burst_size = 3
period = "2s"
handle_for = "100ms"
worst_case = "90ms"
deadline = "80ms"
late = "1 in 100"
count = 9
warm_up = "2s"
"#;

fn check_busy() -> Result<(), Failure> {
    // The streams are offset by a fifth of the period, so that no two servants are busy at the same time.
    let run = WatchedRun::start("busy", BUSY, &["--carriers", &CARRIERS.join(",")]);
    let finished = run.finish();
    let expected: Blamed = [4, 5, 7, 8, 10, 11]
        .map(|sequence| (sequence, Layer::Application))
        .into();
    let flows = &finished.document.flows;
    assert_eq!(flows.len(), CARRIERS.len());
    let mut wrong = Vec::new();
    for flow in flows {
        wrong.extend(compare(&finished, flow, &expected).err());
        let verdict = &flow.verdict;
        if verdict.kind != VerdictKind::Fail && !finished.is_invalid_by_disturbance(verdict) {
            wrong.push(format!("over {} it is {verdict:?}", flow.carrier));
        }
        let handler = flow.destinations[0].handler;
        let counts = handler.map(|one| (one.executions, one.exceeded, one.late_behind));
        if counts != Some((9, 9, 6)) {
            wrong.push(format!("over {} the handler is {handler:?}", flow.carrier));
        }
    }
    let is_invalid = finished.is_invalid_by_disturbance(&finished.document.verdict);
    if finished.status != Some(if is_invalid { 4 } else { 1 }) {
        wrong.push(format!("exit status {:?}", finished.status));
    }
    let stated = finished.document.environment.fidelity.as_ref();
    if stated.is_none_or(|fidelity| fidelity.not_emulated.is_empty()) {
        wrong.push("the result does not state what its network does not emulate".to_owned());
    }
    failure(wrong, &finished)
}

const CALM: &str = r#"
name = "calm"
network = { preset = "loopback" }
hosts = [{ name = "RTS" }, { name = "SONAR" }]

[[flows]]
name = "NAV"
octets = 384
from = "RTS"
to = ["SONAR"]
carrier = "udp"
rate_hz = 50
deadline = "150ms"
late = "1 in 10"
count = 40
warm_up = "100ms"
clusters = 1
"#;

fn check_calm() -> Result<(), Failure> {
    let run = WatchedRun::start("calm", CALM, &["--carriers", &CARRIERS.join(",")]);
    let finished = run.finish();
    let mut wrong = Vec::new();
    for flow in &finished.document.flows {
        wrong.extend(compare(&finished, flow, &Blamed::new()).err());
    }
    if finished.status != Some(0) || finished.document.verdict.kind != VerdictKind::Pass {
        wrong.push(format!(
            "exit status {:?} with {:?}",
            finished.status, finished.document.verdict
        ));
    }
    failure(wrong, &finished)
}

/// A lock that a test holds while it measures: these tests would disturb each other.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a check alone, where hosts can be emulated.
fn on_emulated_hosts(check: fn() -> Result<(), Failure>) {
    if !cannot_emulate() {
        let _alone = alone();
        up_to_three_times_if_disturbed(check);
    }
}

#[test]
fn a_calm_run_passes_and_exits_with_0() {
    let _alone = alone();
    up_to_three_times_if_disturbed(check_calm);
}

#[test]
fn exactly_the_messages_behind_a_busy_servant_are_late_and_the_application_is_blamed() {
    on_emulated_hosts(check_busy);
}

#[test]
fn exactly_the_messages_delayed_at_sender_network_receiver_and_channel_are_late_and_blamed_there() {
    on_emulated_hosts(check_delays);
}

#[test]
fn a_consumer_whose_processor_another_process_takes_makes_the_run_invalid() {
    if !lacks_real_time_processors() {
        on_emulated_hosts(robbed::check);
    }
}

#[test]
fn a_real_time_part_that_never_blocks_is_ended_by_its_limit_and_the_run_says_so() {
    if !lacks_real_time_processors() {
        let _alone = alone();
        own_limit::check();
    }
}

#[test]
fn a_peer_that_stops_reading_costs_its_flows_messages_and_nobody_memory() {
    on_emulated_hosts(unread::check);
}

#[test]
fn a_udp_supplier_waits_for_room_in_its_send_buffer() {
    on_emulated_hosts(bursts::check);
}

#[test]
fn messages_held_up_by_their_own_saturated_link_are_blamed_on_the_network() {
    on_emulated_hosts(ways::check_saturated);
}

#[test]
fn messages_whose_acknowledgements_are_lost_are_blamed_on_the_network() {
    on_emulated_hosts(ways::unacknowledged::check);
}

#[test]
fn a_call_held_up_on_its_way_back_is_blamed_on_what_held_up_the_reply() {
    on_emulated_hosts(ways::check_returns);
}

#[test]
fn a_known_offset_is_found_within_1_us_whatever_the_load_of_one_direction() {
    on_emulated_hosts(|| known_clocks::check(0.0));
    on_emulated_hosts(|| known_clocks::check(0.5));
    on_emulated_hosts(|| known_clocks::check(0.9));
}

#[test]
fn times_on_a_long_link_are_those_of_the_link_and_of_irtt() {
    if !second_instruments::is_absent("irtt") {
        on_emulated_hosts(second_instruments::check_delay);
    }
}

#[test]
fn throughput_on_a_slow_link_is_that_of_the_link_and_of_nuttcp() {
    if !second_instruments::is_absent("nuttcp") {
        on_emulated_hosts(second_instruments::check_rate);
    }
}

#[test]
fn other_instruments_run_beside_and_agree_within_reason() {
    let _alone = alone();
    up_to_three_times_if_disturbed(second_instruments::check_beside);
}

#[test]
fn messages_that_wait_in_the_queue_of_a_relay_are_blamed_on_the_network() {
    on_emulated_hosts(relayed::check);
}
