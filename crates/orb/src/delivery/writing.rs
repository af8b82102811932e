//! What is being written to one connection: headers and shared bodies, with one call for many messages.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use deckwatch_cdr::EncodeError;
use deckwatch_giop::{Response, ServiceContext, context_id, priority_context};

use super::Marshalled;
use super::connection::{Connection, Sending};
use super::outlet::{Next, Outcome, Outlet};
use crate::counters::Counter;
use crate::limits::{DELIVERY_MESSAGES_MAX, DELIVERY_WRITE_SIZE};
use crate::slab::Slab;
use crate::trace::{CallNumber, Direction};
use crate::transport::{Instant64, Stream, TransportError};
use crate::wire::{self, RequestHead};

/// Messages that have been taken out of their outlets' queues. The first may be written in part.
#[derive(Default)]
pub(super) struct Writing {
    messages: VecDeque<Outgoing>,
    /// Their headers, in a lent buffer while there are any.
    heads: Vec<u8>,
    /// Where in it the first message's header begins.
    head_at: usize,
    /// Octets of the first message that are written.
    written: usize,
    /// The last id of a one-way.
    oneways: u32,
}

struct Outgoing {
    head_len: usize,
    event: Option<Marshalled>,
    /// The outlet of a one-way, which is settled as soon as it is written. `None` for a two-way.
    outlet: Option<Arc<Outlet>>,
}

/// A request that its connection has lost.
pub(super) struct Lost {
    pub(super) outlet: Arc<Outlet>,
    /// It is a one-way farewell.
    pub(super) is_farewell: bool,
}

impl Outgoing {
    fn body(&self) -> &[u8] {
        self.event.as_ref().map_or(&[], Marshalled::octets)
    }

    fn len(&self) -> usize {
        self.head_len + self.body().len()
    }
}

impl Writing {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The number of the oldest event.
    pub(super) fn oldest(&self) -> Option<u64> {
        let events = self
            .messages
            .iter()
            .filter_map(|message| message.event.as_ref());
        events.map(Marshalled::number).min()
    }

    /// Drops all messages. Returns the one-ways that are lost.
    pub(super) fn abandon(&mut self) -> Vec<Lost> {
        let messages = std::mem::take(&mut self.messages);
        self.heads = Vec::new();
        (self.head_at, self.written) = (0, 0);
        messages
            .into_iter()
            .filter_map(|message| {
                Some(Lost {
                    is_farewell: message.event.is_none(),
                    outlet: message.outlet?,
                })
            })
            .collect()
    }

    /// Writes with one call. Returns the count of octets.
    fn write(&self, stream: &dyn Stream) -> Result<usize, TransportError> {
        let mut parts = [IoSlice::new(&[]); 2 * DELIVERY_MESSAGES_MAX];
        let (mut count, mut head_at, mut skip) = (0, self.head_at, self.written);
        for message in &self.messages {
            let head = &self.heads[head_at..head_at + message.head_len];
            head_at += message.head_len;
            for part in [head, message.body()] {
                let skipped = skip.min(part.len());
                skip -= skipped;
                if skipped < part.len() {
                    parts[count] = IoSlice::new(&part[skipped..]);
                    count += 1;
                }
            }
        }
        stream.write_parts_now(&parts[..count])
    }

    /// So many octets more are written. Returns the next message that is written whole.
    fn next_written(&mut self) -> Option<Outgoing> {
        let len = self.messages.front()?.len();
        if self.written < len {
            return None;
        }
        self.written -= len;
        let message = self.messages.pop_front()?;
        self.head_at += message.head_len;
        Some(message)
    }

    /// Nothing is left: returns the buffer.
    fn rest(&mut self, slab: &Slab) {
        self.head_at = 0;
        if self.heads.capacity() != 0 {
            slab.take_back_written(std::mem::take(&mut self.heads));
        }
    }
}

impl Connection {
    /// Takes messages out of the queues of the outlets that are ready, in turn. Returns false if there is none.
    pub(super) fn fill(&self, sending: &mut Sending) -> bool {
        let client = &self.worker.calls.client;
        if sending.ready.is_empty() {
            sending.writing.rest(&client.slab);
            return false;
        }
        if sending.writing.heads.capacity() == 0 {
            sending.writing.heads = client.slab.lend_empty();
        }
        sending.writing.heads.clear();
        sending.writing.head_at = 0;
        let now = client.transport.now_coarse();
        let mut size = 0;
        while sending.writing.messages.len() < DELIVERY_MESSAGES_MAX && size < DELIVERY_WRITE_SIZE {
            let Some(outlet) = sending.ready.pop_front() else {
                break;
            };
            if outlet.by_calls.load(Ordering::Relaxed) {
                outlet.post_call();
                continue;
            }
            let (next, is_ready) = outlet.take();
            let (event, operation, response) = match next {
                Next::Event(event) => (Some(event), outlet.options.operation, outlet.response()),
                Next::Farewell(operation) => (None, operation, outlet.response()),
                Next::Question => (None, "_non_existent", Response::Outcome),
                Next::Nothing => continue,
                Next::Ended(end) => {
                    self.worker.tell(&outlet, end);
                    continue;
                }
            };
            if is_ready {
                sending.ready.push_back(Arc::clone(&outlet));
            }
            size += self.begin(sending, outlet, (operation, response), event, now);
        }
        if !sending.flights.is_empty() {
            self.note_busy();
        }
        if sending.writing.is_empty() {
            sending.writing.rest(&client.slab);
        }
        !sending.writing.is_empty()
    }

    /// Begins a request. Returns its octets.
    fn begin(
        &self,
        sending: &mut Sending,
        outlet: Arc<Outlet>,
        (operation, response): (&str, Response),
        event: Option<Marshalled>,
        now: Instant64,
    ) -> usize {
        let is_two_way = response == Response::Outcome;
        let id = if is_two_way {
            sending.flights.begin(&outlet, event.clone(), now)
        } else {
            sending.writing.oneways = sending.writing.oneways.wrapping_add(1);
            Some(sending.writing.oneways)
        };
        let head = id.ok_or(EncodeError::LengthTooLarge);
        let head = head
            .and_then(|id| write_head(self, sending, &outlet, (id, operation, response), &event));
        let Ok(head_len) = head else {
            if let Some(id) = id.filter(|_| is_two_way) {
                sending.flights.end(id);
            }
            if is_two_way && outlet.is_oneway() {
                // It is asked again after the next period.
                return 0;
            }
            let outcome = match event {
                Some(_) => Outcome::Blameless,
                None => Outcome::Parted,
            };
            self.settle_in(sending, &outlet, outcome);
            return 0;
        };
        let counters = &self.worker.calls.client.counters;
        counters.count(if is_two_way {
            Counter::RequestsSent
        } else {
            Counter::OnewaysSent
        });
        let message = Outgoing {
            head_len,
            event,
            outlet: (!is_two_way).then_some(outlet),
        };
        let size = message.len();
        sending.writing.messages.push_back(message);
        size
    }

    /// Writes with one call. Returns the count of octets.
    pub(super) fn write(
        &self,
        sending: &mut Sending,
        stream: &dyn Stream,
    ) -> Result<usize, TransportError> {
        let count = sending.writing.write(stream)?;
        sending.writing.written += count;
        if count != 0 {
            sending.stuck_since = None;
        }
        while let Some(message) = sending.writing.next_written() {
            let outcome = match message.event {
                Some(_) => Outcome::Delivered,
                None => Outcome::Parted,
            };
            drop(message.event);
            if let Some(outlet) = message.outlet {
                self.settle_in(sending, &outlet, outcome);
            }
        }
        Ok(count)
    }
}

/// Writes a request up to its body. Returns how many octets that is.
fn write_head(
    connection: &Connection,
    sending: &mut Sending,
    outlet: &Outlet,
    (id, operation, response): (u32, &str, Response),
    event: &Option<Marshalled>,
) -> Result<usize, EncodeError> {
    let client = &connection.worker.calls.client;
    let profile = &outlet.profile;
    let code_sets = profile.code_sets.filter(|_| !sending.code_sets_sent);
    let priority = outlet.options.priority.filter(|_| outlet.carries_priority);
    let priority = priority.map(|priority| priority_context(priority.value()));
    let mut contexts = [ServiceContext { id: 0, data: &[] }; 2];
    let mut count = 0;
    let code_sets = code_sets
        .as_ref()
        .map(|data| (context_id::CODE_SETS, &data[..]));
    let priority = priority
        .as_ref()
        .map(|data| (context_id::RT_CORBA_PRIORITY, &data[..]));
    for (id, data) in [code_sets, priority].into_iter().flatten() {
        contexts[count] = ServiceContext { id, data };
        count += 1;
    }
    let operation = event
        .as_ref()
        .map_or(operation, |event| outlet.operation(event));
    let head = RequestHead {
        id,
        response,
        operation,
        contexts: &contexts[..count],
    };
    let (body, order) = match event {
        Some(event) => (event.octets(), event.form().order),
        None => (&[][..], outlet.form().order),
    };
    let heads = &mut sending.writing.heads;
    let start = heads.len();
    let written = wire::write_request_before(heads, profile, &head, order, body, client.sizes);
    if let Err(error) = written {
        heads.truncate(start);
        return Err(error);
    }
    sending.code_sets_sent = true;
    if client.trace.is_on() {
        let whole = [&heads[start..], body].concat();
        let number = sending.number;
        client
            .trace
            .message(number, CallNumber::default(), Direction::Out, &whole);
    }
    Ok(heads.len() - start)
}
