//! Shares of peers that have shown certificates: the name counts, not the address.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use deckwatch_orb::{Counter, ObjectRef, Orb};
use deckwatch_os::stream::StreamSocket;
use deckwatch_testkit::certificates::Issued;

use super::support::{Ship, address, client_orb, serve_shaped};
use crate::support::{Server, call as ping, wait_for};

/// A server that has eight places for connections.
fn server(ship: &Ship) -> Server {
    let options = ship.end(&ship.server()).require();
    let (server, _) = serve_shaped("tls:127.0.0.1:0", options, |builder| {
        builder.connections_max(8)
    });
    let own = server.orb.string_to_object(&server.text).unwrap().unwrap();
    server.orb.register_plain_key(b"Bench", &own).unwrap();
    server
}

fn client(ship: &Ship, own: &Issued, at: SocketAddr) -> (Orb, ObjectRef) {
    let orb = client_orb(ship.end(own).require());
    let url = format!("corbaloc:ssliop:127.0.0.1:{}/Bench", at.port());
    let bench = orb.string_to_object(&url).unwrap().unwrap();
    (orb, bench)
}

/// Passes connections on to `server` from another address. Its threads end with the connections, or with the process.
fn relay_from(from: IpAddr, server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let near = Arc::new(near.unwrap());
            let far = Arc::new(StreamSocket::connect_from(from, server, None).unwrap());
            let (back, to) = (Arc::clone(&far), Arc::clone(&near));
            std::thread::spawn(move || pass(|room| back.read(room, None), &to));
            std::thread::spawn(move || {
                let mut buffer = [0; 4_096];
                while let Ok(count @ 1..) = std::io::Read::read(&mut &*near, &mut buffer) {
                    if far.write_all(&buffer[..count], None).is_err() {
                        break;
                    }
                }
                far.shutdown();
            });
        }
    });
    at
}

fn pass(mut read: impl FnMut(&mut [u8]) -> std::io::Result<usize>, mut to: &TcpStream) {
    let mut buffer = [0; 4_096];
    while let Ok(count @ 1..) = read(&mut buffer) {
        if std::io::Write::write_all(&mut to, &buffer[..count]).is_err() {
            break;
        }
    }
    // The other side may have gone.
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// Whether one of the peer's own connections gave way, or the new one was refused for a moment and came again.
fn has_given_way(server: &Server) -> bool {
    server.orb.counters().read(Counter::ConnectionsEvicted) == 1
}

#[test]
fn one_certificate_has_one_share_at_all_addresses() {
    let ship = Ship::new();
    let (server, own) = (server(&ship), ship.client());
    let from = |number| IpAddr::from([127, 0, 0, number]);
    let clients: Vec<_> = (2..7)
        .map(|number| {
            let (orb, bench) = client(&ship, &own, relay_from(from(number), address(&server)));
            assert!(!has_given_way(&server), "four of eight places are a share");
            wait_for(|| ping(&bench, "ping") == Ok(()));
            (orb, bench)
        })
        .collect();
    wait_for(|| has_given_way(&server));
    drop(clients);
}

#[test]
fn certificates_at_one_address_have_a_share_each() {
    let ship = Ship::new();
    let (server, own) = (server(&ship), ship.client());
    let at = address(&server);
    let connect = |own: &Issued| {
        let (orb, bench) = client(&ship, own, at);
        assert_eq!(ping(&bench, "ping"), Ok(()));
        (orb, bench)
    };
    let greedy: Vec<_> = (0..4).map(|_| connect(&own)).collect();
    let other = ship.authority.issue("engine", &["engine.ship"]);
    let (others, bench) = connect(&other);
    for (_, bench) in &greedy {
        assert_eq!(ping(bench, "ping"), Ok(()));
    }
    assert_eq!(ping(&bench, "ping"), Ok(()));
    assert_eq!(others.counters().read(Counter::ConnectionsMade), 1);
    let counters = server.orb.counters();
    assert_eq!(counters.read(Counter::ConnectionsEvicted), 0);
    assert_eq!(counters.read(Counter::ConnectionsRefused), 0);
}
