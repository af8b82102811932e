//! The handshakes that a listener has under way, within bounds: how many, how many of one address, and for how long.

use crate::limits::{
    HANDSHAKE_TIMEOUT, HANDSHAKE_YOUNG, HANDSHAKES_MAX, HANDSHAKES_PER_PEER_MAX,
    HANDSHAKES_YOUNG_MAX,
};
use crate::peers::Peer;
use crate::transport::{Instant64, Stream as _, TransportError};

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

/// What has become of a handshake.
pub(super) enum Step {
    /// It goes on, or is no longer there.
    GoesOn,
    /// It has ended.
    Ended(Box<TlsStream>),
    /// It has failed: with which peer, and why.
    Failed(String, TransportError),
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
    /// Returns its number.
    ///
    /// # Errors
    /// The connection, if its address has too many.
    pub(super) fn begin(
        &mut self,
        stream: TlsStream,
        waiting: usize,
        now: Instant64,
    ) -> Result<u64, Box<TlsStream>> {
        let peer = Peer::from(stream.caller());
        let same = self.all.iter().filter(|other| other.peer == peer).count();
        if same >= HANDSHAKES_PER_PEER_MAX {
            return Err(Box::new(stream));
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
        Ok(self.last)
    }

    /// The stream of this number.
    pub(super) fn stream(&self, number: u64) -> Option<&TlsStream> {
        let place = self.place(number)?;
        Some(&self.all[place].stream)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether it is under way, and has not failed.
    pub(super) fn is_shaking(&self, number: u64) -> bool {
        self.place(number)
            .is_some_and(|place| !self.all[place].is_parting)
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

    /// Takes a handshake as far as it goes.
    pub(super) fn step(&mut self, number: u64) -> Step {
        let Some(place) = self.place(number) else {
            return Step::GoesOn;
        };
        let one = &mut self.all[place];
        let mut step = Step::GoesOn;
        if !one.is_parting {
            match one.stream.step() {
                Ok(true) => return Step::Ended(Box::new(self.all.remove(place).stream)),
                Ok(false) => {}
                Err(why) => {
                    one.is_parting = true;
                    one.stream.begin_parting();
                    step = Step::Failed(one.stream.peer(), why);
                }
            }
        }
        if one.is_parting && one.stream.has_parted() {
            self.all.remove(place);
        }
        step
    }

    /// Drops those whose time has passed, and calls `tell` with each peer that did not end its handshake. Returns when
    /// the next one's time will have passed.
    pub(super) fn end_late(
        &mut self,
        now: Instant64,
        mut tell: impl FnMut(&TlsStream),
    ) -> Option<Instant64> {
        let is_late = |one: &Handshake| now >= one.begun.after(HANDSHAKE_TIMEOUT);
        let late = self.all.iter().take_while(|one| is_late(one)).count();
        let late = self.all.drain(..late);
        late.filter(|one| !one.is_parting)
            .for_each(|one| tell(&one.stream));
        let next = self.all.first();
        next.map(|one| one.begun.after(HANDSHAKE_TIMEOUT))
    }
}
