//! This ORB and foreign ORBs, each as client and as server. `gaps.toml` gives a reason for each gap.
//!
//! The tests of the `deckwatch` command with foreign programs are in `command/`; they belong to the crate that builds
//! the command.

#[path = "../crates/orb/tests/support/around.rs"]
mod around;
mod common;
#[allow(
    dead_code,
    reason = "an example is a program: its `main` is not called"
)]
#[path = "../crates/orb/examples/echo.rs"]
mod echo;
#[path = "common/gaps.rs"]
mod gaps;
#[path = "common/jacorb.rs"]
mod jacorb;
mod tables;
#[path = "common/tao.rs"]
mod tao;
#[path = "../conformance/common/values_mirror.rs"]
mod values_mirror;
#[path = "../conformance/common/valuetypes.rs"]
mod valuetypes;
#[path = "common/watched.rs"]
mod watched;

mod calls;
mod events;
mod examples;
mod lanes;
mod times;
mod tls;
mod types;
mod values;
mod values_mapped;
