//! Two ORBs in one thread, in virtual time.

mod asynchronous;
mod calls;
mod delivery;
mod storm;
mod times;
