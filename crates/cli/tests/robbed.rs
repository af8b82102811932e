//! A process outside the run takes the processor of a consumer. The run is INVALID, and names the process.

use std::time::Duration;

use deckwatch_meter::result::VerdictKind;
use deckwatch_os::clock::{monotonic_ns, sleep_until};
use deckwatch_os::schedule::{self, Class};
use deckwatch_os::task;

use super::failure;
use super::watched::WatchedRun;
use super::watched::disturbance::Failure;

/// A consumer on a processor of its own. Its thread is in the time-sharing class, so that a real-time process takes its
/// processor.
const ROBBED: &str = r#"
name = "robbed"
network = { preset = "gigabit-ethernet" }
hosts = [{ name = "RTS", processors = [0] }, { name = "SONAR", processors = [1] }]

[[flows]]
name = "NAV"
octets = 384
from = "RTS"
to = ["SONAR"]
carrier = "udp"
rate_hz = 50
deadline = "50ms"
late = "3 in 10_000"
count = 300
warm_up = "200ms"
"#;

/// Takes a processor four times for 150 ms, from a thread in SCHED_FIFO that ends by itself.
fn take_processor(processor: u32) {
    schedule::limit_real_time(Duration::from_millis(600)).expect("a lower limit");
    schedule::set_affinity(&[processor]).expect("permitted");
    schedule::set_class(Class::Fifo(50)).expect("permitted");
    for _ in 0..4 {
        let until_ns = monotonic_ns() + 150_000_000;
        while monotonic_ns() < until_ns {
            std::hint::spin_loop();
        }
        sleep_until(monotonic_ns() + 850_000_000);
    }
}

pub(super) fn check() -> Result<(), Failure> {
    let run = WatchedRun::start("robbed", ROBBED, &[]);
    let start_ns = run.start_ns();
    let robber = std::thread::spawn(move || {
        sleep_until(start_ns + 1_000_000_000);
        take_processor(1);
    });
    let finished = run.finish();
    robber.join().expect("it ends by itself");
    let verdict = &finished.document.verdict;
    let warnings = finished.document.warnings.iter();
    let mut thefts = warnings.filter(|one| one.kind == "processor-taken");
    // One warning names the thread that lost most. Others may take more than this test does, but hide nothing.
    let Some(theft) = thefts.next() else {
        return Err(Failure {
            what: format!("no word of 600 ms taken: {verdict:?}"),
            disturbance: None,
        });
    };
    let warned = |part: &str| theft.text.contains(part);
    let mut wrong = Vec::new();
    if finished.status != Some(4) || verdict.kind != VerdictKind::Invalid {
        wrong.push(format!("exit status {:?}", finished.status));
    }
    let reason = verdict.reasons.join(" ");
    let name = task::thread_name(std::process::id(), std::process::id()).expect("a name");
    for part in [
        "thread receive of the consumer of NAV over udp at SONAR".to_owned(),
        format!(
            "probably by {name} (process {}, SCHED_FIFO 50)",
            std::process::id()
        ),
    ] {
        if !reason.contains(&part) || !warned(&part) {
            wrong.push(format!("not said: {part}"));
        }
    }
    if !verdict
        .remedies
        .iter()
        .any(|remedy| remedy.contains("taskset"))
    {
        wrong.push("no remedy".to_owned());
    }
    wrong.extend((!wrong.is_empty()).then(|| format!("{verdict:?}")));
    failure(wrong, &finished)
}
