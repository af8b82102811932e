//! The facts about records, captures and stamps.

use std::fmt;

use super::Caution;

impl Caution {
    /// Writes the facts that the join finds in record files and captures.
    pub(super) fn of_files(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RecordsFull { host, messages } => write!(
                f,
                "The consumer at {host} received {messages} messages more than it had records for."
            ),
            Self::NoRecords { host, reason } => write!(
                f,
                "The records of the consumer at {host} cannot be used ({reason}): what it received is not known."
            ),
            Self::ClockSet { messages } => write!(
                f,
                "The system's clock was set during the run. {messages} messages were under way: they are judged, but \
                 have no kernel stamps, and the layer is unknown if they are late."
            ),
            Self::NoSupplierRecords { host, reason } => write!(
                f,
                "The records of the supplier on {host} cannot be used ({reason}): when it sent is not known."
            ),
            Self::ImpossibleStamps { host, stamps } => write!(
                f,
                "The records of {host} had {stamps} stamps at which the run did not run; they are not used."
            ),
            Self::CaptureCut { host } => {
                write!(f, "The capture of {host} ends in the middle of a packet.")
            }
            Self::CaptureUnread {
                flow,
                carrier,
                messages,
            } => write!(
                f,
                "{messages} messages in the captures of {flow} over {carrier} could not be read whole."
            ),
            Self::StampsMissing {
                flow,
                carrier,
                hosts,
                messages,
            } => write!(
                f,
                "{messages} messages of {flow} over {carrier} to {hosts} lack a kernel stamp."
            ),
            Self::StampsDisagree {
                flow,
                carrier,
                compared,
                beyond,
                bound_ns,
                most_ns,
            } => write!(
                f,
                "Of {compared} stamps of {flow} over {carrier} taken by both socket and tap, {beyond} differ by more than {} microseconds, at most by {}.",
                bound_ns / 1000,
                most_ns / 1000
            ),
            _ => f.write_str(self.kind()),
        }
    }
}
