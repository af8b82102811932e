//! A mission's flows laid over their carriers: each pair is a stream, with a schedule of its own.

use std::time::Duration;

use deckwatch_carrier::plan::StreamPlan;
use deckwatch_meter::pacing::{Arrivals, Schedule, ScheduleError};

use crate::mission::Mission;

/// One flow over one carrier.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Index of the flow in [`Mission::flows`].
    pub flow: usize,
    /// What its parts are told; its index is that of the result document.
    pub plan: StreamPlan,
}

/// Why a mission's streams cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The wishes of the command line make a schedule that cannot be kept.
    #[error("The schedule of flow {flow} cannot be kept: {fact}")]
    Schedule {
        /// The flow.
        flow: String,
        /// Why.
        fact: ScheduleError,
    },
    /// More messages than the member that carries the sequence number can count.
    #[error(
        "Flow {flow} sends {messages} messages, and its member `{member}` counts only to {sequence_max}. Send fewer, or carry the sequence number in a wider member."
    )]
    SequenceTooNarrow {
        /// The flow.
        flow: String,
        /// The member.
        member: String,
        /// Messages of the schedule, warm-up included.
        messages: u64,
        /// The largest number that the member holds.
        sequence_max: u64,
    },
    /// More streams than a result can number.
    #[error("The mission has {0} streams (flows times carriers); at most 65535 can be told apart.")]
    TooMany(usize),
}

/// The streams of a mission, flow by flow, carriers in their order. Streams of one flow are set apart by its period divided by their number,
/// so that no two send at once.
///
/// # Errors
/// [`StreamError`].
pub fn streams(mission: &Mission) -> Result<Vec<Stream>, StreamError> {
    let count = mission.flows.iter().map(|flow| flow.carriers.len()).sum();
    if count > usize::from(u16::MAX) {
        return Err(StreamError::TooMany(count));
    }
    let mut streams = Vec::with_capacity(count);
    for (index, flow) in mission.flows.iter().enumerate() {
        for (position, &carrier) in flow.carriers.iter().enumerate() {
            let schedule = Schedule {
                start_ns: 0,
                offset: offset(&flow.arrivals, position, flow.carriers.len()),
                arrivals: flow.arrivals.clone(),
                extent: flow.extent,
                warm_up: flow.warm_up,
            };
            schedule.check().map_err(|fact| StreamError::Schedule {
                flow: flow.name.clone(),
                fact,
            })?;
            let messages = schedule.expected_messages() as u64;
            if let Some(sequence_max) = flow.sequence_max.filter(|&max| messages > max) {
                return Err(StreamError::SequenceTooNarrow {
                    flow: flow.name.clone(),
                    member: flow.sequence_member().to_owned(),
                    messages,
                    sequence_max,
                });
            }
            streams.push(Stream {
                flow: index,
                plan: StreamPlan {
                    flow: streams.len() as u16,
                    name: flow.name.clone(),
                    carrier,
                    body: flow.body.clone(),
                    schedule,
                    deadline: flow.deadline,
                },
            });
        }
    }
    Ok(streams)
}

fn offset(arrivals: &Arrivals, position: usize, count: usize) -> Duration {
    let period = match *arrivals {
        Arrivals::Periodic { period } | Arrivals::Bursts { period, .. } => period,
        Arrivals::Poisson { mean_period, .. } => mean_period,
    };
    period * position as u32 / count.max(1) as u32
}

/// How long a schedule lasts, from the run's start to its last message; the mean for a Poisson process.
#[must_use]
pub fn length(schedule: &Schedule) -> Duration {
    let rate_hz = schedule.arrivals.rate_hz();
    let seconds = schedule.expected_messages() / rate_hz;
    schedule.offset + Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX / 2)
}
