//! Many concurrent requests on one connection: several threads write the replies, and each reply is sent whole and
//! once.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::support;
use crate::support::{Server, client_of, request};
use deckwatch_orb::{ObjectRef, Orb};

const REQUESTS: u32 = 4_000;

/// Sizes: most are small; some are more than a socket takes at once.
const fn octets_of(id: u32) -> u32 {
    if id.is_multiple_of(7) {
        60_000
    } else {
        id % 64
    }
}

/// Sends all requests, and reads all replies meanwhile.
fn expect_each_reply_once(
    bench: &ObjectRef,
    mut requests: impl Write + Send,
    mut replies: impl Read,
) {
    let mut is_answered = vec![false; REQUESTS as usize];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for id in 0..REQUESTS {
                let asked = request(bench, id, octets_of(id));
                requests.write_all(&asked).expect("it reads");
            }
        });
        for _ in 0..REQUESTS {
            let mut header = [0; 24];
            replies.read_exact(&mut header).expect("a reply comes");
            assert_eq!((&header[..4], header[7]), (&b"GIOP"[..], 1));
            let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
            let id = number(12);
            assert_eq!(number(16), 0, "no exception");
            let mut body = vec![0; number(8) as usize - 12];
            replies.read_exact(&mut body).expect("the rest comes");
            let (len, octets) = body.split_at(4);
            assert_eq!(len, octets_of(id).to_le_bytes());
            assert!(octets.len() >= octets_of(id) as usize);
            assert!(
                octets[..octets_of(id) as usize]
                    .iter()
                    .all(|&octet| octet == 1)
            );
            let before = std::mem::replace(&mut is_answered[id as usize], true);
            assert!(!before, "{id} is answered twice");
        }
    });
}

const PATIENCE: Option<Duration> = Some(Duration::from_secs(60));

#[test]
fn replies_of_several_threads_to_one_connection_go_whole_and_once() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    for _ in 0..3 {
        let requests = TcpStream::connect(server.address()).unwrap();
        let replies = requests.try_clone().unwrap();
        replies.set_read_timeout(PATIENCE).unwrap();
        expect_each_reply_once(&bench, requests, replies);
    }
}

#[test]
fn so_they_do_through_a_socket_of_this_host() {
    let path = support::socket_path();
    let orb = Orb::builder().listen(&format!("unix:{path}")).unwrap();
    let server = Server::with(orb.build().unwrap());
    let (_orb, bench) = client_of(&server);
    let requests = UnixStream::connect(&path).unwrap();
    let replies = requests.try_clone().unwrap();
    replies.set_read_timeout(PATIENCE).unwrap();
    expect_each_reply_once(&bench, requests, replies);
}
