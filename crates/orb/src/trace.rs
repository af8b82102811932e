//! The message trace: messages in and out, and failures, for a user who wants to know why a call failed.
//!
//! While the trace is on, the threads that serve and call write `Copy` records into a ring of fixed size. While it is
//! off, each place costs one check of a flag. A separate thread turns the records into text: one line for each message,
//! and one paragraph for each system exception that this ORB raises itself.

mod narrator;
mod printer;
mod record;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use deckwatch_giop::{Frame, ProtocolError};

use crate::SystemException;
use crate::transport::{Instant64, Transport, TransportError};

use printer::Printer;
use record::{Fact, MessageFact, Record, Text};

pub(crate) use printer::{Sink, open_sink};

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// The side that opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// This ORB.
    Client,
    /// The peer.
    Server,
}

/// The connection number of collocated calls.
pub(crate) const NO_CONNECTION: u32 = 0;

/// The number of a call of this ORB. Its records have the same number. It is 0 while the trace is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CallNumber(u32);

/// The trace of one ORB. It owns nothing while it is off.
pub(crate) struct Trace {
    printer: Option<Printer>,
    transport: Arc<dyn Transport>,
    connections: AtomicU32,
    calls: AtomicU32,
}

impl Trace {
    /// Makes a trace, which is on if there is a sink.
    ///
    /// # Errors
    /// The error of the system if the thread cannot be started.
    pub(crate) fn new(transport: Arc<dyn Transport>, sink: Option<Sink>) -> std::io::Result<Self> {
        let printer = sink
            .map(|sink| Printer::start(sink, transport.now()))
            .transpose()?;
        Ok(Self {
            printer,
            transport,
            connections: AtomicU32::new(0),
            calls: AtomicU32::new(0),
        })
    }

    /// Returns the number of a new connection.
    pub(crate) fn next_connection(&self) -> u32 {
        self.connections
            .fetch_add(1, Ordering::Relaxed)
            .wrapping_add(1)
    }

    /// Returns the number of a new call.
    #[inline]
    pub(crate) fn next_call(&self) -> CallNumber {
        if self.printer.is_none() {
            return CallNumber(0);
        }
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        CallNumber(number.wrapping_add(1).max(1))
    }

    /// Records a message as it is on the wire, or all the fragments of one.
    #[inline]
    pub(crate) fn message(&self, connection: u32, call: CallNumber, way: Direction, octets: &[u8]) {
        if let Some(printer) = &self.printer {
            self.record_messages(printer, (connection, call), way, octets);
        }
    }

    #[cold]
    fn record_messages(
        &self,
        printer: &Printer,
        (connection, call): (u32, CallNumber),
        way: Direction,
        octets: &[u8],
    ) {
        let mut rest = octets;
        while let Ok(Frame::Message(header, size)) = Frame::parse(rest, usize::MAX) {
            let (message, more) = rest.split_at(size);
            let fact = Fact::Message(MessageFact::of(way, header, message));
            self.record(printer, connection, call, fact);
            rest = more;
        }
    }

    /// Records a new connection, and how long it took.
    pub(crate) fn opened(
        &self,
        connection: u32,
        side: Side,
        peer: &dyn fmt::Display,
        waited: Duration,
    ) {
        if let Some(printer) = &self.printer {
            let peer = Text::of(peer);
            let fact = Fact::Opened { side, peer, waited };
            self.record(printer, connection, CallNumber(0), fact);
        }
    }

    /// Records that no connection could be opened, and how long it took.
    pub(crate) fn not_opened(
        &self,
        call: CallNumber,
        peer: &dyn fmt::Display,
        error: TransportError,
        waited: Duration,
    ) {
        if let Some(printer) = &self.printer {
            let peer = Text::of(peer);
            let fact = Fact::NotOpened {
                peer,
                error,
                waited,
            };
            self.record(printer, 0, call, fact);
        }
    }

    /// Records the end of a connection.
    pub(crate) fn closed(&self, connection: u32) {
        if let Some(printer) = &self.printer {
            self.record(printer, connection, CallNumber(0), Fact::Closed);
        }
    }

    /// Records a message that could not be read.
    pub(crate) fn misread(&self, connection: u32, fault: ProtocolError) {
        if let Some(printer) = &self.printer {
            self.record(printer, connection, CallNumber(0), Fact::Misread { fault });
        }
    }

    /// Records a failed attempt of a call at one server. `is_within`: the reply had begun to arrive.
    pub(crate) fn attempt_failed(
        &self,
        connection: u32,
        call: CallNumber,
        exception: SystemException,
        is_within: bool,
    ) {
        if let Some(printer) = &self.printer {
            let fact = Fact::AttemptFailed {
                exception,
                is_within,
            };
            self.record(printer, connection, call, fact);
        }
    }

    /// Records the system exception of a call, raised by the server or by this ORB.
    pub(crate) fn raised(
        &self,
        call: CallNumber,
        operation: &str,
        key: &[u8],
        exception: SystemException,
    ) {
        if let Some(printer) = &self.printer {
            let fact = Fact::Raised {
                exception,
                operation: Text::of_octets(operation.as_bytes()),
                key: Text::of_octets(key),
            };
            self.record(printer, 0, call, fact);
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.printer.is_some()
    }

    #[cold]
    fn record(&self, printer: &Printer, connection: u32, call: CallNumber, fact: Fact) {
        printer.take(Record {
            at: self.transport.now(),
            connection,
            call,
            fact,
        });
    }

    /// Returns the start of a measured span, while the trace is on.
    pub(crate) fn begin(&self) -> Option<Instant64> {
        self.is_on().then(|| self.transport.now())
    }

    /// Returns the length of a measured span.
    pub(crate) fn since(&self, begun: Option<Instant64>) -> Duration {
        begun.map_or(Duration::ZERO, |begun| self.transport.now().since(begun))
    }

    /// Waits until all records are written.
    pub(crate) fn flush(&self) {
        if let Some(printer) = &self.printer {
            printer.flush();
        }
    }
}
