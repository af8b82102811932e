//! Loads on links: messages over UDP or TCP to a sink, by a schedule or as fast as the socket takes them. What passes the
//! interface is read from the kernel's counters.

mod interface;
mod sink;
mod source;
mod wire;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use deckwatch_meter::pacing::Arrivals;
use deckwatch_meter::result::Fidelity;
use deckwatch_os::clock::{monotonic_ns, sleep_until};
use deckwatch_testbed::{LinkSpec, NetworkSpec};
use serde::{Deserialize, Serialize};

use self::interface::Counters;
pub(crate) use self::sink::run as receive;
pub use self::sink::{Received, SinkPlan};
pub use self::wire::Protocol;
use self::wire::{Framing, Octets};
use crate::held::Unit;
use crate::limits::{BURST_MAX, MESSAGE_OCTETS_MAX, MESSAGE_OCTETS_MIN};
use crate::{Held, LoadError, LoadReport, Second, Stop};

/// A load on a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetPlan {
    /// The sink.
    pub to: SocketAddr,
    /// How messages are carried.
    pub protocol: Protocol,
    /// Octets of a message.
    pub size_octets: u32,
    /// How many messages.
    pub pace: Pace,
    /// When they are due.
    pub pattern: Pattern,
    /// The link between the hosts, if it is known.
    pub link: Option<LinkSpec>,
    /// Size of the socket's send buffer.
    pub buffer: Buffer,
    /// The interface whose counters are read; the one that leads to the sink if not given.
    pub interface: Option<String>,
    /// Time in which the sink must be there. Zero: datagrams are sent whether or not it is.
    pub patience: Duration,
}

/// The number of messages of a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// As many as the socket takes.
    Flood,
    /// Payload, in bits a second.
    Rate {
        /// Bits a second.
        bits_per_s: f64,
    },
    /// A part of the link's rate, with all that frames add.
    Share {
        /// Above 0, at most 1.
        share: f64,
    },
}

/// The arrival process of the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Equal gaps.
    #[default]
    Constant,
    /// Independent, exponentially distributed gaps.
    Poisson {
        /// Seed of the gaps.
        seed: u64,
    },
    /// So many messages at once, in equal gaps.
    Bursts {
        /// Messages of a burst.
        size: u32,
    },
}

/// The size of a socket's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Buffer {
    /// The system's default.
    #[default]
    Default,
    /// The largest that the system allows to every process.
    Max,
    /// Octets.
    Octets(u32),
}

/// What a load on a link has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Messages that the socket took.
    pub messages: u64,
    /// Their octets.
    pub octets: u64,
    /// Messages that the socket refused.
    pub errors: u64,
    /// Of these, refusals because an earlier datagram found nobody who listens there.
    #[serde(default)]
    pub unheard: u64,
    /// Packets that the interface dropped.
    pub interface_drops: u64,
    /// The longest time that a message was sent after it was due.
    pub late_max: Duration,
}

/// Counts of a sender, read by the thread that watches.
#[derive(Debug, Default)]
struct Sending {
    messages: AtomicU64,
    octets: AtomicU64,
    errors: AtomicU64,
    unheard: AtomicU64,
    late_ns_max: AtomicU64,
}

impl NetPlan {
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        if !(MESSAGE_OCTETS_MIN..=MESSAGE_OCTETS_MAX).contains(&self.size_octets) {
            return Err(LoadError::MessageSize);
        }
        match self.pace {
            Pace::Flood => {}
            Pace::Rate { bits_per_s } if !(bits_per_s > 0.0 && bits_per_s.is_finite()) => {
                return Err(LoadError::Rate);
            }
            Pace::Share { .. } if self.link.is_none() => return Err(LoadError::NoLink),
            Pace::Share { share } if !(share > 0.0 && share <= 1.0) => {
                return Err(LoadError::Share { share });
            }
            Pace::Rate { .. } | Pace::Share { .. } => {}
        }
        match self.pattern {
            Pattern::Bursts { size } if size == 0 || size > BURST_MAX => Err(LoadError::BurstSize),
            _ => Ok(()),
        }
    }

    /// How the messages become packets. TCP_NODELAY is set: a message that is due alone has segments of its own.
    fn framing(&self) -> Framing {
        match (self.protocol, self.pace) {
            (Protocol::Udp, _) => Framing::Datagrams,
            (Protocol::Tcp, Pace::Flood) => Framing::FullSegments,
            (Protocol::Tcp, _) => Framing::OwnSegments,
        }
    }

    /// Returns the schedule's arrivals; `None` for a flood.
    fn arrivals(&self, octets: Octets) -> Result<Option<Arrivals>, LoadError> {
        let messages_per_s = match self.pace {
            Pace::Flood => return Ok(None),
            Pace::Rate { bits_per_s } => bits_per_s / 8.0 / f64::from(self.size_octets),
            Pace::Share { share } => {
                let rate = self.link.as_ref().map_or(0, |link| link.rate_bits_per_s);
                share * rate as f64 / 8.0 / octets.line
            }
        };
        let gap = |messages: u32| {
            let gap = Duration::try_from_secs_f64(f64::from(messages) / messages_per_s);
            gap.ok().filter(|gap| !gap.is_zero()).ok_or(LoadError::Rate)
        };
        Ok(Some(match self.pattern {
            Pattern::Constant => Arrivals::Periodic { period: gap(1)? },
            Pattern::Poisson { seed } => Arrivals::Poisson {
                mean_period: gap(1)?,
                seed,
            },
            Pattern::Bursts { size } => Arrivals::Bursts {
                period: gap(size)?,
                size,
                gap: Duration::ZERO,
            },
        }))
    }

    /// Returns the target, and its unit.
    fn target(&self) -> (Option<f64>, Unit) {
        match self.pace {
            // A link's use is of more interest than its rate.
            Pace::Flood if self.link.is_some() => (None, Unit::Share),
            Pace::Flood => (None, Unit::BitsPerS),
            Pace::Rate { bits_per_s } => (Some(bits_per_s), Unit::BitsPerS),
            Pace::Share { share } => (Some(share), Unit::Share),
        }
    }
}

/// Returns what an emulated network does as a real one, and what it does not, as results state it. Returns `None` on
/// loopback.
#[must_use]
pub fn fidelity(network: &NetworkSpec) -> Option<Fidelity> {
    let found = deckwatch_testbed::Fidelity::of(network)?;
    Some(Fidelity {
        emulated: found.emulated,
        not_emulated: found.not_emulated,
    })
}

/// Carries out the load until it is stopped or `end` has come.
pub(crate) fn run(
    plan: &NetPlan,
    stop: &Stop,
    end: Instant,
    tell: &mut dyn FnMut(&Second),
) -> Result<LoadReport, LoadError> {
    let interface = match &plan.interface {
        Some(name) => name.clone(),
        None => interface::leading_to(plan.to.ip())
            .map_err(LoadError::system("Reading the routes"))?
            .ok_or(LoadError::NoInterface { to: plan.to })?,
    };
    source::wait_for_sink(plan, stop)?;
    let socket = source::Socket::open(plan)?;
    let mtu = plan
        .link
        .as_ref()
        .map_or(socket.mtu(), |link| link.mtu_bytes);
    let octets = Octets::of(plan.framing(), plan.size_octets, mtu, plan.link.as_ref());
    let arrivals = plan.arrivals(octets)?;
    let sending = Sending::default();
    // Ends the sender also after an error of the watch.
    let over = Stop::default();
    let mut watch = Watch::new(plan, interface, octets, &sending)?;
    let sent = std::thread::scope(|scope| {
        let send = || source::send(plan, socket, arrivals, end, &over, &sending);
        let sender = scope.spawn(send);
        let ends = || stop.is_set() || sender.is_finished();
        let watched = watch.until(&ends, end, tell);
        over.set();
        let sent = sender.join();
        watched.and(sent.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    sent?;
    let dropped = watch.now()?.counters.dropped - watch.first.counters.dropped;
    Ok(LoadReport {
        held: vec![watch.held],
        sent: Some(Sent {
            messages: sending.messages.load(Relaxed),
            octets: sending.octets.load(Relaxed),
            errors: sending.errors.load(Relaxed),
            unheard: sending.unheard.load(Relaxed),
            interface_drops: dropped,
            late_max: Duration::from_nanos(sending.late_ns_max.load(Relaxed)),
        }),
        ..LoadReport::default()
    })
}

/// Counters of the interface and of the sender at one time.
#[derive(Clone, Copy)]
struct Moment {
    at_ns: i64,
    counters: Counters,
    messages: u64,
}

/// Reads the interface once a second.
struct Watch<'s> {
    interface: String,
    sending: &'s Sending,
    target: Option<f64>,
    unit: Unit,
    /// Converts octets of the interface to the target's unit, for one second.
    unit_of_octet: f64,
    /// The same of one message of the load.
    unit_of_message: f64,
    first: Moment,
    held: Held,
}

impl<'s> Watch<'s> {
    fn new(
        plan: &NetPlan,
        interface: String,
        octets: Octets,
        sending: &'s Sending,
    ) -> Result<Self, LoadError> {
        let (target, unit) = plan.target();
        let rate = plan.link.as_ref().map(|link| link.rate_bits_per_s as f64);
        let unit_of_message = match unit {
            Unit::Share => octets.line * 8.0 / rate.unwrap_or(1.0),
            // A plan has no other units.
            Unit::BitsPerS | Unit::Octets | Unit::OctetsPerS => f64::from(plan.size_octets) * 8.0,
        };
        let first = moment(&interface, sending)?;
        Ok(Self {
            target,
            unit,
            // Frames of others are taken to have the shape of this load's.
            unit_of_octet: unit_of_message / octets.interface,
            unit_of_message,
            first,
            held: Held {
                of: format!("{interface} to {}", plan.to.ip()),
                asked: target,
                unit,
                ..Held::default()
            },
            interface,
            sending,
        })
    }

    fn now(&self) -> Result<Moment, LoadError> {
        moment(&self.interface, self.sending)
    }

    fn until(
        &mut self,
        ends: &dyn Fn() -> bool,
        end: Instant,
        tell: &mut dyn FnMut(&Second),
    ) -> Result<(), LoadError> {
        let mut last = self.first;
        let mut at_s = 0;
        while !ends() && Instant::now() < end {
            sleep_until(monotonic_ns() + LOOK_NS);
            let now = self.now()?;
            let seconds = (now.at_ns - last.at_ns) as f64 / 1e9;
            if seconds < 1.0 {
                continue;
            }
            at_s += 1;
            let octets = now.counters.octets.saturating_sub(last.counters.octets) as f64;
            let messages = (now.messages - last.messages) as f64;
            let second = Second {
                at_s,
                index: 0,
                of: self.held.of.clone(),
                asked: self.target,
                unit: self.unit,
                achieved: octets * self.unit_of_octet / seconds,
                own: messages * self.unit_of_message / seconds,
                stolen: 0.0,
            };
            if at_s > 1 {
                self.held.add(&second);
            }
            tell(&second);
            last = now;
        }
        Ok(())
    }
}

fn moment(interface: &str, sending: &Sending) -> Result<Moment, LoadError> {
    let at_ns = monotonic_ns();
    let read = interface::read(interface);
    let unknown = |error| LoadError::Interface {
        name: interface.to_owned(),
        error,
    };
    Ok(Moment {
        at_ns,
        counters: read.map_err(unknown)?,
        messages: sending.messages.load(Relaxed),
    })
}

/// Interval of the looks at the clock, and at whether the sender has ended.
const LOOK_NS: i64 = 20_000_000;

#[cfg(test)]
mod tests {
    use deckwatch_testbed::preset;

    use super::*;

    fn plan(pace: Pace, pattern: Pattern) -> NetPlan {
        NetPlan {
            to: "127.0.0.1:9".parse().expect("an address"),
            protocol: Protocol::Udp,
            size_octets: 1_472,
            pace,
            pattern,
            link: preset("fast-ethernet").expect("a preset").link(),
            buffer: Buffer::Default,
            interface: None,
            patience: Duration::ZERO,
        }
    }

    fn rate_hz(plan: &NetPlan) -> f64 {
        let link = plan.link.as_ref();
        let octets = Octets::of(plan.framing(), plan.size_octets, 1_500, link);
        let arrivals = plan.arrivals(octets).expect("sound");
        arrivals.expect("no flood").rate_hz()
    }

    #[test]
    fn a_share_of_a_link_counts_all_that_a_frame_adds() {
        // 100 Mb/s carry 8,127.4 frames of 1,538 octets.
        let full = 1e8 / 8.0 / 1_538.0;
        for pattern in [
            Pattern::Constant,
            Pattern::Poisson { seed: 3 },
            Pattern::Bursts { size: 8 },
        ] {
            let found = rate_hz(&plan(Pace::Share { share: 0.5 }, pattern));
            assert!((found / full - 0.5).abs() < 1e-4, "{pattern:?}: {found}");
        }
        let payload = rate_hz(&plan(
            Pace::Rate {
                bits_per_s: 1_472.0 * 80.0,
            },
            Pattern::Constant,
        ));
        assert!((payload - 10.0).abs() < 1e-6);
    }

    #[test]
    fn plans_that_no_link_carries_are_refused() {
        let share = |share| plan(Pace::Share { share }, Pattern::Constant);
        assert!(share(1.0).check().is_ok());
        assert!(matches!(share(1.1).check(), Err(LoadError::Share { .. })));
        let mut unknown = share(0.5);
        unknown.link = None;
        assert!(matches!(unknown.check(), Err(LoadError::NoLink)));
        let mut short = share(0.5);
        short.size_octets = 7;
        assert!(matches!(short.check(), Err(LoadError::MessageSize)));
        let endless = Pace::Rate {
            bits_per_s: f64::INFINITY,
        };
        assert!(matches!(
            plan(endless, Pattern::Constant).check(),
            Err(LoadError::Rate)
        ));
        let empty = plan(Pace::Flood, Pattern::Bursts { size: 0 });
        assert!(matches!(empty.check(), Err(LoadError::BurstSize)));
    }
}
