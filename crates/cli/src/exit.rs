//! Exit statuses, and how an error is said.

use std::io::Write as _;
use std::process::ExitCode;

use deckwatch_meter::result::VerdictKind;

/// An exit status of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(u8);

/// Wrong arguments, a malformed file, or something that kept the command from being carried out.
pub(crate) const BAD_INPUT: Status = Status(2);

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

/// Prints an error and its causes to stderr, one a line.
pub(crate) fn print_error(error: &anyhow::Error) {
    use anstyle::{AnsiColor, Style};
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    // The exit status tells it too where nobody hears this.
    let mut out = anstream::stderr();
    let _unheard = writeln!(out, "{red}error{red:#}: {error}");
    for cause in error.chain().skip(1) {
        let _unheard = writeln!(out, "  because: {cause}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_has_the_exit_status_the_manual_gives() {
        let of = |kind: VerdictKind| Status::from(kind).0;
        assert_eq!(of(VerdictKind::Pass), 0);
        assert_eq!(of(VerdictKind::Fail), 1);
        assert_eq!(of(VerdictKind::Unproven), 3);
        assert_eq!(of(VerdictKind::Invalid), 4);
    }
}
