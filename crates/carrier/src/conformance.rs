//! The contract of every carrier, checked over its parts: each part is a process, as in a run.
//!
//! It is a library, so that whoever writes a carrier runs the same cases (`deckwatch carriers check NAME`). [`record`] runs one
//! stream in the same way, for instruments that compare carriers.

mod process;
mod recorded;
mod trial;

use std::time::Duration;

pub use process::{Launcher, Spot};
pub use recorded::{Recorded, StreamOrder, record};
use trial::{Traffic, Trial};

use crate::carrier::Delivery;
use crate::carriers::CarrierRef;

/// One promise of the contract.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// A short word for it.
    pub name: &'static str,
    /// What it checks.
    pub promise: &'static str,
    check: fn(&Launcher, CarrierRef) -> Result<(), String>,
}

/// All cases, the simplest first.
pub static CASES: [Case; 6] = [
    Case {
        name: "order",
        promise: "300 messages arrive once and in the order of sending",
        check: order,
    },
    Case {
        name: "sizes",
        promise: "messages of 8 octets to the largest size arrive",
        check: sizes,
    },
    Case {
        name: "fan-out",
        promise: "each of three consumers gets every message",
        check: fan_out,
    },
    Case {
        name: "stopped-peer",
        promise: "a consumer that stops for a while costs other consumers nothing",
        check: stopped_peer,
    },
    Case {
        name: "dead-peer",
        promise: "a consumer that is killed costs other consumers nothing",
        check: dead_peer,
    },
    Case {
        name: "late-join",
        promise: "a consumer that comes later disturbs nothing",
        check: late_join,
    },
];

impl Case {
    /// Checks one carrier.
    ///
    /// # Errors
    /// What the carrier did instead, as a sentence.
    pub fn check(&self, launcher: &Launcher, carrier: CarrierRef) -> Result<(), String> {
        (self.check)(launcher, carrier)
    }
}

fn order(launcher: &Launcher, carrier: CarrierRef) -> Result<(), String> {
    let trial = Trial::new(launcher, carrier, Traffic::of(384, 300, 1))?;
    trial.whole(1)
}

fn sizes(launcher: &Launcher, carrier: CarrierRef) -> Result<(), String> {
    let largest = carrier.needs().size_bytes_max;
    let sizes = [8, 9, 1_471, 1_473, 65_507, 65_508, largest];
    for size_bytes in sizes.into_iter().filter(|&size| size <= largest) {
        let trial = Trial::new(launcher, carrier, Traffic::of(size_bytes, 4, 20))?;
        let checked = trial.whole(1);
        checked.map_err(|fact| format!("With {size_bytes} octets: {fact}"))?;
    }
    Ok(())
}

fn fan_out(launcher: &Launcher, carrier: CarrierRef) -> Result<(), String> {
    let trial = Trial::new(launcher, carrier, Traffic::of(64, 100, 2))?;
    trial.whole(3)
}

fn stopped_peer(launcher: &Launcher, carrier: CarrierRef) -> Result<(), String> {
    let mut trial = Trial::new(launcher, carrier, Traffic::of(64, 4, 10))?;
    trial.listen(2)?;
    trial.connect()?;
    trial.pause(0, true)?;
    trial.go()?;
    trial.supplier_done()?;
    trial.arrived(1, may_lose(carrier))?;
    trial.pause(0, false)?;
    trial.arrived(0, true)?;
    let ends = trial.stop()?;
    // A call that timed out may still have been delivered, whenever the consumer came to it.
    ends.accepted_in_order(0)?;
    ends.delivered(1)
}

fn dead_peer(launcher: &Launcher, carrier: CarrierRef) -> Result<(), String> {
    let mut trial = Trial::new(launcher, carrier, Traffic::of(64, 20, 10))?;
    trial.listen(2)?;
    trial.connect()?;
    trial.kill(0)?;
    trial.go()?;
    trial.supplier_done()?;
    trial.arrived(1, may_lose(carrier))?;
    trial.stop()?.delivered(1)
}

fn late_join(launcher: &Launcher, carrier: CarrierRef) -> Result<(), String> {
    let mut trial = Trial::new(launcher, carrier, Traffic::of(64, 200, 5))?;
    trial.listen(1)?;
    trial.connect()?;
    trial.go()?;
    trial.listen(1)?;
    trial.supplier_done()?;
    trial.arrived(0, may_lose(carrier))?;
    let ends = trial.stop()?;
    ends.in_order(1)?;
    ends.delivered(0)
}

fn may_lose(carrier: CarrierRef) -> bool {
    carrier.delivery() == Delivery::BestEffort
}

/// A call may block for at most ten deadlines.
const DEADLINE: Duration = Duration::from_millis(100);

/// Longest time for an event of a part, or for the arrival of messages: much more than a program needs, and less than a
/// person waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time for the arrival of messages that may be lost.
const LOSS_PATIENCE: Duration = Duration::from_secs(1);

/// Time between two looks at a record file.
const LOOK: Duration = Duration::from_millis(5);
