//! Chains of switch ports with real frames against theory: their transmission times, and the wait at the loaded port.

use deckwatch_testbed::chain::{Chain, ChainLatency, measure};
use deckwatch_testbed::{Emulation, Testbed, preset};

use crate::program::relay_program;
use crate::{measuring, until_undisturbed};

const PAYLOAD_BYTES: u32 = 1024;
const HEADERS: u32 = 28;

fn chain(ports: usize, load: f64, count: u32) -> Chain {
    Chain {
        link: preset("fast-ethernet").unwrap().link().unwrap(),
        ports,
        load,
        packet_bytes: PAYLOAD_BYTES + HEADERS,
        count,
        seed: 1,
    }
}

fn measured(chain: &Chain, emulation: Emulation) -> ChainLatency {
    measure(chain, emulation, &relay_program()).unwrap()
}

#[test]
fn explore() {
    let _alone = measuring();
    if let Some(reason) = Testbed::obstacle() {
        deckwatch_testkit::skip("namespaces", &reason);
        return;
    }
    for emulation in [Emulation::Relay, Emulation::SpinningRelay] {
        for load in [0.0, 0.5, 0.75] {
            for ports in [2, 4, 9] {
                let chain = chain(ports, load, 500);
                until_undisturbed("chain", || {
                    let real = measured(&chain, emulation);
                    let virt = chain.simulate();
                    println!(
                        "{} {ports} {load}: real min {:.1} mean {:.1} max {:.1} lost {}; same arrivals {:.1}, theory {:.1}",
                        emulation.name(),
                        real.min_ns as f64 / 1e3,
                        real.mean_ns / 1e3,
                        real.max_ns as f64 / 1e3,
                        real.lost,
                        virt.mean_ns / 1e3,
                        real.theory_ns / 1e3
                    );
                    None
                });
            }
        }
    }
}
