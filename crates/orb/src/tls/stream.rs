//! A connection over TLS as a stream: its socket, and its session behind a lock that is never held while waiting.
//!
//! Octets that the socket has delivered and nobody has read are inside the session, where no poller sees them:
//! [`TlsStream::source`] says so, and a watch then reports the stream at once.

use std::cell::RefCell;
use std::io::IoSlice;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deckwatch_os::stream::StreamSocket;
use deckwatch_sync::{PiMutex, PiMutexGuard};

use super::names::name_of;
use super::open::Begin;
use super::session::{Room, Session};
use crate::Caller;
use crate::limits::{HANDSHAKE_TIMEOUT, TLS_READ_SIZE};
use crate::transport::{Instant64, Source, Stream, TransportError, fact, monotonic_after};

/// One connection over TLS.
pub(crate) struct TlsStream {
    /// Shared with the list of open connections, which may end it.
    socket: Arc<StreamSocket>,
    session: PiMutex<Session>,
    /// A read returns at once, whatever the socket has.
    holds: AtomicBool,
    /// The name in the peer's certificate, since the end of the handshake.
    name: Option<Arc<str>>,
    /// This end has connected: the other may send what is no message, at any time.
    is_client: bool,
    /// Until the end of the handshake.
    begin: Option<Begin>,
}

impl Room for StreamSocket {
    fn write_parts(&self, parts: &[IoSlice<'_>]) -> Result<usize, TransportError> {
        Stream::write_parts_now(self, parts)
    }
}

thread_local! {
    /// Ciphertext between the socket and a session.
    static CIPHERTEXT: RefCell<Box<[u8]>> = RefCell::new(vec![0; TLS_READ_SIZE].into());
}

/// How a read of the socket waits.
#[derive(Clone, Copy)]
enum Wait {
    Not,
    Until(Option<Instant64>),
    Within(Duration),
    Spinning(Duration),
}

impl TlsStream {
    /// Before its handshake.
    pub(super) fn new(socket: StreamSocket, session: Session, begin: Begin) -> Self {
        Self {
            socket: Arc::new(socket),
            session: PiMutex::new(session),
            holds: AtomicBool::new(false),
            name: None,
            is_client: begin.is_client(),
            begin: Some(begin),
        }
    }

    fn session(&self) -> PiMutexGuard<'_, Session> {
        self.session.lock("tls.session")
    }

    /// Makes the handshake, by `deadline` and in [`HANDSHAKE_TIMEOUT`] at most.
    pub(super) fn shake_hands(
        &mut self,
        deadline: Option<Instant64>,
    ) -> Result<(), TransportError> {
        let limit = Instant64(monotonic_after(HANDSHAKE_TIMEOUT).unwrap_or(u64::MAX));
        let deadline = deadline.map_or(limit, |deadline| deadline.min(limit));
        loop {
            self.flush_by(Some(deadline))?;
            if !self.session().is_handshaking() {
                return self.note_peer();
            }
            self.receive(&mut [], Wait::Until(Some(deadline)))?;
        }
    }

    /// Takes the handshake as far as it goes without waiting. Returns whether it has ended.
    pub(super) fn step(&mut self) -> Result<bool, TransportError> {
        loop {
            let mut session = self.session();
            session.flush(&*self.socket)?;
            let has_ended = !session.is_handshaking() && !session.wants_room();
            drop(session);
            if has_ended {
                self.note_peer()?;
                return Ok(true);
            }
            if self.receive(&mut [], Wait::Not)?.is_none() {
                return Ok(false);
            }
        }
    }

    /// The handshake has ended: notes who the peer is.
    fn note_peer(&mut self) -> Result<(), TransportError> {
        let session = self.session.lock("tls.session");
        let shown = session.shown();
        self.name = shown.first().and_then(name_of);
        match self.begin.take() {
            Some(begin) if !shown.is_empty() => begin.end(shown, &self.socket),
            _ => Ok(()),
        }
    }

    /// Writes the records that wait.
    fn flush_by(&self, deadline: Option<Instant64>) -> Result<(), TransportError> {
        while !self.session().flush(&*self.socket)? {
            self.await_room(deadline)?;
        }
        Ok(())
    }

    fn await_room(&self, deadline: Option<Instant64>) -> Result<(), TransportError> {
        let waited = self.socket.wait_for_room(deadline.map(|at| at.0));
        waited.map_err(|error| fact(&error))
    }

    /// Reads the socket once. Returns how many octets of plaintext there were, which may be 0, and whether the socket may
    /// have more; `None` if it had nothing.
    fn receive(
        &self,
        into: &mut [u8],
        wait: Wait,
    ) -> Result<Option<(usize, bool)>, TransportError> {
        CIPHERTEXT.with_borrow_mut(|ciphertext| {
            // In a handshake there is no plaintext to be had.
            let room = if into.is_empty() {
                TLS_READ_SIZE
            } else {
                into.len().min(TLS_READ_SIZE)
            };
            let ciphertext = &mut ciphertext[..room];
            let socket: &dyn Stream = &*self.socket;
            let count = match wait {
                Wait::Not => socket.read_now(ciphertext)?,
                Wait::Until(deadline) => Some(socket.read(ciphertext, deadline)?),
                Wait::Within(limit) => socket.read_within(ciphertext, limit)?,
                Wait::Spinning(limit) => socket.read_spinning(ciphertext, limit)?,
            };
            let Some(count) = count else {
                return Ok(None);
            };
            if count == 0 {
                // Without a farewell of TLS the stream may have been cut by anybody.
                return Err(TransportError::Broken);
            }
            let mut session = self.session();
            let plain = session.accept(&ciphertext[..count], into, &*self.socket);
            self.holds.store(session.holds(), Ordering::SeqCst);
            plain.map(|plain| Some((plain, count == room)))
        })
    }

    /// Reads what has arrived: what is decrypted already, then what the socket has, until it has nothing more or `into`
    /// is full. The wait is for the first octet.
    fn read_as(&self, into: &mut [u8], mut wait: Wait) -> Result<Option<usize>, TransportError> {
        let mut count = 0;
        loop {
            if self.holds.load(Ordering::SeqCst) {
                let mut session = self.session();
                let taken = session.take(&mut into[count..]);
                self.holds.store(session.holds(), Ordering::SeqCst);
                match taken {
                    // What was read before the end comes first; the end is found again.
                    Ok(Some(0)) | Err(_) if count != 0 => return Ok(Some(count)),
                    Ok(Some(0)) => return Ok(Some(0)),
                    Ok(taken) => count += taken.unwrap_or(0),
                    Err(error) => return Err(error),
                }
            }
            if count == into.len() {
                return Ok(Some(count));
            }
            let now = if count == 0 { wait } else { Wait::Not };
            let (plain, is_full) = match self.receive(&mut into[count..], now) {
                Ok(Some(received)) => received,
                Ok(None) => return Ok((count != 0).then_some(count)),
                Err(error) if count == 0 => return Err(error),
                Err(error) => {
                    self.session().note_failure(error);
                    self.holds.store(true, Ordering::SeqCst);
                    return Ok(Some(count));
                }
            };
            count += plain;
            // A socket that returns less than it could has nothing more.
            if is_full || self.holds.load(Ordering::SeqCst) {
                continue;
            }
            if count != 0 {
                return Ok(Some(count));
            }
            // A part of a record, or a message of the protocol. The end of the connection may stand right behind it, and
            // no poller would report that again.
            if !matches!(wait, Wait::Until(_)) {
                wait = Wait::Not;
            }
        }
    }

    /// Writes all of both, waiting for room until `deadline`.
    fn write_by(
        &self,
        [mut first, mut second]: [&[u8]; 2],
        deadline: Option<Instant64>,
    ) -> Result<(), TransportError> {
        loop {
            let parts = [IoSlice::new(first), IoSlice::new(second)];
            let written = self.session().write(&parts, &*self.socket)?;
            let of_first = written.min(first.len());
            first = &first[of_first..];
            second = &second[written - of_first..];
            if first.is_empty() && second.is_empty() {
                return Ok(());
            }
            self.await_room(deadline)?;
        }
    }

    /// The handshake has failed, and the peer has been told: nothing more is sent. Until [`TlsStream::has_parted`] the
    /// socket stays open, because the kernel would drop that word if it closed a socket with unread octets.
    pub(super) fn begin_parting(&self) {
        self.socket.shutdown_write();
    }

    /// Drops what the peer sends. Returns whether the peer has ended its side too.
    pub(super) fn has_parted(&self) -> bool {
        CIPHERTEXT.with_borrow_mut(|octets| {
            loop {
                match Stream::read_now(&*self.socket, octets) {
                    Ok(None) => return false,
                    Ok(Some(0)) | Err(_) => return true,
                    Ok(Some(_)) => {}
                }
            }
        })
    }
}

impl Stream for TlsStream {
    fn read(&self, into: &mut [u8], deadline: Option<Instant64>) -> Result<usize, TransportError> {
        let read = self.read_as(into, Wait::Until(deadline))?;
        Ok(read.unwrap_or(0))
    }

    fn read_within(
        &self,
        into: &mut [u8],
        wait: Duration,
    ) -> Result<Option<usize>, TransportError> {
        self.read_as(into, Wait::Within(wait))
    }

    fn read_spinning(
        &self,
        into: &mut [u8],
        wait: Duration,
    ) -> Result<Option<usize>, TransportError> {
        self.read_as(into, Wait::Spinning(wait))
    }

    fn read_now(&self, into: &mut [u8]) -> Result<Option<usize>, TransportError> {
        self.read_as(into, Wait::Not)
    }

    /// A server's session tickets are read here, because they are no message.
    fn is_readable(&self) -> bool {
        let holds = || self.holds.load(Ordering::SeqCst);
        if !self.is_client {
            return holds() || self.socket.is_readable();
        }
        while !holds() {
            match self.receive(&mut [], Wait::Not) {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
        true
    }

    fn write_all(&self, octets: &[u8], deadline: Option<Instant64>) -> Result<(), TransportError> {
        self.write_by([octets, &[]], deadline)
    }

    fn write_both(
        &self,
        first: &[u8],
        second: &[u8],
        deadline: Option<Instant64>,
    ) -> Result<(), TransportError> {
        self.write_by([first, second], deadline)
    }

    fn write_now(&self, octets: &[u8]) -> Result<usize, TransportError> {
        self.write_parts_now(&[IoSlice::new(octets)])
    }

    fn write_parts_now(&self, parts: &[IoSlice<'_>]) -> Result<usize, TransportError> {
        self.session().write(parts, &*self.socket)
    }

    fn shutdown(&self) {
        self.session().part(&*self.socket);
        self.socket.shutdown();
    }

    fn peer(&self) -> String {
        let address = self.socket.peer();
        match &self.name {
            // An authority may have signed any character.
            Some(name) => format!("{address} ({})", name.escape_debug()),
            None => address,
        }
    }

    fn caller(&self) -> Caller {
        self.socket.caller()
    }

    fn caller_name(&self) -> Option<Arc<str>> {
        self.name.clone()
    }

    fn is_from_own_address(&self) -> bool {
        self.socket.is_from_own_address()
    }

    fn source(&self) -> Source<'_> {
        if self.holds.load(Ordering::SeqCst) {
            Source::Holding(self.socket.as_fd())
        } else {
            Source::Descriptor(self.socket.as_fd())
        }
    }
}

impl Drop for TlsStream {
    fn drop(&mut self) {
        let mut session = self.session();
        if !session.is_handshaking() {
            session.part(&*self.socket);
        }
    }
}
