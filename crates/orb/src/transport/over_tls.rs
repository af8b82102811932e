//! TLS over the sockets of the operating system; a program that is built without TLS has none.

use super::socket::SocketTransport;
#[cfg(feature = "tls")]
use super::socket::{connect_tcp, listen_tcp};
use super::{Instant64, Listener, Stream, StreamOptions, TransportError};
#[cfg(feature = "tls")]
use crate::tls::TlsListener;

impl SocketTransport {
    #[cfg(feature = "tls")]
    pub(super) fn connect_tls(
        &self,
        name: &str,
        (host, port): (&str, u16),
        options: &StreamOptions,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        let tls = self.tls.as_ref().ok_or(TransportError::TlsNotSet)?;
        let begin = tls.begin_client(name)?;
        let socket = connect_tcp(host, port, options, deadline)?;
        Ok(Box::new(begin.connect(socket, deadline)?))
    }

    #[cfg(not(feature = "tls"))]
    pub(super) fn connect_tls(
        &self,
        _name: &str,
        _place: (&str, u16),
        _options: &StreamOptions,
        _deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        Err(TransportError::TlsNotSet)
    }

    #[cfg(feature = "tls")]
    pub(super) fn listen_tls(
        &self,
        host: &str,
        port: u16,
        options: &StreamOptions,
    ) -> Result<Box<dyn Listener>, TransportError> {
        let tls = self.tls.as_ref().filter(|tls| tls.can_serve());
        let tls = tls.ok_or(TransportError::TlsNotSet)?;
        let listener = listen_tcp(host, port, options)?;
        Ok(Box::new(TlsListener::start(listener, tls.clone())?))
    }

    #[cfg(not(feature = "tls"))]
    pub(super) fn listen_tls(
        &self,
        _host: &str,
        _port: u16,
        _options: &StreamOptions,
    ) -> Result<Box<dyn Listener>, TransportError> {
        Err(TransportError::TlsNotSet)
    }
}
