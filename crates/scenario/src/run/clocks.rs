//! The clocks of far hosts: related over the pipe, and over the measured network where that answers.
//!
//! One real host is the *reference*: one on this machine, else the first far host. A clock part there asks the clock
//! parts of all others over UDP. Times of the others are converted to the reference's clock. If that is not this
//! machine's, a constant makes them times of this machine: no flow ends here, so only differences count.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use deckwatch_carrier::clock::sync_state;
use deckwatch_carrier::host_clock::{FarHost, HostClock};
use deckwatch_carrier::plan::{ClockPlan, PartPlan};
use deckwatch_carrier::talk::{PartEvent, Related};
use deckwatch_meter::caution::Caution;
use deckwatch_meter::clock::SyncState;
use deckwatch_meter::result::Warning;

use super::child::{Line, Role};
use super::start::{of_part, patience};
use super::station::Place;
use super::watch::Measured;
use super::{Run, RunError};
use crate::limits::{FIRST_PINGS, NETWORK_CLOCK_PATIENCE, TURN_PATIENCE};
use crate::stream::Stream;

/// What is known of the hosts' clocks.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// Those of far hosts, by host.
    pub(super) far: BTreeMap<usize, FarClock>,
    /// The host whose clock part asks, if there is one.
    reference: Option<usize>,
    /// The hosts that it asks, in the order of its plan.
    asked: Vec<usize>,
    /// The hosts that it should ask. Some may not answer.
    wanted: Vec<usize>,
    /// The state of each host's clock at the end.
    sync: BTreeMap<usize, SyncState>,
}

/// The clock of a far host.
#[derive(Debug, Default)]
pub(super) struct FarClock {
    /// By exchanges over the pipe, related to this machine's.
    pub(super) pipe: HostClock,
    /// By exchanges over the network, related to the reference's.
    network: HostClock,
    exchanges: u32,
    /// The start of the schedule on that clock, which its parts were given.
    pub(super) start_ns: i64,
}

/// How the clocks of far hosts become times of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By the pipe alone.
    Pipe,
    /// By the network, with the reference here.
    Here,
    /// By the network, with a far reference.
    Far(usize),
}

impl FarClock {
    pub(super) fn is_known(&self) -> bool {
        self.pipe.is_known() && self.exchanges >= FIRST_PINGS
    }

    /// Whether the network gives a bound between two times of this machine, and a smaller one than the pipe.
    fn is_by_network(&self, from_ns: i64, to_ns: i64) -> bool {
        let network_ns = self.network.error_ns(from_ns, to_ns);
        let pipe_ns = self.pipe.settled().error_ns(from_ns, to_ns);
        network_ns.is_some_and(|network_ns| pipe_ns.is_none_or(|pipe_ns| network_ns <= pipe_ns))
    }
}

impl Clocks {
    /// Takes what a process of a host said of clocks.
    pub(super) fn hear(&mut self, host: usize, line: &Line) {
        match line {
            Line::Exchange(exchange) => {
                if let Some(far) = self.far.get_mut(&host) {
                    far.pipe.note(*exchange);
                    far.exchanges += 1;
                }
            }
            Line::Event(PartEvent::Clock(Related { peer, window })) => {
                let is_reference = self.reference == Some(host);
                let asked = self.asked.get(*peer).filter(|_| is_reference);
                if let Some(far) = asked.and_then(|host| self.far.get_mut(host)) {
                    far.network.note_window(window);
                }
            }
            Line::Event(PartEvent::Sync(state)) => {
                self.sync.insert(host, state.clone());
            }
            _ => {}
        }
    }

    /// Returns the shift of the reference's clock to this machine's, by the narrowest exchange of its pipe.
    fn shift_ns(&self, reference: usize, at_ns: i64) -> i64 {
        let far = self.far.get(&reference);
        far.map_or(0, |far| -far.pipe.settled().offset_ns(at_ns))
    }

    /// Whether each host that was asked is related well between two times of this machine.
    fn way(&self, from_ns: i64, to_ns: i64) -> Way {
        let Some(reference) = self.reference else {
            return Way::Pipe;
        };
        if !self.far.contains_key(&reference) {
            return Way::Here;
        }
        let shift_ns = self.shift_ns(reference, from_ns);
        let near_ns = [from_ns, to_ns].map(|ns| ns.saturating_sub(shift_ns));
        let by_pipe_ns = |host: usize| {
            let pipe = self.far.get(&host).map(|far| far.pipe.settled());
            pipe.and_then(|pipe| pipe.error_ns(from_ns, to_ns))
        };
        let all = self.wanted.iter().all(|&host| {
            let far = self.far.get(&host);
            let bound_ns = far.and_then(|far| far.network.error_ns(near_ns[0], near_ns[1]));
            let by_pipe_ns = by_pipe_ns(host).zip(by_pipe_ns(reference));
            bound_ns.is_some_and(|ns| by_pipe_ns.is_none_or(|(one, other)| ns <= one + other))
        });
        if all { Way::Far(reference) } else { Way::Pipe }
    }

    /// Returns the far hosts as the join converts their times, by host.
    pub(super) fn far_hosts(
        &self,
        (start_ns, drained_ns): (i64, i64),
        until_ns: i64,
    ) -> BTreeMap<usize, FarHost> {
        let way = self.way(start_ns, drained_ns);
        let shift_ns = match way {
            Way::Far(reference) => self.shift_ns(reference, start_ns),
            Way::Pipe | Way::Here => 0,
        };
        let host = |(&host, far): (&usize, &FarClock)| {
            let clock = match way {
                Way::Far(reference) if host == reference => HostClock::itself(),
                Way::Far(_) => far.network.clone(),
                Way::Here if far.is_by_network(start_ns, drained_ns) => far.network.clone(),
                Way::Here | Way::Pipe => far.pipe.settled(),
            };
            let converted = FarHost {
                clock,
                reference_ns: shift_ns,
                start_ns: far.start_ns,
                near_start_ns: start_ns,
                until_ns,
            };
            (host, converted)
        };
        self.far.iter().map(host).collect()
    }

    /// Sets the start of the schedule on each far clock.
    pub(super) fn set_start(&mut self, start_ns: i64) {
        for far in self.far.values_mut() {
            far.start_ns = far.pipe.settled().to_far(start_ns);
        }
    }

    /// Hosts that were asked over the network and are related by the pipe all the same.
    fn silent(&self, start_ns: i64, until_ns: i64) -> Vec<usize> {
        let way = self.way(start_ns, until_ns);
        let by_pipe = |host: &&usize| match way {
            Way::Pipe => true,
            Way::Here => !self.far[host].is_by_network(start_ns, until_ns),
            Way::Far(_) => false,
        };
        self.wanted.iter().filter(by_pipe).copied().collect()
    }
}

/// The bounds of a latency's error: whatever the delays, and if the shortest of both directions are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClockError {
    pub(super) rigorous: Duration,
    pub(super) assumed: Option<Duration>,
}

impl Run<'_> {
    /// Starts the clock parts of real hosts that flows join. They may fail: the pipe relates the clocks then.
    pub(super) fn start_clocks(&mut self) -> Result<(), RunError> {
        let is_real = |&host: &usize| !matches!(self.planner.host(host).place, Place::Emulated(_));
        let is_here = |&host: &usize| matches!(self.planner.host(host).place, Place::Here);
        let flows = self.mission.flows.iter();
        let mut hosts: Vec<usize> = flows
            .flat_map(|flow| flow.to.iter().copied().chain([flow.from]))
            .filter(is_real)
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        let reference = hosts.iter().find(|host| is_here(host)).or(hosts.first());
        let Some(&reference) = reference else {
            return Ok(());
        };
        let asked: Vec<usize> = hosts
            .into_iter()
            .filter(|host| *host != reference && !is_here(host))
            .collect();
        if asked.is_empty() {
            return Ok(());
        }
        self.crew.clocks.wanted.clone_from(&asked);
        let mut answering = Vec::new();
        for &host in &asked {
            answering.push(self.start_clock(host, Vec::new())?);
        }
        self.wait_for_clocks(&answering)?;
        let endpoint = |&child: &usize| -> Option<SocketAddr> {
            let ready = self.crew.children[child].ready.as_ref()?;
            ready.endpoint.parse().ok()
        };
        let endpoints = answering.iter().map(endpoint);
        let answer: Vec<(usize, SocketAddr)> = asked
            .iter()
            .zip(endpoints)
            .filter_map(|(&host, endpoint)| Some((host, endpoint?)))
            .collect();
        self.crew.clocks.asked = answer.iter().map(|&(host, _)| host).collect();
        if answer.is_empty() {
            return Ok(());
        }
        self.crew.clocks.reference = Some(reference);
        let peers = answer.iter().map(|&(_, endpoint)| endpoint).collect();
        let asking = self.start_clock(reference, peers)?;
        self.wait_for_clocks(&[asking])
    }

    fn start_clock(&mut self, host: usize, peers: Vec<SocketAddr>) -> Result<usize, RunError> {
        let station = self.planner.host(host);
        let label = format!("clock part on {}", station.name);
        let plan = PartPlan::Clock(ClockPlan {
            address: station.address,
            peers,
        });
        self.start(Role::Clock { host }, label, host, of_part(plan))
    }

    fn wait_for_clocks(&mut self, parts: &[usize]) -> Result<(), RunError> {
        let patience = patience(parts.len());
        self.crew.wait(parts, patience, self.interrupt, |child| {
            child.ready.is_some()
        })
    }

    /// Waits for the first relation over the network of each host that is asked, but not for long: it may never come.
    pub(super) fn await_network_clocks(&mut self) -> Result<(), RunError> {
        let until = Instant::now() + NETWORK_CLOCK_PATIENCE;
        loop {
            let clocks = &self.crew.clocks;
            let is_known = |host: &usize| clocks.far[host].network.is_known();
            if clocks.asked.iter().all(is_known) || Instant::now() >= until {
                return Ok(());
            }
            if let Some(signal) = self.interrupt.received() {
                return Err(RunError::Interrupted { signal });
            }
            self.crew.turn(TURN_PATIENCE);
        }
    }

    /// Returns the bounds of the error of a latency between the two ends of a stream; zero if they read one clock.
    pub(super) fn clock_error(&self, stream: &Stream, measured: &Measured) -> ClockError {
        let hosts = &measured.far;
        let flow = self.planner.flow(stream);
        let machine = |host: usize| match &self.planner.host(host).place {
            Place::Far(_) => Some(host),
            Place::Emulated(_) | Place::Here => None,
        };
        let of_host = |host: usize| {
            let Some(far) = hosts
                .get(&host)
                .filter(|far| far.clock != HostClock::itself())
            else {
                return (Duration::ZERO, Some(Duration::ZERO));
            };
            let [from_ns, to_ns] = [measured.start_ns, measured.drained_ns]
                .map(|ns| ns.saturating_sub(far.reference_ns));
            let error_ns = far.clock.error_ns(from_ns, to_ns);
            let assumed_ns = far.clock.assumed_ns(from_ns, to_ns);
            (
                error_ns.map_or(CLOCK_UNKNOWN, Duration::from_nanos),
                assumed_ns.map(Duration::from_nanos),
            )
        };
        let sum = |to: usize| {
            let [(rigorous, assumed), (more, more_assumed)] = [to, flow.from].map(of_host);
            ClockError {
                rigorous: rigorous + more,
                assumed: assumed.zip(more_assumed).map(|(a, b)| a + b),
            }
        };
        let others = flow
            .to
            .iter()
            .filter(|&&to| machine(to) != machine(flow.from));
        let errors = others.map(|&to| sum(to));
        errors
            .max_by_key(|error| error.rigorous)
            .unwrap_or_default()
    }

    /// Returns what keeps the hosts' clocks right, by host; of this machine under the name of its first host.
    pub(super) fn sync_states(&self) -> BTreeMap<String, SyncState> {
        let name = |host: usize| self.planner.host(host).name.clone();
        let sync = &self.crew.clocks.sync;
        let mut states: BTreeMap<String, SyncState> = sync
            .iter()
            .map(|(&host, state)| (name(host), state.clone()))
            .collect();
        states
            .entry(THIS_MACHINE.to_owned())
            .or_insert_with(|| sync_state(0));
        states
    }

    /// Adds the warnings on far hosts: what was not read there, and clocks that cannot be trusted.
    pub(super) fn warn_of_far_hosts(&mut self, measured: &Measured) {
        let clocks = &self.crew.clocks;
        let name = |host: usize| self.planner.host(host).name.clone();
        if clocks.far.is_empty() {
            return;
        }
        let names: Vec<String> = clocks.far.keys().map(|&host| name(host)).collect();
        let mut cautions = Vec::new();
        for (&host, far) in &clocks.far {
            let used = measured.far.get(&host).map(|far| &far.clock);
            let contradictions = used.map_or(0, HostClock::contradictions);
            if contradictions > 0 || !far.pipe.is_known() {
                let host = name(host);
                cautions.push(Caution::FarClock {
                    host,
                    contradictions,
                });
            }
        }
        let silent = clocks.silent(measured.start_ns, measured.drained_ns);
        if !silent.is_empty() {
            let hosts: Vec<String> = silent.into_iter().map(name).collect();
            let is_clock = |label: &str| {
                let children = self.crew.children.iter();
                let mut clocks = children.filter(|child| matches!(child.role, Role::Clock { .. }));
                clocks.any(|child| child.label == label)
            };
            let starved = measured.taken.iter().map(|taken| &taken.time);
            let starved = starved.filter(|time| is_clock(&time.part));
            cautions.push(Caution::ClockByPipe {
                hosts: hosts.join(", "),
                starved: starved.max_by_key(|time| time.time).cloned(),
            });
        }
        let set = clocks.sync.iter().filter(|(_, state)| state.steps > 0);
        cautions.extend(set.map(|(&host, state)| Caution::HostClockSet {
            host: name(host),
            times: state.steps,
        }));
        let hosts = names.join(", ");
        cautions.push(Caution::FarHosts { hosts });
        self.warnings
            .extend(cautions.into_iter().map(Warning::from));
    }
}

/// The error of a clock that nothing bounds.
const CLOCK_UNKNOWN: Duration = Duration::from_secs(3600);

/// Stands for the machine of the coordinator among the hosts.
const THIS_MACHINE: &str = "this machine";
