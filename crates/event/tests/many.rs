//! Many consumers: connections shared, threads not grown, memory bounded.

use std::net::{TcpListener, TcpStream};

use crate::counting;
use crate::support::{PATIENCE, World, number, wait_for, whole};
use deckwatch_event::ChannelCounts;
use deckwatch_testkit::alone;

#[test]
fn consumers_of_one_process_share_a_connection() {
    let world = World::new();
    let takers: Vec<_> = (0..35).map(|_| world.consumer()).collect();
    for (consumer, _) in &takers {
        world.connect(consumer.clone());
    }
    let supplier = world.supplier();
    for value in 0..10 {
        supplier.push(&number(value)).unwrap();
    }
    for (_, events) in &takers {
        for value in 0..10 {
            assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
        }
    }
    assert_eq!(world.served.connections(), 1);
    world.end();
}

#[test]
fn connection_is_closed_with_its_last_consumer() {
    let world = World::new();
    let (consumer, events) = world.consumer();
    let proxies = [world.connect(consumer.clone()), world.connect(consumer)];
    world.supplier().push(&number(1)).unwrap();
    for _ in &proxies {
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(1)));
    }
    proxies[0].disconnect_push_supplier().unwrap();
    assert_eq!(world.served.connections(), 1);
    proxies[1].disconnect_push_supplier().unwrap();
    wait_for(|| world.served.connections() == 0);
    world.end();
}

#[test]
fn a_thousand_consumers_connect_at_once_and_get_the_next_event() {
    const EACH: usize = 125;
    let world = World::new();
    std::thread::scope(|scope| {
        let connect = || {
            let connected = (0..EACH).map(|_| {
                let (consumer, events) = world.consumer();
                world.connect(consumer);
                events
            });
            connected.collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(connect)).collect();
        let takers: Vec<_> = threads
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect();
        world.supplier().push(&number(5)).unwrap();
        for events in &takers {
            assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(5)));
        }
        assert_eq!(takers.len(), 8 * EACH);
    });
    world.end();
}

/// Octets of memory that an idle consumer may take in the channel.
const IDLE_CONSUMER_SIZE_MAX: usize = 4 << 10;

fn threads() -> usize {
    deckwatch_testkit::threads(|_| true).len()
}

#[test]
fn ten_thousand_idle_consumers_take_no_thread_and_less_memory_than_stated() {
    const CONSUMERS: usize = 10_000;
    alone(|| {
        counting::start();
        let world = World::with(whole());
        let (consumer, events) = world.consumer();
        let supplier = world.supplier();
        // What grows with the first consumer only is not counted.
        drop(world.connect(consumer.clone()));
        supplier.push(&number(0)).unwrap();
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(0)));
        let (held, before) = (counting::held(), threads());
        for _ in 1..CONSUMERS {
            drop(world.connect(consumer.clone()));
        }
        let each = usize::try_from(counting::held() - held).expect("more is held") / CONSUMERS;
        println!("{CONSUMERS} idle consumers: {each} octets of heap each");
        assert!(each <= IDLE_CONSUMER_SIZE_MAX, "{each} octets each");
        assert!(
            each > size_of::<usize>(),
            "the count sees what is allocated"
        );
        assert!(
            threads() <= before + 1,
            "{} threads, before {before}",
            threads()
        );
        supplier.push(&number(1)).unwrap();
        for _ in 0..CONSUMERS {
            assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(1)));
        }
        let is_counted = |counts: ChannelCounts| counts.delivered == CONSUMERS as u64 + 1;
        wait_for(|| is_counted(world.served.counts()));
        world.end();
    });
}

/// Octets of memory that an idle consumer with a connection of its own may take in the channel.
const IDLE_CONNECTION_SIZE_MAX: usize = 6 << 10;

#[test]
fn a_thousand_idle_consumers_with_a_connection_each_take_no_thread_and_less_memory_than_stated() {
    const CONSUMERS: u16 = 1_000;
    alone(|| {
        let _ = deckwatch_os::process::raise_open_files(); // 1,024 may not do.
        let world = World::with(whole());
        let listener = TcpListener::bind("0.0.0.0:0").expect("a free port");
        let port = listener.local_addr().expect("it listens").port();
        let accepting = std::thread::spawn(move || -> Vec<TcpStream> {
            let accepted = listener.incoming().take(usize::from(CONSUMERS));
            accepted
                .map(|stream| stream.expect("it connects"))
                .collect()
        });
        // Each address is a process of its own for the channel.
        let connect = |place: u16| {
            let [high, low] = place.to_be_bytes();
            let url = format!("corbaloc:iiop:1.2@127.9.{high}.{low}:{port}/raw");
            let object = world.user.string_to_object(&url).expect("a URL");
            drop(world.connect(object.expect("not nil")));
        };
        counting::start();
        // What grows with the first consumer only is not counted.
        connect(1);
        wait_for(|| world.served.connections() == 1);
        let (held, before) = (counting::held(), threads());
        (2..=CONSUMERS).for_each(connect);
        let streams = accepting.join().expect("all connect");
        assert_eq!(world.served.connections(), streams.len());
        let more = usize::try_from(counting::held() - held).expect("more is held");
        let each = more / usize::from(CONSUMERS);
        println!("{CONSUMERS} idle consumers with a connection each: {each} octets of heap each");
        assert!(each <= IDLE_CONNECTION_SIZE_MAX, "{each} octets each");
        let now = threads();
        // The thread that accepted was counted before: one may have come in its place.
        assert!(now <= before, "{now} threads, before {before}");
        drop(streams);
        world.end();
    });
}
