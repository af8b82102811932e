//! Chains of 2, 4 and 9 switch ports with real frames against theory: the transmission on each line, and the wait at the
//! loaded port in the middle.
//!
//! One process carries a frame over all lines of a chain, so what it and the hosts add is the same for each number of
//! ports. A relay that sleeps is woken late; one that never sleeps has the waits of theory.

use deckwatch_testbed::chain::{Chain, ChainLatency, measure};
use deckwatch_testbed::{Emulation, Testbed, preset};

use crate::program::relay_program;
use crate::{measuring, until_undisturbed};

const PAYLOAD_BYTES: u32 = 1024;
const HEADERS: u32 = 28;
/// Packets of one measurement. One passes each 8.7 ms.
const PACKETS: u32 = 300;

/// What may be added to the transmission times: by the hosts, which take 20 to 45 us, and by the wake-up of a relay that
/// sleeps, some 60 to 100 us on an idle virtual machine.
const RELAY_ADDS_NS: f64 = 120_000.0;
const SPINNING_ADDS_NS: f64 = 60_000.0;
/// A relay sends this much early at most, because it expects to be woken late.
const EARLY_NS: f64 = 40_000.0;
/// The allowed deviation of the transmission times of the ports between two chains.
const LINES_TOLERANCE: f64 = 0.05;
/// The allowed deviation of a mean wait is this share, and [`WAIT_SLACK_NS`]: a busy relay adds less or more time.
const WAIT_TOLERANCE: f64 = 0.15;
const WAIT_SLACK_NS: f64 = 15_000.0;

fn chain(ports: usize, load: f64) -> Chain {
    Chain {
        link: preset("fast-ethernet").unwrap().link().unwrap(),
        ports,
        load,
        packet_bytes: PAYLOAD_BYTES + HEADERS,
        count: PACKETS,
        seed: 1,
    }
}

fn lacks_namespaces() -> bool {
    let obstacle = Testbed::obstacle();
    if let Some(reason) = &obstacle {
        deckwatch_testkit::skip("namespaces", reason);
    }
    obstacle.is_some()
}

/// Measures a chain. Returns what the mean is beyond the transmission on each line, and the words for it.
fn beyond_lines(chain: &Chain, emulation: Emulation) -> (f64, String, ChainLatency) {
    let real = measure(chain, emulation, &relay_program()).unwrap();
    let lines_ns = Chain {
        load: 0.0,
        ..chain.clone()
    }
    .theory_ns();
    let words = format!(
        "{} ports, {:.0}% load, by a {}: mean {:.1} us, {:.1} beyond its lines; {} lost",
        chain.ports,
        chain.load * 100.0,
        emulation.name(),
        real.mean_ns / 1e3,
        (real.mean_ns - lines_ns) / 1e3,
        real.lost
    );
    (real.mean_ns - lines_ns, words, real)
}

fn assert_transmission_on_each_line(emulation: Emulation, adds_ns_max: f64) {
    if lacks_namespaces() {
        return;
    }
    let what = format!("idle chains by a {}", emulation.name());
    until_undisturbed(&what, || {
        let chains = [2, 4, 9].map(|ports| chain(ports, 0.0));
        let mut means_ns = Vec::new();
        for chain in &chains {
            let (beyond_ns, words, real) = beyond_lines(chain, emulation);
            println!("{words}");
            if real.lost > 0 || !(-EARLY_NS..adds_ns_max).contains(&beyond_ns) {
                return Some(words);
            }
            means_ns.push(real.mean_ns);
        }
        let due_ns = chains[2].theory_ns() - chains[0].theory_ns();
        let took_ns = means_ns[2] - means_ns[0];
        let words = format!(
            "seven more ports took {:.1} us, where {:.1} are due",
            took_ns / 1e3,
            due_ns / 1e3
        );
        println!("{words}");
        ((took_ns / due_ns - 1.0).abs() > LINES_TOLERANCE).then_some(words)
    });
}

/// The wait is compared with that of the same packets in virtual time: a short run is not an endless one. What is added
/// to the lines at this load must be within `adds_ns`.
fn assert_wait_at_the_loaded_port(emulation: Emulation, adds_ns: std::ops::Range<f64>) {
    if lacks_namespaces() {
        return;
    }
    for load in [0.5, 0.75] {
        for ports in [2, 4, 9] {
            let chain = chain(ports, load);
            let idle = Chain {
                load: 0.0,
                ..chain.clone()
            };
            let due_ns = chain.simulate().mean_ns - idle.theory_ns();
            let endless_ns = chain.theory_ns() - idle.theory_ns();
            let what = format!("loaded chain by a {}", emulation.name());
            until_undisturbed(&what, || {
                let (wait_ns, words, real) = beyond_lines(&chain, emulation);
                let words = format!(
                    "{words}; {:.1} due with these packets, {:.1} in the long run",
                    due_ns / 1e3,
                    endless_ns / 1e3
                );
                println!("{words}");
                let least_ns = due_ns * (1.0 - WAIT_TOLERANCE) + adds_ns.start;
                let most_ns = due_ns * (1.0 + WAIT_TOLERANCE) + adds_ns.end;
                let fits = (least_ns..most_ns).contains(&wait_ns) && real.lost == 0;
                (!fits).then_some(words)
            });
        }
    }
}

#[test]
fn a_frame_in_a_chain_takes_its_transmission_time_on_each_line_and_the_ports_add_nothing() {
    let _alone = measuring();
    assert_transmission_on_each_line(Emulation::Relay, RELAY_ADDS_NS);
    assert_transmission_on_each_line(Emulation::SpinningRelay, SPINNING_ADDS_NS);
}

#[test]
fn a_frame_in_a_chain_waits_at_the_loaded_port_as_in_theory() {
    let _alone = measuring();
    assert_wait_at_the_loaded_port(Emulation::Relay, -EARLY_NS..RELAY_ADDS_NS);
    let slack_ns = WAIT_SLACK_NS;
    assert_wait_at_the_loaded_port(Emulation::SpinningRelay, -slack_ns..slack_ns);
}
