//! [`Relay`]: a network of lines and switches as a computation. Time is an argument, so that the same code carries real
//! frames (its driver) and simulates in virtual time.
//!
//! A line sends one frame at a time and takes the time of its octets for it. A frame starts when the line is free, at its
//! arrival at the earliest; the frame on the line is never interrupted. Of the frames that wait, the first of the
//! highest priority goes next. A switch has a frame whole before it sends it on (store and forward).
//!
//! All times come from arrivals and from line clocks, none from the moment of a call. A caller that is late makes nothing
//! else late: [`Relay::poll`] catches up in the order of time.

pub(crate) mod control;
pub mod driver;
pub mod frame;
mod ledger;
mod line;
pub mod process;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;

pub use ledger::{Counts, Ledger};
pub(crate) use line::Random;
use line::{Line, Turn};

use crate::layout::{Layout, LayoutError, Node};

/// A network that carries frames of type `F`. A frame to all hosts is cloned.
#[derive(Debug)]
pub struct Relay<F> {
    lines: Vec<Line<F>>,
    /// The line on which each switch sends to each host.
    ways: Vec<Vec<Option<usize>>>,
    /// Each host's line to the network.
    ups: Vec<Option<usize>>,
    /// Each host's line from the network.
    downs: Vec<Option<usize>>,
    /// Events on lines to hosts. They decide nothing, so that they may be handled early.
    outward: BinaryHeap<Reverse<Event<F>>>,
    /// All other events.
    inward: BinaryHeap<Reverse<Event<F>>>,
    /// Events so far: those of the same time keep their order.
    count: u64,
    ledger: Ledger,
}

/// What a relay needs to know of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Where it goes.
    pub to: Destination,
    /// Octets of its IP packet.
    pub packet_bytes: u32,
    /// Its priority at switches.
    pub band: Band,
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To one host, by its index.
    Host(usize),
    /// To all hosts but its sender.
    All,
    /// To an address that no host has.
    Nobody,
}

/// One of three strict priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Band {
    /// Sent before all others.
    First,
    /// The usual one.
    Middle,
    /// Sent when nothing else waits.
    Last,
}

/// A frame that reaches a host.
#[derive(Debug)]
pub struct Departure<F> {
    /// When it does.
    pub due_ns: u64,
    /// The host.
    pub host: usize,
    /// The frame.
    pub frame: F,
}

#[derive(Clone, Debug)]
struct Moving<F> {
    to: Destination,
    packet_bytes: u32,
    band: Band,
    frame: F,
}

#[derive(Debug)]
struct Event<F> {
    at_ns: u64,
    number: u64,
    line: usize,
    step: Step<F>,
}

#[derive(Debug)]
enum Step<F> {
    /// A frame comes to the queue before the line.
    Offered(Moving<F>),
    /// The line chooses its next frame.
    Choose,
    /// A frame has left the line.
    Sent(Moving<F>),
    /// A frame has reached the line's end.
    Arrived(Moving<F>),
}

impl<F: Clone> Relay<F> {
    /// Makes the network. `seed` decides losses, duplicates, jitter and reordering.
    ///
    /// # Errors
    /// As [`Layout::check`].
    pub fn new(layout: &Layout, seed: u64) -> Result<Self, LayoutError> {
        layout.check()?;
        let mut seeds = Random(seed);
        let lines: Vec<Line<F>> = layout
            .links
            .iter()
            .flat_map(|link| {
                let [first, second] = link.ends;
                [(link, [first, second]), (link, [second, first])]
            })
            .map(|(link, ends)| Line::new(link.spec.clone(), ends, seeds.next()))
            .collect();
        let of = |host: usize, is: &dyn Fn(&Line<F>) -> Node| {
            lines.iter().position(|line| is(line) == Node::Host(host))
        };
        let hosts = 0..layout.hosts.len();
        Ok(Self {
            ups: hosts
                .clone()
                .map(|host| of(host, &|line| line.from))
                .collect(),
            downs: hosts.map(|host| of(host, &|line| line.to)).collect(),
            ways: layout.ways(),
            lines,
            outward: BinaryHeap::new(),
            inward: BinaryHeap::new(),
            count: 0,
            ledger: Ledger::default(),
        })
    }

    /// A host sends a frame, which is at its interface at `at_ns`.
    pub fn arrive(&mut self, at_ns: u64, host: usize, head: Head, frame: F) {
        self.ledger.entered += 1;
        match self.ups.get(host).copied().flatten() {
            Some(line) => {
                let moving = Moving {
                    to: head.to,
                    packet_bytes: head.packet_bytes,
                    band: head.band,
                    frame,
                };
                self.push(at_ns, line, Step::Offered(moving));
            }
            None => self.ledger.unroutable += 1,
        }
    }

    /// Returns when [`Self::poll`] with the same `lead_ns` has something to do. Returns `None` if nothing moves.
    #[must_use]
    pub fn next_due(&self, lead_ns: u64) -> Option<u64> {
        let outward = self
            .outward
            .peek()
            .map(|event| event.0.at_ns.saturating_sub(lead_ns));
        let inward = self.inward.peek().map(|event| event.0.at_ns);
        outward.into_iter().chain(inward).min()
    }

    /// Moves frames until `now_ns`, and returns the next that reaches a host until `lead_ns` later. Returns `None` when
    /// there is none. With a lead a caller that takes some time to send a frame can begin early; nothing that another
    /// arrival can still change is decided early.
    pub fn poll(&mut self, now_ns: u64, lead_ns: u64) -> Option<Departure<F>> {
        loop {
            let within = |heap: &BinaryHeap<Reverse<Event<F>>>, until_ns: u64| {
                let key = heap.peek().map(|event| event.0.key());
                key.filter(|(at_ns, _)| *at_ns <= until_ns)
            };
            let inward = within(&self.inward, now_ns);
            let outward = within(&self.outward, now_ns.saturating_add(lead_ns));
            let heap = match (inward, outward) {
                (None, None) => return None,
                (Some(inward), Some(outward)) if outward < inward => &mut self.outward,
                (Some(_), _) => &mut self.inward,
                (None, Some(_)) => &mut self.outward,
            };
            let Reverse(event) = heap.pop()?;
            if let Some(departure) = self.handle(event) {
                return Some(departure);
            }
        }
    }

    /// Holds back every frame to a host, until [`Self::release`]. The frame on its line leaves.
    pub fn hold(&mut self, host: usize) {
        if let Some(line) = self.line_to(host) {
            self.lines[line].hold();
        }
    }

    /// Releases what was held back, in its order and at the rate of the line.
    pub fn release(&mut self, now_ns: u64, host: usize) {
        if let Some(line) = self.line_to(host) {
            let turn = self.lines[line].release(now_ns);
            self.take_turn(line, turn);
        }
    }

    /// Drops the first frame to a host and every `every_nth` after it; `None` ends that.
    pub fn lose(&mut self, host: usize, every_nth: Option<NonZeroU32>) {
        if let Some(line) = self.line_to(host) {
            self.lines[line].lose(every_nth);
        }
    }

    /// Returns what the line to a host did.
    #[must_use]
    pub fn counts_to(&self, host: usize) -> Option<Counts> {
        Some(self.lines[self.line_to(host)?].counts)
    }

    /// Returns where all frames went.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        let mut ledger = self.ledger;
        for line in &self.lines {
            ledger.lines += line.counts;
            ledger.inside += line.inside();
        }
        let offered = |event: &&Reverse<Event<F>>| matches!(event.0.step, Step::Offered(_));
        ledger.inside += self.inward.iter().filter(offered).count() as u64;
        ledger
    }

    fn line_to(&self, host: usize) -> Option<usize> {
        self.downs.get(host).copied().flatten()
    }

    fn handle(&mut self, event: Event<F>) -> Option<Departure<F>> {
        let (at_ns, line) = (event.at_ns, event.line);
        match event.step {
            Step::Offered(moving) => {
                let turn = self.lines[line].offer(at_ns, moving);
                self.take_turn(line, turn);
            }
            Step::Choose => {
                let turn = self.lines[line].choose(at_ns);
                self.take_turn(line, turn);
            }
            Step::Sent(moving) => {
                let [one, other] = self.lines[line].sent(at_ns);
                if let Some(other_ns) = other {
                    self.push(other_ns, line, Step::Arrived(moving.clone()));
                }
                if let Some(one_ns) = one {
                    self.push(one_ns, line, Step::Arrived(moving));
                }
            }
            Step::Arrived(moving) => {
                self.lines[line].arrived();
                match self.lines[line].to {
                    Node::Host(host) => {
                        self.ledger.delivered += 1;
                        return Some(Departure {
                            due_ns: at_ns,
                            host,
                            frame: moving.frame,
                        });
                    }
                    Node::Switch(switch) => self.forward(switch, line, at_ns, moving),
                }
            }
        }
        None
    }

    fn take_turn(&mut self, line: usize, turn: Turn<F>) {
        match turn {
            Turn::Nothing => {}
            Turn::Choose(at_ns) => self.push(at_ns, line, Step::Choose),
            Turn::Send {
                until_ns,
                moving,
                another,
            } => {
                self.push(until_ns, line, Step::Sent(moving));
                if another {
                    self.push(until_ns, line, Step::Choose);
                }
            }
        }
    }

    fn forward(&mut self, switch: usize, came_by: usize, at_ns: u64, moving: Moving<F>) {
        match moving.to {
            Destination::Host(host) => {
                let way = self.ways[switch].get(host).copied().flatten();
                // A frame to its own sender would go back where it came from.
                match way.filter(|&way| way != back(came_by)) {
                    Some(way) => self.push(at_ns, way, Step::Offered(moving)),
                    None => self.ledger.unroutable += 1,
                }
            }
            Destination::All => {
                let here = Node::Switch(switch);
                let ways: Vec<usize> = (0..self.lines.len())
                    .filter(|&way| self.lines[way].from == here && way != back(came_by))
                    .collect();
                // The frame itself, and a copy for each further way.
                self.ledger.copied += ways.len().saturating_sub(1) as u64;
                self.ledger.unroutable += u64::from(ways.is_empty());
                for way in ways {
                    self.push(at_ns, way, Step::Offered(moving.clone()));
                }
            }
            Destination::Nobody => self.ledger.unroutable += 1,
        }
    }

    fn push(&mut self, at_ns: u64, line: usize, step: Step<F>) {
        self.count += 1;
        let to_host = matches!(self.lines[line].to, Node::Host(_));
        let heap = match step {
            Step::Sent(_) | Step::Arrived(_) if to_host => &mut self.outward,
            _ => &mut self.inward,
        };
        heap.push(Reverse(Event {
            at_ns,
            number: self.count,
            line,
            step,
        }));
    }
}

/// The line of the same link in the other direction.
const fn back(line: usize) -> usize {
    line ^ 1
}

impl<F> Event<F> {
    const fn key(&self) -> (u64, u64) {
        (self.at_ns, self.number)
    }
}

impl<F> PartialEq for Event<F> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<F> Eq for Event<F> {}

impl<F> PartialOrd for Event<F> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<F> Ord for Event<F> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}
