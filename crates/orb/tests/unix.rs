//! Unix sockets beside TCP: servers, clients and references with both.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{
    Server, call, client_of, expect_no_listener, make_every_kind_of_call, socket_path,
};
use deckwatch_orb::transport::{Endpoint, TransportError};
use deckwatch_orb::{Counter, Orb};

#[test]
fn every_kind_of_call_goes_over_a_unix_socket() {
    let (path, other) = (socket_path(), socket_path());
    make_every_kind_of_call(&format!("unix:{path}"), &format!("unix:{other}"), 100);
}

#[test]
fn a_url_leads_to_a_unix_socket() {
    let path = socket_path();
    let server = Server::at(&format!("unix:{path}"));
    let own = server.orb.string_to_object(&server.text).unwrap().unwrap();
    server.orb.register_plain_key(b"Bench", &own).unwrap();
    let address = server.orb.endpoints()[0].url_address();
    assert_eq!(address, format!("omniunix:{path}:"));
    let client = Orb::builder().build().unwrap();
    let url = format!("corbaloc:{address}/Bench");
    let bench = client.string_to_object(&url).unwrap().unwrap();
    assert_eq!(call(&bench, "ping"), Ok(()));
    // If nothing listens at the first address, the next is tried.
    let url = format!("corbaloc:omniunix:/nobody:,{address}/Bench");
    let bench = client.string_to_object(&url).unwrap().unwrap();
    assert_eq!(call(&bench, "ping"), Ok(()));
}

#[test]
fn the_file_has_its_permissions_goes_at_shutdown_and_is_replaced_where_a_dead_process_left_it() {
    let path = socket_path();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let orb = Orb::builder()
        .unix_permissions(0o640)
        .listen(&format!("unix:{path}"))
        .unwrap();
    let server = Server::with(orb.build().unwrap());
    let mode = Path::new(&path).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let (_orb, bench) = client_of(&server);
    assert_eq!(call(&bench, "ping"), Ok(()));
    server.orb.shutdown(true).expect("it ends");
    assert!(!Path::new(&path).exists());
}

#[test]
fn a_path_in_use_one_too_long_and_one_without_its_folder_are_told_apart() {
    let path = socket_path();
    let _server = Server::at(&format!("unix:{path}"));
    let long = format!("/tmp/{}", "x".repeat(103));
    expect_no_listener(
        "unix",
        &[
            (path.as_str(), TransportError::InUse),
            (long.as_str(), TransportError::PathTooLong),
            ("/tmp/no such folder/socket", TransportError::FolderMissing),
        ],
    );
}

#[test]
fn a_reference_to_tcp_and_unix_is_called_over_unix_first_and_over_tcp_from_elsewhere() {
    let path = socket_path();
    let both = Orb::builder()
        .listen("127.0.0.1:0")
        .unwrap()
        .listen(&format!("unix:{path}"))
        .unwrap();
    let server = Server::with(both.build().unwrap());
    let (_near, bench) = client_of(&server);
    assert!(matches!(
        server.orb.endpoints()[..],
        [Endpoint::Tcp { .. }, Endpoint::Unix { .. }]
    ));
    assert_eq!(call(&bench, "ping"), Ok(()));
    // Without the socket file, the same reference works over TCP.
    std::fs::remove_file(&path).unwrap();
    let (far, bench) = client_of(&server);
    assert_eq!(call(&bench, "ping"), Ok(()));
    assert_eq!(far.counters().read(Counter::ConnectFailures), 1);
    assert_eq!(far.counters().read(Counter::ConnectionsMade), 1);
}
