//! This test program as the process of a relay.

use deckwatch_testbed::{Emulation, NetworkSpec, RelayProgram, preset};

const RELAY: &str = "DECKWATCH_TEST_RELAY";

/// Returns the program that carries the frames of a relay: this one, which runs only the test below.
pub(crate) fn relay_program() -> RelayProgram {
    let test = concat!(module_path!(), "::this_program_is_a_relay_when_asked_to");
    // The names of tests begin behind the name of the program.
    let (_, test) = test.split_once("::").unwrap();
    RelayProgram {
        words: ["--exact", "--nocapture", test].map(Into::into).into(),
        environment: vec![(RELAY.into(), "1".into())],
        ..RelayProgram::this().unwrap()
    }
}

/// Returns a network by name, carried by a relay.
pub(crate) fn relayed(name: &str) -> NetworkSpec {
    carried(name, Emulation::Relay)
}

/// Returns a network by name, carried so.
pub(crate) fn carried(name: &str, emulation: Emulation) -> NetworkSpec {
    NetworkSpec {
        emulation,
        ..preset(name).unwrap()
    }
}

#[test]
fn this_program_is_a_relay_when_asked_to() {
    assert!(relay_program().path.is_file());
    if std::env::var_os(RELAY).is_some() {
        deckwatch_testbed::relay::process::serve().unwrap();
    }
}
