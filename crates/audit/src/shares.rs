//! Lines that one peer may cause in a second: a stranger must not push the lines about others out of the log.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::limits::{LINES_PER_PEER_MAX, PEERS_COUNTED_MAX};
use crate::record::{Event, Record};

/// The lines of each peer in this second.
pub(crate) struct Shares {
    begun: Instant,
    lines: HashMap<String, u64>,
}

impl Shares {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            begun: now,
            lines: HashMap::new(),
        }
    }

    /// Counts a line. Returns whether it is to be written: what a peer was permitted always is.
    pub(crate) fn admit(&mut self, record: &Record) -> bool {
        let is_free = matches!(
            record.event,
            Event::Connected | Event::ConnectionRefused | Event::Refused | Event::Disconnected
        );
        let Some(peer) = record.peer.as_deref().filter(|_| is_free) else {
            return true;
        };
        let host = host_of(peer);
        // Further peers share one count.
        let is_known = self.lines.contains_key(host) || self.lines.len() < PEERS_COUNTED_MAX;
        let host = if is_known { host } else { OTHERS };
        let count = self.lines.entry(host.to_owned()).or_default();
        *count += 1;
        *count <= LINES_PER_PEER_MAX
    }

    /// At the end of a second, or of the log: takes the peers with more lines than their share, and how many more.
    pub(crate) fn take_left_out(&mut self, now: Instant, is_end: bool) -> Vec<(String, u64)> {
        if !is_end && now.duration_since(self.begun) < SECOND {
            return Vec::new();
        }
        self.begun = now;
        let left_out = self.lines.drain().filter_map(|(peer, lines)| {
            let more = lines.saturating_sub(LINES_PER_PEER_MAX);
            (more > 0).then_some((peer, more))
        });
        left_out.collect()
    }
}

/// A peer without its port, or its process id.
fn host_of(peer: &str) -> &str {
    match peer.split_once(" (") {
        Some((user, _)) => user,
        None => peer.rsplit_once(':').map_or(peer, |(host, _)| host),
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// The peers beyond [`PEERS_COUNTED_MAX`].
const OTHERS: &str = "others";

#[cfg(test)]
mod tests {
    use super::*;

    fn of(event: Event, peer: &str) -> Record {
        Record {
            peer: Some(peer.to_owned()),
            ..Record::new(event)
        }
    }

    #[test]
    fn peer_causes_its_share_of_lines_in_a_second_and_the_others_are_counted() {
        let begun = Instant::now();
        let mut shares = Shares::new(begun);
        let refused = |port: u64| of(Event::Refused, &format!("10.0.0.1:{port}"));
        let written = (0..LINES_PER_PEER_MAX + 5).filter(|port| shares.admit(&refused(*port)));
        assert_eq!(written.count() as u64, LINES_PER_PEER_MAX);
        assert!(shares.admit(&of(Event::Refused, "10.0.0.2:1")));
        assert!(shares.admit(&of(Event::Administered, "10.0.0.1:1")));
        assert!(shares.admit(&Record::new(Event::Reloaded)));
        assert!(shares.take_left_out(begun, false).is_empty());
        let left_out = shares.take_left_out(begun + SECOND, false);
        assert_eq!(left_out, [("10.0.0.1".to_owned(), 5)]);
        assert!(shares.admit(&refused(1)));
    }

    #[test]
    fn many_peers_share_what_is_counted_together() {
        let begun = Instant::now();
        let mut shares = Shares::new(begun);
        let all = PEERS_COUNTED_MAX as u64 + LINES_PER_PEER_MAX + 9;
        let peers =
            (0..all).map(|number| of(Event::Connected, &format!("[2001:db8::{number:x}]:7")));
        let written = peers.filter(|peer| shares.admit(peer)).count() as u64;
        assert_eq!(written, all - 9);
        let left_out = shares.take_left_out(begun, true);
        assert_eq!(left_out, [(OTHERS.to_owned(), 9)]);
    }

    #[test]
    fn processes_of_a_user_and_ports_of_an_address_are_one_peer() {
        assert_eq!(host_of("user 7 (process 9, unix socket)"), "user 7");
        assert_eq!(host_of("[2001:db8::1]:4000"), "[2001:db8::1]");
        assert_eq!(host_of("several"), "several");
    }
}
