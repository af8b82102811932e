//! Which certificates are taken, and what an end is told whose certificate is not.

use std::sync::{Arc, Mutex};

use deckwatch_orb::transport::TransportError;
use deckwatch_orb::{
    BuildError, Orb, SystemExceptionKind as Kind, TlsFact, TlsOptions, own_minor as own,
};
use deckwatch_testkit::certificates::{Authority, Issued};

use super::support::{Ship, call, serve, serve_shaped};
use crate::support::{Server, call as ping, client_of};

/// The kind and minor code that a ping raises.
#[track_caller]
fn refusal(server: &Server, options: TlsOptions) -> (Kind, u32) {
    let (_orb, bench) = call(server, options);
    let exception = ping(&bench, "ping").unwrap_err();
    (exception.kind, exception.minor)
}

/// What an ORB writes to its trace.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn both_ends_show_certificates_and_the_server_knows_its_client_by_name() {
    let ship = Ship::new();
    let written = Written::default();
    let options = ship.end(&ship.server()).require();
    let sink = written.clone();
    let (server, _) = serve_shaped("tls:127.0.0.1:0", options, |builder| builder.trace(sink));
    let (_orb, bench) = ship.call(&server);
    assert_eq!(ping(&bench, "ping"), Ok(()));
    server.orb.shutdown(true).unwrap();
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("(bridge.ship)"), "{text}");
}

#[test]
fn a_server_that_another_authority_has_signed_is_not_called() {
    let ship = Ship::new();
    let (server, _) = ship.serve_at("tls:127.0.0.1:0");
    let pirate = Authority::new(ship.folder.path(), "pirate");
    let trusts_pirate = TlsOptions::default().authorities(pirate.file());
    assert_eq!(
        refusal(&server, trusts_pirate),
        (Kind::NoPermission, own::TLS_UNTRUSTED)
    );
}

#[test]
fn a_client_without_certificate_or_with_one_of_another_authority_is_refused() {
    let ship = Ship::new();
    let (server, _) = ship.serve_at("tls:127.0.0.1:0");
    let pirate = Authority::new(ship.folder.path(), "pirate");
    let other = pirate.issue("bridge", &["bridge.ship"]);
    let without = TlsOptions::default().authorities(ship.authority.file());
    for options in [without, ship.end(&other)] {
        assert_eq!(
            refusal(&server, options),
            (Kind::NoPermission, own::TLS_REFUSED)
        );
    }
    let taken = server.bench.calls.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(taken, 0, "no request of theirs was served");
}

#[test]
fn a_client_without_certificate_is_served_where_none_is_required() {
    let ship = Ship::new();
    let (server, _) = serve("tls:127.0.0.1:0", ship.end(&ship.server()));
    let (_orb, bench) = call(
        &server,
        TlsOptions::default().authorities(ship.authority.file()),
    );
    assert_eq!(ping(&bench, "ping"), Ok(()));
}

#[test]
fn expired_certificates_are_refused_on_either_side() {
    let ship = Ship::new();
    let old = ship.authority.issue_expired("nav", &["127.0.0.1"]);
    let (server, _) = serve("tls:127.0.0.1:0", ship.end(&old));
    let refused = refusal(&server, ship.end(&ship.client()));
    assert_eq!(refused, (Kind::NoPermission, own::TLS_EXPIRED));
    let (server, _) = ship.serve_at("tls:127.0.0.1:0");
    let refused = refusal(&server, ship.end(&old));
    assert_eq!(refused, (Kind::NoPermission, own::TLS_REFUSED));
}

#[test]
fn revoked_certificates_are_refused_on_either_side_and_others_are_not() {
    let ship = Ship::new();
    let (nav, bridge, other) = (ship.server(), ship.client(), ship.client());
    let list = ship.authority.revoke(&[&nav, &bridge]);
    let (server, _) = serve("tls:127.0.0.1:0", ship.end(&nav).require());
    let checks = || ship.end(&other).authorities(&list);
    assert_eq!(
        refusal(&server, checks()),
        (Kind::NoPermission, own::TLS_REVOKED)
    );
    let checks = ship.end(&ship.server()).authorities(&list).require();
    let (server, _) = serve("tls:127.0.0.1:0", checks);
    assert_eq!(
        refusal(&server, ship.end(&bridge)),
        (Kind::NoPermission, own::TLS_REFUSED)
    );
    let (_orb, bench) = call(&server, ship.end(&other));
    assert_eq!(ping(&bench, "ping"), Ok(()));
}

#[test]
fn a_folder_has_authorities_and_lists_and_other_files_in_it_do_not_matter() {
    let ship = Ship::new();
    let bridge = ship.client();
    ship.authority.revoke(&[&bridge]);
    std::fs::write(ship.folder.path().join("README.txt"), "nothing in PEM").unwrap();
    let own = ship.server();
    let of_folder = |own: &Issued| {
        let options = TlsOptions::default().certificate(&own.chain, &own.key);
        options.authorities(ship.folder.path())
    };
    let (server, _) = serve("tls:127.0.0.1:0", of_folder(&own).require());
    assert_eq!(
        refusal(&server, of_folder(&bridge)),
        (Kind::NoPermission, own::TLS_REFUSED)
    );
    let (_orb, bench) = call(&server, of_folder(&ship.client()));
    assert_eq!(ping(&bench, "ping"), Ok(()));
}

#[test]
fn a_certificate_that_does_not_name_the_host_is_refused() {
    let ship = Ship::new();
    let radar = ship.authority.issue("radar", &["radar.ship"]);
    let (server, _) = serve("tls:127.0.0.1:0", ship.end(&radar));
    let refused = refusal(&server, ship.end(&ship.client()));
    assert_eq!(refused, (Kind::NoPermission, own::TLS_OTHER_HOST));
}

#[test]
fn without_certificates_a_server_does_not_listen_and_a_client_does_not_call() {
    let ship = Ship::new();
    let built = Orb::builder().listen("tls:127.0.0.1:0").unwrap().build();
    assert!(
        matches!(
            built,
            Err(BuildError::CannotListen {
                error: TransportError::TlsNotSet,
                ..
            })
        ),
        "{built:?}"
    );
    let (server, _) = ship.serve_at("tls:127.0.0.1:0");
    let (_orb, bench) = client_of(&server);
    let exception = ping(&bench, "ping").unwrap_err();
    assert_eq!(
        (exception.kind, exception.minor),
        (Kind::NoPermission, own::TLS_NOT_SET)
    );
}

#[test]
fn files_that_cannot_be_used_are_told_with_what_is_wrong_with_them() {
    let ship = Ship::new();
    let (one, other) = (ship.server(), ship.client());
    let here = |name: &str| ship.folder.path().join(name);
    std::fs::write(here("empty"), "").unwrap();
    let pem = std::fs::read_to_string(&one.chain).unwrap();
    std::fs::write(here("damaged.pem"), pem.replacen("MII", "AAA", 1)).unwrap();
    let certificate = |chain, key| TlsOptions::default().certificate(chain, key);
    let authorities = |place| TlsOptions::default().authorities(place);
    for (options, fact) in [
        (
            certificate(&here("none"), &one.key),
            TlsFact::Unreadable(std::io::ErrorKind::NotFound),
        ),
        (
            certificate(&here("empty"), &one.key),
            TlsFact::NoCertificate,
        ),
        (certificate(&one.chain, &here("empty")), TlsFact::NoKey),
        (certificate(&one.chain, &one.chain), TlsFact::NoKey),
        (certificate(&one.chain, &other.key), TlsFact::KeyOfAnother),
        (authorities(here("empty")), TlsFact::NoCertificate),
        (
            authorities(here("damaged.pem")),
            TlsFact::CertificateMalformed,
        ),
        (TlsOptions::default().require(), TlsFact::NoAuthorities),
    ] {
        let error = options.load().unwrap_err();
        assert_eq!(error.fact, fact, "{error}");
    }
}
