//! A leg: the stream's messages to one address as they pass one tap in one direction, with the stamp of each message.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use deckwatch_meter::sample::NO_STAMP;
use deckwatch_os::clock::ClockPair;
use deckwatch_os::tap::Direction;

use crate::body::{Body, SequenceReader};
use crate::capture::{Captured, UNSTAMPED};
use crate::carrier::{Argument, Framing};
use crate::limits::JOINED_CONNECTIONS_MAX;
use crate::packet::{Carried, Load};
use crate::plan::JoinPlan;
use crate::reassembly::{Cut, Reassembly};
use crate::requests::Requests;

/// All legs of a stream.
pub(super) struct Legs<'p> {
    plan: &'p JoinPlan,
    legs: Vec<Leg>,
}

/// The messages to one address as they pass one tap in one direction.
pub(super) struct Leg {
    /// Index of the capture.
    capture: usize,
    direction: Direction,
    to: SocketAddr,
    framing: Framing,
    reader: SequenceReader,
    size_bytes: u32,
    connections: BTreeMap<SocketAddr, (Reassembly, Requests)>,
    stamps: Stamps,
}

/// Stamps by sequence number, nanoseconds of CLOCK_MONOTONIC. The first stamp of a message counts.
struct Stamps(Vec<i64>);

impl Stamps {
    fn note(&mut self, sequence: Option<u64>, stamp_ns: i64) {
        let place = sequence.and_then(|sequence| self.0.get_mut(usize::try_from(sequence).ok()?));
        if let Some(place) = place
            && *place == NO_STAMP
        {
            *place = stamp_ns;
        }
    }
}

impl<'p> Legs<'p> {
    /// Makes the legs that the captures can contain.
    pub(super) fn of(plan: &'p JoinPlan, body: &Body, messages: u64) -> Self {
        let mut legs = Self {
            plan,
            legs: Vec::new(),
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
            framing,
            reader: body.sequence_reader(),
            size_bytes: u32::try_from(body.octets().len()).unwrap_or(u32::MAX),
            connections: BTreeMap::new(),
            stamps: Stamps(vec![NO_STAMP; usize::try_from(messages).unwrap_or(0)]),
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

    /// Processes one packet of a capture.
    pub(super) fn take(&mut self, capture: usize, clock: &ClockPair, packet: &Captured<'_>) {
        let Some(carried) = Carried::parse(&packet.octets) else {
            return;
        };
        let stamp_ns = if packet.realtime_ns == UNSTAMPED {
            NO_STAMP
        } else {
            clock.to_monotonic(packet.realtime_ns)
        };
        for leg in &mut self.legs {
            if leg.capture == capture
                && Some(leg.direction) == packet.direction
                && leg.to == carried.to
            {
                leg.take(&carried, stamp_ns);
            }
        }
    }

    /// Completes the legs after all captures are read. Returns the number of messages in them that could not be read.
    pub(super) fn finish(&mut self) -> u64 {
        for leg in &mut self.legs {
            leg.finish();
        }
        let streams = self.legs.iter().flat_map(|leg| leg.connections.values());
        streams.map(|(stream, _)| stream.unread()).sum()
    }

    /// Returns the stamps of messages to `to` as they leave `host` or arrive there, or `None` if no capture has them.
    pub(super) fn stamps(
        &self,
        host: &str,
        direction: Direction,
        to: SocketAddr,
    ) -> Option<&[i64]> {
        let capture = self.capture_of(host)?;
        let leg = self
            .legs
            .iter()
            .find(|leg| leg.capture == capture && leg.direction == direction && leg.to == to)?;
        Some(&leg.stamps.0)
    }
}

impl Leg {
    fn take(&mut self, carried: &Carried<'_>, stamp_ns: i64) {
        match (carried.load, self.cut()) {
            (Load::Datagram(octets), None) => self.stamps.note(self.reader.read(octets), stamp_ns),
            (Load::Segment { at, opens, octets }, Some(cut)) => {
                let room = self.connections.len() < JOINED_CONNECTIONS_MAX;
                if !room && !self.connections.contains_key(&carried.from) {
                    return;
                }
                let begin = || (Reassembly::new(cut), Requests::default());
                let (stream, requests) = self.connections.entry(carried.from).or_insert_with(begin);
                if opens {
                    stream.open(at);
                    *requests = Requests::default();
                }
                let (framing, reader, stamps) = (self.framing, &self.reader, &mut self.stamps);
                stream.take(at, octets, stamp_ns, &mut |message, stamp_ns| {
                    note(framing, reader, stamps, requests, message, stamp_ns);
                });
            }
            (Load::Datagram(_), Some(_)) | (Load::Segment { .. }, None) => {}
        }
    }

    /// Returns how streams are cut into messages, or `None` if messages are datagrams.
    fn cut(&self) -> Option<Cut> {
        match self.framing {
            Framing::Length => Some(Cut::Length(self.size_bytes)),
            Framing::Giop { .. } => Some(Cut::Giop),
            Framing::Datagram | Framing::Unseen => None,
        }
    }

    fn finish(&mut self) {
        let (framing, reader, stamps) = (self.framing, &self.reader, &mut self.stamps);
        for (stream, requests) in self.connections.values_mut() {
            stream.finish(&mut |message, stamp_ns| {
                note(framing, reader, stamps, requests, message, stamp_ns)
            });
        }
    }
}

/// Records the stamp of a message that was cut from a stream.
fn note(
    framing: Framing,
    reader: &SequenceReader,
    stamps: &mut Stamps,
    requests: &mut Requests,
    message: &[u8],
    stamp_ns: i64,
) {
    let Framing::Giop {
        operation,
        argument,
    } = framing
    else {
        return stamps.note(reader.read_framed(message), stamp_ns);
    };
    requests.take(message, &mut |request| {
        if request.operation == operation.as_bytes() {
            let sequence = match argument {
                Argument::Value => reader.read_argument(request.body),
                Argument::Any => reader.read_any(request.body),
            };
            stamps.note(sequence, stamp_ns);
        }
    });
}
