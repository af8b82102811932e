//! The wall clock is set in the middle of a run. The kernel stamps packets with it: the stamps of some are from before
//! the step, those of others from after it.

use deckwatch_meter::sample::{NO_STAMP, Sample};
use deckwatch_os::clock::{monotonic_ns, sleep_until};

use super::steps::Wall;
use crate::watched::WatchedRun;

const STEP_NS: i64 = 100_000_000;
/// From the start of the schedule to the step.
const BEFORE_NS: i64 = 2_500_000_000;
/// A part reads both clocks at least once a second. What it sends and receives between the readings around the step
/// may be on either side of it.
const AROUND_NS: i64 = 2_000_000_000;
/// Stamps of one clock are in their order, but for the error of its readings.
const SLACK_NS: i64 = 5_000_000;

fn mission() -> String {
    let flow = |carrier: &str| {
        format!(
            "[[flows]]\nname = \"{carrier}\"\noctets = 64\nfrom = \"A\"\nto = [\"B\"]\ncarrier = \"{carrier}\"\n\
             rate_hz = 100\ndeadline = \"100ms\"\nlate = \"1 in 10\"\nduration = \"5s\"\nwarm_up = \"100ms\"\n"
        )
    };
    format!(
        "name = \"step\"\nnetwork = {{ preset = \"loopback\" }}\nhosts = [{{ name = \"A\" }}, {{ name = \"B\" }}]\n{}{}",
        flow("udp"),
        flow("tcp")
    )
}

/// Requires that the stamps of a message are in the order of its way: a shift by the step would leave it.
fn assert_in_order(sample: &Sample) {
    let way = [
        sample.sent_ns,
        sample.kernel_transmit_ns,
        sample.kernel_receive_ns,
        sample.received_ns,
    ];
    assert!(!way.contains(&NO_STAMP), "{sample:?}");
    let in_order = way.windows(2).all(|pair| pair[0] <= pair[1] + SLACK_NS);
    assert!(in_order, "{sample:?}");
}

#[test]
fn stamps_around_a_step_of_the_clock_are_marked_and_none_is_shifted() {
    let Some(wall) = Wall::new() else { return };
    let run = WatchedRun::start_by(wall.command(&[]), "clock-step", &mission(), &[]);
    let step_ns = run.start_ns() + BEFORE_NS;
    sleep_until(step_ns);
    wall.step(STEP_NS);
    let until_ns = monotonic_ns();
    let finished = run.finish();
    let warnings = &finished.document.warnings;
    assert!(
        warnings.iter().any(|warning| warning.kind == "clock-set"),
        "{warnings:?}"
    );
    for flow in &finished.document.flows {
        let received = finished
            .samples_of(flow)
            .filter(|one| one.received_ns != NO_STAMP);
        let (marked, others): (Vec<&Sample>, Vec<&Sample>) =
            received.partition(|sample| sample.flags.clock_step);
        assert!(
            !marked.is_empty(),
            "{}: a message a hundredth of a second",
            flow.name
        );
        for sample in &marked {
            let stamps = [sample.kernel_transmit_ns, sample.kernel_receive_ns];
            assert_eq!(stamps, [NO_STAMP; 2], "{sample:?}");
            let is_near =
                sample.received_ns > step_ns - AROUND_NS && sample.sent_ns < until_ns + AROUND_NS;
            assert!(is_near, "{}: {step_ns} {sample:?}", flow.name);
        }
        others.iter().for_each(|sample| assert_in_order(sample));
        let of = |is_it: &dyn Fn(&Sample) -> bool| others.iter().any(|sample| is_it(sample));
        assert!(
            of(&|sample| sample.received_ns < step_ns),
            "{}: before it",
            flow.name
        );
        assert!(
            of(&|sample| sample.sent_ns > until_ns),
            "{}: after it",
            flow.name
        );
    }
}
