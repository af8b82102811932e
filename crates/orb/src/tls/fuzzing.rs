//! The entrance of a TLS listener without its thread and its poller: the fuzz target says when octets are looked at.

use std::sync::Arc;

use deckwatch_os::stream::{StreamSocket, monotonic_ns};
use rustls::ServerConnection;

use super::Tls;
use super::handshakes::{Handshakes, Step};
use super::open::Begin;
use super::session::Session;
use super::stream::TlsStream;
use crate::transport::{Instant64, Stream};

/// Handshakes of a listener.
pub struct TlsEntrance {
    tls: Tls,
    under_way: Handshakes,
}

/// What has become of a handshake.
pub enum Shaken {
    /// It waits for octets of the peer.
    Waits,
    /// It has ended well.
    Done(Box<dyn Stream>),
    /// It has failed.
    Failed,
}

impl TlsEntrance {
    /// With these certificates.
    #[must_use]
    pub fn new(tls: &Tls) -> Self {
        Self {
            tls: tls.clone(),
            under_way: Handshakes::default(),
        }
    }

    /// Begins a handshake over an accepted socket. Returns its number; `None` if its peer has too many.
    ///
    /// # Panics
    /// Without a certificate.
    pub fn begin(&mut self, socket: StreamSocket) -> Option<u64> {
        let current = self.tls.current();
        let config = current.server().expect("a server has a certificate");
        let connection = ServerConnection::new(Arc::clone(config)).ok()?;
        let begin = Begin::new(&self.tls, Arc::clone(&current), None);
        let stream = TlsStream::new(socket, Session::new(connection.into()), begin);
        let now = Instant64(monotonic_ns());
        self.under_way.begin(stream, 0, now).ok()
    }

    /// Takes a handshake as far as it goes with what has arrived.
    pub fn step(&mut self, number: u64) -> Shaken {
        match self.under_way.step(number) {
            Step::Ended(stream) => Shaken::Done(stream),
            Step::GoesOn if self.under_way.is_shaking(number) => Shaken::Waits,
            Step::GoesOn | Step::Failed(..) => Shaken::Failed,
        }
    }

    /// Handshakes that have neither ended nor failed and parted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
