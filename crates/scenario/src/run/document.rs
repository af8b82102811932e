//! Makes the result document, and writes it with the files beside it.

use std::path::Path;
use std::time::SystemTime;

use deckwatch_carrier::scheduling::SchedulingClass;
use deckwatch_carrier::talk::{Ready, Settings};
use deckwatch_meter::caution::Caution;
use deckwatch_meter::disturbance::Disturbance;
use deckwatch_meter::histogram::{LogHead, write_log};
use deckwatch_meter::judge::worst_of_flows;
use deckwatch_meter::provenance::{self, provenance};
use deckwatch_meter::result::{
    ClockNote, FlowResult, FlowSettings, LeftOut, ResultDocument, SCHEMA_VERSION, VerdictKind,
    Warning,
};
use deckwatch_meter::samples::SampleWriter;
use deckwatch_report::{RESULT_FILE, SAMPLES_FILE};

use super::child::Child;
use super::conclude::Judged;
use super::environment::environment;
use super::folder::file_name;
use super::watch::{Measured, consumer_of, supplier_of};
use super::{Run, RunError};
use crate::limits::HISTOGRAM_INTERVAL;
use crate::stream::Stream;

impl Run<'_> {
    fn ready_of_supplier(&self, stream: &Stream) -> Option<&Ready> {
        let index = usize::from(stream.plan.flow);
        self.crew
            .children
            .iter()
            .find(|child| supplier_of(child.role) == Some(index))?
            .ready
            .as_ref()
    }

    /// Whether the supplier's threads have the real-time class that the mission requests.
    pub(super) fn supplier_is_real_time(&self, stream: &Stream) -> bool {
        let requested = &self.planner.flow(stream).supplier_scheduling.class;
        let refused = self.ready_of_supplier(stream).is_none_or(|ready| {
            let mut warnings = ready.warnings.iter();
            warnings.any(|warning| warning.kind == "scheduling-refused")
        });
        *requested != SchedulingClass::Other && !refused
    }

    /// Returns the scheduling that supplier and consumers have, in words. Consumers with the same scheduling are named
    /// together.
    pub(super) fn scheduling(&self, stream: &Stream) -> String {
        let index = usize::from(stream.plan.flow);
        let supplier = self
            .ready_of_supplier(stream)
            .map_or("", |ready| ready.scheduling.as_str());
        let consumers = self
            .crew
            .children
            .iter()
            .filter(|child| consumer_of(child.role) == Some(index));
        let mut words: Vec<&str> = consumers
            .filter_map(|child| child.ready.as_ref())
            .map(|ready| ready.scheduling.as_str())
            .collect();
        words.sort_unstable();
        words.dedup();
        format!("supplier: {supplier}; consumers: {}", words.join(" or "))
    }

    /// Returns what the middleware of an external carrier did with the settings of a stream. A setting that any part
    /// took over is honoured.
    pub(super) fn settings(&self, stream: &Stream) -> Option<FlowSettings> {
        stream.plan.carrier.external()?;
        let index = Some(usize::from(stream.plan.flow));
        let of_stream = |child: &&Child| {
            [supplier_of, consumer_of]
                .iter()
                .any(|of| of(child.role) == index)
        };
        let parts = self.crew.children.iter().filter(of_stream);
        let readies: Vec<&Ready> = parts.filter_map(|child| child.ready.as_ref()).collect();
        let mut all = Settings::default();
        for Ready { settings, .. } in readies {
            all.honoured.extend(&settings.honoured);
            all.ignored.extend(&settings.ignored);
        }
        let ignored = all.ignored.difference(&all.honoured);
        Some(FlowSettings {
            ignored: ignored.map(|setting| setting.word().to_owned()).collect(),
            honoured: (all.honoured.iter())
                .map(|setting| setting.word().to_owned())
                .collect(),
        })
    }

    /// Describes the clocks of the hosts.
    fn clock_note(&self, disturbance: &Disturbance, conversion_error_ns: u64) -> ClockNote {
        let nanoseconds =
            |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let error_ns = nanoseconds(disturbance.clock_error);
        let shared = error_ns == 0;
        ClockNote {
            shared,
            note: if shared { CLOCK_NOTE } else { FAR_CLOCK_NOTE }.to_owned(),
            conversion_error_ns,
            latency_error_ns: (!shared).then_some(error_ns),
            latency_assumed_ns: disturbance
                .clock_assumed
                .filter(|_| !shared)
                .map(nanoseconds),
            sync: self.sync_states(),
        }
    }

    pub(super) fn document(
        &self,
        judged: &[Judged],
        measured: &Measured,
        disturbance: &Disturbance,
        started_at: SystemTime,
    ) -> ResultDocument {
        let errors = judged
            .iter()
            .map(|judged| judged.joined.conversion_error_ns);
        let run = provenance::Run {
            version: self.settings.version.clone(),
            mission_path: self.mission.path.display().to_string(),
            mission_text: self.mission.text.to_string(),
            clock: self.clock_note(disturbance, errors.max().unwrap_or(0)),
        };
        let flows: Vec<FlowResult> = judged.iter().map(|judged| judged.result.clone()).collect();
        let mut warnings = self.warnings.clone();
        let left_out = self.mission.left_out.iter().flatten();
        warnings.extend(left_out.map(|LeftOut { carrier, reason }| Warning {
            kind: "carrier-left-out".to_owned(),
            text: format!(
                "The carrier {carrier} was left out: {}.",
                reason.trim_end_matches('.')
            ),
        }));
        warnings.extend(disturbance.warnings());
        let environment = environment(
            self.mission,
            self.settings,
            &self.planner,
            &self.crew.children,
        );
        if let Some(reason) = &environment.fallback_reason {
            let reason = reason.clone();
            warnings.insert(0, Caution::Loopback { reason }.into());
        }
        let mut verdict = worst_of_flows(&flows);
        if measured.interrupted_by.is_some() && verdict.kind != VerdictKind::Invalid {
            verdict.reasons.push(ENDED_EARLY.to_owned());
        }
        ResultDocument {
            schema_version: SCHEMA_VERSION,
            mission: self.mission.title(),
            variant: self.mission.variant.clone(),
            published: self.mission.published.clone(),
            provenance: provenance(run, started_at, disturbance),
            environment,
            verdict,
            flows,
            warnings,
            deaths: measured.deaths.clone(),
            left_out: self.mission.left_out.clone().unwrap_or_default(),
        }
    }
}

/// Writes samples, histograms and the document. The document is last, so that a folder with a document is complete.
pub(super) fn write(
    folder: &Path,
    document: &ResultDocument,
    judged: &[Judged],
    started_at: SystemTime,
    start_ns: i64,
) -> Result<(), RunError> {
    let failed = |error: &dyn std::fmt::Display| RunError::Result(error.to_string());
    let mut writer = SampleWriter::create(&folder.join(SAMPLES_FILE), &document.flows)
        .map_err(|error| failed(&error))?;
    let histograms = folder.join("histograms");
    std::fs::create_dir_all(&histograms).map_err(|error| failed(&error))?;
    for Judged { result, joined } in judged {
        for (joined, destination) in joined.destinations.iter().zip(&result.destinations) {
            writer
                .write(&joined.samples)
                .map_err(|error| failed(&error))?;
            let head = LogHead {
                started_at,
                start_ns,
                interval: HISTOGRAM_INTERVAL,
                about: vec![format!(
                    "[Latency from due to received: {} over {} from {} to {}]",
                    result.name, result.carrier, result.from, destination.host
                )],
            };
            let name = format!(
                "{}-{}-{}.hlog",
                file_name(&result.name),
                result.carrier,
                file_name(&destination.host)
            );
            write_log(&histograms.join(name), &head, &joined.samples)
                .map_err(|error| failed(&error))?;
        }
    }
    writer.finish().map_err(|error| failed(&error))?;
    document
        .save(&folder.join(RESULT_FILE))
        .map_err(|error| failed(&error))
}

/// Renames the result of a folder that could not be written whole, so that nobody takes it for a whole one. What was
/// measured stays readable under the other name.
pub(super) fn leave_nothing_whole(folder: &Path) {
    for name in [RESULT_FILE, SAMPLES_FILE] {
        // It may not be there.
        let _ = std::fs::rename(folder.join(name), folder.join(format!("{name}.partial")));
    }
}

/// Whoever watches the progress and ends at the best moment gets a PASS that the whole run would not have had.
const ENDED_EARLY: &str = "The run was ended early: the confidence holds only if its result was not the \
    reason to end it.";

const CLOCK_NOTE: &str = "All hosts of this run are namespaces of one kernel and read one clock, CLOCK_MONOTONIC: one-way latencies are exact. \
    The kernel's own stamps are CLOCK_REALTIME, converted by bracketed readings of both clocks.";

const FAR_CLOCK_NOTE: &str = "Far hosts read clocks of their own. Their times are converted by exchanges of four stamps: of both kernels over the network, or over the pipe to each part where a warning says so. \
    The error of a conversion is at most half of the smallest round trip, and 200 millionths of the time since. It assumes nothing on the two directions. \
    The kernel's own stamps are CLOCK_REALTIME, converted on each host by bracketed readings of both clocks.";
