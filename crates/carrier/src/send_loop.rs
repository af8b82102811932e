//! The hot loop of a supplier: one thread that sends each message, when it is due, to its destinations in turn.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deckwatch_meter::pacing::{Due, Schedule};
use deckwatch_os::{clock, socket};

use crate::arrival::Shared;
use crate::body::Body;
use crate::limits::{QUIET_NS, STAMPS_AFTER_END, STOP_LOOK};
use crate::record::{Records, SupplierRecord, WAITED_FOR_ROOM};
use crate::sender::{Sender, TransmitStamp};

/// The state of one sending thread. It does not allocate, format or lock while the schedule runs.
pub struct SendLoop {
    body: Body,
    destinations: Vec<Destination>,
    shared: Arc<Shared>,
}

/// A destination, with the records of its messages by sequence number.
struct Destination {
    sender: Box<dyn Sender>,
    records: Records<SupplierRecord>,
    refusals: u64,
    waits: u64,
}

impl SendLoop {
    /// Creates a loop without destinations.
    #[must_use]
    pub const fn new(body: Body, shared: Arc<Shared>) -> Self {
        Self {
            body,
            destinations: Vec::new(),
            shared,
        }
    }

    /// Adds a destination.
    pub fn push(&mut self, sender: Box<dyn Sender>, records: Records<SupplierRecord>) {
        self.destinations.push(Destination {
            sender,
            records,
            refusals: 0,
            waits: 0,
        });
    }

    /// Sends the whole schedule, or until `stop`. Then collects the last transmit stamps.
    pub fn run(&mut self, schedule: &Schedule) {
        for due in schedule.dues() {
            self.rest_until(due.due_ns);
            if self.shared.stopped() {
                break;
            }
            self.send(due);
        }
        self.settle();
    }

    fn send(&mut self, due: Due) {
        self.body.set_sequence(due.sequence);
        for destination in &mut self.destinations {
            let sent_ns = clock::monotonic_ns();
            let sent = destination.sender.send(due.sequence, &self.body);
            let returned_ns = clock::monotonic_ns();
            self.shared.sent.fetch_add(1, Ordering::Relaxed);
            if sent.is_err() {
                self.shared.send_errors.fetch_add(1, Ordering::Relaxed);
            }
            let waits = destination.sender.waits();
            let waited = waits - std::mem::replace(&mut destination.waits, waits);
            self.shared.waits.fetch_add(waited, Ordering::Relaxed);
            if let Some(record) = record_of(&mut destination.records, due.sequence) {
                record.flags = if waited > 0 { WAITED_FOR_ROOM } else { 0 };
                record.sent_ns = sent_ns;
                record.returned_ns = returned_ns;
                record.error = sent.err().map_or(0, |error| error.code());
            }
        }
    }

    /// Sleeps until a message is due. In spare time before that, collects stamps and flushes the backlogs.
    fn rest_until(&mut self, due_ns: i64) {
        loop {
            let now_ns = clock::monotonic_ns();
            if due_ns - now_ns <= QUIET_NS || self.shared.stopped() {
                break;
            }
            if self.collect() {
                continue;
            }
            let look_ns = due_ns.min(now_ns.saturating_add(nanoseconds(STOP_LOOK)));
            if self.flush_backlogs() {
                let waiting = self
                    .destinations
                    .iter()
                    .filter_map(|destination| destination.sender.backlog());
                socket::wait_writable(waiting, look_ns);
            } else if look_ns == due_ns {
                break;
            } else {
                clock::sleep_until(look_ns);
            }
        }
        if !self.shared.stopped() {
            clock::sleep_until(due_ns);
        }
    }

    /// Collects stamps. Returns true if there may be more.
    fn collect(&mut self) -> bool {
        let mut more = false;
        for Destination {
            sender,
            records,
            refusals,
            ..
        } in &mut self.destinations
        {
            more |= sender.collect(&mut |stamp| note(records, stamp));
            let refused = sender.refusals();
            self.shared
                .refusals
                .fetch_add(refused - *refusals, Ordering::Relaxed);
            *refusals = refused;
        }
        more
    }

    /// Flushes backlogs. Returns true if a backlog remains.
    fn flush_backlogs(&mut self) -> bool {
        let mut waits = false;
        for destination in &mut self.destinations {
            if destination.sender.backlog().is_some() {
                destination.sender.flush();
                waits |= destination.sender.backlog().is_some();
            }
        }
        waits
    }

    /// Runs after the last message: collects the last stamps, and flushes the backlogs until `stop`.
    fn settle(&mut self) {
        let end_ns = clock::monotonic_ns().saturating_add(nanoseconds(STAMPS_AFTER_END));
        self.rest_until(end_ns);
        while self.collect() {}
        while !self.shared.stopped() && self.flush_backlogs() {
            self.rest_until(clock::monotonic_ns().saturating_add(nanoseconds(STOP_LOOK)));
        }
    }
}

fn note(records: &mut Records<SupplierRecord>, stamp: TransmitStamp) {
    // A retransmission is stamped again; the first stamp counts.
    if let Some(record) = record_of(records, stamp.sequence)
        && record.transmit_realtime_ns == 0
    {
        record.transmit_realtime_ns = stamp.realtime_ns;
    }
}

fn record_of(records: &mut Records<SupplierRecord>, sequence: u64) -> Option<&mut SupplierRecord> {
    records.slice_mut().get_mut(usize::try_from(sequence).ok()?)
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
