//! The warnings of a run: each fact that a reader must know before trusting a number, with its stable word and its
//! sentence.

mod files;
mod fold;

use std::fmt;
use std::time::Duration;

pub use fold::fold;

use crate::disturbance::TakenTime;
use crate::limits::TAKEN_INTERVAL;
use crate::words;

/// A fact that a reader must know before trusting a number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caution {
    /// The hypervisor gave processor time to other virtual machines.
    StolenProcessor(Duration),
    /// The control group's quota stopped threads of the run.
    Throttled(Duration),
    /// Runnable threads waited for a processor.
    ProcessorPressure {
        /// How long they waited.
        waited: Duration,
        /// The length of the run.
        of: Duration,
    },
    /// Processes outside the run took processor time from threads of the run.
    ProcessorTaken {
        /// The thread that lost the most.
        worst: TakenTime,
        /// Number of other threads that lost time.
        others: usize,
    },
    /// Datagrams were dropped by a full receive buffer, somewhere on this machine.
    ReceiveOverflowHere(u64),
    /// Datagrams were refused by a full send buffer, somewhere on this machine.
    SendErrorsHere(u64),
    /// A capture dropped packets.
    CaptureDropped(u64),
    /// Upper bound of the error between the clocks of both ends.
    ClockError(Duration),
    /// The supplier sent messages late.
    ScheduleNotKept {
        /// The destinations, in words.
        hosts: String,
        /// Number of messages, in words.
        number: String,
        /// Messages judged at each.
        of: u64,
        /// How long after due a message counts as sent late.
        after: Duration,
        /// True if the mission itself loads the supplier's host.
        by_mission: bool,
    },
    /// Sends returned an error.
    SendErrors {
        /// The destinations, in words.
        hosts: String,
        /// Number of sends, in words.
        number: String,
    },
    /// Messages were dropped by a full receive buffer.
    ReceiveOverflow {
        /// The destinations, in words.
        hosts: String,
        /// Number of messages, in words.
        number: String,
    },
    /// A consumer's socket dropped messages for another reason than a full receive buffer.
    DroppedAtSocket {
        /// Number of messages.
        messages: u64,
    },
    /// A supplier waited for room in its send buffer.
    SendWaits {
        /// Number of sends that waited.
        sends: u64,
    },
    /// Stamps are missing, so that layers cannot be separated.
    MergedLayers {
        /// The destinations, in words.
        hosts: String,
        /// The layers, in words.
        layers: String,
    },
    /// The hosts were not emulated.
    Loopback {
        /// The reason, as a whole sentence.
        reason: String,
    },
    /// A signal ended the run.
    Interrupted {
        /// Name of the signal.
        signal: &'static str,
    },
    /// A process of the run died.
    Death {
        /// The process, in words.
        process: String,
        /// When, nanoseconds since the schedule's start.
        at_ns: i64,
        /// How it ended.
        how: String,
    },
    /// The captures cannot be read.
    NoCaptures {
        /// The reason.
        reason: String,
    },
    /// A packet tap did not start.
    NoTap {
        /// The process, in words.
        process: String,
        /// How it ended.
        how: String,
    },
    /// The kernel refused scheduling that the mission asks for.
    SchedulingRefused {
        /// The request.
        what: String,
        /// The system's error.
        error: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The packets of a middleware do not get the priority that the mission requests.
    PriorityUnapplied {
        /// The flow.
        flow: String,
        /// Its carrier.
        carrier: &'static str,
    },
    /// What the program of this external carrier reported, or how it ended, as the rest of a sentence.
    OfProgram(&'static str, String),
    /// A full queue of an event channel dropped events.
    ChannelOverflow {
        /// The flow.
        flow: String,
        /// Number of events.
        events: u64,
    },
    /// An event channel disconnected consumers.
    ChannelConsumerLost {
        /// The flow.
        flow: String,
        /// Number of consumers.
        consumers: u64,
    },
    /// A packet tap lost packets.
    TapDropped {
        /// Its host.
        host: String,
        /// Number of packets.
        packets: u64,
        /// The cause, if it is known.
        cause: Option<TapLoss>,
    },
    /// A consumer received more messages than it has records for.
    RecordsFull {
        /// Its host.
        host: String,
        /// Number of messages beyond the records.
        messages: u64,
    },
    /// A consumer left no records.
    NoRecords {
        /// Its host.
        host: String,
        /// Why the records cannot be read.
        reason: String,
    },
    /// The records of a far supplier did not come back.
    NoSupplierRecords {
        /// Its host.
        host: String,
        /// Why.
        reason: String,
    },
    /// A far host's records have stamps at which the run did not run.
    ImpossibleStamps {
        /// The host.
        host: String,
        /// Number of stamps.
        stamps: u64,
    },
    /// Hosts of the run are other machines.
    FarHosts {
        /// The hosts.
        hosts: String,
    },
    /// A far host's clock jumped, or no exchange bounds it.
    FarClock {
        /// The host.
        host: String,
        /// Number of exchanges that contradict the others.
        contradictions: u64,
    },
    /// A load of the mission missed its target.
    LoadMissed {
        /// The load and what it reached, in words.
        load: String,
    },
    /// Clocks that are related by the pipe, because no datagrams came back.
    ClockByPipe {
        /// The hosts.
        hosts: String,
        /// What kept the part that asks from its processor, if anything did.
        starved: Option<TakenTime>,
    },
    /// The clock of a host was set during the run.
    HostClockSet {
        /// The host.
        host: String,
        /// How often.
        times: u64,
    },
    /// The system's clock was set during the run.
    ClockSet {
        /// Number of messages that were under way at that moment.
        messages: u64,
    },
    /// A capture ends inside a packet.
    CaptureCut {
        /// Its host.
        host: String,
    },
    /// Captured messages cannot be read.
    CaptureUnread {
        /// The flow.
        flow: String,
        /// Its carrier.
        carrier: &'static str,
        /// Number of messages.
        messages: u64,
    },
    /// Messages lack kernel stamps.
    StampsMissing {
        /// The flow.
        flow: String,
        /// Its carrier.
        carrier: &'static str,
        /// The destinations.
        hosts: String,
        /// Number of messages.
        messages: u64,
    },
    /// The stamps of sockets and of taps differ.
    StampsDisagree {
        /// The flow.
        flow: String,
        /// Its carrier.
        carrier: &'static str,
        /// Pairs compared.
        compared: u64,
        /// Pairs that differ by more than the bound.
        beyond: u64,
        /// The bound, nanoseconds.
        bound_ns: u64,
        /// The largest difference, nanoseconds.
        most_ns: u64,
    },
}

/// Why a packet tap lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapLoss {
    /// The tap's buffer was full.
    TooSlow,
    /// The capture has its maximum size.
    FileFull,
}

impl Caution {
    /// Returns the stable word for the fact in result documents.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::StolenProcessor(_) => "stolen-cpu",
            Self::Throttled(_) => "throttled",
            Self::ProcessorPressure { .. } => "cpu-pressure",
            Self::ProcessorTaken { .. } => "processor-taken",
            Self::DroppedAtSocket { .. } => "dropped-at-socket",
            Self::SendWaits { .. } => "send-waits",
            Self::ReceiveOverflowHere(_) | Self::ReceiveOverflow { .. } => "receive-overflow",
            Self::SendErrorsHere(_) | Self::SendErrors { .. } => "send-errors",
            Self::CaptureDropped(_) | Self::TapDropped { .. } => "capture-dropped",
            Self::ClockError(_) => "clock-error",
            Self::ScheduleNotKept { .. } => "schedule-not-kept",
            Self::MergedLayers { .. } => "merged-layers",
            Self::Loopback { .. } => "loopback",
            Self::Interrupted { .. } => "interrupted",
            Self::Death { .. } => "death",
            Self::NoCaptures { .. } => "no-captures",
            Self::NoTap { .. } => "no-tap",
            Self::SchedulingRefused { .. } => "scheduling-refused",
            Self::PriorityUnapplied { .. } => "network-priority-unapplied",
            Self::OfProgram(..) => "program",
            Self::ChannelOverflow { .. } => "channel-overflow",
            Self::ChannelConsumerLost { .. } => "channel-consumer-lost",
            Self::RecordsFull { .. } => "records-full",
            Self::NoRecords { .. } => "no-records",
            Self::ClockSet { .. } => "clock-set",
            Self::NoSupplierRecords { .. } => "no-supplier-records",
            Self::ImpossibleStamps { .. } => "impossible-stamps",
            Self::FarHosts { .. } => "far-hosts",
            Self::FarClock { .. } => "far-clock",
            Self::LoadMissed { .. } => "load-missed",
            Self::ClockByPipe { .. } => "clock-by-pipe",
            Self::HostClockSet { .. } => "host-clock-set",
            Self::CaptureCut { .. } => "capture-cut",
            Self::CaptureUnread { .. } => "capture-unread",
            Self::StampsMissing { .. } => "stamps-missing",
            Self::StampsDisagree { .. } => "stamps-disagree",
        }
    }
}

impl fmt::Display for Caution {
    /// Each fact has its group here, so that the compiler refuses a fact without one. The `_` of the groups is for facts
    /// of other groups, and still writes the stable word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StolenProcessor(_)
            | Self::Throttled(_)
            | Self::ProcessorPressure { .. }
            | Self::ProcessorTaken { .. }
            | Self::ReceiveOverflowHere(_)
            | Self::SendErrorsHere(_)
            | Self::CaptureDropped(_)
            | Self::ClockError(_) => self.of_machine(f),
            Self::ScheduleNotKept { .. }
            | Self::SendErrors { .. }
            | Self::ReceiveOverflow { .. }
            | Self::MergedLayers { .. } => self.of_destinations(f),
            Self::Loopback { .. }
            | Self::Interrupted { .. }
            | Self::Death { .. }
            | Self::NoCaptures { .. }
            | Self::NoTap { .. }
            | Self::FarHosts { .. }
            | Self::ClockByPipe { .. }
            | Self::HostClockSet { .. }
            | Self::FarClock { .. }
            | Self::LoadMissed { .. } => self.of_run(f),
            Self::SchedulingRefused { .. }
            | Self::PriorityUnapplied { .. }
            | Self::DroppedAtSocket { .. }
            | Self::SendWaits { .. }
            | Self::OfProgram(..)
            | Self::ChannelOverflow { .. }
            | Self::ChannelConsumerLost { .. }
            | Self::TapDropped { .. } => self.of_part(f),
            Self::RecordsFull { .. }
            | Self::NoRecords { .. }
            | Self::ClockSet { .. }
            | Self::NoSupplierRecords { .. }
            | Self::ImpossibleStamps { .. }
            | Self::CaptureCut { .. }
            | Self::CaptureUnread { .. }
            | Self::StampsMissing { .. }
            | Self::StampsDisagree { .. } => self.of_files(f),
        }
    }
}

impl Caution {
    /// Writes the facts about the whole machine.
    fn of_machine(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StolenProcessor(time) => write!(
                f,
                "The hypervisor gave {} of this machine's processor time to others.",
                words::duration(*time)
            ),
            Self::Throttled(time) => write!(
                f,
                "The control group's quota stopped the run's threads for {}.",
                words::duration(*time)
            ),
            Self::ProcessorPressure { waited, of } => write!(
                f,
                "For {} of {} some runnable thread waited for a processor.",
                words::duration(*waited),
                words::duration(*of)
            ),
            Self::ProcessorTaken { worst, others } => {
                let others = match others {
                    0 => String::new(),
                    1 => " 1 other thread of the run lost time too.".to_owned(),
                    more => format!(" {more} other threads of the run lost time too."),
                };
                write!(
                    f,
                    "Processor time was taken: {}; at most {} of it within {}.{others}",
                    worst.as_cause(),
                    words::duration(worst.most),
                    words::duration(TAKEN_INTERVAL)
                )
            }
            Self::ReceiveOverflowHere(datagrams) => write!(
                f,
                "{} datagrams found a full receive buffer on this machine.",
                words::count(*datagrams)
            ),
            Self::SendErrorsHere(datagrams) => write!(
                f,
                "{} datagrams found a full send buffer on this machine.",
                words::count(*datagrams)
            ),
            Self::CaptureDropped(packets) => write!(
                f,
                "A capture dropped {} packets; stamps of their messages are missing.",
                words::count(*packets)
            ),
            Self::ClockError(most) => write!(
                f,
                "Latencies may be wrong by up to {}, the error of the clocks of their two ends.",
                words::duration(*most)
            ),
            _ => f.write_str(self.kind()),
        }
    }

    /// Writes the facts about a flow's destinations.
    fn of_destinations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ScheduleNotKept {
                hosts,
                number,
                of,
                after,
                by_mission,
            } => {
                let fault = if *by_mission {
                    "held up on the supplier's host, which the mission loads"
                } else {
                    "by the supplier's own fault"
                };
                write!(
                    f,
                    "To {hosts}, {number} of {} messages were sent more than {} after they were due, {fault}.",
                    words::count(*of),
                    words::duration(*after)
                )
            }
            Self::SendErrors { hosts, number } => {
                write!(f, "To {hosts}, {number} sends returned an error.")
            }
            Self::ReceiveOverflow { hosts, number } => {
                write!(
                    f,
                    "At {hosts}, {number} messages found the receive buffer full."
                )
            }
            Self::MergedLayers { hosts, layers } => write!(
                f,
                "At {hosts}, stamps are missing; these layers are reported together: {layers}."
            ),
            _ => f.write_str(self.kind()),
        }
    }

    /// Writes the facts about the run as a whole.
    fn of_run(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback { reason } => write!(
                f,
                "All hosts shared the loopback interface, without an emulated network: {reason}"
            ),
            Self::Interrupted { signal } => write!(
                f,
                "The run was interrupted by {signal}; only messages due before are judged."
            ),
            Self::Death {
                process,
                at_ns,
                how,
            } => {
                let at_s = *at_ns as f64 / 1e9;
                write!(f, "The {process} died {at_s:.3} s after the start: {how}.")
            }
            Self::NoCaptures { reason } => write!(f, "The captures cannot be used: {reason}"),
            Self::NoTap { process, how } => write!(
                f,
                "The {process} did not start: {how}. Layers that only it tells apart are merged."
            ),
            Self::FarHosts { hosts } => write!(
                f,
                "On {hosts} the time was read that a hypervisor or a quota took, and not what processes outside the run took: `deckwatch doctor --on` examines a far host."
            ),
            Self::LoadMissed { load } => write!(f, "A load missed its target: {load}."),
            Self::ClockByPipe {
                hosts,
                starved: None,
            } => write!(
                f,
                "No datagrams relate the clock of {hosts} well: it is related by the pipe, with a larger error. Let UDP pass between the hosts (`deckwatch clock` tries it)."
            ),
            Self::ClockByPipe {
                hosts,
                starved: Some(taken),
            } => write!(
                f,
                "No datagrams relate the clock of {hosts} well: it is related by the pipe, with a larger error. The part that asks was ready and did not run: {}. {}",
                taken.as_cause(),
                taken.remedy()
            ),
            Self::HostClockSet { host, times } => write!(
                f,
                "The time of day of {host} was set {times} times during the run; latencies do not depend on it."
            ),
            Self::FarClock {
                host,
                contradictions: 0,
            } => write!(f, "No exchange of stamps bounds the clock of {host}."),
            Self::FarClock {
                host,
                contradictions,
            } => write!(
                f,
                "The clock of {host} jumped during the run: {contradictions} exchanges of stamps contradict the others."
            ),
            _ => f.write_str(self.kind()),
        }
    }

    /// Writes the facts that a part of the run reports.
    fn of_part(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SchedulingRefused {
                what,
                error,
                remedy,
            } => write!(f, "{what} was refused ({error}): {remedy}."),
            Self::OfProgram(carrier, text) => {
                write!(f, "The program of carrier {carrier} {text}.")
            }
            Self::PriorityUnapplied { flow, carrier } => write!(
                f,
                "The packets of {flow} over {carrier} carry no priority: the middleware does not mark its packets."
            ),
            Self::DroppedAtSocket { messages } => write!(
                f,
                "The consumer's socket dropped {} although its buffer had room: wrong checksums, or no memory in the kernel.",
                words::messages(*messages)
            ),
            Self::SendWaits { sends } => write!(
                f,
                "{} sends waited for room in the send buffer: the host's own queue or link was full.",
                words::count(*sends)
            ),
            Self::ChannelOverflow { flow, events } => write!(
                f,
                "The event channel of {flow} dropped {events} events from full queues."
            ),
            Self::ChannelConsumerLost { flow, consumers } => write!(
                f,
                "The event channel of {flow} disconnected {consumers} consumers that did not take their events."
            ),
            Self::TapDropped {
                host,
                packets,
                cause,
            } => {
                let cause = match cause {
                    Some(TapLoss::TooSlow) => ": its buffer was full",
                    Some(TapLoss::FileFull) => ": its file is full",
                    None => "",
                };
                write!(f, "The tap on {host} lost {packets} packets{cause}.")
            }
            _ => f.write_str(self.kind()),
        }
    }
}

#[cfg(test)]
mod tests;
