//! Shared memory beside TCP: servers, clients, references with both, and messages larger than one ring.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{
    Server, call, client_of, expect_no_listener, make_every_kind_of_call, socket_path, wait_for,
};
use deckwatch_orb::transport::{
    Endpoint, SocketTransport, StreamOptions, Transport, TransportError,
};
use deckwatch_orb::{Counter, Orb};

#[test]
fn every_kind_of_call_goes_through_shared_memory() {
    let (path, other) = (socket_path(), socket_path());
    make_every_kind_of_call(&format!("shm:{path}"), &format!("shm:{other}"), 5_000);
}

#[test]
fn a_url_leads_to_shared_memory() {
    let path = socket_path();
    let server = Server::at(&format!("deckwatch:shm:{path}"));
    let own = server.orb.string_to_object(&server.text).unwrap().unwrap();
    server.orb.register_plain_key(b"Bench", &own).unwrap();
    let address = server.orb.endpoints()[0].url_address();
    assert_eq!(address, format!("shm:{path}:"));
    let client = Orb::builder().build().unwrap();
    let url = format!("corbaloc:shm:/nobody:,{address}/Bench");
    let bench = client.string_to_object(&url).unwrap().unwrap();
    assert_eq!(call(&bench, "ping"), Ok(()));
}

#[test]
fn a_reference_to_all_transports_is_called_through_shared_memory_first_and_over_tcp_from_elsewhere()
{
    let (shared, unix) = (socket_path(), socket_path());
    let all = [
        "127.0.0.1:0",
        &format!("unix:{unix}"),
        &format!("shm:{shared}"),
    ]
    .into_iter()
    .fold(Orb::builder(), |orb, at| orb.listen(at).unwrap());
    let server = Server::with(all.build().unwrap());
    assert!(matches!(
        server.orb.endpoints()[..],
        [
            Endpoint::Tcp { .. },
            Endpoint::Unix { .. },
            Endpoint::SharedMemory { .. }
        ]
    ));
    let calls_after_failures = |failures| {
        let (client, bench) = client_of(&server);
        assert_eq!(call(&bench, "ping"), Ok(()));
        let read = |counter| client.counters().read(counter);
        assert_eq!(read(Counter::ConnectFailures), failures);
        assert_eq!(read(Counter::ConnectionsMade), 1);
    };
    calls_after_failures(0);
    std::fs::remove_file(&shared).unwrap();
    calls_after_failures(1);
    std::fs::remove_file(&unix).unwrap();
    calls_after_failures(2);
}

#[test]
fn the_socket_has_its_permissions_and_places_that_cannot_be_had_are_told_apart() {
    use std::os::unix::fs::PermissionsExt as _;
    let path = socket_path();
    let orb = Orb::builder().unix_permissions(0o640);
    let orb = orb.listen(&format!("shm:{path}")).unwrap();
    let server = Server::with(orb.build().unwrap());
    let mode = Path::new(&path).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    expect_no_listener(
        "shm",
        &[
            (path.as_str(), TransportError::InUse),
            ("/tmp/no such folder/socket", TransportError::FolderMissing),
        ],
    );
    server.orb.shutdown(true).expect("it ends");
    assert!(!Path::new(&path).exists());
}

#[test]
fn a_server_that_ends_is_noticed_and_one_that_comes_back_is_found() {
    let path = socket_path();
    let endpoint = format!("shm:{path}");
    let orb = || Orb::builder().listen(&endpoint).unwrap().build().unwrap();
    let server = Server::with(orb());
    let own = server.orb.string_to_object(&server.text).unwrap().unwrap();
    server.orb.register_plain_key(b"Bench", &own).unwrap();
    let client = Orb::builder().build().unwrap();
    let url = format!("corbaloc:shm:{path}:/Bench");
    let bench = client.string_to_object(&url).unwrap().unwrap();
    assert_eq!(call(&bench, "ping"), Ok(()));
    server.orb.shutdown(true).unwrap();
    assert!(call(&bench, "ping").is_err());
    let server = Server::with(orb());
    let own = server.orb.string_to_object(&server.text).unwrap().unwrap();
    server.orb.register_plain_key(b"Bench", &own).unwrap();
    assert_eq!(call(&bench, "ping"), Ok(()));
}

#[test]
fn a_client_that_does_not_read_its_replies_costs_no_thread_and_is_given_up() {
    let path = socket_path();
    let orb = Orb::builder()
        .reply_timeout(Duration::from_millis(300))
        .threads(1)
        .dynamic_threads(0)
        .listen(&format!("shm:{path}"))
        .unwrap();
    let server = Server::with(orb.build().unwrap());
    let (client, bench) = client_of(&server);
    assert_eq!(call(&bench, "ping"), Ok(()));
    let transport: Arc<dyn Transport> = Arc::new(SocketTransport::default());
    let deaf = transport
        .connect(&server.orb.endpoints()[0], &StreamOptions::default(), None)
        .unwrap();
    // LocateRequests for an unknown key; each reply has 20 octets.
    let mut question = b"GIOP\x01\x00\x01\x03\x0c\0\0\0\x07\0\0\0\x04\0\0\0none".to_vec();
    question.truncate(24);
    let flood = question.repeat(4_096);
    let mut written = 0;
    wait_for(|| {
        // It takes a part, or nothing. The next one goes on within the message.
        let rest = &flood[written % question.len()..];
        written += deaf.write_now(rest).expect("it is open");
        // Other clients are served meanwhile.
        assert_eq!(call(&bench, "ping"), Ok(()));
        server.orb.counters().read(Counter::RepliesQueued) != 0
    });
    wait_for(|| {
        assert_eq!(call(&bench, "ping"), Ok(()));
        server.orb.counters().read(Counter::RepliesTimedOut) != 0
    });
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
}
