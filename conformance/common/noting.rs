//! Sockets that tell how each was asked for.

use std::sync::{Arc, Mutex};

use deckwatch_orb::transport::{
    Endpoint, Instant64, Listener, Poller, SocketTransport, Stream, StreamOptions, Transport,
    TransportError,
};

/// Places to connect to or to listen at, and with which options.
#[derive(Clone, Default)]
pub(crate) struct Asked(Arc<Mutex<Vec<(Endpoint, StreamOptions)>>>);

impl Asked {
    /// What has been asked for since this was taken last.
    pub(crate) fn take(&self) -> Vec<(Endpoint, StreamOptions)> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics with it"))
    }

    /// What needs a permission is denied.
    fn note(&self, endpoint: &Endpoint, options: &StreamOptions) -> Result<(), TransportError> {
        let mut asked = self.0.lock().expect("nobody panics with it");
        asked.push((endpoint.clone(), *options));
        match options.packets {
            Some(packets) if packets.queue > 6 => Err(TransportError::Denied),
            _ => Ok(()),
        }
    }
}

/// The sockets of the system, with a note of each.
#[derive(Default)]
pub(crate) struct Noting {
    sockets: SocketTransport,
    pub(crate) asked: Asked,
}

impl Transport for Noting {
    fn now(&self) -> Instant64 {
        self.sockets.now()
    }

    fn connect(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        self.asked.note(endpoint, options)?;
        self.sockets.connect(endpoint, options, deadline)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
    ) -> Result<Box<dyn Listener>, TransportError> {
        self.asked.note(endpoint, options)?;
        self.sockets.listen(endpoint, options)
    }

    fn poller(&self) -> Result<Box<dyn Poller>, TransportError> {
        self.sockets.poller()
    }

    fn outward_hosts(&self, over_ipv6: bool) -> Vec<String> {
        self.sockets.outward_hosts(over_ipv6)
    }

    fn host_name(&self) -> String {
        self.sockets.host_name()
    }
}
