//! Calls that time out, and servers that stop: the exception and its completion status.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::support::fake::{fake_server, ior_octets, read_request, reply, try_read_message};
use crate::support::{Server, call, client_of, note};
use deckwatch_orb::{Completion, Counter, Orb, SystemExceptionKind as Kind};

#[test]
fn a_call_is_interrupted_at_its_deadline_and_the_server_serves_on() {
    let server = Server::start();
    let (orb, bench) = client_of(&server);
    for wait_ms in [10, 100] {
        let hurried = bench.with_round_trip_timeout(Some(Duration::from_millis(wait_ms)));
        let begun = Instant::now();
        let raised = call(&hurried, "meet").unwrap_err();
        assert_eq!(
            (raised.kind, raised.completed),
            (Kind::Timeout, Completion::Maybe)
        );
        assert!(begun.elapsed() >= Duration::from_millis(wait_ms));
    }
    assert_eq!(orb.counters().read(Counter::Timeouts), 2);
    server.bench.gate.open();
    assert_eq!(call(&bench, "ping"), Ok(()));
    // The late replies were discarded as such, and not taken for replies to other calls.
    assert_eq!(orb.counters().read(Counter::RepliesToNobody), 0);
}

#[test]
fn a_host_that_does_not_answer_is_given_up_at_the_connect_timeout() {
    // A listener with a full queue does not accept another connection.
    let listener = socket_with_full_queue();
    let url = format!(
        "corbaloc:iiop:1.2@{}/Fake",
        listener.0.local_addr().unwrap()
    );
    let orb = Orb::builder().build().unwrap();
    let reference = orb.string_to_object(&url).unwrap().unwrap();
    let raised = call(
        &reference.with_connect_timeout(Some(Duration::from_millis(50))),
        "ping",
    )
    .unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::Transient, Completion::No)
    );
    let raised = call(
        &reference.with_round_trip_timeout(Some(Duration::from_millis(50))),
        "ping",
    )
    .unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::Timeout, Completion::No)
    );
}

fn socket_with_full_queue() -> (TcpListener, Vec<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // std chooses the size of the queue, so the test fills it whatever its size.
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        waiting.push(stream);
    }
    (listener, waiting)
}

#[test]
fn nobody_listening_is_transient_and_nothing_was_done() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("corbaloc:iiop:1.2@{}/Gone", listener.local_addr().unwrap());
    drop(listener);
    let orb = Orb::builder().build().unwrap();
    let raised = call(&orb.string_to_object(&url).unwrap().unwrap(), "ping").unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::Transient, Completion::No)
    );
}

#[test]
fn a_connection_that_breaks_while_the_caller_waits_is_a_comm_failure_that_may_have_completed() {
    let (orb, reference) = fake_server(|mut stream| drop(read_request(&mut stream)));
    let raised = call(&reference, "ping").unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::CommFailure, Completion::Maybe)
    );
    assert_eq!(orb.counters().read(Counter::RequestsSent), 1);
}

#[test]
fn a_farewell_instead_of_a_reply_says_that_nothing_was_done() {
    let (_orb, reference) = fake_server(|mut stream| {
        read_request(&mut stream);
        stream.write_all(b"GIOP\x01\x02\x01\x05\0\0\0\0").unwrap();
    });
    let raised = call(&reference, "ping").unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::CommFailure, Completion::No)
    );
}

#[test]
fn a_message_error_or_nonsense_instead_of_a_reply_is_a_comm_failure() {
    for answer in [
        &b"GIOP\x01\x02\x01\x06\0\0\0\0"[..],
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"GIOP\x01\x02\x01\x01\x01\0\0\0x",
    ] {
        let (_orb, reference) = fake_server(move |mut stream| {
            read_request(&mut stream);
            stream.write_all(answer).unwrap();
        });
        assert_eq!(
            call(&reference, "ping").unwrap_err().kind,
            Kind::CommFailure
        );
    }
}

#[test]
fn replies_to_nobody_are_passed_over_and_counted() {
    let (orb, reference) = fake_server(|mut stream| {
        let request = read_request(&mut stream);
        for id in [&[0xff; 4], &request[..4]] {
            let reply = [b"GIOP\x01\x02\x01\x01\x0c\0\0\0", id, &[0; 8]].concat();
            stream.write_all(&reply).unwrap();
        }
    });
    assert_eq!(call(&reference, "ping"), Ok(()));
    assert_eq!(orb.counters().read(Counter::RepliesToNobody), 1);
}

#[test]
fn forwards_that_lead_in_a_circle_are_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "corbaloc:iiop:1.2@{}/Circle",
        listener.local_addr().unwrap()
    );
    let orb = Orb::builder().build().unwrap();
    let reference = orb.string_to_object(&url).unwrap().unwrap();
    let body = ior_octets(&reference);
    std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        while let Some(request) = try_read_message(&mut stream) {
            reply(&mut stream, &request, 3, &body);
        }
    });
    let raised = call(&reference, "ping").unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::Transient, Completion::No)
    );
    assert_eq!(
        orb.counters().read(Counter::Forwards),
        deckwatch_orb::limits::FORWARDS_MAX as u64
    );
}

#[test]
fn a_server_that_restarts_is_found_again_by_the_next_call() {
    let first = Server::start();
    let (client, _) = client_of(&first);
    let endpoint = first.orb.endpoints()[0].to_string();
    let url = format!("corbaloc:iiop:1.2@{endpoint}/Bench");
    let bench = client.string_to_object(&url).unwrap().unwrap();
    let own = first.orb.string_to_object(&first.text).unwrap().unwrap();
    first.orb.register_plain_key(b"Bench", &own).unwrap();
    assert_eq!((call(&bench, "ping"), note(&bench, 1)), (Ok(()), Ok(())));
    first.orb.shutdown(true).expect("it ends");
    let second = Server::at(&endpoint);
    let own = second.orb.string_to_object(&second.text).unwrap().unwrap();
    second.orb.register_plain_key(b"Bench", &own).unwrap();
    assert_eq!(call(&bench, "ping"), Ok(()));
    assert_eq!(note(&bench, 2), Ok(()));
}

#[test]
fn a_shutdown_lets_the_call_in_progress_finish_and_says_farewell() {
    let server = Server::start();
    let (client, bench) = client_of(&server);
    let in_progress = std::thread::spawn({
        let bench = bench.clone();
        move || call(&bench, "meet")
    });
    server.bench.gate.wait_for_arrivals(1);
    let ending = std::thread::spawn({
        let orb = server.orb.clone();
        move || orb.shutdown(true)
    });
    server.bench.gate.open();
    assert_eq!(in_progress.join().unwrap(), Ok(()));
    assert_eq!(ending.join().unwrap(), Ok(()));
    assert_eq!(call(&bench, "ping").unwrap_err().kind, Kind::Transient);
    drop(client);
}

#[test]
fn replies_to_nobody_without_end_do_not_keep_a_caller_from_its_deadline() {
    let (orb, reference) = fake_server(|mut stream| {
        read_request(&mut stream);
        let mut stray = b"GIOP\x01\x02\x01\x01\x0c\0\0\0".to_vec();
        stray.extend([0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let strays = stray.repeat(1_000);
        while stream.write_all(&strays).is_ok() {}
    });
    let hurried = reference.with_round_trip_timeout(Some(Duration::from_millis(50)));
    let raised = call(&hurried, "ping").unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::Timeout, Completion::Maybe)
    );
    assert!(orb.counters().read(Counter::RepliesToNobody) >= 1_000);
}

#[test]
fn what_an_object_raises_behind_a_forward_is_told_as_it_is() {
    let (server, desk) = (Server::start(), Server::start());
    let (orb, bench) = client_of(&server);
    let text = orb.object_to_string(&bench);
    let target = desk.orb.string_to_object(&text).unwrap().unwrap();
    desk.orb.register_plain_key(b"Bench", &target).unwrap();
    let url = format!("corbaloc::{}/Bench", desk.address());
    let forwarded = orb.string_to_object(&url).unwrap().unwrap();
    assert_eq!(call(&forwarded, "ping"), Ok(()));
    let raised = call(&forwarded, "nonsense").unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::BadOperation, Completion::No)
    );
    assert_eq!(orb.counters().read(Counter::Forwards), 1);
}
