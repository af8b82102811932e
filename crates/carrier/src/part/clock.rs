//! The clock part: relates the clocks of other machines to this one's, or answers one that does.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use deckwatch_meter::clock::Tracker;
use deckwatch_os::clock::monotonic_ns;

use super::stage::{Stage, Told};
use crate::clock::{Prober, Responder, sync_state};
use crate::error::PartError;
use crate::limits::STOP_LOOK;
use crate::plan::ClockPlan;
use crate::talk::{Done, PartCommand, PartEvent, Ready, Related};

/// Answers, if the plan names no peers, or probes them, until `stop`.
pub(super) fn play(plan: &ClockPlan, stage: &mut Stage<impl Write>) -> Result<(), PartError> {
    let steps = if plan.peers.is_empty() {
        respond(plan, stage)?
    } else {
        probe(plan, stage)?
    };
    stage.say(&PartEvent::Sync(sync_state(steps)));
    stage.say(&PartEvent::Done(Done::default()));
    Ok(())
}

/// Returns how often the clock was set.
fn respond(plan: &ClockPlan, stage: &mut Stage<impl Write>) -> Result<u64, PartError> {
    let address = (plan.address, 0).into();
    let mut responder =
        Responder::bind(address).map_err(|error| PartError::socket("clock", address, error))?;
    stage.say(&PartEvent::Ready(Ready {
        endpoint: responder.address().to_string(),
        ..Ready::default()
    }));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                responder.turn(STOP_LOOK);
            }
            responder.steps()
        });
        attend(stage, &channel().1);
        is_over.store(true, Ordering::Relaxed);
        Ok(answering.join().unwrap_or(0))
    })
}

/// Returns how often the clock was set.
fn probe(plan: &ClockPlan, stage: &mut Stage<impl Write>) -> Result<u64, PartError> {
    let mut probers = Vec::new();
    for &peer in &plan.peers {
        let prober = Prober::connect(peer, Some(plan.address));
        probers.push(prober.map_err(|error| PartError::socket("clock", peer, error))?);
    }
    stage.say(&PartEvent::Ready(Ready::default()));
    let is_over = AtomicBool::new(false);
    let (tell, found) = channel();
    std::thread::scope(|scope| {
        let is_over = &is_over;
        let probing = (0..).zip(probers).map(|(peer, mut prober)| {
            let tell = tell.clone();
            scope.spawn(move || {
                let mut tracker = Tracker::default();
                let mut is_last = false;
                while !is_last {
                    is_last = is_over.load(Ordering::Relaxed);
                    let until_ns = monotonic_ns() + STOP_LOOK.as_nanos() as i64;
                    let mut windows = Vec::new();
                    prober.run(until_ns, |exchange| windows.extend(tracker.note(exchange)));
                    windows.extend(is_last.then(|| tracker.finish()).flatten());
                    for mut window in windows {
                        window.widen(prober.stamp_error_ns());
                        // Cannot fail: the receiver outlives this thread.
                        let _ = tell.send(Related { peer, window });
                    }
                }
                prober.counts().steps
            })
        });
        let probing: Vec<_> = probing.collect();
        attend(stage, &found);
        is_over.store(true, Ordering::Relaxed);
        let steps = probing.into_iter().map(|one| one.join().unwrap_or(0));
        let steps = steps.max().unwrap_or(0);
        say_found(stage, &found);
        Ok(steps)
    })
}

/// Writes what the threads find until `stop`.
fn attend(stage: &mut Stage<impl Write>, found: &Receiver<Related>) {
    loop {
        match stage.hear(STOP_LOOK) {
            Told::Command(PartCommand::Stop) | Told::Finished => return,
            Told::Command(PartCommand::Go { .. } | PartCommand::Count)
            | Told::Prepared(_)
            | Told::Program(_)
            | Told::Nothing => {}
        }
        say_found(stage, found);
    }
}

fn say_found(stage: &mut Stage<impl Write>, found: &Receiver<Related>) {
    for related in found.try_iter() {
        stage.say(&PartEvent::Clock(related));
    }
}
