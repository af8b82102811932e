//! One connection's records and handshake, without its socket: octets in, octets out.

use std::io::{self, IoSlice, Read, Write};

use rustls::pki_types::CertificateDer;
use rustls::{AlertDescription, CertificateError, Connection, Error};

use crate::transport::TransportError;

/// A connection of `rustls`, and what is not yet reported of what it took.
pub(super) struct Session {
    tls: Connection,
    /// The last octet that was taken has not been reported as written: its record waits for room. It stands first in the
    /// next write.
    holds_back: bool,
    /// Why nothing can follow.
    failure: Option<TransportError>,
    /// A record of TLS has arrived: the peer speaks it.
    has_spoken: bool,
    /// Octets of plaintext that are decrypted and not read.
    plaintext: usize,
    /// The peer's farewell has arrived.
    has_parted: bool,
}

/// Where records go: takes what there is room for.
pub(super) trait Room {
    /// Writes without waiting; returns how many octets there was room for.
    fn write_parts(&self, parts: &[IoSlice<'_>]) -> Result<usize, TransportError>;
}

/// `Room` as `rustls` writes to it. Keeps the error of the socket, which `io::Error` would not carry.
struct Outgoing<'r> {
    room: &'r dyn Room,
    error: Option<TransportError>,
}

impl Write for Outgoing<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(octets)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.room.write_parts(parts) {
            Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
            Ok(count) => Ok(count),
            Err(error) => {
                self.error = Some(error);
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Session {
    pub(super) const fn new(tls: Connection) -> Self {
        Self {
            tls,
            holds_back: false,
            failure: None,
            has_spoken: false,
            plaintext: 0,
            has_parted: false,
        }
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Whether records wait for room.
    pub(super) fn wants_room(&self) -> bool {
        self.tls.wants_write()
    }

    /// The certificate that the peer has shown, then those of intermediate authorities. Empty: it has shown none.
    pub(super) fn shown(&self) -> &[CertificateDer<'static>] {
        self.tls.peer_certificates().unwrap_or_default()
    }

    /// Writes the records that wait. Returns whether all have gone.
    pub(super) fn flush(&mut self, room: &dyn Room) -> Result<bool, TransportError> {
        let mut outgoing = Outgoing { room, error: None };
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut outgoing) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(_) => return Err(outgoing.error.unwrap_or(TransportError::Broken)),
            }
        }
        Ok(true)
    }

    /// Encrypts and writes as much of `parts` as there is room for. Returns how many octets that was. Of octets whose
    /// record has not gone whole, all but the last one are reported, so that a writer comes back for the rest; it must
    /// come with the same octets.
    pub(super) fn write(
        &mut self,
        parts: &[IoSlice<'_>],
        room: &dyn Room,
    ) -> Result<usize, TransportError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let total: usize = parts.iter().map(|part| part.len()).sum();
        if total == 0 || !self.flush(room)? {
            return Ok(0);
        }
        let mut taken = usize::from(std::mem::take(&mut self.holds_back));
        while taken < total {
            taken += self.encrypt(parts, taken)?;
            if !self.flush(room)? {
                self.holds_back = true;
                return Ok(taken - 1);
            }
        }
        Ok(taken)
    }

    /// Encrypts octets of `parts` behind the first `skipped`, as many as `rustls` buffers. Returns how many.
    fn encrypt(
        &mut self,
        parts: &[IoSlice<'_>],
        mut skipped: usize,
    ) -> Result<usize, TransportError> {
        let mut rest = parts.iter().filter_map(|part| {
            let skip = skipped.min(part.len());
            skipped -= skip;
            Some(&part[skip..]).filter(|left| !left.is_empty())
        });
        let (first, second) = (rest.next().unwrap_or_default(), rest.next());
        let mut writer = self.tls.writer();
        let written = match second {
            // Most messages are in one piece. A list of several is allocated, here and in `rustls`.
            None => writer.write(first),
            Some(second) => {
                let all = [first, second].into_iter().chain(rest);
                let all: Vec<_> = all.map(IoSlice::new).collect();
                writer.write_vectored(&all)
            }
        };
        match written {
            Ok(count) if count != 0 => Ok(count),
            _ => Err(TransportError::Broken),
        }
    }

    /// Reads plaintext that has been decrypted. `None`: there is none now. 0: the peer has ended the connection.
    pub(super) fn take(&mut self, into: &mut [u8]) -> Result<Option<usize>, TransportError> {
        match self.read(into) {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => match self.failure {
                None => Ok(None),
                Some(failure) => Err(failure),
            },
            Err(_) => Err(self.failure.unwrap_or(TransportError::Broken)),
        }
    }

    /// Takes in octets of the socket, at most [`crate::limits::TLS_READ_SIZE`], and writes the plaintext in them to
    /// `into` as far as that has room. Returns how many octets were written. `into` has at least as much room as there
    /// are octets: so what remains inside is less than a record, which `rustls` has room for.
    pub(super) fn accept(
        &mut self,
        mut octets: &[u8],
        into: &mut [u8],
        room: &dyn Room,
    ) -> Result<usize, TransportError> {
        let mut written = 0;
        while !octets.is_empty() {
            match self.tls.read_tls(&mut octets) {
                // Behind the peer's farewell nothing is read.
                Ok(0) => break,
                Ok(_) => {}
                Err(_) => return Err(self.fail(TransportError::Broken, room)),
            }
            match self.tls.process_new_packets() {
                Ok(state) => {
                    self.plaintext = state.plaintext_bytes_to_read();
                    self.has_parted = state.peer_has_closed();
                }
                Err(error) => {
                    let fact = fact(&error, self.has_spoken);
                    return Err(self.fail(fact, room));
                }
            }
            self.has_spoken = true;
            while written < into.len() && self.plaintext != 0 {
                match self.read(&mut into[written..]) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => written += count,
                }
            }
        }
        if self.tls.wants_write() && !self.holds_back {
            // The peer may wait for an answer of the protocol; what has no room goes with the next write.
            self.flush(room)?;
        }
        Ok(written)
    }

    /// Nothing can follow: a read reports this once what is decrypted has been read.
    pub(super) fn note_failure(&mut self, failure: TransportError) {
        self.failure.get_or_insert(failure);
    }

    /// Whether a read would return at once: octets, the peer's farewell, or a failure.
    pub(super) fn holds(&self) -> bool {
        self.failure.is_some() || self.plaintext != 0 || self.has_parted
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.tls.reader().read(into)?;
        self.plaintext = self.plaintext.saturating_sub(count);
        Ok(count)
    }

    /// Says farewell, as far as there is room.
    pub(super) fn part(&mut self, room: &dyn Room) {
        if self.failure.is_some() {
            return;
        }
        self.tls.send_close_notify();
        // The connection ends all the same.
        let _ = self.flush(room);
    }

    /// Nothing can follow: tells the peer why, as far as there is room.
    fn fail(&mut self, fact: TransportError, room: &dyn Room) -> TransportError {
        self.failure = Some(fact);
        // The connection ends all the same.
        let _ = self.flush(room);
        fact
    }
}

/// An error of `rustls` as a fact of ours.
fn fact(error: &Error, has_spoken: bool) -> TransportError {
    match error {
        Error::InvalidCertificate(why) => match why {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => TransportError::CertificateExpired,
            CertificateError::Revoked => TransportError::CertificateRevoked,
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                TransportError::Untrusted
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                TransportError::CertificateOfAnother
            }
            _ => TransportError::CertificateUnfit,
        },
        Error::NoCertificatesPresented => TransportError::CertificateMissing,
        Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRequired
            | AlertDescription::NoCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied,
        ) => TransportError::RefusedByPeer,
        Error::InvalidMessage(_) if !has_spoken => TransportError::NotTls,
        _ => TransportError::HandshakeFailed,
    }
}
