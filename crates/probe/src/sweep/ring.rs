//! The ends of a sweep: rings of processes, each with one flow from every process to the next.
//!
//! The first process of a ring is the client (transmitter), the last one the server (receiver), and those in between
//! pass each message on (figure 3 of the paper). An answer goes from the server to the client without a stop.

use std::net::IpAddr;
use std::time::Duration;

use deckwatch_carrier::carrier::NetworkPriority;
use deckwatch_testbed::Testbed;

use super::channel::Channels;
use super::far::is_possible;
use super::point::Iteration;
use super::talk::{Answer, Listen, Order, Streamed, Ways};
use super::variant::Variant;
use super::way::{Answered, Streams, intervals_ns, iteration};
use crate::laboratory::LaboratoryError;
use crate::laboratory::process::{End, shown};
use crate::limits::END_PATIENCE;

/// One process and the address of its host.
pub(super) struct Side {
    pub(super) end: End,
    pub(super) address: IpAddr,
}

/// The processes along the way of one stream.
pub(super) struct Ring {
    /// The client, those that pass on, the server.
    pub(super) sides: Vec<Side>,
    /// Of the packets that the sides send.
    pub(super) network_priority: NetworkPriority,
    /// The channels, if the carrier needs them.
    pub(super) channels: Option<Channels>,
}

/// The work of one iteration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// NUM_MESSAGES.
    pub(super) messages: u64,
    /// Least time between two transactions; zero for none.
    pub(super) every: Duration,
    /// A stream has as many messages with each system call as the carrier can.
    pub(super) in_bulk: bool,
}

/// Counters of what lies between the ends.
struct Drops {
    queues: u64,
    channels: u64,
}

/// The simultaneous streams of one carrier and size. Their processes are their own: flows of several carriers stay open
/// at once.
pub(super) struct Rings {
    rings: Vec<Ring>,
    /// The next sequence number.
    next: u64,
}

impl Side {
    fn tell(&mut self, order: &Order) -> Result<(), LaboratoryError> {
        self.end
            .send_line(&serde_json::to_string(order).unwrap_or_default())
    }

    /// The answer to the oldest order, or `None` if the user wants to end.
    pub(super) fn hear(&mut self, longer: Duration) -> Result<Option<Answer>, LaboratoryError> {
        let Some(line) = self.end.receive_line(END_PATIENCE + longer)? else {
            return Ok(None);
        };
        match serde_json::from_str(&line) {
            Ok(Answer::Failed { text }) => Err(self.end.failed(&shown(&text))),
            Ok(answer) => Ok(Some(answer)),
            Err(error) => Err(self
                .end
                .failed(&format!("it answered '{}': {error}", shown(&line)))),
        }
    }

    /// Sends an order. Returns the answer, or `None` if the user wants to end.
    pub(super) fn ask(
        &mut self,
        order: &Order,
        longer: Duration,
    ) -> Result<Option<Answer>, LaboratoryError> {
        self.tell(order)?;
        self.hear(longer)
    }

    /// Sends an order that has no result. Returns false if the user wants to end.
    pub(super) fn done(&mut self, order: &Order) -> Result<bool, LaboratoryError> {
        match self.ask(order, Duration::ZERO)? {
            Some(Answer::Done) => Ok(true),
            Some(answer) => Err(self.unexpected(&answer)),
            None => Ok(false),
        }
    }

    fn impossible(&self) -> LaboratoryError {
        self.end.failed("its stamps or counts are impossible")
    }

    pub(super) fn unexpected(&self, answer: &Answer) -> LaboratoryError {
        self.end
            .failed(&format!("it answered {}", shown(&format!("{answer:?}"))))
    }
}

impl Ring {
    /// Opens the flows of a carrier and size. Returns false if the user wants to end.
    fn open(
        &mut self,
        variant: Variant,
        size_octets: u32,
        waits: bool,
    ) -> Result<bool, LaboratoryError> {
        let count = self.sides.len();
        let leg = |from: usize| {
            let channels = self.channels.as_ref();
            channels.map(|channels| channels.legs[from % count].clone())
        };
        // With other processes in between, no two processes send to each other.
        let shares = count == 2 && variant.carrier.carries_answers();
        let ways = |place: usize| match place {
            _ if !shares => Ways::Apart,
            0 => Ways::Connecting,
            _ => Ways::Accepting,
        };
        let mut endpoints = Vec::new();
        for (place, side) in self.sides.iter_mut().enumerate() {
            let listen = Order::Listen(Listen {
                carrier: variant.carrier,
                size_octets,
                socket: variant.socket,
                servants: variant.servants,
                address: side.address,
                channel: leg(place + count - 1),
                ways: ways(place),
                network_priority: self.network_priority,
            });
            match side.ask(&listen, Duration::ZERO)? {
                Some(Answer::Listening { endpoint }) => endpoints.push(endpoint),
                Some(answer) => return Err(side.unexpected(&answer)),
                None => return Ok(false),
            }
        }
        endpoints.rotate_left(1);
        for ((place, side), endpoint) in self.sides.iter_mut().enumerate().zip(endpoints) {
            let connect = Order::Connect {
                endpoint,
                channel: leg(place),
                waits,
            };
            if !side.done(&connect)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lets all but the client expect messages. Returns false if the user wants to end.
    fn expect(
        &mut self,
        (first, messages): (u64, u64),
        echoes: bool,
    ) -> Result<bool, LaboratoryError> {
        let last = self.sides.len() - 1;
        for (place, side) in self.sides.iter_mut().enumerate().skip(1) {
            let expect = Order::Expect {
                first,
                messages,
                passes_on: echoes || place < last,
                in_bulk: !echoes && place == last,
            };
            if !side.done(&expect)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What has arrived at each process behind the client, or `None` if the user wants to end.
    fn report<A>(
        &mut self,
        (accepted, messages): (u64, u64),
        sent: A,
    ) -> Result<Option<(A, Vec<super::talk::Arrived>)>, LaboratoryError> {
        let mut all = Vec::new();
        for side in self.sides.iter_mut().skip(1) {
            match side.ask(&Order::Report { accepted }, longer(messages))? {
                Some(answer) if !is_possible(&answer, messages) => {
                    return Err(side.impossible());
                }
                Some(Answer::Arrived(arrived)) => all.push(arrived),
                Some(answer) => return Err(side.unexpected(&answer)),
                None => return Ok(None),
            }
        }
        Ok(Some((sent, all)))
    }
}

impl Rings {
    pub(super) const fn new(rings: Vec<Ring>) -> Self {
        Self { rings, next: 0 }
    }

    /// Opens the flows of a carrier and size. Returns false if the user wants to end.
    pub(super) fn open(
        &mut self,
        variant: Variant,
        size_octets: u32,
        waits: bool,
    ) -> Result<bool, LaboratoryError> {
        self.next = 0;
        self.each(|ring| ring.open(variant, size_octets, waits))
    }

    /// Replaces an error by that of a process which has stalled, or of a channel which has died: others fail for want
    /// of its messages.
    pub(super) fn blame(&mut self, error: LaboratoryError) -> LaboratoryError {
        if matches!(error, LaboratoryError::Interrupted(_)) {
            return error;
        }
        // What has died shows at once, and would count as stalled after a while.
        let mut channels = self.rings.iter_mut().flat_map(|ring| &mut ring.channels);
        let died = channels.find_map(Channels::died);
        let sides = self.rings.iter().flat_map(|ring| &ring.sides);
        let channels = self.rings.iter().flat_map(|ring| &ring.channels);
        let processes = channels.flat_map(Channels::processes);
        let mut ends = sides.map(|side| &side.end).chain(processes);
        let fault = died.or_else(|| ends.find_map(End::has_stalled));
        fault.unwrap_or(error)
    }

    /// Does something with each ring until the user wants to end, which returns false.
    fn each(
        &mut self,
        mut act: impl FnMut(&mut Ring) -> Result<bool, LaboratoryError>,
    ) -> Result<bool, LaboratoryError> {
        for ring in &mut self.rings {
            if !act(ring)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Measures one iteration: transactions, then a stream. Returns `None` if the user wants to end.
    pub(super) fn iterate(
        &mut self,
        size_octets: u32,
        Work {
            messages,
            every,
            in_bulk,
        }: Work,
        bed: Option<&Testbed>,
    ) -> Result<Option<Iteration>, LaboratoryError> {
        let Some(answered) = self.transact(messages, every)? else {
            return Ok(None);
        };
        let Some(before) = self.drops(bed)? else {
            return Ok(None);
        };
        let Some(streams) = self.stream(messages, in_bulk)? else {
            return Ok(None);
        };
        let Some(after) = self.drops(bed)? else {
            return Ok(None);
        };
        let mut found = iteration((size_octets, messages), &answered, &streams);
        if !every.is_zero() {
            found.intervals_ns = intervals_ns(&answered);
        }
        found.stream.channel_drops = after.channels.saturating_sub(before.channels);
        found.stream.network_queue_drops = after.queues.saturating_sub(before.queues);
        Ok(Some(found))
    }

    /// What channels and queues of the network have dropped so far. Returns `None` if the user wants to end.
    fn drops(&mut self, bed: Option<&Testbed>) -> Result<Option<Drops>, LaboratoryError> {
        let mut drops = Drops {
            queues: bed.map_or(Ok(0), Testbed::queue_drops)?,
            channels: 0,
        };
        for channels in self
            .rings
            .iter_mut()
            .filter_map(|ring| ring.channels.as_mut())
        {
            let Some(more) = channels.drops()? else {
                return Ok(None);
            };
            drops.channels += more;
        }
        Ok(Some(drops))
    }

    /// All clients send each message when they have the answer to the one before.
    fn transact(
        &mut self,
        messages: u64,
        every: Duration,
    ) -> Result<Option<Vec<Answered>>, LaboratoryError> {
        let Some(first) = self.begin(messages, true)? else {
            return Ok(None);
        };
        let order = Order::Transact {
            first,
            messages,
            every,
        };
        let Some(answers) = self.clients(&order, messages)? else {
            return Ok(None);
        };
        let mut all = Vec::new();
        for (ring, answer) in self.rings.iter_mut().zip(answers) {
            let Answer::Transactions(sent) = answer else {
                return Err(ring.sides[0].unexpected(&answer));
            };
            let there = sent.iter().filter(|(_, stop_ns)| *stop_ns != 0).count();
            let Some((sent, arrived)) = ring.report((there as u64, messages), sent)? else {
                return Ok(None);
            };
            all.push(Answered {
                first,
                sent,
                arrived,
            });
        }
        Ok(Some(all))
    }

    /// All clients send messages without pause.
    fn stream(&mut self, messages: u64, in_bulk: bool) -> Result<Option<Streams>, LaboratoryError> {
        let Some(first) = self.begin(messages, false)? else {
            return Ok(None);
        };
        let order = Order::Stream {
            first,
            messages,
            in_bulk,
        };
        let Some(answers) = self.clients(&order, messages)? else {
            return Ok(None);
        };
        let mut all = Vec::new();
        for (ring, answer) in self.rings.iter_mut().zip(answers) {
            let Answer::Streamed(streamed) = answer else {
                return Err(ring.sides[0].unexpected(&answer));
            };
            let Streamed {
                send_errors,
                queue_drops,
                ..
            } = streamed;
            let accepted = messages - send_errors - queue_drops;
            let Some(found) = ring.report((accepted, messages), streamed)? else {
                return Ok(None);
            };
            all.push(found);
        }
        Ok(Some(all))
    }

    /// Lets the servers expect messages. Returns their first number, or `None` if the user wants to end.
    fn begin(&mut self, messages: u64, echoes: bool) -> Result<Option<u64>, LaboratoryError> {
        let first = self.next;
        self.next += messages;
        let is_on = self.each(|ring| ring.expect((first, messages), echoes))?;
        Ok(is_on.then_some(first))
    }

    /// Gives all clients one order, and then waits for their answers, so that they work at the same time.
    fn clients(
        &mut self,
        order: &Order,
        messages: u64,
    ) -> Result<Option<Vec<Answer>>, LaboratoryError> {
        for ring in &mut self.rings {
            ring.sides[0].tell(order)?;
        }
        let hear = |ring: &mut Ring| {
            let client = &mut ring.sides[0];
            match client.hear(longer(messages)) {
                Ok(Some(answer)) if !is_possible(&answer, messages) => Err(client.impossible()),
                heard => heard,
            }
        };
        self.rings.iter_mut().map(hear).collect()
    }

    /// Closes the flows. Returns false if the user wants to end.
    pub(super) fn close(&mut self) -> Result<bool, LaboratoryError> {
        self.each(|ring| {
            for side in &mut ring.sides {
                if !side.done(&Order::Close)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }
}

fn longer(messages: u64) -> Duration {
    A_MESSAGE * u32::try_from(messages).unwrap_or(u32::MAX)
}

/// How much longer each message lets a run take before an end counts as silent.
const A_MESSAGE: Duration = Duration::from_millis(600);
