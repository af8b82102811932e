//! The two ends of a sweep, and one flow between them in each direction.

use std::net::IpAddr;
use std::time::Duration;

use deckwatch_meter::metrics::{DataStream, Transaction};

use super::channel::Channels;
use super::point::Iteration;
use super::talk::{Answer, Arrived, Listen, Order, Streamed};
use super::variant::Variant;
use crate::laboratory::LaboratoryError;
use crate::laboratory::process::End;
use crate::limits::END_PATIENCE;

/// One end and the address of its host.
pub(super) struct Side {
    pub(super) end: End,
    pub(super) address: IpAddr,
}

/// The flow of one carrier and size between two ends. Its processes are its own: flows of several carriers stay open at
/// once.
pub(super) struct Pair {
    /// The client and transmitter.
    near: Side,
    /// The server and receiver.
    far: Side,
    /// The channels, if the carrier needs them.
    channels: Option<Channels>,
    /// The next sequence number.
    next: u64,
}

impl Side {
    /// Sends an order. Returns the answer, or `None` if the user wants to end.
    fn ask(&mut self, order: &Order, longer: Duration) -> Result<Option<Answer>, LaboratoryError> {
        let text = serde_json::to_string(order).unwrap_or_default();
        self.end.send_line(&text)?;
        let Some(line) = self.end.receive_line(END_PATIENCE + longer)? else {
            return Ok(None);
        };
        match serde_json::from_str(&line) {
            Ok(Answer::Failed { text }) => Err(self.end.failed(&text)),
            Ok(answer) => Ok(Some(answer)),
            Err(error) => Err(self.end.failed(&format!("it answered '{line}': {error}"))),
        }
    }

    fn unexpected(&self, answer: &Answer) -> LaboratoryError {
        self.end.failed(&format!("it answered {answer:?}"))
    }
}

impl Pair {
    pub(super) const fn new(near: Side, far: Side, channels: Option<Channels>) -> Self {
        Self {
            near,
            far,
            channels,
            next: 0,
        }
    }

    /// Opens the flow of a carrier and size. Returns false if the user wants to end.
    pub(super) fn open(
        &mut self,
        variant: Variant,
        size_octets: u32,
        waits: bool,
    ) -> Result<bool, LaboratoryError> {
        let mut endpoints = Vec::new();
        let ways = self.channels.as_ref();
        let there = ways.map(|channels| channels.there.clone());
        let back = ways.map(|channels| channels.back.clone());
        for (side, channel) in [(&mut self.far, &there), (&mut self.near, &back)] {
            let listen = Order::Listen(Listen {
                carrier: variant.carrier,
                size_octets,
                socket: variant.socket,
                address: side.address,
                channel: channel.clone(),
            });
            match side.ask(&listen, Duration::ZERO)? {
                Some(Answer::Listening { endpoint }) => endpoints.push(endpoint),
                Some(answer) => return Err(side.unexpected(&answer)),
                None => return Ok(false),
            }
        }
        let sides = [(&mut self.near, there), (&mut self.far, back)];
        for ((side, channel), endpoint) in sides.into_iter().zip(endpoints) {
            let connect = Order::Connect {
                endpoint,
                channel,
                waits,
            };
            if !done(side, &connect)? {
                return Ok(false);
            }
        }
        self.next = 0;
        Ok(true)
    }

    /// Measures one iteration: transactions, then a stream. Returns `None` if the user wants to end.
    pub(super) fn iterate(
        &mut self,
        size_octets: u32,
        messages: u64,
    ) -> Result<Option<Iteration>, LaboratoryError> {
        let Some(transactions) = self.transact(messages)? else {
            return Ok(None);
        };
        let Some((stream, arrived)) = self.stream(messages)? else {
            return Ok(None);
        };
        Ok(Some(iteration(
            (size_octets, messages),
            &transactions,
            stream,
            &arrived,
        )))
    }

    /// Sends each message when the answer to the one before is there.
    fn transact(&mut self, messages: u64) -> Result<Option<Answered>, LaboratoryError> {
        let first = self.begin(messages, true)?;
        let Some(first) = first else { return Ok(None) };
        let longer = A_MESSAGE * u32::try_from(messages).unwrap_or(u32::MAX);
        let sent = match self
            .near
            .ask(&Order::Transact { first, messages }, longer)?
        {
            Some(Answer::Transactions(sent)) => sent,
            Some(answer) => return Err(self.near.unexpected(&answer)),
            None => return Ok(None),
        };
        let there = sent.iter().filter(|(_, stop_ns)| *stop_ns != 0).count();
        let report = Order::Report {
            accepted: there as u64,
        };
        match self.far.ask(&report, longer)? {
            Some(Answer::Arrived(arrived)) => Ok(Some(Answered {
                first,
                sent,
                arrived,
            })),
            Some(answer) => Err(self.far.unexpected(&answer)),
            None => Ok(None),
        }
    }

    /// Sends messages without pause.
    fn stream(&mut self, messages: u64) -> Result<Option<(Streamed, Arrived)>, LaboratoryError> {
        let first = self.begin(messages, false)?;
        let Some(first) = first else { return Ok(None) };
        let longer = A_MESSAGE * u32::try_from(messages).unwrap_or(u32::MAX);
        let streamed = match self.near.ask(&Order::Stream { first, messages }, longer)? {
            Some(Answer::Streamed(streamed)) => streamed,
            Some(answer) => return Err(self.near.unexpected(&answer)),
            None => return Ok(None),
        };
        let accepted = messages - streamed.send_errors - streamed.queue_drops;
        match self.far.ask(&Order::Report { accepted }, longer)? {
            Some(Answer::Arrived(arrived)) => Ok(Some((streamed, arrived))),
            Some(answer) => Err(self.far.unexpected(&answer)),
            None => Ok(None),
        }
    }

    /// Lets the far end expect messages. Returns their first number, or `None` if the user wants to end.
    fn begin(&mut self, messages: u64, echoes: bool) -> Result<Option<u64>, LaboratoryError> {
        let first = self.next;
        self.next += messages;
        let expect = Order::Expect {
            first,
            messages,
            echoes,
        };
        Ok(done(&mut self.far, &expect)?.then_some(first))
    }

    /// Closes the flow. Returns false if the user wants to end.
    pub(super) fn close(&mut self) -> Result<bool, LaboratoryError> {
        Ok(done(&mut self.near, &Order::Close)? && done(&mut self.far, &Order::Close)?)
    }
}

/// Sends an order that has no result.
fn done(side: &mut Side, order: &Order) -> Result<bool, LaboratoryError> {
    match side.ask(order, Duration::ZERO)? {
        Some(Answer::Done) => Ok(true),
        Some(answer) => Err(side.unexpected(&answer)),
        None => Ok(false),
    }
}

/// Both views of the transactions of one iteration.
struct Answered {
    first: u64,
    /// Sent, and the answer received (0: never).
    sent: Vec<(i64, i64)>,
    arrived: Arrived,
}

/// Joins the stamps of both ends by sequence number.
fn iteration(
    (size_octets, messages): (u32, u64),
    answered: &Answered,
    streamed: Streamed,
    arrived: &Arrived,
) -> Iteration {
    let mut transactions = Vec::with_capacity(answered.sent.len());
    for (sequence, stop_b_ns, start_c_ns) in &answered.arrived.answered {
        let place = sequence.checked_sub(answered.first);
        let place = place.and_then(|place| usize::try_from(place).ok());
        let Some((start_a_ns, stop_d_ns)) = place.and_then(|place| answered.sent.get(place)) else {
            continue;
        };
        if *stop_d_ns != 0 {
            transactions.push(Transaction {
                start_a_ns: *start_a_ns,
                stop_b_ns: *stop_b_ns,
                start_c_ns: *start_c_ns,
                stop_d_ns: *stop_d_ns,
            });
        }
    }
    Iteration {
        lost: messages.saturating_sub(transactions.len() as u64),
        transactions,
        stream: DataStream {
            message_size_octets: u64::from(size_octets),
            messages,
            send_errors: streamed.send_errors,
            queue_drops: streamed.queue_drops,
            overflows: arrived.overflows,
            received: arrived.received,
            start_a_ns: streamed.start_a_ns,
            stop_a_ns: streamed.stop_a_ns,
            start_b_ns: arrived.first_ns,
            stop_b_ns: arrived.last_ns,
        },
    }
}

/// How much longer each message lets a run take before an end counts as silent.
const A_MESSAGE: Duration = Duration::from_millis(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_joined_by_sequence_number_and_a_missing_answer_is_lost() {
        let answered = Answered {
            first: 10,
            sent: vec![(100, 190), (200, 0), (300, 395)],
            arrived: Arrived {
                // The answer to 11 was lost on the way back; 12 and 10 came in another order; 9 is of an earlier run.
                answered: vec![(12, 340, 345), (9, 1, 2), (11, 250, 255), (10, 140, 150)],
                ..Arrived::default()
            },
        };
        let streamed = Streamed {
            start_a_ns: 1,
            stop_a_ns: 5,
            send_errors: 1,
            queue_drops: 0,
        };
        let arrived = Arrived {
            received: 2,
            first_ns: 3,
            last_ns: 9,
            ..Arrived::default()
        };
        let found = iteration((16, 3), &answered, streamed, &arrived);
        let times: Vec<i64> = found
            .transactions
            .iter()
            .map(Transaction::time_ns)
            .collect();
        assert_eq!((times, found.lost), (vec![95, 90], 1));
        assert_eq!(found.stream.ledger().sum(), 3);
        assert_eq!(found.stream.stop_b_ns, 9);
    }
}
