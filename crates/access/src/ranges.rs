//! Ranges of numbers: types and sources of events.

use std::str::FromStr;

/// The numbers from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The smallest.
    pub first: i32,
    /// The largest.
    pub last: i32,
}

impl FromStr for Range {
    type Err = ();

    /// Reads `20` or `20-29`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let number = |text: &str| {
            let is_digits = !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
            is_digits
                .then(|| text.parse::<i32>().ok())
                .flatten()
                .ok_or(())
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (number(first)?, number(last)?);
        if first <= last {
            Ok(Self { first, last })
        } else {
            Err(())
        }
    }
}

/// The numbers of several ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<Range>);

impl Ranges {
    /// These ranges, in any order; they may overlap.
    #[must_use]
    pub fn new(mut ranges: Vec<Range>) -> Self {
        ranges.sort_by_key(|range| range.first);
        let mut merged: Vec<Range> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(before) if range.first <= before.last.saturating_add(1) => {
                    before.last = before.last.max(range.last);
                }
                _ => merged.push(range),
            }
        }
        Self(merged)
    }

    /// Returns true for a number of one of the ranges.
    #[must_use]
    pub fn contains(&self, value: i32) -> bool {
        let behind = self.0.partition_point(|range| range.first <= value);
        behind > 0 && value <= self.0[behind - 1].last
    }
}
