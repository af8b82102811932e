//! One end of a sweep: a process that opens flows over carriers, sends, receives and answers as it is ordered.

use std::io::BufRead as _;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use deckwatch_carrier::error::socket_fault;

use super::clock::Watch;
use super::flow::Flow;
use super::talk::{Answer, Order};
use crate::laboratory::LaboratoryError;
use crate::laboratory::end::{beat, print_line};

/// Plays an end until its standard input ends. With `beats`, it shows in short intervals that it lives. The end of its
/// input ends it in the middle of an order too: nobody reads the answer.
///
/// # Errors
/// [`LaboratoryError`]: standard input or output cannot be used. Other failures are answers.
pub(crate) fn play(beats: bool) -> Result<(), LaboratoryError> {
    if beats {
        beat();
    }
    let (lines, orders) = std::sync::mpsc::channel();
    let answering = std::thread::Builder::new().spawn(move || answer_all(&orders));
    let answering = answering.map_err(|source| LaboratoryError::CannotStart {
        what: "The thread of an end".to_owned(),
        source,
    })?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|source| LaboratoryError::System {
            doing: "Standard input cannot be read",
            source,
        })?;
        if lines.send(line).is_err() {
            let failed = answering.join().unwrap_or(Ok(()));
            return failed;
        }
    }
    Ok(())
}

/// Answers orders until standard output is closed.
fn answer_all(orders: &Receiver<String>) -> Result<(), LaboratoryError> {
    let mut end = End::default();
    for line in orders {
        let answer = match serde_json::from_str(&line) {
            Ok(order) => end.obey(&order),
            Err(error) => Err(error.to_string()),
        };
        let answer = answer.unwrap_or_else(|text| Answer::Failed { text });
        let text = serde_json::to_string(&answer).unwrap_or_default();
        print_line(&text)?;
    }
    Ok(())
}

#[derive(Default)]
struct End {
    flow: Option<Flow>,
    watch: Option<Watch>,
    /// Receivers after their stop command. Each ends within a fraction of a second.
    leaving: Vec<std::thread::JoinHandle<()>>,
}

impl End {
    fn obey(&mut self, order: &Order) -> Result<Answer, String> {
        if let Order::Listen(listen) = order {
            self.close();
            let (flow, endpoint) = Flow::open(listen)?;
            self.flow = Some(flow);
            return Ok(Answer::Listening { endpoint });
        }
        if *order == Order::Close {
            self.close();
            return Ok(Answer::Done);
        }
        match order {
            Order::Respond { address } => {
                let fault = |error| socket_fault((*address, 0).into(), &error);
                let address = super::clock::respond(*address).map_err(fault)?;
                return Ok(Answer::Answering { address });
            }
            Order::Probe { peer, from } => {
                let fault = |error| socket_fault((*from, 0).into(), &error);
                let watch = Watch::start(*peer, *from).map_err(fault)?;
                self.watch = Some(watch);
                return Ok(Answer::Done);
            }
            Order::Relate => {
                let watch = self.watch.as_ref().ok_or("no clock is asked")?;
                return Ok(Answer::Related(watch.windows()));
            }
            _ => {}
        }
        let flow = self.flow.as_mut().ok_or("no flow is open")?;
        match order {
            Order::Connect {
                endpoint,
                channel,
                waits,
            } => {
                flow.connect(endpoint, channel.as_ref(), *waits)?;
                Ok(Answer::Done)
            }
            Order::Expect {
                first,
                messages,
                passes_on,
                in_bulk,
            } => {
                flow.expect((*first, *messages), *passes_on, *in_bulk);
                Ok(Answer::Done)
            }
            Order::Transact {
                first,
                messages,
                every,
            } => flow
                .transact(*first, *messages, *every)
                .map(Answer::Transactions),
            Order::Stream {
                first,
                messages,
                in_bulk,
            } => flow
                .stream((*first, *messages), *in_bulk)
                .map(Answer::Streamed),
            Order::Report { accepted } => Ok(Answer::Arrived(flow.report(*accepted))),
            Order::Listen(_)
            | Order::Close
            | Order::Respond { .. }
            | Order::Probe { .. }
            | Order::Relate => Ok(Answer::Done),
        }
    }

    fn close(&mut self) {
        self.leaving.extend(self.flow.take().and_then(Flow::close));
        self.leaving.retain(|thread| !thread.is_finished());
        // Sizes that take a moment each would heap up receivers.
        if self.leaving.len() > LEAVING_MAX {
            for thread in self.leaving.drain(..) {
                let _ = thread.join();
            }
        }
    }
}

/// Receivers of closed flows that have not ended yet.
const LEAVING_MAX: usize = 16;

/// The longest time for one message, and for the first message after the last.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
