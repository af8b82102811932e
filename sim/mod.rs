//! Two ORBs in one thread, in virtual time.

mod asynchronous;
mod calls;
mod delivery;
mod delivery_ends;
mod seeds;
mod storm;
mod times;
