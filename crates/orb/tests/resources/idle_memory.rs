//! Memory of open connections: ten thousand connections, each used once, take no more than the documented amount per
//! connection.
//!
//! The test has a process of its own, because the allocator counts the whole process.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::counting;
use crate::support::{Server, call, client_of, socket_path};
use deckwatch_orb::limits::IDLE_CONNECTION_SIZE_MAX;
use deckwatch_orb::{Counter, ObjectRef, Orb};
use deckwatch_testkit::alone;

const CONNECTIONS: usize = 10_000;

/// Descriptors that the test needs besides those of its connections.
const OTHERS: usize = 128;

/// The number of connections that the process may open, with both ends.
fn connections() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = files.and_then(|line| line.split_whitespace().nth(3));
    let soft: usize = soft.unwrap().parse().unwrap_or(usize::MAX);
    ((soft - OTHERS) / 2).min(CONNECTIONS)
}

/// Resident memory of this process in octets.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

fn ping(bench: &ObjectRef) -> Vec<u8> {
    let key = bench.object_key().unwrap();
    let mut body = vec![0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0];
    body.extend(u32::try_from(key.len()).unwrap().to_be_bytes());
    body.extend(key);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(b"\0\0\0\x05ping\0\0\0\0\0\0\0\0");
    let mut message = b"GIOP\x01\x02\x00\x00".to_vec();
    message.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
    message.extend(body);
    message
}

#[test]
fn ten_thousand_idle_connections_hold_no_more_than_is_stated() {
    alone(|| {
        counting::start();
        let path = socket_path();
        // One user may have half of the connections.
        let orb = Orb::builder()
            .dynamic_threads(0)
            .connections_max(4 * CONNECTIONS);
        let orb = orb
            .listen(&format!("unix:{path}"))
            .unwrap()
            .build()
            .unwrap();
        let server = Server::with(orb);
        server.orb.seal();
        let (_client, bench) = client_of(&server);
        let request = ping(&bench);
        let count = connections();
        let mut clients = Vec::with_capacity(count);
        // Buffers and the memory of threads are allocated before the first measurement.
        for _ in 0..100 {
            call(&bench, "ping").unwrap();
        }
        let (held, was_resident) = (counting::held(), resident());
        for _ in 0..count {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.write_all(&request).unwrap();
            let mut header = [0; 12];
            stream.read_exact(&mut header).unwrap();
            assert_eq!(header[7], 1);
            let size = u32::from_le_bytes(header[8..].try_into().unwrap());
            stream.read_exact(&mut vec![0; size as usize]).unwrap();
            clients.push(stream);
        }
        let each = usize::try_from(counting::held() - held).expect("more is held") / count;
        let resident = (resident() - was_resident) / count;
        println!("{count} idle connections: {each} octets of heap each, {resident} resident");
        assert!(each <= IDLE_CONNECTION_SIZE_MAX, "{each} octets each");
        assert!(
            each > size_of::<usize>(),
            "the count sees what is allocated"
        );
        assert_eq!(server.orb.counters().read(Counter::ConnectionsClosed), 0);
        assert_eq!(call(&bench, "ping"), Ok(()));
    });
}
