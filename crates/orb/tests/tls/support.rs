//! Servers and clients over TLS, with certificates of their own in a temporary folder.

use std::time::Duration;

use deckwatch_orb::{ObjectRef, Orb, OrbBuilder, Tls, TlsOptions};
use deckwatch_testkit::certificates::{Authority, Issued};
use tempfile::TempDir;

use crate::support::Server;

/// An authority in a folder, and what the tests get from it.
pub(super) struct Ship {
    pub(super) folder: TempDir,
    pub(super) authority: Authority,
}

impl Ship {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "ship");
        Self { folder, authority }
    }

    /// A certificate for a server on loopback.
    pub(super) fn server(&self) -> Issued {
        self.authority
            .issue("nav", &["nav.ship", "localhost", "127.0.0.1", "::1"])
    }

    /// A certificate for a client.
    pub(super) fn client(&self) -> Issued {
        self.authority.issue("bridge", &["bridge.ship"])
    }

    /// Certificate and authority of one end.
    pub(super) fn end(&self, own: &Issued) -> TlsOptions {
        TlsOptions::default()
            .certificate(&own.chain, &own.key)
            .authorities(self.authority.file())
    }

    /// A server that demands a certificate, listening at this address.
    pub(super) fn serve_at(&self, place: &str) -> (Server, Tls) {
        serve(place, self.end(&self.server()).require())
    }

    /// A client with a certificate.
    pub(super) fn call(&self, server: &Server) -> (Orb, ObjectRef) {
        call(server, self.end(&self.client()).require())
    }
}

pub(super) fn serve(place: &str, options: TlsOptions) -> (Server, Tls) {
    serve_shaped(place, options, |builder| builder)
}

pub(super) fn serve_shaped(
    place: &str,
    options: TlsOptions,
    shape: impl FnOnce(OrbBuilder) -> OrbBuilder,
) -> (Server, Tls) {
    let tls = options.load().unwrap();
    let builder = Orb::builder().tls(&tls).listen(place).unwrap();
    (Server::with(shape(builder).build().unwrap()), tls)
}

pub(super) fn client_orb(options: TlsOptions) -> Orb {
    let tls = options.load().unwrap();
    let builder = Orb::builder()
        .tls(&tls)
        .round_trip_timeout(Duration::from_secs(20));
    builder.build().unwrap()
}

pub(super) fn call(server: &Server, options: TlsOptions) -> (Orb, ObjectRef) {
    let orb = client_orb(options);
    let bench = orb.string_to_object(&server.text).unwrap().unwrap();
    (orb, bench)
}

/// Where a server listens that has one endpoint.
pub(super) fn address(server: &Server) -> std::net::SocketAddr {
    let text = server.orb.endpoints()[0].to_string();
    text.strip_prefix("tls:").unwrap().parse().unwrap()
}
