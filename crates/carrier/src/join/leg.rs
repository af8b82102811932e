//! A leg: the stream's messages to one address as they pass one tap in one direction, and the replies to them in the
//! other direction, with the stamp of each.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use deckwatch_giop::{Message, Response};
use deckwatch_meter::sample::NO_STAMP;
use deckwatch_os::tap::Direction;

use crate::body::{Body, SequenceReader};
use crate::capture::{Captured, UNSTAMPED};
use crate::carrier::{Argument, Framing};
use crate::giop_messages::GiopMessages;
use crate::limits::JOINED_CONNECTIONS_MAX;
use crate::packet::{Carried, Load};
use crate::plan::JoinPlan;
use crate::reassembly::{Cut, Reassembly};
use crate::stamp_clock::Eras;

/// All legs of a stream.
pub(super) struct Legs<'p> {
    plan: &'p JoinPlan,
    legs: Vec<Leg>,
    /// The eras of each capture's clock; `None` for a capture that was not read.
    clocks: Vec<Option<Eras>>,
}

/// The messages to one address as they pass one tap in one direction, and their replies.
struct Leg {
    /// Index of the capture.
    capture: usize,
    direction: Direction,
    to: SocketAddr,
    method: Method,
    /// By the client's address.
    connections: BTreeMap<SocketAddr, Connection>,
    stamps: Stamps,
    replies: Stamps,
}

/// How the messages of a leg are found in packets.
struct Method {
    framing: Framing,
    reader: SequenceReader,
    size_bytes: u32,
}

/// One connection: the stream to the server, and the stream back.
struct Connection {
    out: Stream,
    back: Stream,
    /// The sequence numbers of the messages that wait for their replies, by request id.
    waiting: BTreeMap<u32, u64>,
}

/// One direction of a connection.
struct Stream {
    octets: Reassembly,
    messages: GiopMessages,
}

/// Stamps by sequence number, nanoseconds of CLOCK_REALTIME. The first stamp of a message counts.
struct Stamps(Vec<i64>);

/// The stamps on one leg, by sequence number, nanoseconds of CLOCK_REALTIME.
#[derive(Clone, Copy)]
pub(super) struct LegStamps<'l> {
    /// The stamps of the messages.
    pub(super) messages: &'l [i64],
    /// The stamps of the replies, as they pass the same tap in the other direction.
    pub(super) replies: &'l [i64],
    /// Converts the stamps.
    pub(super) clock: &'l Eras,
}

impl Stamps {
    fn new(messages: u64) -> Self {
        Self(vec![NO_STAMP; usize::try_from(messages).unwrap_or(0)])
    }

    fn note(&mut self, sequence: Option<u64>, stamp_ns: i64) {
        let place = sequence.and_then(|sequence| self.0.get_mut(usize::try_from(sequence).ok()?));
        if let Some(place) = place
            && *place == NO_STAMP
        {
            *place = stamp_ns;
        }
    }
}

impl Stream {
    fn new(cut: Cut) -> Self {
        Self {
            octets: Reassembly::new(cut),
            messages: GiopMessages::default(),
        }
    }

    /// Handles a SYN: the octets after it begin with a message, whatever was before.
    fn open(&mut self, at: u32) {
        self.octets.open(at);
        self.messages = GiopMessages::default();
    }
}

impl<'p> Legs<'p> {
    /// Makes the legs that the captures can contain.
    pub(super) fn of(plan: &'p JoinPlan, body: &Body, messages: u64) -> Self {
        let mut legs = Self {
            plan,
            legs: Vec::new(),
            clocks: vec![None; plan.captures.len()],
        };
        if let Some(channel) = plan.channel_endpoint {
            legs.add(&plan.from, Direction::Leaving, channel, body, messages);
            legs.add(&plan.from, Direction::Arriving, channel, body, messages);
        }
        for destination in &plan.destinations {
            if let Some(to) = destination.listening {
                legs.add(&plan.from, Direction::Leaving, to, body, messages);
                legs.add(&destination.host, Direction::Arriving, to, body, messages);
            }
        }
        legs
    }

    fn add(
        &mut self,
        host: &str,
        direction: Direction,
        to: SocketAddr,
        body: &Body,
        messages: u64,
    ) {
        let Some(capture) = self.capture_of(host) else {
            return;
        };
        let framing = self.plan.stream.carrier.framing();
        if framing == Framing::Unseen {
            return;
        }
        self.legs.push(Leg {
            capture,
            direction,
            to,
            method: Method {
                framing,
                reader: body.sequence_reader(),
                size_bytes: u32::try_from(body.octets().len()).unwrap_or(u32::MAX),
            },
            connections: BTreeMap::new(),
            stamps: Stamps::new(messages),
            replies: Stamps::new(messages),
        });
    }

    fn capture_of(&self, host: &str) -> Option<usize> {
        self.plan
            .captures
            .iter()
            .position(|at| at.hosts.iter().any(|of| of == host))
    }

    /// Returns true if any leg is in this capture.
    pub(super) fn need(&self, capture: usize) -> bool {
        self.legs.iter().any(|leg| leg.capture == capture)
    }

    /// Sets the eras of a capture's clock. Without them the capture's stamps are not used.
    pub(super) fn set_clock(&mut self, capture: usize, clock: Eras) {
        if let Some(place) = self.clocks.get_mut(capture) {
            *place = Some(clock);
        }
    }

    /// Processes one packet of a capture.
    pub(super) fn take(&mut self, capture: usize, packet: &Captured<'_>) {
        let (Some(carried), Some(direction)) = (Carried::parse(&packet.octets), packet.direction)
        else {
            return;
        };
        let stamp_ns = if packet.realtime_ns == UNSTAMPED {
            NO_STAMP
        } else {
            packet.realtime_ns
        };
        for leg in self.legs.iter_mut().filter(|leg| leg.capture == capture) {
            if leg.direction == direction && leg.to == carried.to {
                leg.take(&carried, stamp_ns);
            } else if leg.direction != direction && leg.to == carried.from {
                leg.take_back(&carried, stamp_ns);
            }
        }
    }

    /// Completes the legs after all captures are read. Returns the number of messages in them that could not be read.
    pub(super) fn finish(&mut self) -> u64 {
        for leg in &mut self.legs {
            leg.finish();
        }
        let connections = self.legs.iter().flat_map(|leg| leg.connections.values());
        connections
            .map(|connection| connection.out.octets.unread())
            .sum()
    }

    /// Returns how many times the clock was set during a capture.
    pub(super) fn steps(&self) -> usize {
        let clocks = self.clocks.iter().flatten();
        clocks.map(Eras::steps).max().unwrap_or(0)
    }

    /// Returns the stamps of messages to `to` as they leave `host` or arrive there, or `None` if no capture has them.
    pub(super) fn stamps(
        &self,
        host: &str,
        direction: Direction,
        to: SocketAddr,
    ) -> Option<LegStamps<'_>> {
        let capture = self.capture_of(host)?;
        let leg = self
            .legs
            .iter()
            .find(|leg| leg.capture == capture && leg.direction == direction && leg.to == to)?;
        Some(LegStamps {
            messages: &leg.stamps.0,
            replies: &leg.replies.0,
            clock: self.clocks.get(capture)?.as_ref()?,
        })
    }
}

impl Leg {
    /// Processes a packet to the leg's address.
    fn take(&mut self, carried: &Carried<'_>, stamp_ns: i64) {
        let Some(cut) = self.method.cut() else {
            if let Load::Datagram(octets) = carried.load {
                self.stamps.note(self.method.reader.read(octets), stamp_ns);
            }
            return;
        };
        let Load::Segment { at, opens, octets } = carried.load else {
            return;
        };
        let room = self.connections.len() < JOINED_CONNECTIONS_MAX;
        if !room && !self.connections.contains_key(&carried.from) {
            return;
        }
        let begin = || Connection {
            out: Stream::new(cut),
            back: Stream::new(cut),
            waiting: BTreeMap::new(),
        };
        let connection = self.connections.entry(carried.from).or_insert_with(begin);
        if opens {
            connection.out.open(at);
            connection.waiting.clear();
        }
        let Connection { out, waiting, .. } = connection;
        let (method, stamps, messages) = (&self.method, &mut self.stamps, &mut out.messages);
        out.octets
            .take(at, octets, stamp_ns, &mut |message, stamp_ns| {
                method.note(stamps, waiting, messages, message, stamp_ns);
            });
    }

    /// Processes a packet from the leg's address to a client.
    fn take_back(&mut self, carried: &Carried<'_>, stamp_ns: i64) {
        let Load::Segment { at, opens, octets } = carried.load else {
            return;
        };
        let Some(connection) = self.connections.get_mut(&carried.to) else {
            return;
        };
        if !matches!(self.method.framing, Framing::Giop { .. }) {
            return;
        }
        if opens {
            connection.back.open(at);
        }
        let Connection { back, waiting, .. } = connection;
        let (replies, messages) = (&mut self.replies, &mut back.messages);
        back.octets
            .take(at, octets, stamp_ns, &mut |message, stamp_ns| {
                note_reply(replies, waiting, messages, message, stamp_ns);
            });
    }

    fn finish(&mut self) {
        let (method, stamps, replies) = (&self.method, &mut self.stamps, &mut self.replies);
        for Connection { out, back, waiting } in self.connections.values_mut() {
            out.octets.finish(&mut |message, stamp_ns| {
                method.note(stamps, waiting, &mut out.messages, message, stamp_ns);
            });
            back.octets.finish(&mut |message, stamp_ns| {
                note_reply(replies, waiting, &mut back.messages, message, stamp_ns);
            });
        }
    }
}

impl Method {
    /// Returns how streams are cut into messages, or `None` if messages are datagrams.
    fn cut(&self) -> Option<Cut> {
        match self.framing {
            Framing::Length => Some(Cut::Length(self.size_bytes)),
            Framing::Giop { .. } => Some(Cut::Giop),
            Framing::Datagram | Framing::Unseen => None,
        }
    }

    /// Records the stamp of a message that was cut from a stream, and that it waits for a reply.
    fn note(
        &self,
        stamps: &mut Stamps,
        waiting: &mut BTreeMap<u32, u64>,
        messages: &mut GiopMessages,
        message: &[u8],
        stamp_ns: i64,
    ) {
        let Framing::Giop {
            operation,
            argument,
        } = self.framing
        else {
            return stamps.note(self.reader.read_framed(message), stamp_ns);
        };
        messages.take(message, &mut |message| {
            let Message::Request(request) = message else {
                return;
            };
            if request.operation == operation.as_bytes() {
                let sequence = match argument {
                    Argument::Value => self.reader.read_argument(request.body),
                    Argument::Any => self.reader.read_any(request.body),
                    Argument::EventSet => self.reader.read_event_set(request.body),
                };
                stamps.note(sequence, stamp_ns);
                if let Some(sequence) = sequence.filter(|_| request.response != Response::Nothing) {
                    waiting.insert(request.id, sequence);
                }
            }
        });
    }
}

/// Records the stamp of a reply.
fn note_reply(
    replies: &mut Stamps,
    waiting: &mut BTreeMap<u32, u64>,
    messages: &mut GiopMessages,
    message: &[u8],
    stamp_ns: i64,
) {
    messages.take(message, &mut |message| {
        if let Message::Reply(reply) = message {
            replies.note(waiting.remove(&reply.id), stamp_ns);
        }
    });
}

#[cfg(test)]
mod tests;
