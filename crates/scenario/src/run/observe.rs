//! Progress reports of a run, and how to end it early.

use std::time::Duration;

use deckwatch_carrier::carriers::CarrierRef;

/// Receives the progress reports of a run.
pub trait Observer {
    /// A phase begins. `words` describes it to the user.
    fn phase(&mut self, phase: Phase, words: &str);
    /// A process was started, with its name and process id.
    fn started(&mut self, process: &str, id: u32);
    /// Reports progress, several times per second.
    fn progress(&mut self, progress: &RunProgress);
    /// A sentence to be shown at once.
    fn notice(&mut self, text: &str);
}

/// The phases of a run, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The programs on far hosts are asked for their version.
    Reach,
    /// Leftovers are removed, hosts and network made.
    Testbed,
    /// Loads are started.
    Loads,
    /// Naming service and event channels are started.
    Services,
    /// Consumers are started.
    Consumers,
    /// Packet taps are started.
    Taps,
    /// Suppliers are started.
    Suppliers,
    /// The schedule runs.
    Measuring,
    /// Late messages are still awaited.
    Draining,
    /// Every process finishes.
    Stopping,
    /// Records and captures are joined and judged, files written.
    Judging,
}

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunProgress {
    /// Time since the schedule's start.
    pub elapsed: Duration,
    /// Time until the last message is due.
    pub left: Duration,
    /// Time that the variants after this one take; zero if none follows.
    pub after: Duration,
    /// The progress of each flow over each carrier.
    pub streams: Vec<StreamProgress>,
}

/// The progress of one flow over one carrier, summed over its destinations.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamProgress {
    /// Name of the flow.
    pub name: String,
    /// Its carrier.
    pub carrier: CarrierRef,
    /// Messages sent.
    pub sent: u64,
    /// Number of messages in the schedule; the mean for a Poisson process.
    pub scheduled: u64,
    /// Messages received, duplicates included.
    pub received: u64,
    /// Messages received late, without the warm-up.
    pub late: u64,
    /// Mean number of messages sent per second so far.
    pub rate_hz: f64,
}

/// Asks whether to end the run early. The answer is the name of the signal or other cause.
pub struct Interrupt {
    ask: Box<dyn Fn() -> Option<&'static str>>,
}

impl Interrupt {
    /// Makes an interrupt from `ask`, which is called several times per second.
    #[must_use]
    pub fn new(ask: impl Fn() -> Option<&'static str> + 'static) -> Self {
        Self { ask: Box::new(ask) }
    }

    /// Returns an interrupt that never ends the run.
    #[must_use]
    pub fn never() -> Self {
        Self::new(|| None)
    }

    pub(super) fn received(&self) -> Option<&'static str> {
        (self.ask)()
    }
}
