//! Connections at a server: peers that do not read, idle connections, and more connections than the limit.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use crate::around::Around;
use crate::support;
use crate::support::{Server, call, call_octets, client_of, request, request_of, wait_for};
use deckwatch_cdr::{EncodeError, Writer};
use deckwatch_orb::{Counter, ObjectRef, Orb, SystemException, SystemExceptionKind};

fn count(server: &Server, counter: Counter) -> u64 {
    server.orb.counters().read(counter)
}

/// Reads one message: its type and its body.
fn read_message(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut header = [0; 12];
    stream.read_exact(&mut header).unwrap();
    let size = header[8..].try_into().unwrap();
    let size = if header[6] & 1 == 0 {
        u32::from_be_bytes(size)
    } else {
        u32::from_le_bytes(size)
    };
    let mut body = vec![0; size as usize];
    stream.read_exact(&mut body).unwrap();
    (header[7], body)
}

/// A client with an address of its own, whose connections do not count in the share of others.
fn client_from(server: &Server, number: u8) -> (Orb, ObjectRef) {
    let address = IpAddr::V4(Ipv4Addr::new(127, 0, 1, 1 + number));
    let transport = Arc::new(Around::from_address(address));
    let orb = Orb::builder().transport(transport).build().unwrap();
    let bench = orb.string_to_object(&server.text).unwrap().unwrap();
    (orb, bench)
}

const REPLY: u8 = 1;
const CLOSE_CONNECTION: u8 = 5;

/// More than the buffers of a connection can hold.
const LARGE: u32 = 15 << 20;

#[test]
fn a_peer_that_does_not_read_holds_no_thread_and_has_its_reply_when_it_does() {
    let server = Server::shaped(|builder| builder.threads(1).dynamic_threads(0));
    let (_orb, bench) = client_of(&server);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(&request(&bench, 1, LARGE)).unwrap();
    wait_for(|| count(&server, Counter::RepliesQueued) == 1);
    assert_eq!(call(&bench, "ping"), Ok(()));
    let (kind, body) = read_message(&mut stream);
    assert_eq!(kind, REPLY);
    assert!(body.ends_with(&vec![1; LARGE as usize]));
    // The server reads the next request again.
    stream.write_all(&request(&bench, 2, 8)).unwrap();
    assert_eq!(read_message(&mut stream).0, REPLY);
}

#[test]
fn a_peer_that_takes_nothing_of_its_reply_is_closed() {
    let server = Server::shaped(|builder| builder.reply_timeout(Duration::from_millis(200)));
    let (_orb, bench) = client_of(&server);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(&request(&bench, 1, LARGE)).unwrap();
    wait_for(|| count(&server, Counter::RepliesTimedOut) == 1);
    wait_for(|| count(&server, Counter::ConnectionsClosed) == 1);
    assert_eq!(call(&bench, "ping"), Ok(()));
}

#[test]
fn replies_that_wait_hold_no_more_than_they_may() {
    let server = Server::shaped(|builder| builder.outbound_size_max(4 << 20));
    let (_orb, bench) = client_of(&server);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(&request(&bench, 1, LARGE)).unwrap();
    wait_for(|| count(&server, Counter::OutboundExhausted) == 1);
    wait_for(|| count(&server, Counter::ConnectionsClosed) == 1);
    let octets = vec![7; 1 << 20];
    assert_eq!(call_octets(&bench, &octets), Ok(octets));
}

#[test]
fn requests_behind_a_reply_that_waits_are_read_when_it_has_gone() {
    const REQUESTS: u32 = 60;
    const SIZE: u32 = 1 << 20;
    // Without a pause in reading, the queued replies would exceed the limit of a connection fifteen times.
    let server = Server::shaped(|builder| builder.outbound_size_max(16 << 20).threads(4));
    let (_orb, bench) = client_of(&server);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let mut writing = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        for id in 0..REQUESTS {
            let written = writing.write_all(&request(&bench, id, SIZE));
            assert!(written.is_ok(), "request {id}: {written:?}");
        }
    });
    wait_for(|| count(&server, Counter::RepliesQueued) >= 1 || writer.is_finished());
    assert!(
        !writer.is_finished(),
        "{:?}",
        server.orb.counters().snapshot()
    );
    let mut answered: Vec<_> = (0..REQUESTS)
        .map(|_| {
            let (kind, body) = read_message(&mut stream);
            assert_eq!(kind, REPLY);
            u32::from_le_bytes(body[..4].try_into().unwrap())
        })
        .collect();
    writer.join().unwrap();
    answered.sort_unstable();
    assert_eq!(answered, (0..REQUESTS).collect::<Vec<_>>());
    assert_eq!(count(&server, Counter::OutboundExhausted), 0);
}

#[test]
fn a_connection_that_brings_nothing_is_closed_with_a_farewell_and_its_client_connects_again() {
    let server = Server::shaped(|builder| builder.idle_timeout(Duration::from_millis(100)));
    let (client, bench) = client_of(&server);
    let mut silent = TcpStream::connect(server.address()).unwrap();
    assert_eq!(read_message(&mut silent), (CLOSE_CONNECTION, vec![]));
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    for round in 1..=3 {
        assert_eq!(call(&bench, "ping"), Ok(()));
        wait_for(|| count(&server, Counter::ConnectionsIdle) == 1 + round);
    }
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 3);
}

#[test]
fn a_connection_is_not_idle_while_a_request_of_it_is_served() {
    let server = Server::shaped(|builder| builder.idle_timeout(Duration::from_millis(40)));
    let (client, bench) = client_of(&server);
    let meeting = std::thread::spawn(move || call(&bench, "meet"));
    server.bench.gate.wait_for_arrivals(1);
    // Other connections are closed after the same idle timeout.
    for _ in 0..3 {
        let mut silent = TcpStream::connect(server.address()).unwrap();
        assert_eq!(read_message(&mut silent).0, CLOSE_CONNECTION);
    }
    server.bench.gate.open();
    assert_eq!(meeting.join().unwrap(), Ok(()));
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
}

#[test]
fn the_longest_idle_connection_makes_room_for_the_next() {
    // One peer may have half of the connections.
    let server = Server::shaped(|builder| builder.connections_max(6));
    let (first_client, first) = client_of(&server);
    let (second_client, second) = client_of(&server);
    let (_busy_client, busy) = client_of(&server);
    let meeting = std::thread::spawn(move || call(&busy, "meet"));
    server.bench.gate.wait_for_arrivals(1);
    // The idle time is measured in ticks of the coarse clock: waits for the next tick.
    let apart = || {
        let clock = server.orb.transport();
        let tick = clock.now_coarse();
        while clock.now_coarse() == tick {
            std::thread::yield_now();
        }
    };
    assert_eq!(call(&second, "ping"), Ok(()));
    apart();
    assert_eq!(call(&first, "ping"), Ok(()));
    apart();
    let mut newcomers: Vec<TcpStream> = Vec::new();
    for evicted in 1..=3 {
        let mut newcomer = TcpStream::connect(server.address()).unwrap();
        newcomer
            .write_all(&request_of(&first, (1, 3), "ping", &[]))
            .unwrap();
        assert_eq!(read_message(&mut newcomer).0, REPLY);
        newcomers.push(newcomer);
        assert_eq!(count(&server, Counter::ConnectionsEvicted), evicted);
        apart();
    }
    let made = |client: &Orb| client.counters().read(Counter::ConnectionsMade);
    assert_eq!((call(&second, "ping"), made(&second_client)), (Ok(()), 2));
    assert_eq!((call(&first, "ping"), made(&first_client)), (Ok(()), 2));
    assert_eq!(read_message(&mut newcomers[0]).0, CLOSE_CONNECTION);
    server.bench.gate.open();
    assert_eq!(meeting.join().unwrap(), Ok(()));
    assert_eq!(count(&server, Counter::AcceptsRefused), 0);
}

#[test]
fn where_every_connection_is_busy_the_next_waits_until_one_is_not() {
    let server = Server::shaped(|builder| builder.connections_max(2));
    let busy: Vec<_> = (0..2)
        .map(|number| {
            let (client, bench) = client_from(&server, number);
            std::thread::spawn(move || (call(&bench, "meet"), client))
        })
        .collect();
    server.bench.gate.wait_for_arrivals(2);
    let (_late_client, late) = client_from(&server, 2);
    let late = std::thread::spawn(move || call_octets(&late, b"late"));
    wait_for(|| count(&server, Counter::AcceptsRefused) >= 1);
    assert_eq!(count(&server, Counter::ConnectionsAccepted), 2);
    server.bench.gate.open();
    let clients = busy.into_iter().map(|call| call.join().unwrap());
    let clients: Vec<_> = clients
        .inspect(|(met, _)| assert_eq!(*met, Ok(())))
        .collect();
    // Both connections stay open, and one of them is then evicted.
    assert_eq!(late.join().unwrap().unwrap(), b"late");
    drop(clients);
}

#[test]
fn one_ways_of_a_connection_keep_their_order_while_many_threads_serve_it() {
    const ONEWAYS: u32 = 4_000;
    let server = Server::shaped(|builder| builder.threads(8));
    let (client, bench) = client_of(&server);
    let ends = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Other clients keep the threads of the lane busy.
        for _ in 0..4 {
            let bench = client.string_to_object(&server.text).unwrap().unwrap();
            let ends = &ends;
            scope.spawn(move || {
                while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                    call(&bench, "ping").unwrap();
                }
            });
        }
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let mut writing = stream.try_clone().unwrap();
        let bench = &bench;
        scope.spawn(move || {
            for number in 0..ONEWAYS {
                let mut messages = request_of(bench, (number, 0), "note", &number.to_be_bytes());
                // While one thread serves a two-way request, another thread reads the messages after it.
                if number % 3 == 0 {
                    messages.extend(request_of(bench, (ONEWAYS + number, 3), "ping", &[]));
                }
                writing.write_all(&messages).unwrap();
            }
        });
        for _ in 0..ONEWAYS.div_ceil(3) {
            assert_eq!(read_message(&mut stream).0, REPLY);
        }
        wait_for(|| server.bench.order.lock().unwrap().len() == ONEWAYS as usize);
        ends.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let order = server.bench.order.lock().unwrap();
    assert!(order.iter().copied().eq(0..ONEWAYS), "{order:?}");
}

#[test]
fn a_client_closes_a_connection_that_no_call_has_used_for_long_while_it_calls_others() {
    let (left, called) = (
        Server::shaped(|builder| builder),
        Server::shaped(|builder| builder),
    );
    let client = Orb::builder().client_idle_timeout(Duration::from_millis(100));
    let client = client.build().unwrap();
    let reference = |server: &Server| client.string_to_object(&server.text).unwrap().unwrap();
    let (once, again) = (reference(&left), reference(&called));
    assert_eq!(call(&once, "ping"), Ok(()));
    support::note(&once, 1).unwrap();
    wait_for(|| {
        assert_eq!(call(&again, "ping"), Ok(()));
        count(&left, Counter::ConnectionsClosed) == 2
    });
    // On a loaded machine, the other connection may have been idle for long too.
    assert!(client.counters().read(Counter::ClientConnectionsIdle) >= 2);
    assert_eq!(call(&once, "ping"), Ok(()));
}

#[test]
fn clients_whose_connections_are_closed_under_them_lose_no_call_and_repeat_none() {
    // Each new connection evicts an idle connection, and any call may cross its CloseConnection message.
    let server = Server::shaped(|builder| builder.connections_max(3));
    let calls_each = 300_u64;
    let clients: Vec<_> = (0..6).map(|peer| client_from(&server, peer)).collect();
    std::thread::scope(|scope| {
        for (_, bench) in &clients {
            scope.spawn(move || {
                for _ in 0..calls_each {
                    assert_eq!(call(bench, "ping"), Ok(()));
                    std::thread::yield_now();
                }
            });
        }
    });
    assert_eq!(
        server.bench.calls.load(std::sync::atomic::Ordering::SeqCst),
        6 * calls_each
    );
    assert_ne!(count(&server, Counter::ConnectionsEvicted), 0);
}

#[test]
fn a_peer_that_does_not_read_does_not_keep_an_orb_from_its_end() {
    let server = Server::shaped(|builder| builder);
    let (_client, bench) = client_of(&server);
    assert_eq!(call(&bench, "ping"), Ok(()));
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(&request(&bench, 1, LARGE)).unwrap();
    wait_for(|| count(&server, Counter::RepliesQueued) == 1);
    let mut silent = TcpStream::connect(server.address()).unwrap();
    wait_for(|| count(&server, Counter::ConnectionsAccepted) == 3);
    assert_eq!(server.orb.shutdown(true), Ok(()));
    assert_eq!(count(&server, Counter::RepliesLost), 1);
    assert_eq!(count(&server, Counter::ConnectionsClosed), 3);
    // Peers that read get CloseConnection all the same.
    assert_eq!(read_message(&mut silent).0, CLOSE_CONNECTION);
}

#[test]
fn a_peer_that_has_ended_its_side_still_gets_its_replies() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let request = request_of(&bench, (1, 3), "meet", &[]);
    stream.write_all(&request).unwrap();
    server.bench.gate.wait_for_arrivals(1);
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    // The poller reports the close of the connection before the data of these calls.
    for _ in 0..20 {
        assert_eq!(call(&bench, "ping"), Ok(()));
    }
    server.bench.gate.open();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.get(7), Some(&1), "a reply");
    wait_for(|| server.orb.counters().read(Counter::ConnectionsClosed) == 1);
}

#[test]
fn a_request_that_cannot_be_written_leaves_its_connection_as_it_was() {
    let server = Server::shaped(|builder| builder);
    let (client, bench) = client_of(&server);
    let fails = |_: &mut Writer<'_>| Err(EncodeError::TypeMismatch);
    let asked = || bench.invoke("ping", fails, |_| Ok(()), |_, _| Ok(None));
    let sent = || bench.send_callback("ping", fails, None);
    let is_bad_param = |raised: SystemException| raised.kind == SystemExceptionKind::BadParam;
    for _ in 0..3 {
        assert_eq!(call(&bench, "ping"), Ok(()));
        assert!(asked().is_err_and(is_bad_param));
        assert_eq!(support::note(&bench, 1), Ok(()));
        assert!(bench.invoke_oneway("note", fails).is_err_and(is_bad_param));
        assert_eq!(bench.send_callback("ping", |_| Ok(()), None), Ok(()));
        assert!(sent().is_err_and(is_bad_param));
    }
    // One connection for two-way calls, one for one-ways, one for asynchronous calls.
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 3);
}
