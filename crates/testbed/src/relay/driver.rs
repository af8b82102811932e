//! The driver of a relay: carries real frames between the switch-side ends of the hosts' interfaces.
//!
//! It runs as a process of its own, in the network namespace of the switch. The kernel's arrival stamps are the arrivals
//! of the computation, so that a late wake-up delays one departure and falsifies no other. [`super::process`] starts it.

mod clock;
mod pool;

use std::collections::BTreeMap;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::time::Duration;

use deckwatch_os::clock::monotonic_ns;
use deckwatch_os::frames::{Arrived, BATCH_MAX, FrameSocket};
use deckwatch_os::schedule::{self, Class};
use deckwatch_os::{memory, socket, stamp, tap};
use serde::{Deserialize, Serialize};

use self::clock::StampClock;
use self::pool::Pool;
use super::control::{Answer, CONTROL_PORT, Order};
use super::{Head, Ledger, Relay};
use crate::layout::Layout;
use crate::limits::{RELAY_FRAME_BYTES_EXTRA, RELAY_RECEIVE_BUFFER_BYTES};
use crate::recipe;

/// What the process of a relay carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayPlan {
    /// The network.
    pub layout: Layout,
    /// The seed of all that is random.
    pub seed: u64,
    /// Whether the relay never sleeps, and so is not woken late.
    pub spins: bool,
    /// Whether the relay ends with its standard input. A kept one ends with its namespace.
    pub ends_with_input: bool,
}

/// What a relay has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayState {
    /// Where all frames went.
    pub ledger: Ledger,
    /// Frames that the relay was too late to receive.
    pub overflowed: u64,
    /// Frames that the kernel did not take.
    pub refused: u64,
    /// Frames sent to hosts.
    pub sent: u64,
    /// The sum of their lateness, nanoseconds after they were due.
    pub lateness_ns_sum: u64,
    /// The largest lateness.
    pub lateness_ns_max: u64,
}

/// A relay with its sockets.
pub(super) struct Driver {
    relay: Relay<Rc<Vec<u8>>>,
    frames: FrameSocket,
    control: UdpSocket,
    /// The host behind each interface, by the interface's index.
    hosts: BTreeMap<u32, usize>,
    /// The interface of each host, where it has one.
    interfaces: Vec<Option<u32>>,
    buffers: Vec<Vec<u8>>,
    pool: Pool,
    clock: StampClock,
    /// How much earlier than due frames are sent.
    lead_ns: u64,
    spins: bool,
    state: RelayState,
}

impl Driver {
    /// Opens everything; frames arrive from now on.
    pub(super) fn open(plan: &RelayPlan) -> io::Result<Self> {
        let relay = Relay::new(&plan.layout, plan.seed)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let frame_bytes = plan.layout.mtu_bytes() as usize + RELAY_FRAME_BYTES_EXTRA;
        // Without the privilege the relay pages as any process.
        let _ = memory::lock_on_fault(); // A late frame shows in the lateness.
        memory::prefault_stack();
        let mut pool = Pool::new(frame_bytes);
        let frames = FrameSocket::open(RELAY_RECEIVE_BUFFER_BYTES)?;
        if !stamp::await_stamps(STAMPS_WAIT) {
            return Err(io::Error::other("the kernel does not stamp what arrives"));
        }
        let control = UdpSocket::bind(("127.0.0.1", CONTROL_PORT))?;
        control.set_nonblocking(true)?;
        let found = tap::interfaces()?;
        let index_of = |host: usize| {
            let name = recipe::port_name(host + 1);
            let interface = found.iter().find(|one| one.name == name)?;
            Some(interface.index)
        };
        let interfaces: Vec<Option<u32>> = (0..plan.layout.hosts.len()).map(index_of).collect();
        let hosts = interfaces.iter().enumerate();
        frames.start()?;
        Ok(Self {
            relay,
            frames,
            control,
            hosts: hosts
                .filter_map(|(host, index)| Some(((*index)?, host)))
                .collect(),
            interfaces,
            buffers: (0..BATCH_MAX).map(|_| pool.take()).collect(),
            pool,
            clock: StampClock::new(),
            lead_ns: 0,
            spins: plan.spins,
            state: RelayState::default(),
        })
    }

    /// Carries frames until something can be read from `input`, or it ends; for ever without one.
    pub(super) fn run(&mut self, input: Option<BorrowedFd<'_>>) -> io::Result<()> {
        // A thread that blocks whenever no frame is due may be real-time. One that spins would stop its processor: it
        // leaves a real-time class that it has from its caller.
        if self.spins {
            schedule::set_class(Class::Other)?;
        } else if schedule::limit_real_time(UNBLOCKED_MAX).is_ok() {
            // Without the privilege the class stays time sharing. A late frame shows in the lateness.
            let _ = schedule::set_class(Class::Fifo(PRIORITY));
        }
        schedule::set_timer_slack(Duration::from_nanos(1));
        let mut blocked_at_ns = monotonic_ns();
        loop {
            let begun_ns = monotonic_ns();
            let due_ns = match self.spins {
                true => Some(begun_ns),
                false => self.relay.next_due(self.lead_ns).map(u64::cast_signed),
            };
            let own = [self.frames.as_fd(), self.control.as_fd()];
            let [_, ordered, ended] = match input {
                Some(input) => socket::readable([own[0], own[1], input], due_ns),
                None => {
                    let [came, ordered] = socket::readable(own, due_ns);
                    [came, ordered, false]
                }
            };
            let now_ns = monotonic_ns();
            if now_ns - begun_ns > BLOCKED_NS {
                blocked_at_ns = now_ns;
            } else if !self.spins && now_ns - blocked_at_ns > UNBLOCKED_NS {
                // A real-time thread that never blocks would stop the processes that it serves.
                std::thread::sleep(REST);
                blocked_at_ns = monotonic_ns();
            }
            self.receive()?;
            self.depart();
            if ordered {
                self.handle_orders();
            }
            if ended {
                return Ok(());
            }
        }
    }

    /// Takes all frames that have arrived.
    fn receive(&mut self) -> io::Result<()> {
        let mut arrived = [Arrived::default(); BATCH_MAX];
        for _ in 0..BATCHES_MAX {
            let got = match self.frames.receive(&mut self.buffers, &mut arrived) {
                Ok(got) => got,
                // An interface went down: its host is being removed.
                Err(error) if error.kind() == io::ErrorKind::NetworkDown => continue,
                Err(error) => return Err(error),
            };
            let now_ns = monotonic_ns();
            self.clock.refresh(now_ns);
            for (index, frame) in arrived[..got].iter().enumerate() {
                self.take(index, frame, now_ns);
            }
            if got < BATCH_MAX {
                break;
            }
        }
        self.state.overflowed += u64::from(self.frames.take_dropped()?);
        Ok(())
    }

    fn take(&mut self, index: usize, arrived: &Arrived, now_ns: i64) {
        // `lo` is no host's.
        let Some(&host) = self.hosts.get(&arrived.interface) else {
            return;
        };
        let octets = &mut self.buffers[index][..arrived.len];
        if recipe::is_echo_request(octets) {
            recipe::turn_back(octets);
            // The host asks again.
            let _ = self.frames.send(arrived.interface, octets);
            return;
        }
        let (Some(head), false) = (Head::parse(octets), arrived.truncated) else {
            self.state.refused += 1;
            return;
        };
        let mut frame = std::mem::replace(&mut self.buffers[index], self.pool.take());
        frame.truncate(arrived.len);
        let at_ns = self.clock.arrival(arrived.realtime_ns, now_ns);
        self.relay
            .arrive(at_ns.cast_unsigned(), host, head, Rc::new(frame));
    }

    /// Sends all frames that are due.
    fn depart(&mut self) {
        let mut now_ns = monotonic_ns().cast_unsigned();
        while let Some(departure) = self.relay.poll(now_ns, self.lead_ns) {
            // A host of the layout that this testbed does not have.
            if let Some(interface) = self.interfaces.get(departure.host).copied().flatten() {
                now_ns = monotonic_ns().cast_unsigned();
                match self.frames.send(interface, &departure.frame) {
                    Ok(()) => self.state.sent += 1,
                    Err(_) => self.state.refused += 1,
                }
                self.learn(now_ns.cast_signed() - departure.due_ns.cast_signed());
            }
            if let Ok(frame) = Rc::try_unwrap(departure.frame) {
                self.pool.put(frame);
            }
        }
    }

    /// Adapts the lead to the time that a wake-up by the timer takes. A frame that is early counts four times: no real
    /// line is faster than its rate.
    fn learn(&mut self, late_ns: i64) {
        let late_max = late_ns.max(0).cast_unsigned();
        self.state.lateness_ns_sum += late_max;
        self.state.lateness_ns_max = self.state.lateness_ns_max.max(late_max);
        let weight = if late_ns < 0 { EARLY_WEIGHT } else { 1 };
        let step_ns = late_ns.clamp(-LEARNED_NS_MAX, LEARNED_NS_MAX) * weight / LEARNED_PART;
        let lead_ns = self.lead_ns.cast_signed() + step_ns;
        self.lead_ns = lead_ns.clamp(0, LEAD_NS_MAX).cast_unsigned();
    }

    fn handle_orders(&mut self) {
        let mut octets = [0; ORDER_BYTES_MAX];
        while let Ok((len, from)) = self.control.recv_from(&mut octets) {
            let answer = match serde_json::from_slice(&octets[..len]) {
                Ok(order) => self.handle(&order),
                Err(error) => Answer::Refused(error.to_string()),
            };
            if let Ok(text) = serde_json::to_vec(&answer) {
                // The sender asks again.
                let _ = self.control.send_to(&text, from);
            }
        }
    }

    fn handle(&mut self, order: &Order) -> Answer {
        let now_ns = monotonic_ns().cast_unsigned();
        match *order {
            Order::Hold { host } => self.relay.hold(host),
            Order::Release { host } => self.relay.release(now_ns, host),
            Order::Lose { host, every } => self.relay.lose(host, every),
            Order::Count { host } => {
                let counts = self.relay.counts_to(host);
                return Answer::Count(counts.unwrap_or_default());
            }
            Order::State => {
                self.state.ledger = self.relay.ledger();
                return Answer::State(self.state);
            }
        }
        self.depart();
        Answer::Done
    }
}

/// Above the priorities of missions: the network does not wait for what uses it.
const PRIORITY: u8 = 90;
/// A wait that took longer did block.
const BLOCKED_NS: i64 = 10_000;
/// Longest time without blocking, and the rest after it: a thousandth of the time stays for time-sharing processes.
const UNBLOCKED_NS: i64 = 100_000_000;
const REST: Duration = Duration::from_micros(100);
/// The kernel ends a relay that has not blocked for so long: its own rests have failed.
const UNBLOCKED_MAX: Duration = Duration::from_secs(1);
/// A wake-up on an idle machine takes 5 to 30 us.
const LEAD_NS_MAX: i64 = 40_000;
/// What one frame adds to the lead: a 32nd of its lateness; a stall counts as 40 us.
const LEARNED_PART: i64 = 32;
const LEARNED_NS_MAX: i64 = 40_000;
const EARLY_WEIGHT: i64 = 4;
/// Batches received before departures are looked after.
const BATCHES_MAX: usize = 4;
/// Longest order, octets of JSON.
const ORDER_BYTES_MAX: usize = 512;
/// The kernel begins to stamp arrivals some time after it was asked to.
const STAMPS_WAIT: Duration = Duration::from_secs(10);
