//! `deckwatch channel --schedule` and `--scheduler`: lanes and urgencies from a schedule.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context as _, bail};
use deckwatch_event::dispatch::{Dispatching, QueueOptions};
use deckwatch_event::rt::{Scheduling, SchedulingError};
use deckwatch_event::{SchedulerOptions, SchedulingService};
use deckwatch_orb::{Access, NativePriority, Orb, Refusal};
use deckwatch_scenario::schedule::ScheduleFile;

use crate::output::errln;
use crate::overruns::Overruns;

/// Options of a channel that takes its priorities from a schedule.
#[derive(clap::Args)]
pub(super) struct ScheduleArgs {
    /// Take the lanes and the urgency of each RT_Info from a schedule file, as `deckwatch schedule` reads it. Clients
    /// find handles with `lookup` at `corbaloc:...:PORT/ScheduleService`; a connect that would make an operation miss
    /// its deadline is refused
    #[arg(
        long,
        value_name = "FILE",
        requires = "real_time",
        conflicts_with_all = ["dispatching", "order", "scheduler"]
    )]
    schedule: Option<PathBuf>,
    /// As --schedule, from a scheduling service, ours or TAO's: its reference, or a file that holds it
    #[arg(
        long,
        value_name = "REFERENCE",
        requires = "real_time",
        conflicts_with_all = ["dispatching", "order"]
    )]
    scheduler: Option<String>,
    /// Native priorities for the lanes of a schedule; the most urgent operation gets MOST, the next ones follow it
    #[arg(
        long,
        value_name = "LEAST:MOST",
        default_value = "1:49",
        requires = "real_time"
    )]
    lane_priorities: Range,
}

/// `--lane-priorities`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range(NativePriority, NativePriority);

impl FromStr for Range {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let native = |text: &str| {
            let number = text.parse().ok().filter(|number| (1..=99).contains(number));
            number.map(NativePriority)
        };
        let parsed = word.split_once(':').and_then(|(least, most)| {
            let (least, most) = (native(least)?, native(most)?);
            (least <= most).then_some(Self(least, most))
        });
        parsed.ok_or_else(|| "write two priorities of SCHED_FIFO, 1 to 99: 1:49".to_owned())
    }
}

/// What a channel takes from its schedule. The service must live as long as the channel.
pub(super) struct Scheduled {
    pub(super) scheduling: Scheduling,
    pub(super) dispatching: Dispatching,
    service: Option<SchedulingService>,
    overruns: Overruns,
}

impl Scheduled {
    /// Prints the operations that newly exceed their declared execution time.
    pub(super) fn look(&self) {
        if let Some(service) = &self.service {
            self.overruns.look(service);
        }
    }

    /// What the access table before the schedule has refused since the last call, and the count of all refusals.
    pub(super) fn take_refusals(&self) -> (Vec<Refusal>, u64) {
        let service = self.service.as_ref();
        service.map_or_else(Default::default, SchedulingService::take_refusals)
    }

    /// Prints all operations that exceed their declared execution time.
    pub(super) fn print_overruns(&self) {
        if let Some(service) = &self.service {
            Overruns::print(service);
        }
    }
}

impl ScheduleArgs {
    /// Reads the schedule, if one was asked for, and prints its lanes.
    pub(super) fn start(
        &self,
        orb: &Orb,
        queue: QueueOptions,
        access: Option<Access>,
    ) -> anyhow::Result<Option<Scheduled>> {
        let range = (self.lane_priorities.0, self.lane_priorities.1);
        let (scheduling, service) = match (&self.schedule, &self.scheduler) {
            (Some(path), _) => {
                let file = ScheduleFile::load(path)?;
                file.check(file.settings)?;
                let options = SchedulerOptions {
                    settings: file.settings,
                    admits: true,
                    ..SchedulerOptions::default()
                };
                let service = SchedulingService::start_with(orb, options, file.operations, access)?;
                (Scheduling::of_service(&service, range), Some(service))
            }
            (None, Some(reference)) => {
                let scheduler = crate::reference::target(orb, reference)?;
                (Scheduling::of_reference(&scheduler, range), None)
            }
            (None, None) => return Ok(None),
        };
        let lanes = match scheduling.lanes(orb, queue) {
            Ok(lanes) => lanes,
            Err(SchedulingError::Scheduler(exception)) => {
                return Err(exception).context("the scheduler does not compute a schedule");
            }
            Err(error) => bail!("{error}"),
        };
        for lane in &lanes {
            let native = orb
                .priority_mapping_manager()
                .mapping()
                .to_native(lane.priority);
            let native = native.map_or_else(|| "no".to_owned(), |native| native.to_string());
            errln!(
                "lane of native priority {native} (CORBA {}), ordered by {}",
                lane.priority,
                lane.queue.order.name()
            );
        }
        Ok(Some(Scheduled {
            scheduling,
            dispatching: Dispatching::Lanes(lanes),
            service,
            overruns: Overruns::default(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_priorities_are_two_numbers_of_sched_fifo() {
        let range = Range(NativePriority(1), NativePriority(49));
        assert_eq!("1:49".parse(), Ok(range));
        for wrong in ["0:49", "49:1", "1:100", "49", "a:b", "1:49:50"] {
            assert!(wrong.parse::<Range>().is_err(), "{wrong}");
        }
    }
}
