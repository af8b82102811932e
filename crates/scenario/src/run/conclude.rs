//! Makes the result of a run from its record files: joins, judges and writes.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::SystemTime;

use deckwatch_carrier::join::{Joined, JoinedDestination, join};
use deckwatch_carrier::plan::{CaptureAt, JoinDestination, JoinPlan};
use deckwatch_meter::caution::Caution;
use deckwatch_meter::disturbance::Disturbance;
use deckwatch_meter::judge::{
    Destination, InvalidReason, Terms, add_remedies, fail_after_death, invalidate, judge,
    judge_together,
};
use deckwatch_meter::pacing::{Extent, Schedule};
use deckwatch_meter::result::{FlowResult, Warning};

use super::child::{Child, Role};
use super::clocks::ClockError;
use super::document::{leave_nothing_whole, write};
use super::loads::{is_loaded, missed};
use super::observe::Phase;
use super::plans::Planner;
use super::watch::{Measured, consumer_of};
use super::{Outcome, Run, RunError};
use crate::stream::Stream;

/// A stream's result, with its samples by destination.
pub(super) struct Judged {
    pub(super) result: FlowResult,
    pub(super) joined: Joined,
}

impl Run<'_> {
    /// Joins and judges all streams, and writes the result.
    pub(super) fn conclude(
        &mut self,
        measured: &Measured,
        mut disturbance: Disturbance,
        started_at: SystemTime,
        folder: &Path,
    ) -> Result<Outcome, RunError> {
        self.observer.phase(Phase::Judging, "Judging");
        self.gather_warnings(measured);
        disturbance.capture_dropped = self.captures_dropped();
        self.warn_of_far_hosts(measured);
        let far = self.far_disturbances();
        let errors = self
            .streams
            .iter()
            .map(|stream| self.clock_error(stream, measured));
        let worst = errors.max_by_key(|error| error.rigorous);
        set_clock_error(&mut disturbance, worst.unwrap_or_default());
        let mut judged = Vec::new();
        let mut disturbances = Vec::new();
        for stream in self.streams {
            let index = usize::from(stream.plan.flow);
            let of_stream = measured
                .taken
                .iter()
                .filter(|taken| taken.stream == Some(index));
            let mut disturbance = Disturbance {
                taken: of_stream.map(|taken| taken.time.clone()).collect(),
                ..disturbance.clone()
            };
            set_clock_error(&mut disturbance, self.clock_error(stream, measured));
            let flow = self.planner.flow(stream);
            for host in flow.to.iter().chain([&flow.from]) {
                if let Some(far) = far.get(host) {
                    disturbance.stolen = disturbance.stolen.max(far.stolen);
                    disturbance.throttled = disturbance.throttled.max(far.throttled);
                }
            }
            let mut one = self.judge_stream(stream, measured, &disturbance)?;
            self.judge_unread(measured, &mut one);
            judged.push(one);
            disturbances.push(disturbance);
        }
        judge_together(judged.iter_mut().map(|judged| &mut judged.result));
        self.judge_deaths(measured, &mut judged);
        self.judge_loads(&mut judged);
        for (judged, disturbance) in judged.iter_mut().zip(&disturbances) {
            add_remedies(&mut judged.result, disturbance);
        }
        let document = self.document(&judged, measured, &disturbance, started_at);
        let written = write(folder, &document, &judged, started_at, measured.start_ns)
            .and_then(|()| self.write_beside(folder));
        if written.is_err() {
            leave_nothing_whole(folder);
        }
        Ok(Outcome {
            document,
            folder: folder.to_owned(),
            interrupted_by: measured.interrupted_by,
            unwritten: written.err().map(|error| error.to_string()),
        })
    }

    /// Writes the captures, if they are kept, and the report into the result folder.
    fn write_beside(&self, folder: &Path) -> Result<(), RunError> {
        if self.settings.keep_captures {
            self.keep_captures(folder)?;
        }
        let report = deckwatch_report::write(folder);
        report
            .map(drop)
            .map_err(|error| RunError::Result(error.to_string()))
    }

    /// Adds the warnings of the processes, each once.
    fn gather_warnings(&mut self, measured: &Measured) {
        // Several processes may have the same warning.
        let mut told: Vec<(Warning, Vec<&str>)> = Vec::new();
        for child in &self.crew.children {
            let ready = child.ready.iter().flat_map(|ready| &ready.warnings);
            let done = child.done.iter().flat_map(|done| &done.warnings);
            for warning in ready.chain(done) {
                match told.iter_mut().find(|(known, _)| known == warning) {
                    Some((_, labels)) => labels.push(&child.label),
                    None => told.push((warning.clone(), vec![&child.label])),
                }
            }
        }
        for (Warning { kind, text }, labels) in told {
            let at = match labels.len() {
                1 => format!("At the {}", labels[0]),
                count => format!("At {count} processes, the {} among them", labels[0]),
            };
            self.warnings.push(Warning {
                kind,
                text: format!("{at}: {text}"),
            });
        }
        if let Some(signal) = measured.interrupted_by {
            self.warnings.push(Caution::Interrupted { signal }.into());
        }
        for death in &measured.deaths {
            let caution = Caution::Death {
                process: death.process.clone(),
                at_ns: death.at_ns,
                how: death.how.clone(),
            };
            self.warnings.push(caution.into());
        }
    }

    /// Returns the disturbances of each far machine, by host, and warns of them. Each of its parts has read the counters of
    /// the whole machine: the greatest reading holds.
    fn far_disturbances(&mut self) -> BTreeMap<usize, Disturbance> {
        let mut far: BTreeMap<usize, Disturbance> = BTreeMap::new();
        for child in &self.crew.children {
            if let Some(disturbance) = &child.far_disturbance {
                far.entry(child.host).or_default().absorb(disturbance);
            }
        }
        for (&host, disturbance) in &far {
            let name = &self.planner.host(host).name;
            let warnings = disturbance.warnings().into_iter();
            self.warnings
                .extend(warnings.map(|Warning { kind, text }| Warning {
                    kind,
                    text: format!("On {name}: {text}"),
                }));
        }
        far
    }

    /// Judges the streams that lost a process.
    fn judge_deaths(&self, measured: &Measured, judged: &mut [Judged]) {
        for death in &measured.deaths {
            let dead = |child: &&Child| child.label == death.process;
            let role = self.crew.children.iter().find(dead).map(|child| child.role);
            let (stream, destination) = match role {
                Some(Role::Consumer {
                    stream,
                    destination,
                }) => (stream, u16::try_from(destination).ok()),
                Some(Role::Supplier { stream } | Role::Channel { stream }) => (stream, None),
                _ => continue,
            };
            for judged in judged.iter_mut() {
                if usize::from(judged.result.index) == stream {
                    fail_after_death(&mut judged.result, destination, &death.process);
                }
            }
        }
    }

    /// Without the records of a part that did not die, no message that it handled can be judged.
    fn judge_unread(&self, measured: &Measured, judged: &mut Judged) {
        let stream = usize::from(judged.result.index);
        let has_died = |role: Role| {
            let mut children = self.crew.children.iter();
            let part = children.find(|child| child.role == role);
            part.is_some_and(|part| measured.deaths.iter().any(|one| one.process == part.label))
        };
        for one in &judged.joined.destinations {
            let Some(unread) = &one.unread else { continue };
            let destination = usize::from(one.index);
            let (part, role) = if unread.of_supplier {
                ("supplier", Role::Supplier { stream })
            } else {
                (
                    "consumer",
                    Role::Consumer {
                        stream,
                        destination,
                    },
                )
            };
            if !has_died(role) {
                let reason = InvalidReason::RecordsUnread {
                    part: format!("{part} on {}", unread.host),
                    reason: unread.reason.clone(),
                };
                invalidate(&mut judged.result, Some(one.index), &reason);
            }
        }
    }

    /// Warns of loads that missed their target. Without a load that the mission needs, no flow can be judged.
    fn judge_loads(&mut self, judged: &mut [Judged]) {
        for (load, must_hold) in missed(self.mission, &self.crew.children) {
            if must_hold {
                let reason = InvalidReason::LoadMissed { load: load.clone() };
                for judged in judged.iter_mut() {
                    invalidate(&mut judged.result, None, &reason);
                }
            }
            self.warnings.push(Caution::LoadMissed { load }.into());
        }
    }

    fn captures_dropped(&self) -> u64 {
        let taps = self
            .crew
            .children
            .iter()
            .filter(|child| matches!(child.role, Role::Tap { .. }));
        taps.map(|child| child.progress.overflows).sum()
    }

    fn judge_stream(
        &mut self,
        stream: &Stream,
        measured: &Measured,
        disturbance: &Disturbance,
    ) -> Result<Judged, RunError> {
        let plan = self.join_plan(stream, measured);
        let title = Planner::title(stream);
        let mut joined = self.join(plan, &title)?;
        let flow = self.planner.flow(stream);
        let terms = Terms {
            deadline: flow.deadline,
            budget: flow.budget,
            clusters: flow.clusters,
            arrivals: flow.arrivals.clone(),
            road: stream.plan.carrier.road(),
            supplier_disturbed: is_loaded(self.mission, flow.from),
            supplier_host: self.supplier_entry(stream),
            supplier_real_time: self.supplier_is_real_time(stream),
            worst_case: flow.worst_case,
        };
        let mut destinations: Vec<Destination<'_>> =
            joined.destinations.iter_mut().map(to_be_judged).collect();
        let judgement = judge(&mut destinations, &terms, disturbance);
        self.warn(&title, std::mem::take(&mut joined.warnings));
        self.warn(&title, judgement.warnings);
        let result = FlowResult {
            index: stream.plan.flow,
            name: flow.name.clone(),
            carrier: stream.plan.carrier.name().to_owned(),
            carrier_index: stream.plan.carrier.index(),
            road: Some(stream.plan.carrier.road()),
            type_name: flow.type_name().to_owned(),
            size_bytes: joined.size_bytes,
            from: self.mission.hosts[flow.from].name.clone(),
            rate_hz: flow.arrivals.rate_hz(),
            arrivals: flow.arrivals.name().to_owned(),
            deadline_ns: u64::try_from(flow.deadline.as_nanos()).unwrap_or(u64::MAX),
            budget: flow.budget,
            scheduling: self.scheduling(stream),
            settings: self.settings(stream),
            merged_layers: judgement.merged_layers,
            destinations: judgement.destinations,
            verdict: judgement.verdict,
        };
        Ok(Judged { result, joined })
    }

    /// Joins a stream. If its captures cannot be used, joins it without them and adds a warning.
    fn join(&mut self, mut plan: JoinPlan, title: &str) -> Result<Joined, RunError> {
        let error = match join(&plan) {
            Ok(joined) => return Ok(joined),
            Err(error) => error,
        };
        plan.captures.clear();
        let joined = join(&plan).map_err(|error| RunError::Result(error.to_string()))?;
        let reason = error.to_string();
        self.warn(title, vec![Caution::NoCaptures { reason }.into()]);
        Ok(joined)
    }

    fn warn(&mut self, title: &str, warnings: Vec<Warning>) {
        for Warning { kind, text } in warnings {
            self.warnings.push(Warning {
                kind,
                text: format!("{title}: {text}"),
            });
        }
    }

    /// Returns the places of the stream's records and captures. After an interruption, only messages that were due
    /// before are joined.
    fn join_plan(&self, stream: &Stream, measured: &Measured) -> JoinPlan {
        let flow = self.planner.flow(stream);
        let index = usize::from(stream.plan.flow);
        let mut plan = stream.plan.clone();
        plan.schedule.start_ns = measured.start_ns;
        if let Some(cut_ns) = measured.cut_ns {
            cut(&mut plan.schedule, cut_ns);
        }
        let listening = |child: &Child| child.ready.as_ref()?.listening;
        let consumers = self
            .crew
            .children
            .iter()
            .filter(|child| consumer_of(child.role) == Some(index));
        let destinations = (0..)
            .zip(&flow.to)
            .zip(consumers)
            .map(|((index, &host), child)| JoinDestination {
                index,
                host: self.mission.hosts[host].name.clone(),
                listening: listening(child),
                records: self.planner.consumer_records(stream, usize::from(index)),
            });
        let channel = self
            .crew
            .children
            .iter()
            .find(|child| child.role == Role::Channel { stream: index });
        JoinPlan {
            stream: plan,
            from: self.mission.hosts[flow.from].name.clone(),
            supplier_records: self.planner.supplier_records(stream),
            channel_endpoint: channel.and_then(listening),
            destinations: destinations.collect(),
            captures: self.captures(),
            far: measured
                .far
                .iter()
                .map(|(&host, far)| (self.planner.host(host).name.clone(), far.clone()))
                .collect(),
        }
    }

    fn captures(&self) -> Vec<CaptureAt> {
        let mut captures = Vec::new();
        for child in &self.crew.children {
            let Role::Tap { host } = child.role else {
                continue;
            };
            if child.ready.is_none() {
                continue;
            }
            let interfaces = self.planner.host(host).tapped_with(host);
            let stations = (0..).zip(&self.planner.stations);
            let shared = stations.filter(|(index, one)| one.tapped_with(*index) == interfaces);
            captures.push(CaptureAt {
                hosts: shared.map(|(_, one)| one.name.clone()).collect(),
                capture: self.planner.capture(&self.planner.host(host).name),
            });
        }
        captures
    }

    fn keep_captures(&self, folder: &Path) -> Result<(), RunError> {
        let failed = |error: std::io::Error| {
            RunError::Result(format!("a capture cannot be kept ({error})."))
        };
        let kept = folder.join("captures");
        // The copies keep the permissions of the files: the user's alone.
        let mut builder = std::fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&kept)
            .map_err(failed)?;
        for capture in self.captures() {
            if let Some(name) = capture.capture.file_name() {
                std::fs::copy(&capture.capture, kept.join(name)).map_err(failed)?;
            }
        }
        Ok(())
    }
}

fn set_clock_error(disturbance: &mut Disturbance, error: ClockError) {
    disturbance.clock_error = error.rigorous;
    disturbance.clock_assumed = error.assumed;
}

fn to_be_judged(joined: &mut JoinedDestination) -> Destination<'_> {
    Destination {
        index: joined.index,
        host: joined.host.clone(),
        samples: &mut joined.samples,
        send_errors: joined.send_errors,
        receive_overflows: joined.receive_overflows,
    }
}

/// Removes the messages due after `cut_ns` from a schedule.
fn cut(schedule: &mut Schedule, cut_ns: i64) {
    let due = schedule
        .dues()
        .take_while(|due| due.due_ns <= cut_ns)
        .count() as u64;
    schedule.warm_up = schedule.warm_up.min(due);
    schedule.extent = Extent::Count {
        messages: due - schedule.warm_up,
    };
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use deckwatch_meter::pacing::Arrivals;

    use super::*;

    fn schedule() -> Schedule {
        Schedule {
            start_ns: 1000,
            offset: Duration::from_nanos(5),
            arrivals: Arrivals::Periodic {
                period: Duration::from_nanos(10),
            },
            extent: Extent::Count { messages: 100 },
            warm_up: 3,
        }
    }

    #[test]
    fn an_interrupted_schedule_keeps_what_was_due_until_then() {
        let mut cut_late = schedule();
        cut(&mut cut_late, 1045);
        // Due at 1005, 1015, 1025 (warm-up), 1035 and 1045.
        assert_eq!(
            (cut_late.warm_up, cut_late.extent),
            (3, Extent::Count { messages: 2 })
        );
        let mut cut_in_warm_up = schedule();
        cut(&mut cut_in_warm_up, 1016);
        assert_eq!(
            (cut_in_warm_up.warm_up, cut_in_warm_up.extent),
            (2, Extent::Count { messages: 0 })
        );
        let mut cut_before = schedule();
        cut(&mut cut_before, 0);
        assert_eq!(cut_before.dues().count(), 0);
        let mut cut_after = schedule();
        cut(&mut cut_after, i64::MAX);
        assert_eq!(cut_after, schedule());
    }
}
