//! This machine's clocks: kernel stamps become CLOCK_MONOTONIC, and steps of CLOCK_REALTIME are counted.

use deckwatch_meter::clock::{SERVICES, SyncState};
use deckwatch_os::discipline::{Discipline, status_in_words};
use deckwatch_os::task;

use super::datagram::WireSync;
use crate::stamp_clock::StampClock;

/// Converts kernel stamps as they come.
#[derive(Debug)]
pub(super) struct Stamper {
    clock: StampClock,
    steps: u64,
}

impl Stamper {
    pub(super) fn new() -> Self {
        Self {
            clock: StampClock::new(),
            steps: 0,
        }
    }

    /// Reads both clocks again. Returns true if CLOCK_REALTIME was set since the last time: stamps taken before cannot
    /// be converted any more.
    pub(super) fn renew(&mut self) -> bool {
        let is_set = self.clock.renew();
        if is_set {
            self.steps += 1;
            // A watch without an end has no bound on the times that the clock is set.
            self.clock = StampClock::new();
        }
        is_set
    }

    /// Converts a stamp of CLOCK_REALTIME to CLOCK_MONOTONIC. Returns `None` for a stamp from before the last step of
    /// CLOCK_REALTIME, or from after the last reading.
    pub(super) fn convert(&self, realtime_ns: i64) -> Option<i64> {
        self.clock.eras().last()?.to_monotonic(realtime_ns)
    }

    /// Upper bound of the error of a converted stamp.
    pub(super) fn error_ns(&self) -> u64 {
        self.clock.eras().last().map_or(0, |era| era.error_ns)
    }

    /// How often the clock was set.
    pub(super) const fn steps(&self) -> u64 {
        self.steps
    }

    /// CLOCK_REALTIME less CLOCK_MONOTONIC.
    pub(super) fn realtime_less_monotonic_ns(&self) -> i64 {
        self.clock.eras().last().map_or(0, |era| era.offset_ns)
    }

    /// Returns what the responder sends of its clock.
    pub(super) fn wire_sync(&self) -> WireSync {
        let status = Discipline::read().map_or(0, |discipline| discipline.status);
        WireSync::of(
            &sync_state(self.steps),
            status,
            (self.realtime_less_monotonic_ns(), self.error_ns()),
        )
    }
}

/// Returns what keeps this machine's clock right. `steps` is how often it was set while it was watched.
#[must_use]
pub fn sync_state(steps: u64) -> SyncState {
    let running = task::processes();
    let runs = |name: &&str| running.iter().any(|process| process.name == *name);
    let services = SERVICES.iter().filter(|name| runs(name));
    let state = SyncState {
        services: services.map(|&name| name.to_owned()).collect(),
        steps,
        ..SyncState::default()
    };
    // A sandbox may forbid the call: then nothing is claimed.
    let Ok(kernel) = Discipline::read() else {
        return state;
    };
    SyncState {
        synchronised: kernel.synchronised,
        status: status_in_words(kernel.status),
        offset_ns: kernel.offset_ns,
        frequency_ppb: kernel.frequency_ppb,
        max_error_us: kernel.max_error_us,
        estimated_error_us: kernel.estimated_error_us,
        tai_offset_s: kernel.tai_offset_s,
        ..state
    }
}
