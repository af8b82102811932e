//! The endpoints of a server and the addresses in its references: published addresses, several addresses, IPv6.

use std::net::{Ipv6Addr, TcpListener};

use crate::support::{Server, call, client_of};
use deckwatch_orb::transport::Endpoint;
use deckwatch_orb::{Counter, Orb, OrbBuilder};

fn server(endpoints: &[&str], publish: &[&str]) -> Server {
    let listen = |builder: OrbBuilder, at: &&str| builder.listen(at).unwrap();
    let builder = endpoints.iter().fold(Orb::builder(), listen);
    let publish_at = |builder: OrbBuilder, at: &&str| builder.publish(at).unwrap();
    Server::with(publish.iter().fold(builder, publish_at).build().unwrap())
}

fn listened_port(server: &Server) -> u16 {
    let ports: Vec<_> = server
        .orb
        .endpoints()
        .iter()
        .filter_map(Endpoint::port)
        .collect();
    *ports.last().unwrap()
}

/// A port without a listener.
fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Host and port of the profile, then of its alternate addresses.
fn in_reference(server: &Server) -> Vec<(String, u16)> {
    let reference = server.orb.string_to_object(&server.text).unwrap().unwrap();
    assert!(reference.is_local());
    let profile = reference.ior().iiop_profiles().next().unwrap().unwrap();
    profile.addresses().collect()
}

#[test]
fn a_reference_carries_what_is_published_and_its_client_tries_all_of_it() {
    let closed = closed_port();
    let gone = format!("127.0.0.1:{closed}");
    // Like a server behind an address translation that is down, with a host name as a second address.
    let server = server(&["127.0.0.1:0"], &[&gone, "localhost"]);
    let port = listened_port(&server);
    let expected = [("127.0.0.1", closed), ("localhost", port)];
    let expected = expected.map(|(host, port)| (host.to_owned(), port));
    assert_eq!(in_reference(&server), expected);
    let (client, bench) = client_of(&server);
    assert_eq!(call(&bench, "ping"), Ok(()));
    assert_eq!(client.counters().read(Counter::ConnectFailures), 1);
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
}

#[test]
fn a_published_host_stands_for_each_port_listened_at() {
    let server = server(&["127.0.0.1:0", "127.0.0.1:0"], &["ship.example"]);
    let addresses = in_reference(&server);
    assert_eq!(addresses.len(), 2);
    assert!(addresses.iter().all(|(host, _)| host == "ship.example"));
    assert_ne!(addresses[0].1, addresses[1].1);
}

#[test]
fn a_server_at_every_address_publishes_none_that_means_every() {
    for every in ["0.0.0.0:0", ":0", "[::]:0"] {
        if every.starts_with('[') && !has_ipv6() {
            deckwatch_testkit::did_a_part();
            continue;
        }
        let server = server(&[every], &[]);
        let addresses = in_reference(&server);
        let is_every = |host: &str| matches!(host, "0.0.0.0" | "::" | "");
        assert!(
            addresses
                .iter()
                .all(|(host, port)| !is_every(host) && *port != 0),
            "{every}: {addresses:?}"
        );
        let (_client, bench) = client_of(&server);
        assert_eq!(call(&bench, "ping"), Ok(()), "{every}: {addresses:?}");
    }
}

/// Whether this host has IPv6. Counts a skip if not.
fn has_ipv6() -> bool {
    let bound = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    if !bound {
        deckwatch_testkit::skip("ipv6", "this host has no IPv6");
    }
    bound
}

#[test]
fn an_ipv6_server_is_called_by_address_by_url_and_from_ipv4_where_it_listens_at_every_address() {
    if !has_ipv6() {
        return;
    }
    let alone = server(&["[::1]:0"], &[]);
    let (client, bench) = client_of(&alone);
    assert_eq!(call(&bench, "ping"), Ok(()));
    let own = alone.orb.string_to_object(&alone.text).unwrap().unwrap();
    alone.orb.register_plain_key(b"Bench", &own).unwrap();
    let url = format!("corbaloc::{}/Bench", alone.orb.endpoints()[0]);
    assert!(url.starts_with("corbaloc::[::1]:"), "{url}");
    let by_url = client.string_to_object(&url).unwrap().unwrap();
    assert_eq!(call(&by_url, "ping"), Ok(()));

    let every = server(&["[::]:0"], &["127.0.0.1", "::1"]);
    assert_eq!(in_reference(&every).len(), 2);
    let port = listened_port(&every);
    let own = every.orb.string_to_object(&every.text).unwrap().unwrap();
    every.orb.register_plain_key(b"Bench", &own).unwrap();
    for host in ["127.0.0.1", "[::1]"] {
        let url = format!("corbaloc::{host}:{port}/Bench");
        let reference = client.string_to_object(&url).unwrap().unwrap();
        assert_eq!(call(&reference, "ping"), Ok(()), "{url}");
    }
}

#[test]
fn a_link_local_address_is_reached_by_its_scope() {
    let table = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let link_local = table.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let address = u128::from_str_radix(words[0], 16).ok()?;
        (words[3] == "20").then(|| format!("{}%{}", Ipv6Addr::from(address), words[5]))
    });
    let Some(host) = link_local else {
        deckwatch_testkit::skip("ipv6", "no interface has a link-local address");
        return;
    };
    let server = server(&[&format!("[{host}]:0")], &[]);
    assert_eq!(in_reference(&server)[0].0, host);
    let (_client, bench) = client_of(&server);
    assert_eq!(call(&bench, "ping"), Ok(()));
}

#[test]
fn an_orb_is_made_by_its_arguments_and_leaves_the_others() {
    let closed = closed_port();
    let mut arguments = [
        "nav",
        "-ORBListenEndpoints",
        "127.0.0.1:0",
        "-ORBendPointPublish",
        &format!("giop:tcp:ship.example:{closed}"),
        "-ORBid",
        "bridge",
        "-ORBInitRef",
        "Nav=corbaloc::127.0.0.1:1/Nav",
        "--verbose",
    ]
    .map(str::to_owned)
    .to_vec();
    let orb = Orb::init(&mut arguments).unwrap();
    assert_eq!(arguments, ["nav", "--verbose"]);
    assert_eq!(orb.id(), "bridge");
    assert_eq!(orb.endpoints(), [Endpoint::tcp("ship.example", closed)]);
    assert!(orb.resolve_initial_references("Nav").is_ok());
}

#[test]
fn an_orb_that_is_told_nothing_listens_at_loopback_alone() {
    let orb = Orb::builder().build().unwrap();
    orb.root_poa().unwrap();
    let endpoints: Vec<_> = orb.endpoints().iter().map(ToString::to_string).collect();
    assert_eq!(endpoints.len(), 1, "{endpoints:?}");
    assert!(endpoints[0].starts_with("127.0.0.1:"), "{endpoints:?}");
}
