//! Resolves host names within a deadline. The system's resolver has none.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::sync_channel;

use deckwatch_os::stream;

use super::{Instant64, TransportError};
use crate::budget::Budget;
use crate::limits::RESOLUTIONS_MAX;

/// Only a name is resolved; an address is used directly.
pub(super) fn addresses(
    host: &str,
    port: u16,
    deadline: Option<Instant64>,
) -> Result<Vec<SocketAddr>, TransportError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    resolve(host.to_owned(), deadline, &RESOLUTIONS, move |host| {
        let found = (host, port).to_socket_addrs();
        found.map(Iterator::collect).unwrap_or_default()
    })
}

/// Number of names that are being resolved now.
static RESOLUTIONS: Budget = Budget::new(RESOLUTIONS_MAX);

/// Calls the resolver in a thread of its own, because it has no deadline. A caller whose deadline has passed leaves
/// that thread behind.
fn resolve(
    host: String,
    deadline: Option<Instant64>,
    running: &'static Budget,
    ask: impl FnOnce(&str) -> Vec<SocketAddr> + Send + 'static,
) -> Result<Vec<SocketAddr>, TransportError> {
    if !running.take(1) {
        return Err(TransportError::Exhausted);
    }
    let (tell, answer) = sync_channel(1);
    let asking = std::thread::Builder::new()
        .name("orb-resolver".to_owned())
        .spawn(move || {
            let found = ask(&host);
            running.give(1);
            // The caller may have given up.
            let _ = tell.send(found);
        });
    if asking.is_err() {
        running.give(1);
        return Err(TransportError::Exhausted);
    }
    let found = match deadline {
        None => answer.recv().unwrap_or_default(),
        Some(deadline) => {
            let remaining = deadline.since(Instant64(stream::monotonic_ns()));
            answer
                .recv_timeout(remaining)
                .map_err(|_| TransportError::TimedOut)?
        }
    };
    if found.is_empty() {
        return Err(TransportError::UnknownHost);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolver_that_does_not_answer_costs_its_callers_their_time_and_a_bounded_number_of_threads()
     {
        static RUNNING: Budget = Budget::new(RESOLUTIONS_MAX);
        let host = || "ship".to_owned();
        let mut held = Vec::new();
        for _ in 0..RESOLUTIONS_MAX {
            let (release, waits) = sync_channel::<()>(0);
            held.push(release);
            let silent = move |_: &str| {
                let _ = waits.recv();
                Vec::new()
            };
            let soon = Instant64(stream::monotonic_ns() + 1_000_000);
            let outcome = resolve(host(), Some(soon), &RUNNING, silent);
            assert_eq!(outcome, Err(TransportError::TimedOut));
        }
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let ask = move |_: &str| vec![address];
        let refused = resolve(host(), None, &RUNNING, ask);
        assert_eq!(refused, Err(TransportError::Exhausted));
        drop(held);
        while RUNNING.held() != 0 {
            std::thread::yield_now();
        }
        assert_eq!(resolve(host(), None, &RUNNING, ask), Ok(vec![address]));
    }
}
