//! The join: it makes samples from the record files and captures of one stream, after the run.
//!
//! The messages of a raw carrier have stamps from its own sockets. For a middleware the stamps come from the taps:
//!
//! 1. streams are reassembled from the captured packets and cut into messages;
//! 2. the sequence number of each message is read where the flow's type has it.
//!
//! So connections may break and reconnect, and the middleware needs no change to be measured. Over raw carriers both
//! methods are compared. A message that the captures do not have gets no stamp; the join counts it.

mod agreement;
mod far;
mod leg;
mod samples;

use std::collections::BTreeSet;

use deckwatch_meter::caution::Caution;
use deckwatch_meter::result::Warning;
use deckwatch_meter::sample::Sample;
use thiserror::Error;

pub use agreement::Agreement;
use leg::Legs;

use crate::body::{Body, BodyError};
use crate::capture::{self, CaptureError, CaptureNote};
use crate::plan::JoinPlan;
use crate::record::{ConsumerRecord, Header, ReadRecords, RecordError, SupplierRecord};
use crate::stamp_clock::Eras;

/// One stream, joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    /// In the order of the plan.
    pub destinations: Vec<JoinedDestination>,
    /// Octets of one message's CDR encoding.
    pub size_bytes: u64,
    /// Upper bound of the error of every kernel stamp.
    pub conversion_error_ns: u64,
    /// Comparison of socket stamps with tap stamps, for raw carriers whose packets a tap captured.
    pub agreement: Option<Agreement>,
    /// Facts that the reader of the result must know.
    pub warnings: Vec<Warning>,
}

/// One destination, joined.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinedDestination {
    /// Index of the destination.
    pub index: u16,
    /// The host's name.
    pub host: String,
    /// One sample for each message of the schedule, by sequence number. Judging fills in the fields that follow from
    /// the stamps.
    pub samples: Vec<Sample>,
    /// Messages that the local side refused, without the warm-up.
    pub send_errors: u64,
    /// Messages dropped by a full receive buffer.
    pub receive_overflows: u64,
    /// Arrivals that are not messages of the stream.
    pub malformed: u64,
    /// Messages received without a kernel stamp that the carrier or the captures should provide.
    pub unstamped: u64,
    /// Records without which its messages cannot be judged.
    pub unread: Option<Unread>,
}

/// Records that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Whether they are those of the supplier, or else of the consumer.
    pub of_supplier: bool,
    /// The host of that part.
    pub host: String,
    /// Why.
    pub reason: String,
}

impl Unread {
    fn new(of_supplier: bool, host: &str, error: &RecordError) -> Self {
        Self {
            of_supplier,
            host: host.to_owned(),
            reason: error.to_string().trim_end_matches('.').to_owned(),
        }
    }
}

/// Joins one stream.
///
/// # Errors
/// [`JoinError`] if a capture or the body's type cannot be read. Records that cannot be read are a warning, and stand in
/// [`JoinedDestination::unread`]: without them no message was sent, or received.
pub fn join(plan: &JoinPlan) -> Result<Joined, JoinError> {
    let body = Body::new(&plan.stream.body)?;
    let mut warnings = Vec::new();
    let (mut sent, unread) = supplied(plan, &mut warnings);
    if let Some(host) = plan.far.get(&plan.from) {
        far::supplier(&mut sent, (&plan.from, host), &mut warnings);
    }
    let mut unread_at = Vec::new();
    let received: Vec<_> = plan
        .destinations
        .iter()
        .map(|at| {
            let (mut read, reason) = arrivals(&at.records, &at.host, &mut warnings);
            unread_at.push(reason.or_else(|| unread.clone()));
            if let Some(host) = plan.far.get(&at.host) {
                far::consumer(&mut read, (&at.host, host), &mut warnings);
            }
            read
        })
        .collect();
    let mut legs = Legs::of(plan, &body, sent.header.capacity);
    let capture_error_ns = read_captures(plan, &mut legs, &mut warnings)?;
    let clocks = samples::Clocks::of(plan, &sent, &received);
    let mut joined = Joined {
        destinations: Vec::new(),
        size_bytes: body.octets().len() as u64,
        conversion_error_ns: clocks.error_ns().max(capture_error_ns),
        agreement: None,
        warnings,
    };
    let mut agreement = Agreement::default();
    for (((destination, received), clock), unread) in plan
        .destinations
        .iter()
        .zip(&received)
        .zip(&clocks.received)
        .zip(unread_at)
    {
        let sources = samples::Sources {
            plan,
            destination,
            sent: &sent,
            received,
            legs: &legs,
            sent_clock: &clocks.sent,
            received_clock: clock,
        };
        joined.destinations.push(JoinedDestination {
            unread,
            ..sources.join(&mut agreement)
        });
    }
    let steps = clocks.steps().max(legs.steps());
    joined
        .warnings
        .extend(clock_set(&joined.destinations, steps));
    joined
        .warnings
        .extend(unstamped(plan, &joined.destinations));
    joined
        .warnings
        .extend(agreement.warning(&plan.stream.name, plan.stream.carrier));
    joined.agreement = (agreement.compared > 0).then_some(agreement);
    Ok(joined)
}

/// Reads the supplier's records. If they cannot be read, no message has a record of its own: what was received still has
/// its times.
fn supplied(
    plan: &JoinPlan,
    warnings: &mut Vec<Warning>,
) -> (ReadRecords<SupplierRecord>, Option<Unread>) {
    let error = match ReadRecords::supplier(&plan.supplier_records) {
        Ok(read) => return (read, None),
        Err(error) => error,
    };
    let unread = Unread::new(true, &plan.from, &error);
    let caution = Caution::NoSupplierRecords {
        host: plan.from.clone(),
        reason: unread.reason.clone(),
    };
    warnings.push(caution.into());
    let messages = plan.stream.schedule.dues().count();
    let header = Header {
        slots: 1,
        capacity: messages as u64,
        ..Header::default()
    };
    let records = vec![SupplierRecord::default(); messages];
    (ReadRecords { header, records }, Some(unread))
}

fn arrivals(
    path: &std::path::Path,
    host: &str,
    warnings: &mut Vec<Warning>,
) -> (ReadRecords<ConsumerRecord>, Option<Unread>) {
    match ReadRecords::consumer(path) {
        Ok(read) => {
            if read.header.unrecorded > 0 {
                let caution = Caution::RecordsFull {
                    host: host.to_owned(),
                    messages: read.header.unrecorded,
                };
                warnings.push(caution.into());
            }
            (read, None)
        }
        Err(error) => {
            let unread = Unread::new(false, host, &error);
            let caution = Caution::NoRecords {
                host: host.to_owned(),
                reason: unread.reason.clone(),
            };
            warnings.push(caution.into());
            let read = ReadRecords {
                header: Header::default(),
                records: Vec::new(),
            };
            (read, Some(unread))
        }
    }
}

/// Reads each capture once, for all legs. Returns the largest error bound of the captures' clocks.
fn read_captures(
    plan: &JoinPlan,
    legs: &mut Legs<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<u64, JoinError> {
    let mut error_ns_max = 0;
    for (at, index) in plan.captures.iter().zip(0..) {
        if !legs.need(index) {
            continue;
        }
        let note = CaptureNote::read(&at.capture).map_err(|error| JoinError::Note {
            path: at.capture.display().to_string(),
            error,
        })?;
        if note.clock.is_empty() {
            continue;
        }
        let far = at.hosts.first().and_then(|host| plan.far.get(host));
        let clock = Eras::new(&note.clock).of_host(far);
        error_ns_max = error_ns_max.max(clock.error_ns());
        legs.set_clock(index, clock);
        let dropped = note.dropped_by_kernel + note.dropped_by_size;
        if dropped > 0 {
            let caution = Caution::TapDropped {
                host: note.host.clone(),
                packets: dropped,
                cause: None,
            };
            warnings.push(caution.into());
        }
        let whole = capture::read(&at.capture, |packet| legs.take(index, &packet))?;
        if !whole {
            warnings.push(Caution::CaptureCut { host: note.host }.into());
        }
    }
    let unread = legs.finish();
    if unread > 0 {
        let caution = Caution::CaptureUnread {
            flow: plan.stream.name.clone(),
            carrier: plan.stream.carrier.name(),
            messages: unread,
        };
        warnings.push(caution.into());
    }
    Ok(error_ns_max)
}

/// Returns a warning if the clock was set while messages were under way, or could have been.
fn clock_set(destinations: &[JoinedDestination], steps: usize) -> Option<Warning> {
    let marked = |sample: &&Sample| sample.flags.clock_step;
    let samples = destinations
        .iter()
        .flat_map(|destination| &destination.samples);
    let messages = samples.filter(marked).count() as u64;
    (steps > 0).then(|| Caution::ClockSet { messages }.into())
}

fn unstamped(plan: &JoinPlan, destinations: &[JoinedDestination]) -> Option<Warning> {
    let concerned = || {
        destinations
            .iter()
            .filter(|destination| destination.unstamped > 0)
    };
    let messages = concerned().map(|destination| destination.unstamped).sum();
    let hosts: BTreeSet<&str> = concerned()
        .map(|destination| destination.host.as_str())
        .collect();
    let hosts: Vec<&str> = hosts.into_iter().collect();
    (messages > 0).then(|| {
        let caution = Caution::StampsMissing {
            flow: plan.stream.name.clone(),
            carrier: plan.stream.carrier.name(),
            hosts: hosts.join(", "),
            messages,
        };
        caution.into()
    })
}

/// Why a stream cannot be joined.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The body cannot be created.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// A capture cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The note beside a capture cannot be read.
    #[error("the note of {path}: {error}")]
    Note {
        /// The capture.
        path: String,
        /// The system's error.
        error: std::io::Error,
    },
}

#[cfg(test)]
mod tests;
