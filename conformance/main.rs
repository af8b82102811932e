//! The conformance suite: tests by clause of the standards, with a directory for each part. The octets on one side are
//! made by hand.
//!
//! `spec/clauses.toml` lists the clauses with their tests. `cargo test -p deckwatch-conformance giop::` runs one
//! directory only.

mod common;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the stubs are used here, not the servant"
)]
#[path = "../crates/orb/examples/mirror/mod.rs"]
mod mirror;
#[path = "common/values_mirror.rs"]
mod values_mirror;
#[path = "common/valuetypes.rs"]
mod valuetypes;

mod bidirectional {
    mod calls;
    mod ends;
    mod offer;
    mod order;
}
mod cdr {
    mod type_codes;
    mod types;
    mod values;
    mod values_hostile;
    mod values_unknown;
    mod valuetypes;
}
mod dynamic {
    mod any;
    mod invocation;
    mod skeleton;
    mod values;
}
mod giop {
    mod client;
    mod codesets;
    mod fragments;
    mod ior;
    mod server;
}
mod interceptors {
    mod client;
    mod initializers;
    mod ior;
    mod server;
}
mod messaging {
    mod handlers;
    mod mapping;
    mod outcomes;
    mod policies;
    mod pollers;
    mod times;
}
mod naming;
mod orb {
    mod collocated;
    mod operations;
    mod valuetypes;
}
mod poa {
    mod managers;
    mod objects;
    mod servants;
}
mod rt {
    mod bands;
    mod buffering;
    mod client;
    mod connections;
    mod current;
    mod mutex;
    mod policies;
    mod portable_server;
    mod threadpools;
}
mod scheduling {
    mod distributable;
    mod execution_time;
    mod resent;
    mod schedulers;
    mod threads;
}
