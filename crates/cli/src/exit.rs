//! Exit statuses, and the printing of errors.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use deckwatch_meter::result::{VerdictKind, Warning};
use deckwatch_probe::laboratory::{BROKEN_OFF, ENDED_EARLY, LaboratoryError};

use crate::output::{errln, plain};

/// An exit status of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(u8);

/// Wrong arguments, a malformed file, or a failure of the command.
pub(crate) const BAD_INPUT: Status = Status(2);

/// A schedule in which a deadline can be missed.
pub(crate) const INFEASIBLE: Status = Status(1);

/// A carrier that breaks its contract.
pub(crate) const BROKEN: Status = Status(1);

/// A load that did not hold its target.
pub(crate) const NOT_HELD: Status = Status(1);

impl From<VerdictKind> for Status {
    fn from(kind: VerdictKind) -> Self {
        Self(match kind {
            VerdictKind::Pass => 0,
            VerdictKind::Fail => 1,
            VerdictKind::Unproven => 3,
            VerdictKind::Invalid => 4,
        })
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.0)
    }
}

/// Exit status after a signal: 128 plus its number, as in shells. The result is incomplete.
pub(crate) fn ended_by(signal: &str) -> Status {
    Status(match signal {
        "SIGHUP" => 128 + 1,
        "SIGINT" => 128 + 2,
        _ => 128 + 15,
    })
}

/// Exit status of a measurement. Its warnings show whether it is complete, was ended early by a signal, or was broken
/// off.
///
/// # Errors
/// The reason, if the measurement was broken off.
pub(crate) fn of_measurement(warnings: &[Warning], folder: &Path) -> anyhow::Result<ExitCode> {
    let find = |kind: &str| warnings.iter().find(|warning| warning.kind == kind);
    let kept = format!(
        "what was measured until then is kept in {}",
        folder.display()
    );
    if let Some(why) = find(BROKEN_OFF) {
        return Err(anyhow!("{}", why.text).context(format!("it was broken off; {kept}")));
    }
    let signal = deckwatch_os::signal::ending().filter(|_| find(ENDED_EARLY).is_some());
    let Some(signal) = signal else {
        return Ok(ExitCode::SUCCESS);
    };
    errln!("Ended early by {signal}; {kept}.");
    Ok(ended_by(signal).into())
}

/// Exit status of a measurement without a result.
///
/// # Errors
/// The error, unless a signal ended the measurement.
pub(crate) fn without_result(error: LaboratoryError) -> anyhow::Result<ExitCode> {
    match error {
        LaboratoryError::Interrupted(signal) => {
            errln!("{error}");
            Ok(ended_by(signal).into())
        }
        error => Err(error.into()),
    }
}

/// Prints an error and its causes to stderr, each on a line.
pub(crate) fn print_error(error: &anyhow::Error) {
    use anstyle::{AnsiColor, Style};
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    // If stderr is closed, the exit status still shows the error.
    let mut out = anstream::stderr();
    let _ = writeln!(out, "{red}error{red:#}: {}", plain(&error.to_string()));
    for cause in error.chain().skip(1) {
        let _ = writeln!(out, "  because: {}", plain(&cause.to_string()));
    }
    let exception = error.chain().find_map(|cause| cause.downcast_ref());
    if let Some(detail) = exception.and_then(deckwatch_orb::exception_detail) {
        let _ = writeln!(out, "  because: {detail}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_s_exit_status_is_the_one_that_shells_say() {
        let signals = ["SIGHUP", "SIGINT", "SIGTERM"];
        assert_eq!(signals.map(|name| ended_by(name).0), [129, 130, 143]);
    }

    #[test]
    fn each_verdict_has_the_exit_status_the_manual_gives() {
        let of = |kind: VerdictKind| Status::from(kind).0;
        assert_eq!(of(VerdictKind::Pass), 0);
        assert_eq!(of(VerdictKind::Fail), 1);
        assert_eq!(of(VerdictKind::Unproven), 3);
        assert_eq!(of(VerdictKind::Invalid), 4);
    }
}
