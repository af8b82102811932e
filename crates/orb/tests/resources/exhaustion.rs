//! No descriptors left: the server stops accepting, counts this, and accepts again when descriptors are free.
//!
//! The test has a process of its own, because the limit is that of the process.

use std::fs::File;
use std::net::TcpStream;
use std::process::Command;

use crate::support::{Server, call, client_of, wait_for};
use deckwatch_orb::Counter;
use deckwatch_testkit::alone;

#[test]
fn a_server_without_descriptors_serves_on_and_accepts_again_when_it_has_some() {
    alone(|| {
        let server = Server::start();
        let (_orb, bench) = client_of(&server);
        call(&bench, "ping").unwrap();
        let pid = std::process::id().to_string();
        let limited = Command::new("prlimit")
            .args(["--pid", &pid, "--nofile=128:"])
            .status();
        assert!(limited.unwrap().success());

        let mut fillers: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        drop(fillers.pop());
        // The client's end takes the last descriptor; there is none for the server's end.
        let waiting = TcpStream::connect(server.address()).unwrap();
        wait_for(|| server.orb.counters().read(Counter::AcceptsExhausted) != 0);
        // The open connections still work.
        call(&bench, "ping").unwrap();
        assert_eq!(server.orb.counters().read(Counter::ConnectionsAccepted), 1);
        // Later an idle connection is evicted.
        wait_for(|| server.orb.counters().read(Counter::ConnectionsAccepted) == 2);
        assert_eq!(server.orb.counters().read(Counter::ConnectionsEvicted), 1);

        drop(fillers);
        call(&bench, "ping").unwrap();
        wait_for(|| server.orb.counters().read(Counter::ConnectionsAccepted) >= 2);
        drop(waiting);
        let (_other, fresh) = client_of(&server);
        call(&fresh, "ping").unwrap();
    });
}
