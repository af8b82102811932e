//! [`Ledger`]: where all frames of a relay went. It adds up.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// What one line did with the frames that it was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Frames given to the line.
    pub offered: u64,
    /// Dropped at a full queue.
    pub queue_full: u64,
    /// Longer than the MTU.
    pub too_long: u64,
    /// Lost by the link's own share of losses.
    pub lost: u64,
    /// Dropped by [`crate::Port::lose_every`].
    pub lost_on_purpose: u64,
    /// Second copies that the link has made.
    pub duplicated: u64,
    /// Frames that have reached the line's end.
    pub arrived: u64,
}

/// Where all frames went, summed over the lines. [`Self::adds_up`] holds at any moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Frames that hosts have sent.
    pub entered: u64,
    /// Copies that switches have made of frames to all.
    pub copied: u64,
    /// Frames to an address that no host has.
    pub unroutable: u64,
    /// Frames that have reached a host.
    pub delivered: u64,
    /// Frames in queues, on lines and behind them.
    pub inside: u64,
    /// The sums over all lines.
    pub lines: Counts,
}

impl Ledger {
    /// Whether each frame that has entered, or was copied on the way, is in exactly one other column.
    #[must_use]
    pub const fn adds_up(&self) -> bool {
        let lines = &self.lines;
        let came = self.entered + self.copied + lines.duplicated;
        let lost = lines.queue_full + lines.too_long + lines.lost + lines.lost_on_purpose;
        came == lost + self.unroutable + self.delivered + self.inside
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.offered += more.offered;
        self.queue_full += more.queue_full;
        self.too_long += more.too_long;
        self.lost += more.lost;
        self.lost_on_purpose += more.lost_on_purpose;
        self.duplicated += more.duplicated;
        self.arrived += more.arrived;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_lines_are_taken_column_by_column() {
        let mut sum = Counts {
            offered: 1,
            queue_full: 2,
            too_long: 3,
            lost: 4,
            lost_on_purpose: 5,
            duplicated: 6,
            arrived: 7,
        };
        sum += Counts {
            offered: 100,
            queue_full: 200,
            too_long: 300,
            lost: 400,
            lost_on_purpose: 500,
            duplicated: 600,
            arrived: 700,
        };
        let expected = Counts {
            offered: 101,
            queue_full: 202,
            too_long: 303,
            lost: 404,
            lost_on_purpose: 505,
            duplicated: 606,
            arrived: 707,
        };
        assert_eq!(sum, expected);
    }

    #[test]
    fn a_frame_in_two_columns_or_in_none_does_not_add_up() {
        let whole = Ledger {
            entered: 20,
            copied: 3,
            unroutable: 1,
            delivered: 4,
            inside: 5,
            lines: Counts {
                duplicated: 7,
                queue_full: 2,
                too_long: 3,
                lost: 6,
                lost_on_purpose: 9,
                ..Counts::default()
            },
        };
        assert!(whole.adds_up());
        let columns: [fn(&mut Ledger) -> &mut u64; 10] = [
            |all| &mut all.entered,
            |all| &mut all.copied,
            |all| &mut all.unroutable,
            |all| &mut all.delivered,
            |all| &mut all.inside,
            |all| &mut all.lines.duplicated,
            |all| &mut all.lines.queue_full,
            |all| &mut all.lines.too_long,
            |all| &mut all.lines.lost,
            |all| &mut all.lines.lost_on_purpose,
        ];
        for column in columns {
            let mut other = whole;
            *column(&mut other) += 1;
            assert!(!other.adds_up(), "{other:?}");
        }
    }
}
