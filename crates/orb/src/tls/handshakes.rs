//! The handshakes that a listener has under way, within bounds: how many, how many of one address, and for how long.

use crate::limits::{
    HANDSHAKE_TIMEOUT, HANDSHAKE_YOUNG, HANDSHAKES_MAX, HANDSHAKES_PER_PEER_MAX,
    HANDSHAKES_YOUNG_MAX,
};
use crate::peers::Peer;
use crate::transport::{Instant64, Stream as _};

use super::stream::TlsStream;

/// One handshake.
struct Handshake {
    stream: TlsStream,
    peer: Peer,
    begun: Instant64,
    /// It has failed, and the peer reads why.
    is_parting: bool,
    number: u64,
}

/// The handshakes under way, the oldest first.
#[derive(Default)]
pub(super) struct Handshakes {
    all: Vec<Handshake>,
    /// The number of the last one: its token in the poller.
    last: u64,
}

impl Handshakes {
    /// How long no further connection is accepted, because many handshakes have only begun. `None`: not at all.
    pub(super) fn pause(&self, now: Instant64) -> Option<std::time::Duration> {
        let first = self.all.len().checked_sub(HANDSHAKES_YOUNG_MAX)?;
        let age = now.since(self.all[first].begun);
        (age < HANDSHAKE_YOUNG).then(|| HANDSHAKE_YOUNG.saturating_sub(age))
    }

    /// Takes in a connection, and drops the oldest one for it where there are too many, of which `waiting` are finished.
    /// Returns its number; `None` if its address has too many.
    pub(super) fn begin(
        &mut self,
        stream: TlsStream,
        waiting: usize,
        now: Instant64,
    ) -> Option<u64> {
        let peer = Peer::from(stream.caller());
        let same = self.all.iter().filter(|other| other.peer == peer).count();
        if same >= HANDSHAKES_PER_PEER_MAX {
            return None;
        }
        if self.all.len() + waiting >= HANDSHAKES_MAX && !self.all.is_empty() {
            self.all.remove(0);
        }
        self.last += 1;
        self.all.push(Handshake {
            stream,
            peer,
            begun: now,
            is_parting: false,
            number: self.last,
        });
        Some(self.last)
    }

    /// The stream of this number.
    pub(super) fn stream(&self, number: u64) -> Option<&TlsStream> {
        let place = self.place(number)?;
        Some(&self.all[place].stream)
    }

    /// Drops one.
    pub(super) fn drop_one(&mut self, number: u64) {
        if let Some(place) = self.place(number) {
            self.all.remove(place);
        }
    }

    fn place(&self, number: u64) -> Option<usize> {
        self.all
            .binary_search_by_key(&number, |one| one.number)
            .ok()
    }

    /// Takes a handshake as far as it goes. Returns its stream if it has ended.
    pub(super) fn step(&mut self, number: u64) -> Option<TlsStream> {
        let place = self.place(number)?;
        let one = &mut self.all[place];
        let has_ended = !one.is_parting
            && one.stream.step().unwrap_or_else(|_| {
                one.is_parting = true;
                one.stream.begin_parting();
                false
            });
        if has_ended {
            return Some(self.all.remove(place).stream);
        }
        if one.is_parting && one.stream.has_parted() {
            self.all.remove(place);
        }
        None
    }

    /// Drops those whose time has passed. Returns how many, and when the next one's will have.
    pub(super) fn end_late(&mut self, now: Instant64) -> (usize, Option<Instant64>) {
        let is_late = |one: &Handshake| now >= one.begun.after(HANDSHAKE_TIMEOUT);
        let late = self.all.iter().take_while(|one| is_late(one)).count();
        self.all.drain(..late);
        (
            late,
            self.all
                .first()
                .map(|one| one.begun.after(HANDSHAKE_TIMEOUT)),
        )
    }
}
