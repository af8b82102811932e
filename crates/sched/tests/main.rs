//! The analysis against simulation, and against a second implementation of the theory.

mod book;
mod dynamic;
mod fixed;
mod found;
mod operations;
mod prosa;
mod random;
mod schedules;
