//! Relates two clocks again and again, as exchanges come.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Corridor, Exchange, NEXT, Relation, relate};
use crate::limits::{CLOCK_SPAN_WINDOWS, CLOCK_WINDOW_EXCHANGES};

/// What a window of exchanges tells of two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The relation in its middle.
    pub relation: Relation,
    /// The relations at its two ends. Between them the rate is constant.
    pub ends: [Relation; 2],
    /// By how much the other clock gains on this one, parts in a million: the smallest, the most likely and the largest
    /// rate that the exchanges allow.
    pub skew_ppm: (f64, f64, f64),
    /// The smallest time under way in both directions together, nanoseconds.
    pub round_trip_ns: u64,
    /// Exchanges in the window.
    pub exchanges: u32,
    /// Whether one constant rate explains this window and the one before, with the time between them.
    #[serde(default)]
    pub follows: bool,
}

impl Window {
    /// Adds an error that all bounds have.
    pub fn widen(&mut self, error_ns: u64) {
        for relation in self.ends.iter_mut().chain([&mut self.relation]) {
            relation.rigorous_ns = relation.rigorous_ns.saturating_add(error_ns);
            let assumed_ns = relation.assumed_ns;
            relation.assumed_ns = assumed_ns.map(|ns| ns.saturating_add(error_ns));
        }
    }
}

/// Gathers exchanges in windows. The skew is that of the last [`CLOCK_SPAN_WINDOWS`] windows.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    window: Vec<Exchange>,
    span: VecDeque<Exchange>,
    impossible: u64,
    breaks: u64,
}

impl Tracker {
    /// Takes an exchange. Returns the window that it completes.
    pub fn note(&mut self, exchange: Exchange) -> Option<Window> {
        if exchange.under_way_ns().is_none() {
            self.impossible += 1;
            return None;
        }
        self.window.push(exchange);
        if self.window.len() < CLOCK_WINDOW_EXCHANGES {
            return None;
        }
        self.close()
    }

    /// Returns the last window, unless it has too few exchanges to tell anything.
    pub fn finish(&mut self) -> Option<Window> {
        if self.window.len() > NEXT {
            return self.close();
        }
        self.window.clear();
        None
    }

    /// Exchanges with stamps that no two clocks can show.
    #[must_use]
    pub const fn impossible(&self) -> u64 {
        self.impossible
    }

    /// How often no constant rate explained the exchanges: a clock was set, or its rate was changed.
    #[must_use]
    pub const fn breaks(&self) -> u64 {
        self.breaks
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.window.len() + self.span.len()
    }

    fn close(&mut self) -> Option<Window> {
        let window = std::mem::take(&mut self.window);
        while self.span.len() + window.len() > CLOCK_SPAN_WINDOWS * CLOCK_WINDOW_EXCHANGES {
            self.span.pop_front();
        }
        let mut follows = !self.span.is_empty();
        self.span.extend(&window);
        let mut corridor = Corridor::of(self.span.make_contiguous());
        if corridor.is_none() {
            self.breaks += 1;
            follows = false;
            self.span = window.iter().copied().collect();
            corridor = Corridor::of(&window);
        }
        let Some(corridor) = corridor else {
            self.span.clear();
            return None;
        };
        let (least, likely, most) = corridor.skews();
        // This clock's gain on the other one, seen from the other side.
        let gain_ppm = |slope: f64| -slope / (1.0 + slope) * 1e6;
        let [first, relation, last] = relate(&window, &corridor)?;
        Some(Window {
            relation,
            ends: [first, last],
            skew_ppm: (gain_ppm(most), gain_ppm(likely), gain_ppm(least)),
            round_trip_ns: window.iter().filter_map(Exchange::under_way_ns).min()?,
            exchanges: window.len() as u32,
            follows,
        })
    }
}
