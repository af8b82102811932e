//! IIOP over TLS 1.2 and 1.3 (SSLIOP): certificates, connections, and the listener whose handshakes cost no lane time.
//!
//! `rustls` computes records and handshakes on octets in memory; the sockets are this ORB's own. A lane sees a
//! connection only after its handshake: [`TlsListener`] makes handshakes in a thread of its own, without blocking on any
//! peer, under bounds of time and number. A caller makes its handshake itself, by its deadline.
//!
//! Sessions are never resumed: a resumed one would not check the certificate again.

mod certificates;
pub(crate) mod fuzzing;
mod handshakes;
mod listener;
mod names;
mod open;
mod refused;
mod session;
mod stream;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use deckwatch_os::stream::StreamSocket;
use deckwatch_sync::PiMutex;
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::ServerName;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ClientConfig, ClientConnection, ServerConfig};

use crate::transport::{Instant64, TlsUse, TransportError};
pub use certificates::{TlsError, TlsFact};
pub(crate) use listener::TlsListener;
use open::{Begin, Open};
use session::Session;
use stream::TlsStream;

/// Where certificates and authorities are, and what is required of peers.
///
/// Files are PEM. A certificate file holds the own certificate first, then those of intermediate authorities. An
/// authorities file, or each file of a directory that ends with `.pem`, `.crt`, `.cer` or `.crl`, holds certificates of
/// authorities and revocation lists.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct TlsOptions {
    certificate: Option<(PathBuf, PathBuf)>,
    authorities: Vec<PathBuf>,
    is_required: bool,
}

impl TlsOptions {
    /// Sets the own certificate and its private key: a server needs one, and a client where the server demands it.
    pub fn certificate(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.certificate = Some((chain.into(), key.into()));
        self
    }

    /// Adds a file or directory of authorities: what they have signed, and no list revokes, is trusted.
    pub fn authorities(mut self, place: impl Into<PathBuf>) -> Self {
        self.authorities.push(place.into());
        self
    }

    /// Requires TLS: a client that connects over TLS has to show a certificate, and this ORB calls no server over plain
    /// TCP. Unix sockets and shared memory, which no other host reaches, stay in use.
    pub const fn require(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`]: the file, and what is wrong with it.
    pub fn load(self) -> Result<Tls, TlsError> {
        let current = Current::load(&self)?;
        Ok(Tls(Arc::new(Shared {
            options: self,
            current: PiMutex::new(Arc::new(current)),
            open: Open::default(),
        })))
    }
}

/// Certificates and authorities in use. All clones are one: a reload holds for each ORB that has it.
#[derive(Clone)]
pub struct Tls(Arc<Shared>);

struct Shared {
    options: TlsOptions,
    current: PiMutex<Arc<Current>>,
    /// Connections whose handshake has ended.
    open: Open,
}

/// What the files held when they were read.
pub(crate) struct Current {
    server: Option<Arc<ServerConfig>>,
    client: Option<Arc<ClientConfig>>,
    /// Checks certificates of clients, and of servers.
    checks: Option<(Arc<dyn ClientCertVerifier>, Arc<WebPkiServerVerifier>)>,
}

impl Tls {
    /// Reads the files again. Connections made from now on use what they hold. Open ones go on, but for those whose
    /// other end has shown a certificate that a handshake would refuse now, such as one that is revoked: these are
    /// closed. Returns how many.
    ///
    /// # Errors
    /// [`TlsError`]. What was in use stays in use.
    pub fn reload(&self) -> Result<usize, TlsError> {
        let current = Arc::new(Current::load(&self.0.options)?);
        let old = std::mem::replace(
            &mut *self.0.current.lock("tls.reload"),
            Arc::clone(&current),
        );
        drop(old);
        Ok(self.0.open.close_refused(&current))
    }

    /// Whether TLS is required, by [`TlsOptions::require`].
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.0.options.is_required
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.0.current.lock("tls.current"))
    }

    /// Whether it has a certificate, so that an ORB can listen over TLS.
    #[must_use]
    pub fn can_serve(&self) -> bool {
        self.0.options.certificate.is_some()
    }

    pub(crate) fn tls_use(&self) -> TlsUse {
        match (
            self.0.options.is_required,
            self.0.options.authorities.is_empty(),
        ) {
            (true, _) => TlsUse::Required,
            (false, false) => TlsUse::Preferred,
            (false, true) => TlsUse::Never,
        }
    }

    /// Begins a connection to `host`, which the server's certificate has to name.
    pub(crate) fn begin_client(&self, host: &str) -> Result<Begun, TransportError> {
        let current = self.current();
        let config = current.client.clone().ok_or(TransportError::TlsNotSet)?;
        // The scope of a link-local address is no part of a name.
        let host = host.split_once('%').map_or(host, |(address, _)| address);
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| TransportError::CertificateOfAnother)?;
        let connection = ClientConnection::new(config, name.clone());
        let connection = connection.map_err(|_| TransportError::HandshakeFailed)?;
        Ok(Begun {
            session: Session::new(connection.into()),
            begin: Begin::new(self, current, Some(name)),
        })
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&self.0.options).finish()
    }
}

/// A client's connection before its handshake.
pub(crate) struct Begun {
    session: Session,
    begin: Begin,
}

impl Begun {
    /// Makes the handshake over a connected socket.
    pub(crate) fn connect(
        self,
        socket: StreamSocket,
        deadline: Option<Instant64>,
    ) -> Result<TlsStream, TransportError> {
        let mut stream = TlsStream::new(socket, self.session, self.begin);
        stream.shake_hands(deadline)?;
        Ok(stream)
    }
}
