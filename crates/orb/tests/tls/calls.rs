//! Every kind of call over TLS, and which address of a reference is called.

use std::sync::Arc;

use deckwatch_orb::transport::Endpoint;
use deckwatch_orb::{
    BidirectionalPolicyValue, Counter, Orb, OrbBuilder, Policies, Policy, Servant,
    SystemExceptionKind as Kind, TlsOptions, own_minor as own,
};

use super::support::{Ship, call, client_orb, serve, serve_shaped};
use crate::support::{Bench, Server, call as ping, call_back, call_octets, client_of, note, noted};

#[test]
fn every_kind_of_call_goes_over_tls() {
    let ship = Ship::new();
    let (server, _) = ship.serve_at("tls:127.0.0.1:0");
    let (client, bench) = ship.call(&server);
    assert_eq!(ping(&bench, "ping"), Ok(()));
    // The largest message, in both directions.
    let large = vec![7; (16 << 20) - 1_024];
    assert!(call_octets(&bench, &large) == Ok(large));
    for value in 0..1_000 {
        note(&bench, value).unwrap();
    }
    while noted(&bench).unwrap() < 1_000 {
        std::thread::yield_now();
    }
    let expected: Vec<u32> = (0..1_000).collect();
    assert_eq!(*server.bench.order.lock().unwrap(), expected);
    // One connection for two-way requests, one for one-way requests.
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 2);
}

#[test]
fn calls_of_many_threads_get_their_own_replies() {
    let ship = Ship::new();
    let (server, _) = ship.serve_at("tls:127.0.0.1:0");
    let (_client, bench) = ship.call(&server);
    std::thread::scope(|scope| {
        for thread in 0..8_usize {
            let bench = bench.clone();
            scope.spawn(move || {
                for round in 0..50_usize {
                    let octets = vec![thread as u8; (round * 977) % 70_000];
                    assert!(call_octets(&bench, &octets) == Ok(octets));
                }
            });
        }
    });
}

#[test]
fn asynchronous_calls_share_one_connection_over_tls() {
    let ship = Ship::new();
    let (server, _) = ship.serve_at("tls:127.0.0.1:0");
    let (client, bench) = ship.call(&server);
    let pending: Vec<_> = (0..100_u32)
        .map(|size| {
            bench.send_deferred("octets", move |w| {
                w.write_octet_sequence(&vec![3; size as usize * 300])
            })
        })
        .collect();
    for (size, reply) in pending.into_iter().enumerate() {
        let octets = reply.unwrap();
        assert!(octets.wait(None).unwrap());
        let read = |r: &mut deckwatch_cdr::Reader<'_>| r.read_octet_sequence().map(<[u8]>::to_vec);
        let octets: Option<Result<_, deckwatch_orb::SystemException>> =
            octets.take(read, |_, _| Ok(None));
        let octets = octets.unwrap().unwrap();
        assert_eq!(octets.len(), size * 300);
    }
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
}

#[test]
fn a_server_calls_back_over_the_connection_that_its_client_has_opened() {
    let ship = Ship::new();
    let both =
        |builder: OrbBuilder| builder.policy(Policy::Bidirectional(BidirectionalPolicyValue::Both));
    let (server, _) = serve_shaped("tls:127.0.0.1:0", ship.end(&ship.server()).require(), both);
    let (peer, _) = serve_shaped("tls:127.0.0.1:0", ship.end(&ship.server()).require(), both);
    let policies = |server: &Server| {
        let policies = Policies {
            bidirectional: BidirectionalPolicyValue::Both,
            ..Policies::root()
        };
        let poa = server.root.create_poa("both", None, &policies).unwrap();
        poa.the_poa_manager().activate().unwrap();
        let servant: Arc<dyn Servant> = Arc::new(Bench::default());
        poa.servant_to_reference(&servant).unwrap()
    };
    let (bench, own) = (policies(&server), policies(&peer));
    let bench = peer
        .orb
        .string_to_object(&bench.to_string())
        .unwrap()
        .unwrap();
    assert_eq!(call_back(&bench, &own).unwrap(), b"called back");
    assert_eq!(
        server.orb.counters().read(Counter::ConnectionsMade),
        0,
        "it opened none"
    );
}

#[test]
fn a_url_leads_to_an_address_over_tls() {
    let ship = Ship::new();
    let (server, _) = ship.serve_at("tls:127.0.0.1:0");
    let own = server.orb.string_to_object(&server.text).unwrap().unwrap();
    server.orb.register_plain_key(b"Bench", &own).unwrap();
    let endpoint = &server.orb.endpoints()[0];
    let port = endpoint.port().unwrap();
    assert_eq!(
        endpoint.url_address(),
        format!("ssliop:1.2@127.0.0.1:{port}")
    );
    let client = client_orb(ship.end(&ship.client()));
    for address in [endpoint.url_address(), format!("ssliop:localhost:{port}")] {
        let url = format!("corbaloc:{address}/Bench");
        let bench = client.string_to_object(&url).unwrap().unwrap();
        assert_eq!(ping(&bench, "ping"), Ok(()), "{url}");
    }
}

#[test]
fn of_both_addresses_a_client_with_authorities_takes_tls_and_another_one_the_plain() {
    let ship = Ship::new();
    let tls = ship.end(&ship.server()).load().unwrap();
    let builder = Orb::builder().tls(&tls).listen("127.0.0.1:0").unwrap();
    let server = Server::with(builder.listen("tls:127.0.0.1:0").unwrap().build().unwrap());
    assert!(matches!(
        server.orb.endpoints()[..],
        [Endpoint::Tcp { .. }, Endpoint::Tls { .. }]
    ));
    let (_plain, bench) = client_of(&server);
    assert_eq!(ping(&bench, "ping"), Ok(()));
    // Nobody but the pirate is trusted: a call over TLS fails, and is not made without.
    let pirate = deckwatch_testkit::certificates::Authority::new(ship.folder.path(), "pirate");
    let (_orb, bench) = call(&server, TlsOptions::default().authorities(pirate.file()));
    let exception = ping(&bench, "ping").unwrap_err();
    assert_eq!(
        (exception.kind, exception.minor),
        (Kind::NoPermission, own::TLS_UNTRUSTED)
    );
    let (_orb, bench) = call(&server, ship.end(&ship.client()));
    assert_eq!(ping(&bench, "ping"), Ok(()));
}

#[test]
fn a_client_that_requires_tls_calls_no_plain_address() {
    let ship = Ship::new();
    let server = Server::start();
    let (_orb, bench) = call(&server, ship.end(&ship.client()));
    assert_eq!(ping(&bench, "ping"), Ok(()), "it prefers TLS");
    let (_orb, bench) = call(&server, ship.end(&ship.client()).require());
    let exception = ping(&bench, "ping").unwrap_err();
    assert_eq!(
        (exception.kind, exception.minor),
        (Kind::InvObjref, own::NO_KNOWN_PROFILE)
    );
}

#[test]
fn a_plain_client_at_a_tls_port_and_a_tls_client_at_a_plain_port_are_told_so() {
    let ship = Ship::new();
    let (server, _) = serve("tls:127.0.0.1:0", ship.end(&ship.server()));
    let port = server.orb.endpoints()[0].port().unwrap();
    let orb = Orb::builder().build().unwrap();
    let bench = orb
        .string_to_object(&format!("corbaloc::127.0.0.1:{port}/k"))
        .unwrap()
        .unwrap();
    let exception = ping(&bench, "ping").unwrap_err();
    assert_eq!(
        (exception.kind, exception.minor),
        (Kind::CommFailure, own::TLS_DEMANDED)
    );
    let plain = Server::start();
    let port = plain.address().port();
    let orb = client_orb(ship.end(&ship.client()));
    let url = format!("corbaloc:ssliop:127.0.0.1:{port}/k");
    let bench = orb.string_to_object(&url).unwrap().unwrap();
    let exception = ping(&bench, "ping").unwrap_err();
    assert_eq!(
        (exception.kind, exception.minor),
        (Kind::CommFailure, own::TLS_PEER_PLAIN)
    );
}
