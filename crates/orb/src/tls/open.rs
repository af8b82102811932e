//! Open connections: what their other ends have shown is checked again when the files are read again.
//!
//! A connection joins the list when its handshake has ended, and is then compared with what is in use. So a certificate
//! that is revoked between the begin of a handshake and its end is found by one of both.

use std::sync::{Arc, Weak};

use deckwatch_os::stream::StreamSocket;
use deckwatch_sync::PiMutex;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::{Current, Tls};
use crate::transport::TransportError;

/// The connections of all ORBs that share a [`Tls`].
#[derive(Default)]
pub(super) struct Open(PiMutex<List>);

#[derive(Default)]
struct List {
    all: Vec<(Arc<Shown>, Weak<StreamSocket>)>,
    /// The count at which those that have ended are removed.
    prune_at: usize,
}

/// What the other end of a connection has shown.
struct Shown {
    chain: Vec<CertificateDer<'static>>,
    /// The name by which a server was called; `None`: the other end is a client.
    server: Option<ServerName<'static>>,
}

/// How a connection begins, until its handshake ends.
pub(super) struct Begin {
    tls: Tls,
    current: Arc<Current>,
    server: Option<ServerName<'static>>,
}

impl Begin {
    /// `server`: the name by which a server is called; `None` at the end of the server.
    pub(super) fn new(
        tls: &Tls,
        current: Arc<Current>,
        server: Option<ServerName<'static>>,
    ) -> Self {
        Self {
            tls: tls.clone(),
            current,
            server,
        }
    }

    /// Whether this end has connected.
    pub(super) const fn is_client(&self) -> bool {
        self.server.is_some()
    }

    /// Takes a connection into the list, whose handshake has ended.
    ///
    /// # Errors
    /// The certificate is refused by what was read since the handshake began.
    pub(super) fn end(
        self,
        chain: &[CertificateDer<'static>],
        socket: &Arc<StreamSocket>,
    ) -> Result<(), TransportError> {
        let shown = Arc::new(Shown {
            chain: chain.to_vec(),
            server: self.server,
        });
        let shared = &self.tls.0;
        shared.open.insert(Arc::clone(&shown), socket);
        let current = self.tls.current();
        if Arc::ptr_eq(&current, &self.current) || current.accepts(&shown) {
            Ok(())
        } else {
            Err(TransportError::CertificateRevoked)
        }
    }
}

impl Open {
    fn insert(&self, shown: Arc<Shown>, socket: &Arc<StreamSocket>) {
        let mut list = self.0.lock("tls.open");
        if list.all.len() >= list.prune_at {
            list.all.retain(|(_, socket)| socket.strong_count() != 0);
            list.prune_at = 2 * list.all.len() + PRUNE_MIN;
        }
        list.all.push((shown, Arc::downgrade(socket)));
    }

    /// Closes the connections whose certificates are refused now. Returns how many.
    pub(super) fn close_refused(&self, current: &Current) -> usize {
        let all = self.0.lock("tls.close_refused").all.clone();
        // Handshakes end meanwhile: the lock is not held while certificates are checked.
        let refused = all.iter().filter(|(shown, _)| !current.accepts(shown));
        let sockets = refused.filter_map(|(_, socket)| socket.upgrade());
        sockets.inspect(|socket| socket.shutdown()).count()
    }
}

impl Current {
    /// Whether a handshake would accept what the other end has shown.
    fn accepts(&self, shown: &Shown) -> bool {
        let Some((clients, servers)) = &self.checks else {
            return true;
        };
        let Some((own, others)) = shown.chain.split_first() else {
            return true;
        };
        let now = UnixTime::now();
        match &shown.server {
            None => clients.verify_client_cert(own, others, now).is_ok(),
            Some(name) => servers
                .verify_server_cert(own, others, name, &[], now)
                .is_ok(),
        }
    }
}

/// The list of open connections is not searched for ended ones below this length.
const PRUNE_MIN: usize = 64;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn list_keeps_connections_that_are_open_and_loses_those_that_have_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let open = Open::default();
        let insert = |socket: &Arc<StreamSocket>| {
            let shown = Shown {
                chain: Vec::new(),
                server: None,
            };
            open.insert(Arc::new(shown), socket);
        };
        let connect = || Arc::new(StreamSocket::connect_from(at.ip(), at, None).unwrap());
        let connections: Vec<_> = (0..=PRUNE_MIN).map(|_| connect()).collect();
        connections.iter().for_each(insert);
        assert_eq!(open.0.lock("test").all.len(), connections.len());
        drop(connections);
        let last = connect();
        (0..4 * PRUNE_MIN).for_each(|_| insert(&last));
        let list = open.0.lock("test");
        assert!(
            list.all
                .iter()
                .all(|(_, socket)| socket.strong_count() != 0)
        );
    }
}
