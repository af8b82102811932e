//! What the access table of a channel refuses, on standard error.

use std::cell::Cell;

use super::served::Served;
use crate::output::errln;

/// Prints refusals, at most those that a channel keeps in a second.
#[derive(Default)]
pub(super) struct Refusals {
    looks: Cell<u32>,
    told: Cell<u64>,
}

/// Looks of the serving loop between two prints: one second.
const LOOKS_PER_PRINT: u32 = 10;

impl Refusals {
    /// Called by the serving loop.
    pub(super) fn look(&self, served: &Served) {
        self.looks.set((self.looks.get() + 1) % LOOKS_PER_PRINT);
        if self.looks.get() == 0 {
            self.print(served);
        }
    }

    /// Prints what was refused since the last call.
    pub(super) fn print(&self, served: &Served) {
        let refusals = served.take_refusals();
        for refusal in &refusals {
            errln!("refused: {refusal}");
        }
        let told = self.told.get() + refusals.len() as u64;
        let more = served.denied().saturating_sub(told);
        if more > 0 {
            errln!("refused: {more} more requests");
        }
        self.told.set(told + more);
    }
}
