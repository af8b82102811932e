//! Loads on processors of this machine.

use std::time::Duration;

use deckwatch_load::{CpuPlan, CpuWork, Held, LoadError, LoadPlan, Stop, TOLERANCE, Work};
use deckwatch_os::schedule::affinity;

fn share(share: f64, fifo_priority: Option<u8>, lifetime: Duration) -> Result<Held, LoadError> {
    let allowed = affinity().expect("readable");
    let cpu = CpuPlan {
        work: CpuWork::Share { share },
        processors: vec![allowed[0]],
        fifo_priority,
    };
    let plan = LoadPlan {
        work: Work::Cpu(cpu),
        lifetime,
    };
    let report = deckwatch_load::run(&plan, &Stop::default(), &mut |_| ())?;
    Ok(report.held[0].clone())
}

/// The threads' own clocks and the kernel's counters of the processor are two instruments.
fn assert_consistent(held: &Held) {
    assert!(held.seconds >= 1, "{held}");
    // A unit of the counters on both sides.
    let counted = held.mean + TOLERANCE;
    assert!(
        held.own_mean <= counted,
        "more than the processor did: {held}"
    );
    let asked = held.asked.expect("a share");
    assert!(held.own_mean <= asked + 0.05, "more than was asked: {held}");
    let others = held.mean - held.own_mean;
    if others < asked - 0.1 {
        // Others may come and go within the half second that the controller needs to see them.
        assert!((held.mean - asked).abs() < 0.3, "{held}");
    }
}

#[test]
fn a_share_is_reached_or_taken_by_others() {
    let held = share(0.4, None, Duration::from_millis(3_300)).expect("a sound plan");
    assert_consistent(&held);
}

#[test]
fn a_real_time_load_holds_its_share_and_blocks() {
    match share(0.2, Some(1), Duration::from_millis(2_300)) {
        Ok(held) => assert_consistent(&held),
        Err(LoadError::Class { .. }) => {
            deckwatch_testkit::skip("real-time-class", "SCHED_FIFO needs CAP_SYS_NICE");
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_processor_that_is_not_there_is_named_with_those_that_are() {
    let cpu = CpuPlan {
        work: CpuWork::Share { share: 0.1 },
        processors: vec![4_000],
        fifo_priority: None,
    };
    let plan = LoadPlan {
        work: Work::Cpu(cpu),
        lifetime: Duration::from_secs(1),
    };
    let error = deckwatch_load::run(&plan, &Stop::default(), &mut |_| ()).expect_err("absent");
    let said = error.to_string();
    assert!(
        said.starts_with("Processor 4000 cannot be used. This process may use "),
        "{said}"
    );
}
