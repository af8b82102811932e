//! Tests of the `deckwatch` command: its output, the phases of a run, measurements, and what a run leaves behind.

mod measuring;
mod watched;

mod access;
mod bench;
mod bench_kinds;
mod call;
mod carriers;
mod channel;
mod check;
mod clock;
mod damaged_records;
mod deaths;
mod events;
mod experiments;
mod far;
mod faults;
mod federated_channels;
mod file_kinds;
mod foreign_text;
mod group;
mod idl;
mod limited;
mod load;
mod names;
mod output;
mod reach;
mod real_time_channel;
mod run;
mod schedule;
mod stored_channel;
mod sweep;
mod testbed;
mod tls;
mod unprivileged;
mod verdicts;
