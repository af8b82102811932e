//! A mission's messages through its network in virtual time: what the network alone makes late or loses.
//!
//! Hosts cost nothing here. A message is at its host's interface when it is due, and at its destination when the last bit
//! of its last frame is there.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use deckwatch_carrier::body::{Body, BodyError};
use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_meter::pacing::{Due, Dues};
use deckwatch_meter::statistics::percentiles;
use deckwatch_testbed::Layout;
use deckwatch_testbed::relay::{Band, Departure, Destination, Head, Relay};
use serde::Serialize;

use crate::limits::SIMULATED_FRAMES_MAX;
use crate::mission::Mission;
use crate::stream::{StreamError, streams};

/// What the network did with a mission's messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulation {
    /// Name of the mission.
    pub mission: String,
    /// The network's name.
    pub network: String,
    /// The seed of losses, jitter and reordering.
    pub seed: u64,
    /// Frames that hosts sent.
    pub frames: u64,
    /// Frames that a full queue dropped.
    pub queue_full: u64,
    /// Frames that a link lost by chance.
    pub lost_by_chance: u64,
    /// Each flow over each carrier, at each destination.
    pub flows: Vec<SimulatedFlow>,
}

/// The judged messages of a flow at one destination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulatedFlow {
    /// Name of the flow.
    pub flow: String,
    /// Its carrier.
    pub carrier: CarrierRef,
    /// The destination.
    pub to: String,
    /// Messages that were due.
    pub messages: u64,
    /// Messages of which a frame was lost.
    pub lost: u64,
    /// Median of the network latency, nanoseconds; `None` if the sample does not support it.
    pub median_ns: Option<i64>,
    /// Its 99th percentile.
    pub p99_ns: Option<i64>,
    /// The longest one that arrived.
    pub max_ns: Option<i64>,
    /// The deadline.
    pub deadline_ns: u64,
    /// Messages that were lost, or late by the network alone.
    pub late: u64,
    /// The share of these.
    pub late_share: f64,
}

/// The reason why a mission cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// A schedule cannot be made.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A body cannot be made.
    #[error("The messages of flow {flow} cannot be made: {reason}")]
    Body {
        /// The flow.
        flow: String,
        /// Why.
        reason: BodyError,
    },
    /// There are no lines.
    #[error(
        "The mission's hosts have no emulated network. Name one with --network, for example gigabit-ethernet."
    )]
    NoNetwork,
    /// A host is not on the network.
    #[error(
        "The host {0} is not on the network. Add it to the network file, or name another network."
    )]
    NoSuchHost(String),
    /// It would take too long.
    #[error(
        "The mission sends about {frames:.0} frames, and at most {SIMULATED_FRAMES_MAX} are simulated. Shorten it with --duration or --count."
    )]
    TooLong {
        /// Frames, warm-up included.
        frames: f64,
    },
}

/// Simulates the network of a mission. `tell` hears the share of the frames that was sent.
///
/// # Errors
/// [`SimulateError`].
pub fn simulate(mission: &Mission, tell: &mut dyn FnMut(f64)) -> Result<Simulation, SimulateError> {
    let names = mission.hosts.iter().map(|host| host.name.clone()).collect();
    let layout = mission.network.layout_for(names);
    let layout = layout.filter(|_| mission.emulates());
    let layout = layout.ok_or(SimulateError::NoNetwork)?;
    let mut sources = sources(mission, &layout)?;
    let frames: f64 = sources.iter().map(Source::expected_frames).sum();
    if frames > SIMULATED_FRAMES_MAX as f64 {
        return Err(SimulateError::TooLong { frames });
    }
    let seed = mission.network.seed;
    let relay = Relay::new(&layout, seed);
    let mut relay = relay.unwrap_or_else(|_| unreachable!("a network file was checked"));
    let mut next: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
    let mut dues: Vec<Dues> = Vec::new();
    let mut waiting: Vec<Option<Due>> = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let mut own = source.dues.clone();
        let first = own.next();
        next.extend(first.map(|due| Reverse((due.due_ns, index))));
        waiting.push(first);
        dues.push(own);
    }
    let mut sent = 0;
    while let Some(Reverse((due_ns, index))) = next.pop() {
        let Some(due) = waiting[index] else { continue };
        let at_ns = u64::try_from(due_ns).unwrap_or(0);
        while let Some(departure) = relay.poll(at_ns, 0) {
            take(&mut sources, &departure);
        }
        let before = sent;
        sent += sources[index].send(&mut relay, due, index);
        if before / TELL_FRAMES != sent / TELL_FRAMES {
            tell(sent as f64 / frames);
        }
        waiting[index] = dues[index].next();
        next.extend(waiting[index].map(|due| Reverse((due.due_ns, index))));
    }
    while let Some(departure) = relay.poll(u64::MAX, 0) {
        take(&mut sources, &departure);
    }
    let lines = relay.ledger().lines;
    Ok(Simulation {
        mission: mission.name.clone(),
        network: mission.network.name.clone(),
        seed,
        frames: sent,
        queue_full: lines.queue_full,
        lost_by_chance: lines.lost,
        flows: sources.into_iter().flat_map(Source::found).collect(),
    })
}

/// A part of a message.
#[derive(Clone, Copy, Debug)]
struct Fragment {
    source: usize,
    destination: usize,
    sequence: u64,
    number: usize,
}

/// One flow over one carrier.
struct Source {
    flow: String,
    carrier: CarrierRef,
    from: usize,
    band: Band,
    deadline_ns: u64,
    dues: Dues,
    expected: f64,
    /// Octets of the IP packets of a message.
    packets: Vec<u32>,
    destinations: Vec<Receiving>,
}

/// The messages of a flow at one destination.
struct Receiving {
    host: usize,
    name: String,
    /// Messages that are not whole: when they were due, and which fragments are missing.
    incomplete: HashMap<u64, (Due, Vec<bool>)>,
    messages: u64,
    latencies_ns: Vec<i64>,
}

fn sources(mission: &Mission, layout: &Layout) -> Result<Vec<Source>, SimulateError> {
    let place = |host: usize| {
        let name = &mission.hosts[host].name;
        let found = layout.hosts.iter().position(|other| other == name);
        found.ok_or_else(|| SimulateError::NoSuchHost(name.clone()))
    };
    let of = |stream: crate::stream::Stream| {
        let flow = &mission.flows[stream.flow];
        let body = Body::new(&flow.body).map_err(|reason| SimulateError::Body {
            flow: flow.name.clone(),
            reason,
        })?;
        let receiving = |to: &usize| {
            Ok(Receiving {
                host: place(*to)?,
                name: mission.hosts[*to].name.clone(),
                incomplete: HashMap::new(),
                messages: 0,
                latencies_ns: Vec::new(),
            })
        };
        let destinations = flow.to.iter().map(receiving);
        Ok(Source {
            flow: flow.name.clone(),
            carrier: stream.plan.carrier,
            from: place(flow.from)?,
            band: Band::of_dscp(flow.network_priority.dscp.unwrap_or(0)),
            deadline_ns: u64::try_from(flow.deadline.as_nanos()).unwrap_or(u64::MAX),
            dues: stream.plan.schedule.dues(),
            expected: stream.plan.schedule.expected_messages(),
            packets: packets(body.octets().len() as u64, layout.mtu_bytes()),
            destinations: destinations.collect::<Result<_, SimulateError>>()?,
        })
    };
    streams(mission)?.into_iter().map(of).collect()
}

/// The IP packets of a datagram, octets: fragments but the last carry a multiple of eight (RFC 791).
fn packets(body: u64, mtu: u32) -> Vec<u32> {
    let whole = body + UDP_HEADER;
    let most = (u64::from(mtu).saturating_sub(IP_HEADER) / 8 * 8).max(8);
    let count = whole.div_ceil(most);
    let octets = |index: u64| (whole - index * most).min(most) + IP_HEADER;
    // An unfragmented packet may use the MTU to its last octet.
    if whole + IP_HEADER <= u64::from(mtu) {
        return vec![(whole + IP_HEADER) as u32];
    }
    (0..count).map(|index| octets(index) as u32).collect()
}

impl Source {
    fn expected_frames(&self) -> f64 {
        self.expected * (self.packets.len() * self.destinations.len()) as f64
    }

    /// Sends a message to every destination, one after the other. Returns the number of frames.
    fn send(&mut self, relay: &mut Relay<Fragment>, due: Due, source: usize) -> u64 {
        let at_ns = u64::try_from(due.due_ns).unwrap_or(0);
        for (destination, of) in self.destinations.iter_mut().enumerate() {
            of.messages += u64::from(!due.warm_up);
            let missing = vec![true; self.packets.len()];
            of.incomplete.insert(due.sequence, (due, missing));
            for (number, &packet_bytes) in self.packets.iter().enumerate() {
                let head = Head {
                    to: Destination::Host(of.host),
                    packet_bytes,
                    band: self.band,
                };
                let fragment = Fragment {
                    source,
                    destination,
                    sequence: due.sequence,
                    number,
                };
                relay.arrive(at_ns, self.from, head, fragment);
            }
        }
        (self.packets.len() * self.destinations.len()) as u64
    }

    fn found(self) -> Vec<SimulatedFlow> {
        let (flow, carrier, deadline_ns) = (self.flow, self.carrier, self.deadline_ns);
        let each = self.destinations.into_iter().map(|of| {
            let arrived = of.latencies_ns.len() as u64;
            let lost = of.messages.saturating_sub(arrived);
            let is_late = |ns: &&i64| u64::try_from(**ns).is_ok_and(|ns| ns > deadline_ns);
            let late = lost + of.latencies_ns.iter().filter(is_late).count() as u64;
            let known = percentiles(&of.latencies_ns, lost);
            let percentile = |name: &str| {
                let found = known.iter().find(|one| one.name == name);
                found.map(|one| one.value)
            };
            SimulatedFlow {
                flow: flow.clone(),
                carrier,
                to: of.name,
                messages: of.messages,
                lost,
                median_ns: percentile("p50"),
                p99_ns: percentile("p99"),
                max_ns: of.latencies_ns.iter().copied().max(),
                deadline_ns,
                late,
                late_share: late as f64 / of.messages.max(1) as f64,
            }
        });
        each.collect()
    }
}

/// Takes a frame at its destination. A frame that a link had doubled finds its message complete.
fn take(sources: &mut [Source], departure: &Departure<Fragment>) {
    let of = departure.frame;
    let receiving = &mut sources[of.source].destinations[of.destination];
    let Some((due, missing)) = receiving.incomplete.get_mut(&of.sequence) else {
        return;
    };
    missing[of.number] = false;
    if missing.contains(&true) {
        return;
    }
    let latency_ns = i64::try_from(departure.due_ns).unwrap_or(i64::MAX) - due.due_ns;
    if !due.warm_up {
        receiving.latencies_ns.push(latency_ns);
    }
    receiving.incomplete.remove(&of.sequence);
}

/// Octets of the headers of IPv4 and UDP.
const IP_HEADER: u64 = 20;
const UDP_HEADER: u64 = 8;
/// Frames between two tellings.
const TELL_FRAMES: u64 = 100_000;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A mission over a network with 10 Mb/s links of 1 ms.
    fn found(hosts: usize, flows: &str) -> Result<Simulation, SimulateError> {
        let names = |prefix: &str| -> String {
            let all = (0..hosts).map(|n| format!("{prefix}\"H{n}\""));
            let end = if prefix.is_empty() { "" } else { " }" };
            all.map(|one| one + end).collect::<Vec<_>>().join(", ")
        };
        let links: String = (0..hosts)
            .map(|n| {
                format!(
                    "[[links]]\nbetween = [\"H{n}\", \"S\"]\nrate_mbit_s = 10\nframing = \"ethernet\"\ndelay = \"1ms\"\n"
                )
            })
            .collect();
        let network = format!(
            "name = \"lan\"\nhosts = [{}]\nswitches = [\"S\"]\n{links}",
            names("")
        );
        let text = format!("name = \"m\"\nhosts = [{}]\n{flows}", names("{ name = "));
        let mut mission = Mission::parse(Path::new("m.toml"), &text, None).expect("sound");
        mission.network =
            crate::network::parse(Path::new("n.toml"), network.into()).expect("a network");
        simulate(&mission, &mut |_| ())
    }

    fn flow(name: &str, octets: u32, (from, to): (&str, &str), more: &str) -> String {
        format!(
            "[[flows]]\nname = \"{name}\"\noctets = {octets}\nfrom = \"{from}\"\nto = [{to}]\ncarrier = \"udp\"\n\
             late = \"1 in 10\"\n{more}\n"
        )
    }

    /// Octets on the wire of a datagram, in nanoseconds of 10 Mb/s.
    fn on_line_ns(payload: i64) -> i64 {
        (payload + 28 + 14 + 24) * 800
    }

    #[test]
    fn one_flow_alone_takes_its_transmission_and_the_delay_of_each_link() {
        let more = "rate_hz = 100\ncount = 2000\nwarm_up = \"100ms\"\ndeadline = \"3ms\"";
        let found = found(2, &flow("one", 434, ("H0", "\"H1\""), more)).expect("simulated");
        let due_ns = 2 * (on_line_ns(434) + 1_000_000);
        let one = &found.flows[0];
        for ns in [one.median_ns, one.p99_ns, one.max_ns] {
            assert_eq!(ns, Some(due_ns), "{found:?}");
        }
        assert_eq!((one.messages, one.lost, one.late), (2_000, 0, 0));
        assert_eq!((found.frames, found.queue_full), (2_010, 0));
    }

    #[test]
    fn a_message_of_several_packets_is_there_with_its_last_one_and_late_beyond_its_deadline() {
        let more = "rate_hz = 10\ncount = 1000\nwarm_up = \"0s\"\ndeadline = \"4ms\"";
        let found = found(2, &flow("big", 2_952, ("H0", "\"H1\""), more)).expect("simulated");
        // Two full packets: the switch has the first one whole before it sends it on, the second follows on its heels.
        let full_ns = (1_500 + 38) * 800;
        let one = &found.flows[0];
        assert_eq!(one.median_ns, Some(3 * full_ns + 2_000_000));
        assert_eq!(
            (one.late, one.late_share),
            (1_000, 1.0),
            "5.7 ms against 4 ms"
        );
    }

    #[test]
    fn an_urgent_frame_waits_for_the_end_of_the_one_on_the_line_and_overtakes_the_others() {
        let more = |dscp: u32| {
            format!(
                "rate_hz = 50\ncount = 1000\nwarm_up = \"0s\"\ndeadline = \"50ms\"\ndscp = {dscp}"
            )
        };
        // All are due at the same times. The urgent frame is longer, so it comes to the port behind the low ones.
        let flows = flow("first", 1_000, ("H0", "\"H2\""), &more(8))
            + &flow("second", 1_000, ("H1", "\"H2\""), &more(8))
            + &flow("high", 1_472, ("H3", "\"H2\""), &more(46));
        let found = found(4, &flows).expect("simulated");
        let (low_ns, high_ns) = (on_line_ns(1_000), on_line_ns(1_472));
        let links_ns = 2_000_000;
        let all: Vec<Option<i64>> = found.flows.iter().map(|one| one.max_ns).collect();
        let first_ns = 2 * low_ns + links_ns;
        // It waits for the first low frame to its end, and the second one for both.
        let urgent_ns = first_ns + high_ns;
        let second_ns = urgent_ns + low_ns;
        assert_eq!(all, [Some(first_ns), Some(second_ns), Some(urgent_ns)]);
        let medians = found.flows.iter().map(|one| one.median_ns);
        assert_eq!(medians.collect::<Vec<_>>(), all, "each time the same");
    }

    #[test]
    fn a_fleet_that_one_port_cannot_serve_loses_messages_in_its_queue_and_always_the_same() {
        // 200 hosts, 199 of them sending 20 messages a second of 1,000 octets to one: 32 Mb/s to a port of 10.
        let more = "rate_hz = 20\ncount = 40\nwarm_up = \"0s\"\ndeadline = \"100ms\"";
        let flows: String = (1..200)
            .map(|n| flow(&format!("f{n}"), 1_000, (&format!("H{n}"), "\"H0\""), more))
            .collect();
        let first = found(200, &flows).expect("simulated");
        assert_eq!((first.flows.len(), first.frames), (199, 199 * 40));
        let lost: u64 = first.flows.iter().map(|one| one.lost).sum();
        assert!(lost > 1_000 && first.queue_full >= lost, "{lost}");
        assert_eq!(first, found(200, &flows).expect("simulated"));
    }

    #[test]
    fn more_frames_than_the_limit_and_loopback_are_refused() {
        let more = "rate_hz = 1000\nduration = \"30h\"\ndeadline = \"3ms\"";
        let text = flow("long", 64, ("H0", "\"H1\""), more);
        let error = found(2, &text).expect_err("too long");
        assert!(error.to_string().contains("--duration"), "{error}");
        let more = "rate_hz = 10\ncount = 10\ndeadline = \"3ms\"";
        let head = "name = \"m\"\nnetwork = { preset = \"loopback\" }\nhosts = [{ name = \"H0\" }, { name = \"H1\" }]\n";
        let text = format!("{head}{}", flow("f", 64, ("H0", "\"H1\""), more));
        let mission = Mission::parse(Path::new("m.toml"), &text, None).expect("sound");
        let error = simulate(&mission, &mut |_| ()).expect_err("no lines");
        assert!(matches!(error, SimulateError::NoNetwork), "{error}");
    }
}
