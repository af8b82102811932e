//! Chains of switch ports whose middle port is loaded, as a thesis measured them (its tables 3.6.1-1 and 3.6.2-1): the
//! latency of frames that pass all ports, against theory.
//!
//! A sends to B through one switch for each port. X and Y stand at the switches before and behind the middle port, on
//! links that are a hundred times as fast, and fill that port to the asked-for share with frames of the largest size,
//! which arrive at random. The frames of A arrive at random too, and are a small part of the load.

mod real;

pub use real::measure;

use serde::Serialize;

use crate::layout::{Layout, Link, Node};
use crate::link::LinkSpec;
use crate::relay::{Band, Departure, Destination, Head, Random, Relay};

/// One chain with one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The links of the chain.
    pub link: LinkSpec,
    /// Switch ports that each frame from A to B passes; at least 2.
    pub ports: usize,
    /// Share of the middle port's rate that is used, below 1.
    pub load: f64,
    /// Octets of the IP packets from A to B.
    pub packet_bytes: u32,
    /// Number of these packets.
    pub count: u32,
    /// Decides when packets are sent.
    pub seed: u64,
}

/// Latencies of a chain from A to B.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChainLatency {
    /// Packets that have arrived.
    pub arrived: u32,
    /// Packets that have not.
    pub lost: u32,
    /// The shortest latency, nanoseconds.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: f64,
    /// The longest.
    pub max_ns: u64,
    /// The mean by theory: transmission on each line, and the wait at the middle port.
    pub theory_ns: f64,
}

impl Chain {
    /// Returns hosts, switches and links.
    #[must_use]
    pub fn layout(&self) -> Layout {
        let fast = LinkSpec {
            rate_bits_per_s: self.link.rate_bits_per_s * FAST,
            queue_frames: LOAD_QUEUE_FRAMES,
            ..self.link.clone()
        };
        let last = self.ports - 1;
        let middle = last / 2;
        let link = |one, other, spec: &LinkSpec| Link {
            ends: [one, other],
            spec: spec.clone(),
        };
        let trunks = (0..last).map(|i| link(Node::Switch(i), Node::Switch(i + 1), &self.link));
        let mut links: Vec<Link> = trunks.collect();
        links.push(link(Node::Host(A), Node::Switch(0), &self.link));
        links.push(link(Node::Switch(last), Node::Host(B), &self.link));
        links.push(link(Node::Host(X), Node::Switch(middle), &fast));
        links.push(link(Node::Switch(middle + 1), Node::Host(Y), &fast));
        Layout {
            hosts: HOSTS.map(str::to_owned).into(),
            switches: (1..=self.ports)
                .map(|number| format!("S{number}"))
                .collect(),
            links,
        }
    }

    /// Simulates the chain in virtual time.
    #[must_use]
    pub fn simulate(&self) -> ChainLatency {
        let relay = Relay::new(&self.layout(), self.seed);
        let mut relay = relay.unwrap_or_else(|_| unreachable!("a chain is a tree"));
        let mut schedule = Schedule::new(self);
        let mut latencies = Latencies::default();
        let mut sent = 0;
        let mut end_ns = None;
        loop {
            let (at_ns, from) = schedule.next();
            if end_ns.is_some_and(|end_ns| at_ns > end_ns) {
                break;
            }
            while let Some(departure) = relay.poll(at_ns, 0) {
                latencies.note(&departure);
            }
            let (to, packet_bytes) = match from {
                A => (B, self.packet_bytes),
                _ => (Y, self.link.mtu_bytes),
            };
            if from == A {
                if sent == self.count {
                    continue;
                }
                sent += 1;
                if sent == self.count {
                    // The load goes on until the last packet has arrived.
                    end_ns = Some(at_ns + DRAIN_NS);
                }
            }
            let head = Head {
                to: Destination::Host(to),
                packet_bytes,
                band: Band::Middle,
            };
            relay.arrive(at_ns, from, head, at_ns);
        }
        while let Some(departure) = relay.poll(u64::MAX, 0) {
            latencies.note(&departure);
        }
        latencies.of(self)
    }

    /// Returns the mean latency by theory, nanoseconds: the packet's time on each of its lines, and the wait at the
    /// middle port by Pollaczek and Khinchine. That wait is M/D/1's if all packets have one size.
    #[must_use]
    pub fn theory_ns(&self) -> f64 {
        let own_ns = self.own_ns();
        // Packets come from a line of the same rate, one after the other, so they do not wait for each other.
        let load_ns = self.service_ns(self.link.mtu_bytes);
        let residual_ns = self.cross_load() * load_ns / 2.0;
        let lines = self.ports as f64 + 1.0;
        lines * own_ns + residual_ns / (1.0 - self.load) + self.wait_of_the_first_line_ns()
    }

    /// The wait at A's own line, which only A's packets use.
    fn wait_of_the_first_line_ns(&self) -> f64 {
        let share = self.own_load();
        self.own_ns() * share / (2.0 * (1.0 - share))
    }

    fn own_ns(&self) -> f64 {
        self.service_ns(self.packet_bytes)
    }

    fn service_ns(&self, packet_bytes: u32) -> f64 {
        self.link.transmission_s(packet_bytes.into()) * 1e9
    }

    /// The part of the load that is A's own.
    fn own_load(&self) -> f64 {
        OWN_LOAD
    }

    fn cross_load(&self) -> f64 {
        (self.load - self.own_load()).max(0.0)
    }
}

/// When A and X send.
pub(crate) struct Schedule {
    random: Random,
    /// Mean gaps of A and of X, nanoseconds.
    gaps_ns: [f64; 2],
    next_ns: [f64; 2],
}

impl Schedule {
    pub(crate) fn new(chain: &Chain) -> Self {
        let own = chain.own_ns() / chain.own_load();
        // Without a load the gaps are infinite.
        let cross = chain.service_ns(chain.link.mtu_bytes) / chain.cross_load();
        let mut schedule = Self {
            random: Random(chain.seed),
            gaps_ns: [own, cross],
            next_ns: [WARM_UP_NS, 0.0],
        };
        schedule.advance(0);
        schedule.advance(1);
        schedule
    }

    /// Returns the next time, and the host that sends then.
    pub(crate) fn next(&mut self) -> (u64, usize) {
        let one = usize::from(self.next_ns[1] < self.next_ns[0]);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "nanoseconds of a run"
        )]
        let at_ns = self.next_ns[one] as u64;
        self.advance(one);
        (at_ns, [A, X][one])
    }

    /// Returns the next time at which `from` sends, or `None` if it never does: X without a load.
    pub(crate) fn next_of(&mut self, from: usize) -> Option<u64> {
        let is_ever = self.gaps_ns[usize::from(from == X)].is_finite();
        is_ever.then(|| {
            loop {
                let (at_ns, sender) = self.next();
                if sender == from {
                    return at_ns;
                }
            }
        })
    }

    fn advance(&mut self, one: usize) {
        self.next_ns[one] += -self.random.share().ln() * self.gaps_ns[one];
    }
}

/// Sums over the packets that have arrived.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    count: u32,
    sum_ns: f64,
    min_ns: u64,
    max_ns: u64,
}

impl Latencies {
    fn note(&mut self, departure: &Departure<u64>) {
        if departure.host == B {
            self.add(departure.due_ns - departure.frame);
        }
    }

    pub(crate) fn add(&mut self, latency_ns: u64) {
        if self.count == 0 || latency_ns < self.min_ns {
            self.min_ns = latency_ns;
        }
        self.count += 1;
        self.sum_ns += latency_ns as f64;
        self.max_ns = self.max_ns.max(latency_ns);
    }

    pub(crate) fn of(&self, chain: &Chain) -> ChainLatency {
        ChainLatency {
            arrived: self.count,
            lost: chain.count.saturating_sub(self.count),
            min_ns: self.min_ns,
            mean_ns: self.sum_ns / f64::from(self.count.max(1)),
            max_ns: self.max_ns,
            theory_ns: chain.theory_ns(),
        }
    }
}

/// The hosts of a chain, in the order of their indices.
pub(crate) const HOSTS: [&str; 4] = ["A", "B", "X", "Y"];
pub(crate) const A: usize = 0;
pub(crate) const B: usize = 1;
pub(crate) const X: usize = 2;
pub(crate) const Y: usize = 3;

/// A's share of the rate: small beside the load, and so large that its packets come often.
const OWN_LOAD: f64 = 0.01;
/// How much faster the links of the load are: they do not smooth it.
const FAST: u64 = 100;
/// The load waits at the middle port only.
const LOAD_QUEUE_FRAMES: u32 = 10_000;
/// The load runs this long before A's first packet. A queue at 98% load needs some thousand frames to fill.
const WARM_UP_NS: f64 = 200_000_000.0;
/// Longer than any packet takes.
const DRAIN_NS: u64 = 500_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::preset;

    fn chain(ports: usize, load: f64) -> Chain {
        Chain {
            link: preset("atm-oc3").unwrap().link().unwrap(),
            ports,
            load,
            packet_bytes: 1052,
            count: 20_000,
            seed: 5,
        }
    }

    #[test]
    fn latency_without_load_is_the_transmission_on_each_line() {
        for ports in [2, 4, 9] {
            let chain = chain(ports, 0.0);
            chain.layout().check().unwrap();
            let found = chain.simulate();
            assert_eq!((found.arrived, found.lost), (20_000, 0));
            let lines_ns = (ports as f64 + 1.0) * chain.own_ns();
            assert!((found.min_ns as f64 - lines_ns).abs() < 10.0);
            assert!((found.mean_ns / found.theory_ns - 1.0).abs() < 0.01);
        }
    }

    #[test]
    fn without_a_load_its_sender_never_sends() {
        for load in [0.0, 0.005, OWN_LOAD] {
            let mut schedule = Schedule::new(&chain(2, load));
            assert_eq!(schedule.next_of(X), None);
            assert!(schedule.next_of(A).is_some());
        }
        let mut schedule = Schedule::new(&chain(2, 0.5));
        let times = [X, X, A, X].map(|from| schedule.next_of(from));
        assert!(times.is_sorted() && times[0].is_some(), "{times:?}");
    }

    #[test]
    fn mean_latency_of_a_loaded_chain_is_that_of_theory() {
        for (ports, load) in [(2, 0.5), (4, 0.75), (9, 0.5), (9, 0.9)] {
            let found = chain(ports, load).simulate();
            let ratio = found.mean_ns / found.theory_ns;
            assert!((ratio - 1.0).abs() < 0.1, "{ports} {load}: {ratio}");
        }
    }

    #[test]
    fn a_queue_too_small_for_the_load_loses_packets() {
        let mut chain = chain(2, 0.95);
        chain.link.queue_frames = 2;
        let found = chain.simulate();
        assert!(found.lost > 100, "{found:?}");
        assert_eq!(found.arrived + found.lost, 20_000);
    }
}
