//! One peer that takes all that it can of a server, and others that are served. The peers are addresses of loopback.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use deckwatch_orb::limits::{
    GREETING_TIMEOUT, NEWCOMER_GRACE, REQUEST_QUEUE_MAX,
    SHARED_MEMORY_CONNECTIONS_MAX as SHARED_MAX,
};
use deckwatch_orb::transport::{SocketTransport, Stream, StreamOptions, Transport};
use deckwatch_orb::{AccessEvent, AccessLog, BidirectionalPolicyValue, Counter, Orb, Policies};
use deckwatch_os::stream::StreamSocket;

use crate::around::Around;
use crate::support::{
    Server, call, call_octets, client_of, noted, request, request_of, request_saying, socket_path,
    wait_for,
};

fn count(server: &Server, counter: Counter) -> u64 {
    server.orb.counters().read(counter)
}

/// A connection from another address than those of the ORBs of this process.
fn from_elsewhere(server: &Server) -> StreamSocket {
    let elsewhere = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    StreamSocket::connect_from(elsewhere, server.address(), None).expect("a listener")
}

/// Writes what the server takes: it may close the connection early.
fn write(stream: &StreamSocket, octets: &[u8]) {
    let _ = Stream::write_all(stream, octets, None);
}

/// Reads one message without a body of more than some octets, and returns its type.
fn read_kind(stream: &StreamSocket) -> u8 {
    let mut header = [0; 12];
    let mut filled = 0;
    while filled < header.len() {
        let count = Stream::read(stream, &mut header[filled..], None).expect("a message");
        assert_ne!(count, 0, "the stream ends within a message");
        filled += count;
    }
    header[7]
}

const REPLY: u8 = 1;
const CLOSE_CONNECTION: u8 = 5;

#[test]
fn half_sent_messages_of_one_peer_leave_room_for_those_of_others() {
    const MESSAGE: u32 = 1 << 20;
    let server = Server::shaped(|builder| builder.inbound_size_max(16 << 20));
    let (_orb, bench) = client_of(&server);
    let whole = request(&bench, 1, MESSAGE);
    let _flood: Vec<_> = (0..32)
        .map(|_| {
            let stream = from_elsewhere(&server);
            write(&stream, &whole[..whole.len() - 1]);
            stream
        })
        .collect();
    // Each of the others holds up to 2 MiB.
    wait_for(|| count(&server, Counter::InboundExhausted) >= 16);
    let octets = vec![7; MESSAGE as usize];
    for _ in 0..20 {
        assert_eq!(call_octets(&bench, &octets).as_ref(), Ok(&octets));
    }
}

#[test]
fn replies_that_one_peer_does_not_read_leave_room_for_those_of_others() {
    // More than the buffers of a connection can hold.
    const LARGE: u32 = 15 << 20;
    const CONNECTIONS: u64 = 10;
    let server = Server::shaped(|builder| builder.outbound_size_max(64 << 20));
    let (_orb, bench) = client_of(&server);
    let whole = request(&bench, 1, LARGE);
    let mut flood = Vec::new();
    for number in 1..=CONNECTIONS {
        let stream = from_elsewhere(&server);
        write(&stream, &whole);
        flood.push(stream);
        let settled = [Counter::RepliesQueued, Counter::OutboundExhausted];
        wait_for(|| {
            settled
                .map(|counter| count(&server, counter))
                .iter()
                .sum::<u64>()
                == number
        });
    }
    let octets = vec![7; LARGE as usize];
    assert_eq!(call_octets(&bench, &octets), Ok(octets));
}

#[test]
fn connections_of_one_peer_leave_room_for_those_of_others() {
    let server = Server::shaped(|builder| builder.connections_max(8));
    let (client, bench) = client_of(&server);
    assert_eq!(call(&bench, "ping"), Ok(()));
    let ping = request_of(&bench, (1, 3), "ping", &[]);
    // Of the seven places that are left, a peer may have as many as it leaves free.
    let busy: Vec<_> = (0..2)
        .map(|_| {
            let stream = from_elsewhere(&server);
            write(&stream, &ping[..20]);
            stream
        })
        .collect();
    let idle = from_elsewhere(&server);
    write(&idle, &ping);
    assert_eq!(read_kind(&idle), REPLY);
    let refused = || count(&server, Counter::ConnectionsRefused);
    let mut next = from_elsewhere(&server);
    let mut refused_before = 0;
    // A thread may still wait for the next request of the idle one: then a new one is refused, and comes again.
    wait_for(|| {
        if refused() > refused_before {
            refused_before += 1;
            next = from_elsewhere(&server);
        }
        count(&server, Counter::ConnectionsEvicted) == 1
    });
    assert_eq!(read_kind_behind_reply(&idle), CLOSE_CONNECTION);
    write(&next, &ping[..20]);
    wait_for(|| count(&server, Counter::ConnectionsAccepted) == 5);
    // All of its connections are busy now.
    for more in 1..=12 {
        assert_eq!(read_kind(&from_elsewhere(&server)), CLOSE_CONNECTION);
        assert_eq!(refused(), refused_before + more);
    }
    let (_other, again) = client_of(&server);
    assert_eq!(call(&again, "ping"), Ok(()));
    assert_eq!(call(&bench, "ping"), Ok(()));
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
    assert_eq!(count(&server, Counter::ConnectionsEvicted), 1);
    drop(busy);
}

/// As [`read_kind`], behind the body of the reply to `ping`.
fn read_kind_behind_reply(stream: &StreamSocket) -> u8 {
    let mut body = [0; 12];
    let count = Stream::read(stream, &mut body, None).expect("the body of a reply");
    assert_eq!(count, body.len());
    read_kind(stream)
}

/// A server whose clock the test moves on.
fn server_with_clock(endpoint: &str, connections_max: usize) -> (Server, Arc<Around>) {
    let clock = Arc::new(Around::default());
    let builder = Orb::builder().transport(clock.clone());
    let builder = builder.connections_max(connections_max);
    let orb = builder.listen(endpoint).expect("an address").build();
    (Server::with(orb.expect("a free address")), clock)
}

#[test]
fn connection_that_never_brings_a_whole_message_gives_way() {
    let (server, clock) = server_with_clock("127.0.0.1:0", 4);
    let (_orb, bench) = client_of(&server);
    let ping = request_of(&bench, (1, 3), "ping", &[]);
    let _slow: Vec<_> = (1..=2)
        .map(|number| {
            let stream = from_elsewhere(&server);
            write(&stream, &ping[..20]);
            wait_for(|| count(&server, Counter::ConnectionsAccepted) == number);
            stream
        })
        .collect();
    assert_eq!(read_kind(&from_elsewhere(&server)), CLOSE_CONNECTION);
    clock.pass(GREETING_TIMEOUT);
    let next = from_elsewhere(&server);
    write(&next, &ping);
    assert_eq!(read_kind(&next), REPLY);
    assert_eq!(count(&server, Counter::ConnectionsEvicted), 1);
}

#[test]
fn silent_connections_through_shared_memory_give_way() {
    deckwatch_testkit::alone(|| {
        let _ = deckwatch_os::process::raise_open_files(); // Connects fail without some thousand.
        let endpoint = format!("shm:{}", socket_path());
        let (server, clock) = server_with_clock(&endpoint, SHARED_MAX * 4);
        let (client, bench) = client_of(&server);
        let transport = SocketTransport::default();
        let at = &server.orb.endpoints()[0];
        let connect = |_| transport.connect(at, &StreamOptions::default(), None);
        // A connect may find the connection refused already.
        let _silent: Vec<_> = (0..SHARED_MAX).map(connect).collect();
        let taken = [Counter::ConnectionsAccepted, Counter::ConnectionsRefused];
        wait_for(|| {
            let [accepted, refused] = taken.map(|counter| count(&server, counter));
            accepted + refused == SHARED_MAX as u64
        });
        assert_eq!(
            count(&server, Counter::ConnectionsAccepted),
            SHARED_MAX as u64 / 2,
            "one user takes a half"
        );
        clock.pass(NEWCOMER_GRACE);
        assert_eq!(call(&bench, "ping"), Ok(()));
        assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
        assert_eq!(count(&server, Counter::ConnectionsEvicted), 1);
    });
}

/// Why connections were not let in.
#[derive(Default)]
struct Reasons(Mutex<Vec<String>>);

impl AccessLog for Reasons {
    fn note(&self, event: &AccessEvent<'_>) {
        if let AccessEvent::ConnectionRefused { reason, .. } = event {
            self.0.lock().expect("whole").push((*reason).to_owned());
        }
    }
}

#[test]
fn refused_connection_through_shared_memory_holds_no_place() {
    deckwatch_testkit::alone(|| {
        let _ = deckwatch_os::process::raise_open_files(); // As above.
        let reasons = Arc::new(Reasons::default());
        let builder = Orb::builder().connections_max(8);
        let builder = builder.access_log(reasons.clone());
        // Both ways are of one user, and only one of them has places of its own.
        let shared = format!("shm:{}", socket_path());
        let builder = builder.listen(&shared).expect("an address");
        let other = format!("unix:{}", socket_path());
        let orb = builder.listen(&other).expect("an address").build();
        let server = Server::with(orb.expect("a free address"));
        let (_client, bench) = client_of(&server);
        let ping = request_of(&bench, (1, 3), "ping", &[]);
        let transport = SocketTransport::default();
        let endpoints = server.orb.endpoints();
        let connect_at = |way: &str| {
            let mut all = endpoints.iter();
            let at = all.find(|at| at.to_string().starts_with(way));
            let options = StreamOptions::default();
            transport.connect(at.expect("it listens"), &options, None)
        };
        let connect = || connect_at("shm:");
        // Its half of the connections, none of which is idle.
        let mut busy: Vec<_> = (1..=4)
            .map(|number| {
                let stream = connect_at("unix:").expect("a place");
                stream.write_all(&ping[..20], None).expect("room");
                wait_for(|| count(&server, Counter::ConnectionsAccepted) == number);
                stream
            })
            .collect();
        // More than the places through shared memory that the peer may have.
        for number in 1..=SHARED_MAX as u64 / 2 {
            let _ = connect(); // It may be refused before it has ended.
            wait_for(|| count(&server, Counter::ConnectionsRefused) == number);
        }
        // With its last connection all that is counted for the peer would be forgotten.
        busy.truncate(1);
        wait_for(|| count(&server, Counter::ConnectionsClosed) == 3);
        let stream = connect().expect("a place");
        stream.write_all(&ping, None).expect("room");
        wait_for(|| count(&server, Counter::ConnectionsAccepted) == 5);
        let reasons = reasons.0.lock().expect("whole");
        let why = "its peer holds its share of connections";
        assert!(reasons.iter().all(|reason| reason == why), "{reasons:?}");
        assert_eq!(reasons.len(), SHARED_MAX / 2);
    });
}

#[test]
fn requests_that_fill_the_queue_of_a_bidirectional_connection_leave_others_served() {
    const BI_DIR_IIOP: u32 = 5;
    /// No listen points, big-endian.
    const POINTS: (u32, &[u8]) = (BI_DIR_IIOP, &[0; 8]);
    let server = Server::start();
    let both = Policies {
        bidirectional: BidirectionalPolicyValue::Both,
        ..Policies::root()
    };
    server.root.create_poa("both", None, &both).unwrap();
    let (_orb, bench) = client_of(&server);
    let stranger = from_elsewhere(&server);
    let first = request_saying(&bench, (2, 3), "ping", Some(POINTS), &[]);
    write(&stranger, &first);
    assert_eq!(read_kind(&stranger), REPLY);
    assert_eq!(count(&server, Counter::ConnectionsBidirectional), 1);
    write(&stranger, &request_of(&bench, (4, 0), "meet", &[]));
    server.bench.gate.wait_for_arrivals(1);
    let sent = 2 * u32::try_from(REQUEST_QUEUE_MAX).unwrap();
    let notes = (0..sent).map(|note| request_of(&bench, (6, 0), "note", &note.to_be_bytes()));
    write(&stranger, &notes.collect::<Vec<_>>().concat());
    wait_for(|| count(&server, Counter::RequestsBuffered) == REQUEST_QUEUE_MAX as u64);
    assert_eq!(call(&bench, "ping"), Ok(()));
    server.bench.gate.open();
    wait_for(|| noted(&bench) == Ok(sent));
    assert_eq!(count(&server, Counter::RequestsRefused), 0);
}
