//! The message trace: what goes in and out and what goes wrong, for a person who wonders why a call failed.
//!
//! The request's road writes `Copy` records into a ring that is as large as it will ever be, and only while the trace is
//! on; off, it costs one look at a flag. A thread of its own turns records into words and writes them out: one line a
//! message, and a paragraph for each system exception that this ORB raises itself.

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

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// Who made a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// We did.
    Client,
    /// The peer did.
    Server,
}

/// What stands for a connection's number where a message goes from this ORB to itself.
pub(crate) const NO_CONNECTION: u32 = 0;

/// A call of ours, to tell its records from others'; 0 while the trace is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CallNumber(u32);

/// The trace of one ORB; off, it holds nothing.
pub(crate) struct Trace {
    printer: Option<Printer>,
    transport: Arc<dyn Transport>,
    connections: AtomicU32,
    calls: AtomicU32,
}

impl Trace {
    /// On where there is somewhere to write to.
    ///
    /// # Errors
    /// What the system says against another thread.
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

    /// A number for a new connection.
    pub(crate) fn next_connection(&self) -> u32 {
        self.connections
            .fetch_add(1, Ordering::Relaxed)
            .wrapping_add(1)
    }

    /// A number for a new call.
    #[inline]
    pub(crate) fn next_call(&self) -> CallNumber {
        if self.printer.is_none() {
            return CallNumber(0);
        }
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        CallNumber(number.wrapping_add(1).max(1))
    }

    /// A whole message as it goes over the wire, or all the fragments of one.
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

    /// A connection is there, after so long.
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

    /// No connection could be had, after so long.
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

    /// A connection has ended, whoever ended it.
    pub(crate) fn closed(&self, connection: u32) {
        if let Some(printer) = &self.printer {
            self.record(printer, connection, CallNumber(0), Fact::Closed);
        }
    }

    /// What came over a connection could not be read.
    pub(crate) fn misread(&self, connection: u32, fault: ProtocolError) {
        if let Some(printer) = &self.printer {
            self.record(printer, connection, CallNumber(0), Fact::Misread { fault });
        }
    }

    /// A request at one server came to nothing; `is_within`: its reply had begun to arrive.
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

    /// A call ended in a system exception, the server's or ours.
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

    /// Since when something takes, while the trace is on.
    pub(crate) fn begin(&self) -> Option<Instant64> {
        self.is_on().then(|| self.transport.now())
    }

    /// How long it has taken.
    pub(crate) fn since(&self, begun: Option<Instant64>) -> Duration {
        begun.map_or(Duration::ZERO, |begun| self.transport.now().since(begun))
    }

    /// Waits until what has been recorded is written out.
    pub(crate) fn flush(&self) {
        if let Some(printer) = &self.printer {
            printer.flush();
        }
    }
}
