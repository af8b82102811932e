//! Operations of a scheduling service whose measured execution times exceed what they declare, on standard error.

use std::cell::RefCell;
use std::collections::BTreeSet;

use deckwatch_event::SchedulingService;
use deckwatch_text::escaped;

use crate::output::errln;

/// Prints each operation when it first exceeds its declaration, and all of them at the end.
#[derive(Default)]
pub(crate) struct Overruns {
    told: RefCell<BTreeSet<String>>,
}

impl Overruns {
    /// Called by the serving loop.
    pub(crate) fn look(&self, service: &SchedulingService) {
        let names = service.overruns().into_iter().map(|(name, _)| name);
        let names: BTreeSet<String> = names.collect();
        let mut told = self.told.borrow_mut();
        if !names.is_subset(&told) {
            Self::print(service);
        }
        told.extend(names);
    }

    /// Prints all of them, with their counts until now.
    pub(crate) fn print(service: &SchedulingService) {
        let anomalies = service.measured_anomalies();
        for words in anomalies.iter().take(PRINTED_MAX) {
            // Clients name the operations.
            errln!("warning: {}", escaped(words));
        }
        if let Some(more @ 1..) = anomalies.len().checked_sub(PRINTED_MAX) {
            errln!("warning: {more} more operations");
        }
    }
}

/// Anomalies printed at once.
const PRINTED_MAX: usize = 64;
