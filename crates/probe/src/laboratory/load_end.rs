//! A load as a process: on an emulated host, or on a far one.

use std::process::Command;
use std::time::{Duration, Instant};

use deckwatch_load::{LoadPlan, LoadReport, Second, Stop};
use deckwatch_os::signal;
use deckwatch_text::escaped;

use super::error::LaboratoryError;
use super::process::{End, REFUSED, shown};
use crate::limits::{END_PATIENCE, LOAD_HELD_MAX};

/// The arguments of this program with which it carries out a load.
pub const LOAD_WORDS: [&str; 2] = ["part", "--seconds"];

/// A load in a process of its own, which ends with this one. What it says is bounded, and its names cannot change a
/// terminal: the far end may be broken or hostile.
pub struct LoadEnd {
    end: End,
    lifetime: Duration,
    /// When it must have ended.
    until: Instant,
    /// Lines that it may still say.
    lines_left: u64,
}

impl LoadEnd {
    /// Starts a load. `command` is that of this program with [`LOAD_WORDS`]; `what` is its name in errors.
    ///
    /// # Errors
    /// [`LaboratoryError`] if the process cannot be started, or has ended.
    pub fn start(what: String, command: Command, plan: &LoadPlan) -> Result<Self, LaboratoryError> {
        let line = serde_json::to_string(plan).map_err(|error| LaboratoryError::System {
            doing: "The plan of a load cannot be written",
            source: error.into(),
        })?;
        let mut end = End::start(what, command)?;
        end.send_line(&line)?;
        let seconds = plan.lifetime.as_secs() + 2;
        Ok(Self {
            end,
            lifetime: plan.lifetime,
            until: Instant::now() + plan.lifetime + END_PATIENCE,
            lines_left: seconds * LOAD_HELD_MAX as u64,
        })
    }

    /// Waits for its report, and tells each second. Ends the load when `stop` is set.
    ///
    /// # Errors
    /// [`LaboratoryError`] if the process ends without a report, says what no load says, or does not end in time.
    pub fn follow(
        &mut self,
        stop: &Stop,
        tell: &mut dyn FnMut(&Second),
    ) -> Result<LoadReport, LaboratoryError> {
        let mut is_stopped = false;
        loop {
            if stop.is_set() && !is_stopped {
                is_stopped = true;
                self.end.close_input();
                self.until = self.until.min(Instant::now() + END_PATIENCE);
            }
            let said = self.said()?;
            if Instant::now() > self.until {
                let late = format!("its load of {:?} has not ended in time", self.lifetime);
                return Err(self.end.failed(&late));
            }
            match said {
                Some(Said::Second(second)) => tell(&second),
                Some(Said::Report(report)) => return Ok(*report),
                None => {}
            }
        }
    }

    /// What it says next, if that comes soon. A load has a line a second: from the first on, a long silence is a fault.
    fn said(&mut self) -> Result<Option<Said>, LaboratoryError> {
        let Some(line) = self.end.next_line()? else {
            return Ok(None);
        };
        self.end.expect_beats();
        self.lines_left = self.lines_left.saturating_sub(1);
        if self.lines_left == 0 {
            return Err(self.end.failed("it says more than a load has to say"));
        }
        if let Ok(mut second) = serde_json::from_str::<Second>(&line) {
            second.of = escaped(&second.of).to_string();
            Ok(Some(Said::Second(second)))
        } else if let Ok(report) = serde_json::from_str(&line) {
            Ok(Some(Said::Report(Box::new(plain(report)))))
        } else if let Some(reason) = line.strip_prefix(REFUSED) {
            Err(self.end.failed(&shown(reason)))
        } else {
            let words = format!("it says '{}', which no load says", shown(&line));
            Err(self.end.failed(&words))
        }
    }

    /// Waits until the load has lasted for so many seconds, by its own lines, or the user wants to end.
    ///
    /// # Errors
    /// As [`Self::follow`].
    pub(crate) fn await_seconds(&mut self, seconds: u64) -> Result<(), LaboratoryError> {
        while signal::ending().is_none() {
            match self.said()? {
                Some(Said::Second(second)) if second.at_s >= seconds => return Ok(()),
                Some(Said::Report(_)) => return Err(self.end.failed("its load has ended early")),
                _ if Instant::now() > self.until => {
                    return Err(self.end.failed("its load has not begun in time"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Ends the load. Returns its report.
    ///
    /// # Errors
    /// As [`Self::follow`].
    pub fn end(mut self) -> Result<LoadReport, LaboratoryError> {
        let stop = Stop::default();
        stop.set();
        self.follow(&stop, &mut |_| ())
    }

    /// Returns what is wrong with it, if it has ended, stalled, or said what no load says: the reason of what
    /// went wrong at the other end.
    pub fn fault(&mut self) -> Option<LaboratoryError> {
        loop {
            match self.said() {
                Ok(None) => return self.end.has_stalled().or_else(|| self.end.died()),
                Ok(Some(_)) => {}
                Err(error) => return Some(error),
            }
        }
    }
}

/// A line of a load.
enum Said {
    Second(Second),
    Report(Box<LoadReport>),
}

/// Bounds what a report says in words.
fn plain(mut report: LoadReport) -> LoadReport {
    report.held.truncate(LOAD_HELD_MAX);
    for held in &mut report.held {
        held.of = escaped(&held.of).to_string();
    }
    if let Some(stressed) = &mut report.stressed {
        stressed.version = shown(&stressed.version);
    }
    report.fidelity = None;
    report
}

#[cfg(test)]
mod tests {
    use deckwatch_load::{CpuPlan, CpuWork, Work};

    use super::*;

    /// A load of a process that says what this shell script says.
    fn said_by(script: &str) -> Result<LoadReport, LaboratoryError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let plan = LoadPlan {
            work: Work::Cpu(CpuPlan {
                work: CpuWork::Nothing,
                processors: Vec::new(),
                fifo_priority: None,
            }),
            lifetime: Duration::from_secs(3),
        };
        let mut seconds = 0_u64;
        let mut load = LoadEnd::start("The load".to_owned(), command, &plan)?;
        let report = load.follow(&Stop::default(), &mut |second| {
            assert!(!second.of.contains('\u{1b}'), "{}", second.of);
            seconds += 1;
        })?;
        assert_eq!(seconds, report.sent.unwrap_or_default().messages);
        Ok(report)
    }

    const SECOND: &str =
        r#"{"at_s":1,"index":0,"of":"\u001b[2J","asked":null,"achieved":1,"own":1,"stolen":0}"#;
    const HELD: &str = r#"{"of":"\u001b[2J","asked":null,"seconds":1,"seconds_within":1,"mean":0,"min":0,"max":0,"deviation":0,"own_mean":0,"stolen_mean":0}"#;

    #[test]
    fn seconds_and_a_report_are_told_and_cannot_change_a_terminal() {
        let sent = r#"{"messages":2,"octets":0,"errors":0,"interface_drops":0,"late_max":{"secs":0,"nanos":0}}"#;
        let report =
            format!(r#"{{"elapsed":{{"secs":1,"nanos":0}},"held":[{HELD}],"sent":{sent}}}"#);
        let script =
            format!("read plan; printf '%s\\n' '{SECOND}' '{SECOND}' '{report}'; read end");
        let report = said_by(&script).expect("a report");
        assert!(!report.held[0].of.contains('\u{1b}'), "{report:?}");
    }

    #[test]
    fn a_process_that_dies_or_lies_ends_the_load_with_the_reason() {
        for (script, reason) in [
            ("read plan", "it has ended"),
            ("read plan; exit 3", "exit status: 3"),
            (
                "read plan; printf '\\033[2Jno\\n'; read end",
                "which no load says",
            ),
            (
                &format!("read plan; while echo '{SECOND}'; do :; done"),
                "it says more than a load has to say",
            ),
        ] {
            let error = said_by(script).expect_err(script).to_string();
            assert!(error.contains(reason), "{error}");
            assert!(!error.contains('\u{1b}'), "{error}");
        }
    }
}
