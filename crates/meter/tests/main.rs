//! Property tests of verdicts and schedules.

mod judging;
mod schedules;
