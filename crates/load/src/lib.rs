//! Loads that compete with the messages of a measurement: they keep processors, links, memory and disks busy, at a
//! target where one is given, and report what they reached.
//!
//! ```no_run
//! use std::time::Duration;
//! use deckwatch_load::{CpuPlan, CpuWork, LoadError, LoadPlan, Stop, Work};
//!
//! fn half_of_the_first_processor() -> Result<(), LoadError> {
//!     let cpu = CpuPlan {
//!         work: CpuWork::Share { share: 0.5 },
//!         processors: vec![0],
//!         fifo_priority: None,
//!     };
//!     let plan = LoadPlan { work: Work::Cpu(cpu), lifetime: Duration::from_secs(10) };
//!     let report = deckwatch_load::run(&plan, &Stop::default(), &mut |second| println!("{second}"))?;
//!     assert!(report.is_held());
//!     Ok(())
//! }
//! ```

#![forbid(unsafe_code)]

mod count;
mod cpu;
mod error;
mod held;
pub mod limits;
mod net;
mod stop;
mod stress;

use std::fmt;
use std::time::{Duration, Instant};

use deckwatch_meter::result::Fidelity;
use serde::{Deserialize, Serialize};

pub use count::{Bursts, CountPlan};
pub use cpu::{CpuPlan, CpuWork};
pub use error::LoadError;
pub use held::{Held, Second, TOLERANCE, Unit};
pub use net::{Buffer, NetPlan, Pace, Pattern, Protocol, Received, Sent, SinkPlan, fidelity};
pub use stop::Stop;
pub use stress::{StressPlan, Stressed};

use limits::LIFETIME_S_MAX;

/// One load of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPlan {
    /// What it does.
    pub work: Work,
    /// Time after which it ends if it is not stopped.
    pub lifetime: Duration,
}

/// What a load keeps busy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Work {
    /// A processor, by one loop of the paper in the calling thread.
    Count(CountPlan),
    /// Processors, each by threads of its own, watched.
    Cpu(CpuPlan),
    /// A link, by messages to a sink.
    Net(NetPlan),
    /// A sink of such messages.
    Sink(SinkPlan),
    /// Memory or a disk, by `stress-ng`.
    Stress(StressPlan),
}

/// What a load did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// From its begin to its end.
    pub elapsed: Duration,
    /// The bursts of a loop of the paper.
    #[serde(default)]
    pub bursts: Option<Bursts>,
    /// What was reached, for each processor or link.
    #[serde(default)]
    pub held: Vec<Held>,
    /// What a load on a link has sent.
    #[serde(default)]
    pub sent: Option<Sent>,
    /// What a sink has received.
    #[serde(default)]
    pub received: Option<Received>,
    /// The figures of `stress-ng`.
    #[serde(default)]
    pub stressed: Option<Stressed>,
    /// What the emulated network between the ends does as a real one, and what it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<Fidelity>,
}

impl LoadReport {
    /// Returns true if every target was held. A load without a target has nothing to miss.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held.iter().all(|held| held.is_held() != Some(false))
    }
}

impl fmt::Display for LoadReport {
    /// One fact a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<String> = self.held.iter().map(Held::to_string).collect();
        if let Some(bursts) = self.bursts {
            let shortest_us = bursts.ns_min / 1000;
            lines.push(format!(
                "{} bursts, the shortest in {shortest_us} us",
                bursts.count
            ));
        }
        if let Some(sent) = self.sent {
            lines.push(format!(
                "sent {} messages, {} octets; {} send errors, {} packets dropped by the interface; at most {:.1} ms late",
                sent.messages,
                sent.octets,
                sent.errors,
                sent.interface_drops,
                sent.late_max.as_secs_f64() * 1e3
            ));
        }
        if let Some(unheard) = self.sent.map(|sent| sent.unheard).filter(|it| *it > 0) {
            lines.push(format!(
                "nobody listens at the sink: {unheard} sends failed because an earlier datagram was rejected there; start \
                 `deckwatch load net --serve` there"
            ));
        }
        if let Some(received) = self.received {
            lines.push(format!(
                "received {} octets; {} datagrams, {} missing, {} of them dropped by the full receive buffer; {} connections",
                received.octets,
                received.datagrams,
                received.missing,
                received.overflows,
                received.connections
            ));
        }
        if let Some(stressed) = &self.stressed {
            lines.push(stressed.to_string());
        }
        f.write_str(&lines.join("\n"))
    }
}

impl LoadPlan {
    /// # Errors
    /// [`LoadError`] for a value out of its bounds.
    pub fn check(&self) -> Result<(), LoadError> {
        if self.lifetime.is_zero() || self.lifetime > Duration::from_secs(LIFETIME_S_MAX) {
            return Err(LoadError::Lifetime);
        }
        match &self.work {
            Work::Count(plan) => plan.check(),
            Work::Cpu(plan) => plan.check(),
            Work::Net(plan) => plan.check(),
            Work::Sink(_) => Ok(()),
            Work::Stress(plan) => plan.check(),
        }
    }
}

/// Carries out a load until it is stopped or its lifetime is over. `tell` gets each second of a load that is watched.
///
/// # Errors
/// [`LoadError`] for a plan that cannot be carried out on this machine.
pub fn run(
    plan: &LoadPlan,
    stop: &Stop,
    tell: &mut dyn FnMut(&Second),
) -> Result<LoadReport, LoadError> {
    plan.check()?;
    let begin = Instant::now();
    let end = begin + plan.lifetime;
    let mut report = match &plan.work {
        Work::Count(plan) => LoadReport {
            bursts: Some(count::run(plan, stop, end)),
            ..LoadReport::default()
        },
        Work::Cpu(plan) => cpu::run(plan, stop, end, tell)?,
        Work::Net(plan) => net::run(plan, stop, end, tell)?,
        Work::Sink(plan) => net::receive(plan, stop, end, tell)?,
        Work::Stress(plan) => stress::run(plan, stop, end, tell)?,
    };
    report.elapsed = begin.elapsed();
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(iterations: u64, lifetime: Duration) -> LoadPlan {
        LoadPlan {
            work: Work::Count(CountPlan {
                iterations,
                sleep: Duration::from_micros(1),
            }),
            lifetime,
        }
    }

    #[test]
    fn a_load_ends_when_its_orders_do() {
        let hour = Duration::from_secs(3600);
        let stop = Stop::when_ended(std::io::empty());
        let report = run(&count(10, hour), &stop, &mut |_| ()).expect("a sound plan");
        assert!(report.elapsed < hour);
    }

    #[test]
    fn a_load_ends_with_its_lifetime_though_nobody_stops_it() {
        let lifetime = Duration::from_millis(300);
        let report = run(&count(1000, lifetime), &Stop::default(), &mut |_| ()).expect("sound");
        let bursts = report.bursts.expect("counted");
        assert!(bursts.count > 0 && bursts.ns_min < u64::MAX);
        assert!(report.elapsed >= lifetime);
    }

    #[test]
    fn plans_out_of_bounds_are_refused() {
        let second = Duration::from_secs(1);
        assert!(count(1, second).check().is_ok());
        assert!(matches!(count(0, second).check(), Err(LoadError::Burst)));
        for lifetime in [Duration::ZERO, Duration::MAX] {
            assert!(matches!(
                count(1, lifetime).check(),
                Err(LoadError::Lifetime)
            ));
        }
        let share = |share, fifo_priority| {
            let work = CpuWork::Share { share };
            let plan = CpuPlan {
                work,
                processors: vec![0],
                fifo_priority,
            };
            plan.check()
        };
        assert!(share(1.0, None).is_ok());
        assert!(share(0.8, Some(10)).is_ok());
        for wrong in [0.0, 1.01, f64::NAN] {
            assert!(matches!(share(wrong, None), Err(LoadError::Share { .. })));
        }
        let greedy = share(0.81, Some(10));
        assert!(matches!(greedy, Err(LoadError::RealTimeShare { .. })));
        assert!(matches!(share(0.5, Some(100)), Err(LoadError::Priority)));
    }

    #[test]
    fn a_plan_and_a_report_are_read_back_as_they_were_written() {
        let plan = count(7, Duration::from_secs(2));
        let text = serde_json::to_string(&plan).expect("JSON");
        assert_eq!(serde_json::from_str::<LoadPlan>(&text).expect("JSON"), plan);
    }
}
