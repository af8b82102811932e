//! Peers that break the handshake, stop within it, or never begin it.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use deckwatch_orb::limits::{HANDSHAKES_PER_PEER_MAX, HANDSHAKES_TOLD_MAX};
use deckwatch_orb::{AccessEvent, AccessLog, TlsOptions};
use deckwatch_os::stream::StreamSocket;
use deckwatch_testkit::alone;

use super::support::{Ship, address, call, client_orb, serve_shaped};
use crate::support::{PATIENCE, call as ping, wait_for};

/// Forwards one connection to `server`: `limit` octets of the client, then it cuts both sides. Returns the octets of the
/// client, and the address to connect to.
fn cut_after(server: SocketAddr, limit: usize) -> (SocketAddr, std::thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let relay = std::thread::spawn(move || {
        let (mut near, _) = listener.accept().unwrap();
        let mut far = TcpStream::connect(server).unwrap();
        let (mut answers, mut answered) = (far.try_clone().unwrap(), near.try_clone().unwrap());
        let back = std::thread::spawn(move || {
            // It ends with either side.
            let _ = std::io::copy(&mut answers, &mut answered);
        });
        let mut octets = Vec::new();
        let mut buffer = [0; 4_096];
        while octets.len() < limit {
            let room = buffer.len().min(limit - octets.len());
            match near.read(&mut buffer[..room]) {
                Ok(0) | Err(_) => break,
                Ok(count) => {
                    octets.extend_from_slice(&buffer[..count]);
                    if far.write_all(&buffer[..count]).is_err() {
                        break;
                    }
                }
            }
        }
        // Either side may have gone.
        let _ = (near.shutdown(Shutdown::Both), far.shutdown(Shutdown::Both));
        back.join().unwrap();
        octets
    });
    (at, relay)
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_handshake_that_is_cut_anywhere_leaves_nothing_and_the_next_caller_is_served() {
    alone(|| {
        let ship = Ship::new();
        let (server, _) = ship.serve_at("tls:127.0.0.1:0");
        let port = address(&server);
        let own = server.orb.string_to_object(&server.text).unwrap().unwrap();
        server.orb.register_plain_key(b"Bench", &own).unwrap();
        // Calls through a relay that cuts the client off after so many octets.
        let call_cut = |limit: usize| {
            let (at, relay) = cut_after(port, limit);
            let orb = client_orb(ship.end(&ship.client()).require());
            let url = format!("corbaloc:ssliop:127.0.0.1:{}/Bench", at.port());
            let bench = orb.string_to_object(&url).unwrap().unwrap();
            let called = ping(&bench, "ping");
            drop((bench, orb));
            (called, relay.join().unwrap())
        };
        let (called, whole) = call_cut(usize::MAX);
        assert_eq!(called, Ok(()));
        let hello = 5 + usize::from(u16::from_be_bytes([whole[3], whole[4]]));
        assert!(
            whole.starts_with(&[22, 3]) && hello < whole.len(),
            "a ClientHello comes first"
        );
        let before = descriptors();
        for end in 0..hello {
            let mut raw = TcpStream::connect(port).unwrap();
            raw.write_all(&whole[..end]).unwrap();
        }
        // Behind the ClientHello each handshake has octets of its own.
        for end in (hello..whole.len()).step_by(97) {
            assert!(call_cut(end).0.is_err(), "cut at {end}");
        }
        let (_orb, bench) = ship.call(&server);
        assert_eq!(ping(&bench, "ping"), Ok(()));
        drop((bench, _orb));
        wait_for(|| descriptors() <= before);
    });
}

#[test]
fn a_handshake_with_any_octet_changed_is_refused_or_serves_and_never_stops_the_server() {
    let ship = Ship::new();
    let (server, _) = ship.serve_at("tls:127.0.0.1:0");
    let port = address(&server);
    let (at, relay) = cut_after(port, usize::MAX);
    let orb = client_orb(ship.end(&ship.client()).require());
    let url = format!("corbaloc:ssliop:127.0.0.1:{}/Nobody", at.port());
    let nobody = orb.string_to_object(&url).unwrap().unwrap();
    assert!(ping(&nobody, "ping").is_err(), "no such object");
    drop((nobody, orb));
    let whole = relay.join().unwrap();
    let hello = 5 + usize::from(u16::from_be_bytes([whole[3], whole[4]]));
    for place in 0..hello {
        let mut octets = whole.clone();
        octets[place] ^= 0xff;
        let mut raw = TcpStream::connect(port).unwrap();
        raw.set_read_timeout(Some(PATIENCE)).unwrap();
        // The server may have refused the first octets already.
        let _ = raw.write_all(&octets);
        let _ = raw.shutdown(Shutdown::Write);
        // It ends: the rest belongs to another handshake.
        let _ = std::io::copy(&mut raw, &mut std::io::sink());
    }
    let (_orb, bench) = ship.call(&server);
    assert_eq!(ping(&bench, "ping"), Ok(()));
}

#[test]
fn silent_peers_are_closed_in_time_and_one_address_holds_its_share_and_no_more() {
    let ship = Ship::new();
    let told = Arc::new(Refused::default());
    let log = told.clone();
    let options = ship.end(&ship.server()).require();
    let (server, _) = serve_shaped("tls:0.0.0.0:0", options, |it| it.access_log(log));
    let port = address(&server).port();
    let server_at = SocketAddr::from(([127, 0, 0, 1], port));
    let from = IpAddr::from([127, 0, 0, 2]);
    let silent: Vec<_> = (0..HANDSHAKES_PER_PEER_MAX + 8)
        .map(|_| StreamSocket::connect_from(from, server_at, None).unwrap())
        .collect();
    let has_ended = |socket: &&StreamSocket| !matches!(socket.read_now(&mut [0; 8]), Ok(None));
    wait_for(|| silent.iter().filter(has_ended).count() >= 8);
    // Those beyond the share end at once. The time limit ends the oldest first.
    assert!(silent.iter().rev().take(8).all(|socket| has_ended(&socket)));
    let client = client_orb(ship.end(&ship.client()).require());
    let own = server.orb.string_to_object(&server.text).unwrap().unwrap();
    server.orb.register_plain_key(b"Bench", &own).unwrap();
    let url = format!("corbaloc:ssliop:127.0.0.1:{port}/Bench");
    let bench = client.string_to_object(&url).unwrap().unwrap();
    assert_eq!(ping(&bench, "ping"), Ok(()), "others are served");
    wait_for(|| silent.iter().all(|socket| has_ended(&socket)));
    assert_eq!(
        ping(&bench, "ping"),
        Ok(()),
        "a connection after its handshake stays"
    );
    let is_told = |words: &str| {
        let lines = told.0.lock().unwrap();
        lines.iter().filter(|(_, why)| why.contains(words)).count()
    };
    let told_max = HANDSHAKES_TOLD_MAX as usize;
    assert_eq!(is_told("too many handshakes under way"), 8);
    assert!((1..=told_max).contains(&is_told("took too long")));
    wait_for(|| is_told("more handshakes failed in one second") > 0);
}

/// The handshakes that a log is told of: address and reason.
#[derive(Default)]
struct Refused(Mutex<Vec<(String, String)>>);

impl AccessLog for Refused {
    fn note(&self, event: &AccessEvent<'_>) {
        if let AccessEvent::ConnectionRefused { peer, reason } = event {
            let line = ((*peer).to_owned(), (*reason).to_owned());
            self.0.lock().unwrap().push(line);
        }
    }
}

#[test]
fn a_handshake_that_fails_is_told_to_the_log_with_address_and_reason() {
    let ship = Ship::new();
    let bridge = ship.client();
    let list = ship.authority.revoke(&[&bridge]);
    let options = ship.end(&ship.server()).authorities(&list).require();
    let told = Arc::new(Refused::default());
    let log = told.clone();
    let (server, _) = serve_shaped("tls:127.0.0.1:0", options, |it| it.access_log(log));
    let next = || {
        wait_for(|| !told.0.lock().unwrap().is_empty());
        let (peer, reason) = told.0.lock().unwrap().remove(0);
        assert!(peer.starts_with("127.0.0.1:"), "{peer}");
        reason
    };
    let mut raw = TcpStream::connect(address(&server)).unwrap();
    raw.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(next(), "The peer does not speak TLS.");
    let (_orb, nameless) = call(
        &server,
        TlsOptions::default().authorities(ship.authority.file()),
    );
    assert!(ping(&nameless, "ping").is_err());
    assert_eq!(next(), "The peer shows no certificate.");
    let (_orb, revoked) = call(&server, ship.end(&bridge));
    assert!(ping(&revoked, "ping").is_err());
    assert_eq!(next(), "The certificate of the peer is revoked.");
    let (_orb, bench) = ship.call(&server);
    assert_eq!(ping(&bench, "ping"), Ok(()));
    assert!(told.0.lock().unwrap().is_empty());
}
