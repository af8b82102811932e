//! The measuring part of a run: from `go` until every process has stopped.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use deckwatch_carrier::host_clock::FarHost;
use deckwatch_meter::pacing::drain;
use deckwatch_meter::result::Death;
use deckwatch_os::clock::monotonic_ns;
use deckwatch_testbed::Testbed;

use super::Run;
use super::child::{Child, Ended, Role};
use super::observe::{Phase, RunProgress, StreamProgress};
use super::taken::{Taken, TakenWatch, WatchedPart};
use crate::limits::{
    PROGRESS_INTERVAL, START_LEAD, START_LEAD_EACH, STOP_PATIENCE, SUPPLIER_GRACE, TURN_PATIENCE,
};
use crate::stream::{Stream, length, length_max};

/// The measurement, apart from the record files.
#[derive(Debug)]
pub(super) struct Measured {
    /// Start of the schedule, nanoseconds of CLOCK_MONOTONIC.
    pub(super) start_ns: i64,
    /// When every process had stopped, on the same clock.
    pub(super) until_ns: i64,
    /// When the last message had had its time, on the same clock.
    pub(super) drained_ns: i64,
    /// The far hosts, as their times are converted.
    pub(super) far: BTreeMap<usize, FarHost>,
    /// Time of an interruption. Messages due later are not judged.
    pub(super) cut_ns: Option<i64>,
    /// The cause of the interruption.
    pub(super) interrupted_by: Option<&'static str>,
    /// Processes that ended too early.
    pub(super) deaths: Vec<Death>,
    /// Processor time that processes outside the run took from its threads.
    pub(super) taken: Vec<Taken>,
}

impl Run<'_> {
    /// Runs the schedule and the drain, and stops every process.
    pub(super) fn measure(&mut self) -> Measured {
        let start_ns = self.go();
        self.observer.phase(Phase::Measuring, "Measuring");
        let mut measured = Measured {
            start_ns,
            until_ns: start_ns,
            drained_ns: start_ns,
            far: BTreeMap::new(),
            cut_ns: None,
            interrupted_by: None,
            deaths: Vec::new(),
            taken: Vec::new(),
        };
        let mut watch = self.watch_threads();
        let lengths = self
            .streams
            .iter()
            .map(|stream| length(&stream.plan.schedule));
        let longest = lengths.max().unwrap_or(Duration::ZERO);
        let drain = self
            .streams
            .iter()
            .map(|stream| drain(stream.plan.deadline))
            .max()
            .unwrap_or(Duration::ZERO);
        // If a supplier is blocked in a call, the run waits for it. It waits as long as the supplier's messages could
        // still be received in time to be judged.
        let latest = self
            .streams
            .iter()
            .map(|stream| length_max(&stream.plan.schedule));
        let patience = latest.max().unwrap_or(Duration::ZERO) + drain + SUPPLIER_GRACE;
        let mut next_report = Instant::now();
        while self.anything_goes_on() && since(start_ns) < patience {
            if let Some(signal) = self.interrupt.received() {
                measured.interrupted_by = Some(signal);
                measured.cut_ns = Some(monotonic_ns());
                self.observer.notice(&format!(
                    "Interrupted by {signal}: what was measured until now is judged."
                ));
                break;
            }
            self.turn(&mut measured);
            watch.read_if_due();
            if Instant::now() >= next_report {
                next_report += PROGRESS_INTERVAL;
                self.report(start_ns, longest);
            }
        }
        self.drain(drain, &mut measured, &mut watch);
        measured.drained_ns = monotonic_ns();
        measured.taken = watch.end();
        self.report(start_ns, longest);
        self.stop_all();
        measured.until_ns = monotonic_ns();
        let judged = (start_ns, measured.drained_ns);
        measured.far = self.crew.clocks.far_hosts(judged, measured.until_ns);
        // Adds processes that died before the start, and those that did not stop.
        for index in 0..self.crew.children.len() {
            self.note_death(index, &mut measured);
        }
        measured
    }

    /// Writes the start of the schedule to every part. The start is late enough for all parts to read it before.
    fn go(&mut self) -> i64 {
        let parts = self.crew.with(|role| !matches!(role, Role::Load { .. }));
        let lead = START_LEAD + START_LEAD_EACH * parts.len() as u32;
        let start_ns = monotonic_ns() + i64::try_from(lead.as_nanos()).unwrap_or(i64::MAX / 2);
        self.crew.go(&parts, start_ns);
        start_ns
    }

    /// Stops every process: loads first, then those whose packets the taps capture, and the clock parts last.
    fn stop_all(&mut self) {
        self.observer.phase(Phase::Stopping, "Stopping");
        let orders: [fn(Role) -> bool; 6] = [
            |role| matches!(role, Role::Load { .. }),
            |role| matches!(role, Role::Supplier { .. }),
            // A consumer may fail if it loses its broker.
            |role| matches!(role, Role::Consumer { .. }),
            |role| matches!(role, Role::Channel { .. } | Role::Names { .. }),
            |role| matches!(role, Role::Tap { .. }),
            |role| matches!(role, Role::Clock { .. }),
        ];
        for order in orders {
            let whom = self.crew.with(order);
            self.crew.stop(&whom, STOP_PATIENCE);
        }
    }

    /// Handles the next line of any process, and records the process's death if it has died.
    fn turn(&mut self, measured: &mut Measured) {
        if let Some(index) = self.crew.turn(TURN_PATIENCE) {
            self.note_death(index, measured);
        }
    }

    fn note_death(&mut self, index: usize, measured: &mut Measured) {
        let child = &self.crew.children[index];
        let Some(Ended::Died(how)) = &child.ended else {
            return;
        };
        // A tap that was never ready has a warning of its own.
        let was_ready = child.ready.is_some() || matches!(child.role, Role::Load { .. });
        if !was_ready
            || measured
                .deaths
                .iter()
                .any(|death| death.process == child.label)
        {
            return;
        }
        let (process, how) = (child.label.clone(), how.clone());
        self.observer.notice(&format!("The {process} died: {how}."));
        measured.deaths.push(Death {
            process,
            how,
            at_ns: monotonic_ns() - measured.start_ns,
        });
    }

    /// Whether any stream still has a supplier that is not done, a living consumer, and a living channel if it needs
    /// one.
    fn anything_goes_on(&self) -> bool {
        (0..self.streams.len()).any(|index| {
            let of_stream = |wanted: fn(Role) -> Option<usize>| {
                self.crew
                    .children
                    .iter()
                    .filter(move |child| wanted(child.role) == Some(index))
            };
            let supplies =
                of_stream(supplier_of).any(|child| child.lives() && child.done.is_none());
            let consumes = of_stream(consumer_of).any(|child| child.lives());
            let passes = of_stream(channel_of).all(|child| child.lives());
            supplies && consumes && passes
        })
    }

    /// Waits for messages that have been sent and not received.
    fn drain(&mut self, drain: Duration, measured: &mut Measured, watch: &mut TakenWatch) {
        self.observer
            .phase(Phase::Draining, "Waiting for late messages");
        let until = Instant::now() + drain;
        // The wait needs no check for an interrupt: a second signal of the same kind ends the program at once.
        while Instant::now() < until {
            self.turn(measured);
            watch.read_if_due();
        }
    }

    /// Begins to watch the threads of all parts but loads.
    fn watch_threads(&self) -> TakenWatch {
        let strictest = self.streams.iter().map(|stream| stream.plan.deadline).min();
        let watched = |child: &Child| {
            let (stream, destination) = match child.role {
                Role::Load { .. } => return None,
                Role::Names { .. } | Role::Tap { .. } | Role::Clock { .. } => (None, None),
                Role::Channel { stream } | Role::Supplier { stream } => (Some(stream), None),
                Role::Consumer {
                    stream,
                    destination,
                } => (Some(stream), u16::try_from(destination).ok()),
            };
            if child.is_far() {
                // Its threads are on another machine.
                return None;
            }
            let deadline = stream.map(|index| self.streams[index].plan.deadline);
            Some(WatchedPart {
                process: child.program().unwrap_or(child.id()),
                is_program: child.program().is_some(),
                label: child.label.clone(),
                host: self.entry_of(child),
                stream,
                destination,
                deadline: deadline.or(strictest).unwrap_or_default(),
            })
        };
        let children = &self.crew.children;
        let relay = self.planner.testbed.and_then(Testbed::relay_process);
        TakenWatch::begin(
            children.iter().filter_map(watched).collect(),
            children
                .iter()
                .flat_map(|child| [Some(child.id()), child.program()])
                .chain([relay])
                .flatten(),
        )
    }

    fn report(&mut self, start_ns: i64, longest: Duration) {
        let elapsed = since(start_ns);
        let mut progress = RunProgress {
            elapsed,
            left: longest.saturating_sub(elapsed),
            after: Duration::ZERO,
            streams: Vec::new(),
        };
        for (index, stream) in self.streams.iter().enumerate() {
            let sends = if stream.plan.carrier.needs().one_slot {
                1
            } else {
                self.planner.flow(stream).to.len() as u64
            };
            let mut of_stream = StreamProgress {
                name: stream.plan.name.clone(),
                carrier: stream.plan.carrier,
                sent: 0,
                scheduled: stream.plan.schedule.expected_messages() as u64 * sends,
                received: 0,
                late: 0,
                rate_hz: 0.0,
            };
            for child in &self.crew.children {
                if supplier_of(child.role) == Some(index) {
                    of_stream.sent = child.progress.sent;
                    of_stream.rate_hz = rate_hz(child, start_ns, stream);
                }
                if consumer_of(child.role) == Some(index) {
                    of_stream.received += child.progress.received;
                    of_stream.late += child.progress.late;
                }
            }
            progress.streams.push(of_stream);
        }
        self.observer.progress(&progress);
    }
}

/// Returns the mean rate between the stream's first due time and its supplier's last progress report.
fn rate_hz(supplier: &Child, start_ns: i64, stream: &Stream) -> f64 {
    let first_due_ns =
        start_ns + i64::try_from(stream.plan.schedule.offset.as_nanos()).unwrap_or(0);
    let ns = supplier.progress_ns - first_due_ns;
    if ns <= 0 {
        0.0
    } else {
        supplier.progress.sent as f64 * 1e9 / ns as f64
    }
}

pub(super) fn supplier_of(role: Role) -> Option<usize> {
    match role {
        Role::Supplier { stream } => Some(stream),
        _ => None,
    }
}

pub(super) fn consumer_of(role: Role) -> Option<usize> {
    match role {
        Role::Consumer { stream, .. } => Some(stream),
        _ => None,
    }
}

pub(super) fn channel_of(role: Role) -> Option<usize> {
    match role {
        Role::Channel { stream } => Some(stream),
        _ => None,
    }
}

/// Returns the time since the start; zero before it.
fn since(start_ns: i64) -> Duration {
    Duration::from_nanos(u64::try_from(monotonic_ns() - start_ns).unwrap_or(0))
}
