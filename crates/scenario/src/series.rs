//! A series: variants of one mission, run one after the other into one folder.
//!
//! Each variant has the folder of a run, named after the variant. A series that ended early goes on where it ended:
//! variants with a whole result are not run again.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use deckwatch_meter::result::{ResultDocument, ResultError};
use deckwatch_meter::words;
use deckwatch_os::namespace::Capability;
use deckwatch_report::{REPORT_FILE, RESULT_FILE, ReportError};

use crate::forecast::{Forecast, forecast};
use crate::mission::Mission;
use crate::run::{Interrupt, Observer, Phase, ResultFolder, RunError, RunProgress, Settings, run};
use crate::stream::StreamError;

/// The outcome of a series.
#[derive(Debug)]
pub struct SeriesOutcome {
    /// The result documents of the variants that have one, in order.
    pub documents: Vec<ResultDocument>,
    /// The folder of the series.
    pub folder: PathBuf,
    /// The report on all variants that have a result; `None` if none has one.
    pub report: Option<PathBuf>,
    /// The reason why not all variants have a whole result.
    pub stopped: Option<Stopped>,
}

/// The reason why a series ended before its last variant.
#[derive(Debug)]
pub enum Stopped {
    /// A signal ended it.
    Interrupted {
        /// The signal.
        signal: &'static str,
    },
    /// A variant cannot be run.
    Refused {
        /// The variant.
        variant: String,
        /// Why.
        error: RunError,
    },
    /// The result of a variant was measured but cannot be written.
    Unwritten {
        /// The variant.
        variant: String,
        /// Why, as a sentence.
        reason: String,
    },
}

/// The reason why a series does not start, or has no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeriesError {
    /// No variants, or more than a report shows side by side.
    #[error(
        "A series has 1 to {max} variants, which its report shows side by side, not {count}. Name some of them."
    )]
    Count {
        /// How many were named.
        count: usize,
        /// The maximum.
        max: usize,
    },
    /// The streams of a variant cannot be made.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The folder cannot be made or read.
    #[error(transparent)]
    Folder(#[from] RunError),
    /// A result of the series cannot be read.
    #[error("{0} Remove its folder to run the variant again.")]
    Unreadable(#[from] ResultError),
    /// A folder of a variant is of another mission, or was run with other options.
    #[error(
        "{} is the result of {what}. Resume with the same mission file and options, or name another folder with --output.",
        folder.display()
    )]
    Foreign {
        /// The folder.
        folder: PathBuf,
        /// What differs.
        what: &'static str,
    },
    /// A folder of a variant has files but no result.
    #[error("{} is not empty and has no {RESULT_FILE}: a run was killed there. Remove it to run the variant again.", folder.display())]
    Remains {
        /// The folder.
        folder: PathBuf,
    },
    /// The result of an interrupted variant cannot be removed.
    #[error("{} cannot be removed ({error}), so that its variant cannot be run again.", folder.display())]
    NotRemoved {
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The report cannot be made.
    #[error(transparent)]
    Report(#[from] ReportError),
}

/// Runs variants of a mission one after the other, and writes one report on all of them. `settings.output` is the
/// folder of the series. With `resume`, variants that have a whole result there are not run again.
///
/// # Errors
/// [`SeriesError`]. What is wrong with a folder or a mission is found before the first variant runs.
pub fn run_series(
    missions: &[Mission],
    settings: &Settings,
    resume: bool,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<SeriesOutcome, SeriesError> {
    let max = deckwatch_report::limits::RUNS_MAX;
    if missions.is_empty() || missions.len() > max {
        let count = missions.len();
        return Err(SeriesError::Count { count, max });
    }
    let forecasts: Vec<Forecast> = missions.iter().map(forecast).collect::<Result<_, _>>()?;
    let (folder, _claim) = folder(&missions[0].name, settings, resume)?;
    let mut members = Vec::new();
    for (mission, forecast) in missions.iter().zip(forecasts) {
        let name = mission.variant.clone().unwrap_or_default();
        let folder = folder.join(&name);
        members.push(Member {
            mission,
            finished: finished(&folder, mission, &forecast, settings.emulation)?,
            length: Duration::from_secs_f64(forecast.duration_s),
            name,
            folder,
        });
    }
    let stopped = run_members(&mut members, settings, interrupt, observer)?;
    let whole: Vec<PathBuf> = members
        .iter()
        .filter(|member| member.finished.is_some() && member.folder.join(RESULT_FILE).exists())
        .map(|member| member.folder.clone())
        .collect();
    let report = folder.join(REPORT_FILE);
    let is_reported = !whole.is_empty();
    if is_reported {
        deckwatch_report::write_page(&report, &deckwatch_report::build(&whole)?)?;
    }
    Ok(SeriesOutcome {
        documents: members.into_iter().filter_map(|one| one.finished).collect(),
        report: is_reported.then_some(report),
        folder,
        stopped,
    })
}

/// A variant of a series.
struct Member<'m> {
    mission: &'m Mission,
    name: String,
    folder: PathBuf,
    length: Duration,
    /// Its result.
    finished: Option<ResultDocument>,
}

fn run_members(
    members: &mut [Member<'_>],
    settings: &Settings,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<Option<Stopped>, SeriesError> {
    let of = members.len();
    for index in 0..of {
        let left = |members: &[Member<'_>]| -> Duration {
            let unfinished = members.iter().filter(|one| one.finished.is_none());
            unfinished.map(|one| one.length).sum()
        };
        let after = left(&members[index + 1..]);
        let member = &mut members[index];
        let place = format!("Variant {} of {of}, {}", index + 1, member.name);
        if member.finished.is_some() {
            let folder = member.folder.display();
            observer.notice(&format!(
                "{place}: finished, in {folder}; it is not run again."
            ));
            continue;
        }
        let about = member.mission.description.as_deref().unwrap_or_default();
        let whole = words::duration(member.length + after);
        observer.notice(&format!("{place}: {about}; {whole} left in all."));
        let settings = Settings {
            output: Some(member.folder.clone()),
            ..settings.clone()
        };
        let mut observer = WithRest {
            inner: observer,
            after,
        };
        let outcome = match run(member.mission, &settings, interrupt, &mut observer) {
            Ok(outcome) => outcome,
            Err(RunError::Interrupted { signal }) => {
                return Ok(Some(Stopped::Interrupted { signal }));
            }
            Err(error) => {
                let variant = member.name.clone();
                return Ok(Some(Stopped::Refused { variant, error }));
            }
        };
        member.finished = Some(outcome.document);
        if let Some(reason) = outcome.unwritten {
            let variant = member.name.clone();
            return Ok(Some(Stopped::Unwritten { variant, reason }));
        }
        if let Some(signal) = outcome.interrupted_by {
            return Ok(Some(Stopped::Interrupted { signal }));
        }
    }
    Ok(None)
}

/// Makes the folder of the series. A series that is resumed may find results in it.
fn folder(
    mission: &str,
    settings: &Settings,
    resume: bool,
) -> Result<(PathBuf, Option<ResultFolder>), SeriesError> {
    match &settings.output {
        Some(wanted) if resume => Ok((wanted.clone(), None)),
        wanted => {
            let made = ResultFolder::make(wanted.as_deref(), mission, SystemTime::now())?;
            Ok((made.path().to_owned(), Some(made)))
        }
    }
}

/// Returns the result of a variant that need not be run again. The result of an interrupted one is removed.
fn finished(
    folder: &Path,
    mission: &Mission,
    forecast: &Forecast,
    emulation: bool,
) -> Result<Option<ResultDocument>, SeriesError> {
    let result = folder.join(RESULT_FILE);
    if !result.exists() {
        let mut files = std::fs::read_dir(folder).into_iter().flatten();
        return match files.next() {
            None => Ok(None),
            Some(_) => Err(SeriesError::Remains {
                folder: folder.to_owned(),
            }),
        };
    }
    let document = ResultDocument::load(&result)?;
    let what = difference(&document, mission, forecast);
    let place = || {
        let environment = &document.environment;
        place_difference(
            (environment.kind.as_str(), environment.network.as_str()),
            &mission.network.to_string(),
            emulates(mission, forecast, emulation),
        )
    };
    if let Some(what) = what.or_else(place) {
        let folder = folder.to_owned();
        return Err(SeriesError::Foreign { folder, what });
    }
    if !is_interrupted(&document) {
        return Ok(Some(document));
    }
    std::fs::remove_dir_all(folder).map_err(|error| SeriesError::NotRemoved {
        folder: folder.to_owned(),
        error,
    })?;
    Ok(None)
}

fn is_interrupted(document: &ResultDocument) -> bool {
    let mut warnings = document.warnings.iter();
    warnings.any(|warning| warning.kind == "interrupted")
}

/// Returns what a result is of, if it is not of this variant with these options.
fn difference(
    document: &ResultDocument,
    mission: &Mission,
    forecast: &Forecast,
) -> Option<&'static str> {
    if document.variant != mission.variant {
        return Some("another variant");
    }
    if document.provenance.mission_text != *mission.text {
        return Some("another mission text");
    }
    let of = |flow: &deckwatch_meter::result::FlowResult| (flow.name.clone(), flow.carrier.clone());
    let planned = forecast.streams.iter();
    let planned: Vec<_> = planned
        .map(|stream| (stream.flow.clone(), stream.carrier.to_string()))
        .collect();
    if document.flows.iter().map(of).ne(planned) {
        return Some("other flows or carriers");
    }
    // An interrupted run judged fewer messages, and a Poisson process has no exact number.
    let is_other = document
        .flows
        .iter()
        .zip(&forecast.streams)
        .any(|(flow, stream)| {
            let due = flow.destinations.iter().map(|one| one.counts.due).max();
            flow.arrivals == "periodic" && due != Some(stream.judged)
        });
    (is_other && !is_interrupted(document)).then_some("another number of messages")
}

/// Whether this process runs a mission on its emulated network. Without the privilege it runs on loopback.
fn emulates(mission: &Mission, forecast: &Forecast, emulation: bool) -> bool {
    let network = [Capability::SysAdmin, Capability::NetAdmin].map(Capability::name);
    let mut needed = forecast.privileges.iter();
    let is_permitted = needed.all(|it| it.held || !network.contains(&it.capability));
    emulation && is_permitted && mission.emulates() && !mission.is_on_loopback()
}

/// Returns what a result is of, if it was measured in an environment of this kind and network and this run is on
/// another: results of the loopback interface do not stand beside emulated ones.
fn place_difference(
    (kind, measured_on): (&str, &str),
    network: &str,
    is_emulated: bool,
) -> Option<&'static str> {
    match (kind != "namespaces", is_emulated) {
        (true, true) => Some("a run on the loopback interface, without emulation"),
        (false, false) => Some("a run with emulation"),
        (false, true) if measured_on != network => Some("another network"),
        _ => None,
    }
}

/// Adds the time of the variants that follow to each progress report.
struct WithRest<'o> {
    inner: &'o mut dyn Observer,
    after: Duration,
}

impl Observer for WithRest<'_> {
    fn phase(&mut self, phase: Phase, words: &str) {
        self.inner.phase(phase, words);
    }

    fn started(&mut self, process: &str, id: u32) {
        self.inner.started(process, id);
    }

    fn progress(&mut self, progress: &RunProgress) {
        self.inner.progress(&RunProgress {
            after: self.after,
            ..progress.clone()
        });
    }

    fn notice(&mut self, text: &str) {
        self.inner.notice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_with_and_without_emulation_are_not_of_one_series() {
        let of = |kind, network, is_emulated| place_difference((kind, network), "net", is_emulated);
        let loopback = "loopback: no emulated network";
        assert_eq!(of("namespaces", "net", true), None);
        assert_eq!(of("loopback", loopback, false), None);
        assert_eq!(of("namespaces", "net", false), Some("a run with emulation"));
        let without = "a run on the loopback interface, without emulation";
        assert_eq!(of("loopback", loopback, true), Some(without));
        assert_eq!(of("namespaces", "other", true), Some("another network"));
    }
}
