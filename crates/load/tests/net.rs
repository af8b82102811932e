//! Loads on the loopback interface.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use deckwatch_load::{
    Buffer, LoadError, LoadPlan, LoadReport, NetPlan, Pace, Pattern, Protocol, SinkPlan, Stop, Work,
};

/// A port that is free now.
fn free() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("bound")
}

fn source(to: SocketAddr, protocol: Protocol, pattern: Pattern) -> LoadPlan {
    LoadPlan {
        work: Work::Net(NetPlan {
            to,
            protocol,
            size_octets: 500,
            pace: Pace::Rate { bits_per_s: 2e6 },
            pattern,
            link: None,
            buffer: Buffer::Default,
            interface: None,
            patience: Duration::ZERO,
        }),
        lifetime: Duration::from_millis(1_200),
    }
}

/// Runs a sink and a source beside each other.
fn both(protocol: Protocol, pattern: Pattern) -> (LoadReport, LoadReport) {
    let at = free();
    let stop = Stop::default();
    let of_sink = stop.clone();
    let sink = std::thread::spawn(move || {
        let plan = LoadPlan {
            work: Work::Sink(SinkPlan { at }),
            lifetime: Duration::from_secs(60),
        };
        deckwatch_load::run(&plan, &of_sink, &mut |_| ())
    });
    while TcpStream::connect(at).is_err() {
        std::thread::yield_now();
    }
    let sent = deckwatch_load::run(
        &source(at, protocol, pattern),
        &Stop::default(),
        &mut |_| (),
    );
    stop.set();
    let received = sink.join().expect("no panic").expect("it listened");
    (sent.expect("a sink"), received)
}

#[test]
fn each_datagram_is_received_or_counted_as_missing() {
    let (source, sink) = both(Protocol::Udp, Pattern::Poisson { seed: 5 });
    let (sent, received) = (
        source.sent.expect("counted"),
        sink.received.expect("counted"),
    );
    assert!(sent.messages > 100, "{sent:?}");
    assert_eq!((sent.octets, sent.errors), (sent.messages * 500, 0));
    assert_eq!(received.datagrams + received.overflows, sent.messages);
    assert_eq!(received.octets, received.datagrams * 500);
    let held = &source.held[0];
    assert_eq!(held.of, "lo to 127.0.0.1");
    assert_eq!(held.asked, Some(2e6));
}

#[test]
fn a_stream_carries_each_octet_and_its_schedule_is_that_of_its_rate() {
    let (source, sink) = both(Protocol::Tcp, Pattern::Bursts { size: 4 });
    let (sent, received) = (
        source.sent.expect("counted"),
        sink.received.expect("counted"),
    );
    assert_eq!(received.octets, sent.octets);
    // 500 messages a second, in bursts of four, the first at once; a host that is late sends fewer until the end.
    assert!((1..=604).contains(&sent.messages), "{sent:?}");
    // One connection asked whether the sink is there.
    assert_eq!(received.connections, 2);
}

#[test]
fn a_sink_that_is_not_there_is_named() {
    let at = free();
    let plan = source(at, Protocol::Tcp, Pattern::Constant);
    let error = deckwatch_load::run(&plan, &Stop::default(), &mut |_| ()).expect_err("nobody");
    assert!(matches!(error, LoadError::Connect { .. }), "{error}");
    assert!(error.to_string().contains("--serve"), "{error}");
}
