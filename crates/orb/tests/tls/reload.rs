//! Certificates are replaced while calls go on.

use std::sync::atomic::{AtomicBool, Ordering};

use deckwatch_orb::{Counter, SystemExceptionKind as Kind, TlsFact, own_minor as own};

use super::support::{Ship, call, serve};
use crate::support::call as ping;

#[test]
fn a_reload_under_load_loses_no_call_and_new_connections_get_the_new_certificate() {
    let ship = Ship::new();
    let used = ship.server();
    let (server, tls) = serve("tls:127.0.0.1:0", ship.end(&used).require());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (ship, server, is_done) = (&ship, &server, &is_done);
            scope.spawn(move || {
                while !is_done.load(Ordering::SeqCst) {
                    // A new ORB makes a new connection.
                    let (_orb, bench) = ship.call(server);
                    for _ in 0..20 {
                        assert_eq!(ping(&bench, "ping"), Ok(()));
                    }
                }
            });
        }
        for _ in 0..20 {
            let next = ship.server();
            std::fs::copy(&next.key, &used.key).unwrap();
            std::fs::copy(&next.chain, &used.chain).unwrap();
            tls.reload().unwrap();
        }
        is_done.store(true, Ordering::SeqCst);
    });
}

#[test]
fn a_certificate_is_refused_once_its_revocation_is_loaded_and_its_open_connection_goes_on() {
    let ship = Ship::new();
    let bridge = ship.client();
    let list = ship.authority.revoke(&[]);
    let options = ship.end(&ship.server()).authorities(&list).require();
    let (server, tls) = serve("tls:127.0.0.1:0", options);
    let (open, early) = call(&server, ship.end(&bridge));
    assert_eq!(ping(&early, "ping"), Ok(()));
    ship.authority.revoke(&[&bridge]);
    tls.reload().unwrap();
    let (_orb, late) = call(&server, ship.end(&bridge));
    let exception = ping(&late, "ping").unwrap_err();
    assert_eq!(
        (exception.kind, exception.minor),
        (Kind::NoPermission, own::TLS_REFUSED)
    );
    assert_eq!(ping(&early, "ping"), Ok(()));
    assert_eq!(open.counters().read(Counter::ConnectionsMade), 1);
}

#[test]
fn a_reload_that_fails_leaves_in_use_what_was() {
    let ship = Ship::new();
    let used = ship.server();
    let (server, tls) = serve("tls:127.0.0.1:0", ship.end(&used).require());
    std::fs::write(&used.chain, "half a cert").unwrap();
    let error = tls.reload().unwrap_err();
    assert_eq!(
        (error.place, error.fact),
        (used.chain, TlsFact::NoCertificate)
    );
    let (_orb, bench) = ship.call(&server);
    assert_eq!(ping(&bench, "ping"), Ok(()));
}
