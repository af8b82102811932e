//! Progress reports of a run, and how to end it early.

use std::time::Duration;

use deckwatch_carrier::carriers::CarrierRef;

/// Watches a run.
pub trait Observer {
    /// A phase begins; with its words for the user.
    fn phase(&mut self, phase: Phase, words: &str);
    /// A process was started: what it is, and its process id.
    fn started(&mut self, process: &str, id: u32);
    /// How far the run is, some times a second.
    fn progress(&mut self, progress: &RunProgress);
    /// Something to be shown at once, a whole sentence.
    fn notice(&mut self, text: &str);
}

/// The phases of a run, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
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

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunProgress {
    /// Since the schedule's start.
    pub elapsed: Duration,
    /// Until the last message is due.
    pub left: Duration,
    /// Each flow over each carrier.
    pub streams: Vec<StreamProgress>,
}

/// How far one flow over one carrier is, over all its destinations.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamProgress {
    /// Name of the flow.
    pub name: String,
    /// What it goes over.
    pub carrier: CarrierRef,
    /// Messages sent.
    pub sent: u64,
    /// Messages that the schedule has, the mean for a Poisson process.
    pub scheduled: u64,
    /// Messages received, duplicates included.
    pub received: u64,
    /// Received late, warm-up left out.
    pub late: u64,
    /// Messages sent a second so far.
    pub rate_hz: f64,
}

/// Asks whether the run is to end early; the name of what asked for it.
pub struct Interrupt {
    ask: Box<dyn Fn() -> Option<&'static str>>,
}

impl Interrupt {
    /// `ask` is called some times a second.
    #[must_use]
    pub fn new(ask: impl Fn() -> Option<&'static str> + 'static) -> Self {
        Self { ask: Box::new(ask) }
    }

    /// Never.
    #[must_use]
    pub fn never() -> Self {
        Self::new(|| None)
    }

    pub(super) fn received(&self) -> Option<&'static str> {
        (self.ask)()
    }
}
