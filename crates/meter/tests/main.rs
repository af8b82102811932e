//! Verdicts and schedules against theory.

mod judging;
mod schedules;
