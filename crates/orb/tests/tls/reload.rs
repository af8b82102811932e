//! Certificates are replaced while calls go on.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use deckwatch_orb::{Counter, Orb, SystemExceptionKind as Kind, TlsFact, own_minor as own};

use super::support::{Ship, address, call, client_orb, serve};
use crate::support::{call as ping, wait_for};

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
fn a_certificate_is_refused_once_its_revocation_is_loaded_and_its_open_connection_is_closed() {
    let ship = Ship::new();
    let bridge = ship.client();
    let list = ship.authority.revoke(&[]);
    let options = ship.end(&ship.server()).authorities(&list).require();
    let (server, tls) = serve("tls:127.0.0.1:0", options);
    let (_orb, early) = call(&server, ship.end(&bridge));
    let (open, other) = ship.call(&server);
    assert_eq!(
        (ping(&early, "ping"), ping(&other, "ping")),
        (Ok(()), Ok(()))
    );
    assert_eq!(tls.reload().unwrap(), 0, "no certificate is revoked");
    ship.authority.revoke(&[&bridge]);
    assert_eq!(tls.reload().unwrap(), 1);
    wait_for(|| server.orb.counters().read(Counter::ConnectionsClosed) == 1);
    assert!(ping(&early, "ping").is_err(), "its connection is closed");
    let (_orb, late) = call(&server, ship.end(&bridge));
    let exception = ping(&late, "ping").unwrap_err();
    assert_eq!(
        (exception.kind, exception.minor),
        (Kind::NoPermission, own::TLS_REFUSED)
    );
    assert_eq!(ping(&other, "ping"), Ok(()));
    assert_eq!(open.counters().read(Counter::ConnectionsMade), 1);
}

#[test]
fn a_client_closes_its_connection_to_a_server_whose_certificate_is_revoked() {
    let ship = Ship::new();
    let used = ship.server();
    let (server, _) = serve("tls:127.0.0.1:0", ship.end(&used));
    let list = ship.authority.revoke(&[]);
    let options = ship.end(&ship.client()).authorities(&list);
    let tls = options.load().unwrap();
    let orb = Orb::builder().tls(&tls).build().unwrap();
    let bench = orb.string_to_object(&server.text).unwrap().unwrap();
    assert_eq!(ping(&bench, "ping"), Ok(()));
    ship.authority.revoke(&[&used]);
    assert_eq!(tls.reload().unwrap(), 1);
    let exception = ping(&bench, "ping").unwrap_err();
    assert_eq!(exception.kind, Kind::NoPermission, "{exception:?}");
}

#[test]
fn a_certificate_that_is_revoked_within_its_handshake_is_refused_at_the_end_of_it() {
    let ship = Ship::new();
    let bridge = ship.client();
    let list = ship.authority.revoke(&[]);
    let options = ship.end(&ship.server()).authorities(&list).require();
    let (server, tls) = serve("tls:127.0.0.1:0", options);
    let own = server.orb.string_to_object(&server.text).unwrap().unwrap();
    server.orb.register_plain_key(b"Bench", &own).unwrap();
    let (arrived, answered) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let far = address(&server);
    let near = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = near.local_addr().unwrap().port();
    // Holds back what the client sends once the server has answered: its certificate.
    std::thread::spawn(move || {
        let (mut near, _) = near.accept().unwrap();
        let mut far = TcpStream::connect(far).unwrap();
        let mut octets = [0; 16 << 10];
        let count = near.read(&mut octets).unwrap();
        far.write_all(&octets[..count]).unwrap();
        let count = far.read(&mut octets).unwrap();
        near.write_all(&octets[..count]).unwrap();
        arrived.send(()).unwrap();
        may_go_on.recv().unwrap();
        let (mut back, mut to) = (far.try_clone().unwrap(), near.try_clone().unwrap());
        // Either side ends it.
        std::thread::spawn(move || std::io::copy(&mut back, &mut to));
        let _ = std::io::copy(&mut near, &mut far);
        let _ = far.shutdown(Shutdown::Both);
    });
    let orb = client_orb(ship.end(&bridge));
    let url = format!("corbaloc:ssliop:127.0.0.1:{port}/Bench");
    let bench = orb.string_to_object(&url).unwrap().unwrap();
    let called = std::thread::spawn(move || ping(&bench, "ping"));
    answered.recv().unwrap();
    ship.authority.revoke(&[&bridge]);
    assert_eq!(tls.reload().unwrap(), 0, "its handshake has not ended");
    go_on.send(()).unwrap();
    assert!(called.join().unwrap().is_err());
    assert_eq!(server.orb.counters().read(Counter::ConnectionsAccepted), 0);
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
