//! What has arrived on one connection and not been served yet: octets in a lent buffer, cut into GIOP messages.
//!
//! Knows sizes, versions and limits; knows no socket and no clock. An idle connection holds no buffer.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use deckwatch_sync::Pool;

use crate::limits::{BUFFER_RETAINED_MAX, BUFFER_SIZE, BUFFERS_MAX};
use deckwatch_cdr::Divided;
use deckwatch_giop::{Assembly, HEADER_SIZE, ProtocolError};

use crate::transport::Instant64;
use crate::wire;

/// Buffers that are lent while messages are in flight: some to read into, which have been zeroed once, and some to
/// write into, which are empty. Zeroing is dear beside a small call, so each kind is kept as it is.
#[derive(Debug)]
pub(crate) struct Slab {
    read: Pool<Vec<u8>>,
    write: Pool<Vec<u8>>,
    /// What a buffer begins with.
    size: usize,
}

impl Slab {
    /// `more`: buffers to read into that it keeps besides, for messages that wait.
    pub(crate) fn new(size: usize, more: usize) -> Self {
        Self {
            read: Pool::with_capacity(BUFFERS_MAX / 2 + more),
            write: Pool::with_capacity(BUFFERS_MAX / 2),
            size,
        }
    }

    /// Takes `count` buffers of each kind from the allocator now, so that none need be taken later.
    pub(crate) fn fill(&self, count: usize) {
        self.fill_read(count);
        self.fill_written(count);
    }

    /// As [`Slab::fill`], of those to read into.
    pub(crate) fn fill_read(&self, count: usize) {
        for _ in 0..count {
            let _has_enough = self.read.put(vec![0; self.size]);
        }
    }

    /// As [`Slab::fill`], of those to write into.
    pub(crate) fn fill_written(&self, count: usize) {
        for _ in 0..count {
            let _has_enough = self.write.put(Vec::with_capacity(self.size));
        }
    }

    /// A buffer to read into, of any content, at least [`BUFFER_SIZE`] long. Never one to write into: to zero it would cost more than a small call.
    pub(crate) fn lend(&self) -> Vec<u8> {
        let buffer = self.read.take();
        buffer.unwrap_or_else(|| vec![0; self.size])
    }

    /// An empty buffer to write into.
    pub(crate) fn lend_empty(&self) -> Vec<u8> {
        let buffer = self.write.take();
        let mut buffer = buffer.unwrap_or_else(|| Vec::with_capacity(self.size));
        buffer.clear();
        buffer
    }

    /// Has `write` write into an empty buffer that it gives back: half of what lending one costs.
    #[inline]
    pub(crate) fn with_empty<R>(&self, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let Some(mut lent) = self.write.lend() else {
            let mut buffer = self.lend_empty();
            let written = write(&mut buffer);
            self.take_back_written(buffer);
            return written;
        };
        lent.clear();
        let written = write(&mut lent);
        if lent.capacity() > BUFFER_RETAINED_MAX {
            self.take_back_written(lent.into_value());
        }
        written
    }

    /// Takes a buffer back in which a message has arrived. What was lent comes back, or the next one would have to be taken from the
    /// allocator: of one that has grown large the allocator gets what is beyond [`BUFFER_RETAINED_MAX`], and one that nobody needs whole.
    pub(crate) fn take_back(&self, mut buffer: Vec<u8>) {
        if buffer.len() < BUFFER_SIZE {
            // A copy that was made to wait is no longer than it has to be.
            if buffer.capacity() >= self.size {
                self.take_back_written(buffer);
            }
            return;
        }
        let len_max = BUFFER_RETAINED_MAX.max(self.size);
        buffer.truncate(len_max);
        buffer.shrink_to(len_max);
        // Where fragments were joined in it, what is left of it must be there to read into.
        if buffer.len() != buffer.capacity() {
            buffer.resize(buffer.capacity(), 0);
        }
        let _has_enough = self.read.put(buffer);
    }

    /// Takes a buffer back into which a message was written. It stays what it is: one that has grown for a large message has its room for the next.
    pub(crate) fn take_back_written(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        buffer.shrink_to(BUFFER_RETAINED_MAX);
        let _has_enough = self.write.put(buffer);
    }
}

/// What many connections may hold together, of unfinished messages or of replies that wait.
#[derive(Debug)]
pub(crate) struct Budget {
    held: AtomicUsize,
    max: usize,
}

impl Budget {
    pub(crate) const fn new(max: usize) -> Self {
        Self {
            held: AtomicUsize::new(0),
            max,
        }
    }

    /// False: so much does not fit; who asks in vain keeps nobody from what fits meanwhile.
    pub(crate) fn take(&self, octets: usize) -> bool {
        let more = |held: usize| held.checked_add(octets).filter(|held| *held <= self.max);
        let order = Ordering::Relaxed;
        self.held.fetch_update(order, order, more).is_ok()
    }

    pub(crate) fn give(&self, octets: usize) {
        self.held.fetch_sub(octets, Ordering::Relaxed);
    }
}

/// Unfinished messages hold as much as they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverBudget;

/// A whole message in a buffer of its own.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) buffer: Vec<u8>,
    pub(crate) place: Range<usize>,
    /// Where its fragments ended, in GIOP 1.1.
    pub(crate) ends: Vec<u32>,
}

impl Arrived {
    /// A message of so many octets at the start of its buffer.
    #[inline]
    pub(crate) const fn at_start(buffer: Vec<u8>, count: usize) -> Self {
        Self {
            place: 0..count,
            buffer,
            ends: Vec::new(),
        }
    }

    /// A message that fills its buffer.
    pub(crate) fn whole(buffer: Vec<u8>) -> Self {
        Self {
            place: 0..buffer.len(),
            buffer,
            ends: Vec::new(),
        }
    }

    pub(crate) fn message(&self) -> Divided<'_> {
        Divided::new(&self.buffer[self.place.clone()], &self.ends)
    }

    /// The same in a buffer that is no longer than it has to be; the other is given back.
    pub(crate) fn into_exact(self, slab: &Slab) -> Self {
        let exact = Self {
            ends: self.ends,
            ..Self::whole(self.buffer[self.place].to_vec())
        };
        slab.take_back(self.buffer);
        exact
    }

    /// Octets that it holds where its buffer is exact.
    pub(crate) fn size(&self) -> usize {
        self.place.len() + size_of_val(&self.ends[..])
    }
}

/// Octets between the socket and the parser.
#[derive(Debug)]
pub(crate) struct Inbound {
    buffer: Option<Vec<u8>>,
    /// Octets of the buffer that have been handed out as messages.
    consumed: usize,
    /// Octets of the buffer that have arrived.
    filled: usize,
    /// Messages that come in fragments; made with the first of them.
    assembly: Option<Box<Assembly>>,
    size_max: usize,
    /// Shared with the other connections of a lane; a caller's own are bounded by its calls.
    budget: Option<Arc<Budget>>,
    /// What has been taken of the budget.
    charged: usize,
    /// Since when a message has been unfinished.
    begun: Option<Instant64>,
    /// The train of fragments that has been unfinished since then; none where it is a message.
    begun_train: Option<u64>,
}

impl Inbound {
    /// Nothing has arrived; messages above `size_max` octets are a fault.
    pub(crate) const fn new(size_max: usize, budget: Option<Arc<Budget>>) -> Self {
        Self {
            buffer: None,
            consumed: 0,
            filled: 0,
            assembly: None,
            size_max,
            budget,
            charged: 0,
            begun: None,
            begun_train: None,
        }
    }

    /// Begins with a buffer that has been read into already, outside any budget; of no octets it is only kept to be given back.
    pub(crate) fn begin(&mut self, buffer: Vec<u8>, count: Option<usize>) {
        debug_assert!(self.buffer.is_none() && self.budget.is_none());
        self.buffer = Some(buffer);
        self.filled = count.unwrap_or(0);
    }

    /// Brings what is taken of the budget up or down to `octets`.
    fn charge(&mut self, octets: usize) -> Result<(), OverBudget> {
        if let Some(budget) = &self.budget {
            if octets > self.charged && !budget.take(octets - self.charged) {
                return Err(OverBudget);
            }
            if octets < self.charged {
                budget.give(self.charged - octets);
            }
            self.charged = octets;
        }
        Ok(())
    }

    /// What counts against the budget where the buffer has `len` octets.
    fn cost(&self, len: usize, slab: &Slab) -> usize {
        let joined = self.assembly.as_ref().map_or(0, |trains| trains.held());
        len.saturating_sub(slab.size) + joined
    }

    /// Says that nothing more can be read now. Gives the buffer back where nothing waits in it; else notes, by the clock,
    /// since when a message has been unfinished, and returns true.
    pub(crate) fn pause(&mut self, slab: &Slab, now: impl FnOnce() -> Instant64) -> bool {
        self.rest(slab);
        let oldest = self.oldest_train();
        let is_unfinished = self.is_within_message();
        if !is_unfinished {
            self.begun = None;
        } else if self.begun.is_none() || self.begun_train != oldest {
            self.begun = Some(now());
            self.begun_train = oldest;
        }
        is_unfinished
    }

    fn oldest_train(&self) -> Option<u64> {
        self.assembly.as_ref().and_then(|trains| trains.oldest())
    }

    /// A message is whole: what was unfinished no longer is, but for a train of fragments that this was not the last of.
    fn end_message(&mut self) {
        if self.begun_train.is_none() || self.begun_train != self.oldest_train() {
            self.begun = None;
        }
    }

    /// Since when a message has been unfinished.
    pub(crate) const fn begun(&self) -> Option<Instant64> {
        self.begun
    }

    /// Room to read into: never empty. Grows by doubling as octets arrive, not by what a header claims. Behind a large message it ends soon, so that
    /// not half of the next one has to be moved to the front.
    ///
    /// # Errors
    /// [`OverBudget`].
    pub(crate) fn space(&mut self, slab: &Slab) -> Result<&mut [u8], OverBudget> {
        let (size_max, waits) = (self.size_max, self.filled - self.consumed);
        let mut len = self.buffer.as_ref().map_or(0, Vec::len);
        if len != 0 && waits == len {
            len = next_len(len).min(size_max.max(len + BUFFER_SIZE));
        }
        let cost = self.cost(len, slab);
        if cost != self.charged {
            self.charge(cost)?;
        }
        let buffer = self.buffer.get_or_insert_with(|| slab.lend());
        if self.consumed != 0 {
            buffer.copy_within(self.consumed..self.filled, 0);
            self.filled -= self.consumed;
            self.consumed = 0;
        }
        if self.filled == buffer.len() {
            buffer.reserve_exact(len - buffer.len());
            buffer.resize(len, 0);
        }
        let (there, room) = buffer.split_at_mut(self.filled);
        let size = wire::stated_len(there);
        let end = match size > BUFFER_SIZE {
            true => size.saturating_sub(self.filled) + HEADER_SIZE,
            false => room.len(),
        };
        let end = end.min(room.len());
        Ok(&mut room[..end])
    }

    /// Says that `count` octets have been read into [`Inbound::space`].
    pub(crate) fn handle_bytes(&mut self, count: usize) {
        self.filled += count;
    }

    /// The next whole message, as a place for [`Inbound::message`] or [`Inbound::detach`].
    ///
    /// # Errors
    /// [`ProtocolError`] where the octets are no GIOP message, or one that is too large: nothing after it can be read.
    #[inline]
    pub(crate) fn poll_message(&mut self) -> Result<Option<Range<usize>>, ProtocolError> {
        let Some(len) = self.next_len()? else {
            return Ok(None);
        };
        let place = self.consumed..self.consumed + len;
        self.consumed = place.end;
        if self.begun.is_some() && !wire::is_fragmented(self.message(place.clone())) {
            self.end_message();
        }
        Ok(Some(place))
    }

    #[inline]
    fn next_len(&self) -> Result<Option<usize>, ProtocolError> {
        if self.consumed == self.filled {
            return Ok(None);
        }
        let Some(buffer) = &self.buffer else {
            return Ok(None);
        };
        let waiting = &buffer[self.consumed..self.filled];
        wire::whole_len(waiting, self.size_max)
    }

    /// Whether another message can be polled (or the fault that follows) without reading.
    pub(crate) fn has_more(&self) -> bool {
        !matches!(self.next_len(), Ok(None))
    }

    /// Whether a message has begun to arrive, whole or in fragments, and not ended.
    pub(crate) fn is_within_message(&self) -> bool {
        self.consumed != self.filled || self.oldest_train().is_some()
    }

    /// The peer is kept from sending on: the time that its message may take begins anew after that.
    pub(crate) fn excuse(&mut self) {
        self.begun = None;
    }

    /// The octets of a message, as long as nothing is read.
    pub(crate) fn message(&self, place: Range<usize>) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| &buffer[place])
    }

    /// Joins the fragment polled last with those before it; gives the whole message, in a buffer of its own, once
    /// it is there.
    ///
    /// # Errors
    /// [`ProtocolError`] where it belongs to no message, or all unfinished messages together are too large.
    pub(crate) fn join(
        &mut self,
        place: Range<usize>,
        slab: &Slab,
    ) -> Result<Option<Arrived>, ProtocolError> {
        let fragment = self
            .buffer
            .as_ref()
            .map_or(&[][..], |buffer| &buffer[place]);
        let assembly = self
            .assembly
            .get_or_insert_with(|| Box::new(Assembly::new(self.size_max)));
        let whole = assembly.accept(fragment)?.map(|whole| {
            let mut buffer = slab.lend_empty();
            buffer.extend_from_slice(whole.octets());
            Arrived {
                place: 0..buffer.len(),
                buffer,
                ends: whole.ends().to_vec(),
            }
        });
        assembly.shrink(BUFFER_RETAINED_MAX);
        if whole.is_some() {
            self.end_message();
        }
        Ok(whole)
    }

    /// Forgets the fragments of a request that was cancelled.
    pub(crate) fn cancel(&mut self, request_id: u32) {
        if let Some(assembly) = &mut self.assembly {
            assembly.cancel(request_id);
        }
    }

    /// Gives the buffer away, so that others may read while the message polled last is served; what came after it stays.
    pub(crate) fn detach(&mut self, place: Range<usize>, slab: &Slab) -> Arrived {
        let buffer = self.buffer.take().unwrap_or_default();
        let rest = &buffer[self.consumed.min(buffer.len())..self.filled.min(buffer.len())];
        if !rest.is_empty() {
            let mut kept = slab.lend();
            if kept.len() < rest.len() {
                kept.resize(rest.len(), 0);
            }
            kept[..rest.len()].copy_from_slice(rest);
            self.buffer = Some(kept);
        }
        self.filled -= self.consumed;
        self.consumed = 0;
        // What is being served is bounded by the threads that serve.
        let _gives = self.charge(self.cost(0, slab).min(self.charged));
        Arrived {
            buffer,
            place,
            ends: Vec::new(),
        }
    }

    /// Takes a buffer back that was given away by [`Inbound::detach`], to read on into it; where another is there already, the slab gets it.
    pub(crate) fn reattach(&mut self, buffer: Vec<u8>, slab: &Slab) {
        let is_fit = buffer.len() >= slab.size && buffer.capacity() <= BUFFER_RETAINED_MAX;
        if is_fit && self.buffer.is_none() {
            self.buffer = Some(buffer);
        } else {
            slab.take_back(buffer);
        }
    }

    /// Gives the buffer back, whatever waits in it.
    pub(crate) fn discard(&mut self, slab: &Slab) {
        self.consumed = self.filled;
        self.rest(slab);
    }

    /// Gives the buffer back where nothing waits in it.
    pub(crate) fn rest(&mut self, slab: &Slab) {
        if self.consumed == self.filled
            && let Some(buffer) = self.buffer.take()
        {
            slab.take_back(buffer);
            self.consumed = 0;
            self.filled = 0;
            let cost = self.cost(0, slab);
            if cost < self.charged {
                let _gives = self.charge(cost);
            }
        }
    }
}

/// What a full buffer of `len` octets grows to: the double, but first to the largest that the slab takes back.
const fn next_len(len: usize) -> usize {
    if len < BUFFER_RETAINED_MAX && 2 * len > BUFFER_RETAINED_MAX {
        BUFFER_RETAINED_MAX
    } else {
        2 * len
    }
}

impl Drop for Inbound {
    fn drop(&mut self) {
        let _gives = self.charge(0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    const SIZE_MAX: usize = 1 << 20;

    /// Framing looks at no body: this one is of octets that mean nothing.
    fn message(body: usize) -> Vec<u8> {
        let mut octets = b"GIOP\x01\x02\0\x06".to_vec();
        octets.extend(u32::try_from(body).unwrap().to_be_bytes());
        octets.resize(octets.len() + body, 7);
        octets
    }

    fn put(inbound: &mut Inbound, slab: &Slab, mut octets: &[u8]) {
        while !octets.is_empty() {
            let space = inbound.space(slab).unwrap();
            let count = space.len().min(octets.len());
            space[..count].copy_from_slice(&octets[..count]);
            inbound.handle_bytes(count);
            octets = &octets[count..];
        }
    }

    #[test]
    fn messages_are_cut_out_however_the_octets_arrive() {
        let slab = Slab::new(BUFFER_SIZE, 0);
        let octets = [message(3), message(0), message(40_000)].concat();
        for step in [1, 7, 1_000, octets.len()] {
            let mut inbound = Inbound::new(SIZE_MAX, None);
            let mut lens = Vec::new();
            for part in octets.chunks(step) {
                put(&mut inbound, &slab, part);
                while let Some(place) = inbound.poll_message().unwrap() {
                    lens.push(inbound.message(place).len());
                }
            }
            assert_eq!(lens, [15, 12, 40_012]);
            assert!(!inbound.is_within_message());
        }
    }

    #[test]
    fn who_asks_a_budget_for_too_much_keeps_nobody_from_what_fits() {
        let budget = Budget::new(100);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert!(!budget.take(101));
                }
            });
            let fits = || {
                budget.take(100) && {
                    budget.give(100);
                    true
                }
            };
            let always = (0..100_000).all(|_| fits());
            is_over.store(true, Ordering::Relaxed);
            assert!(always, "it fits");
        });
        assert!(budget.take(60) && budget.take(40) && !budget.take(1));
        assert!(!budget.take(usize::MAX));
        budget.give(60);
        assert!(!budget.take(61) && budget.take(60));
    }

    #[test]
    fn a_joined_message_that_waits_holds_no_more_than_it_counts() {
        let slab = Slab::new(BUFFER_SIZE, 0);
        let mut joined = slab.lend_empty();
        joined.extend_from_slice(&[7; 60]);
        let joined = Arrived {
            ends: vec![40],
            ..Arrived::at_start(joined, 60)
        };
        let waits = joined.into_exact(&slab);
        assert_eq!(waits.message().octets(), [7; 60]);
        assert_eq!(waits.message().ends(), [40]);
        assert_eq!(waits.buffer.capacity(), 60);
        assert_eq!(waits.size(), 64);
        assert!(slab.write.take().is_some());
    }

    #[test]
    fn what_follows_a_detached_message_stays() {
        let slab = Slab::new(BUFFER_SIZE, 0);
        let mut inbound = Inbound::new(SIZE_MAX, None);
        put(
            &mut inbound,
            &slab,
            &[message(3), message(5), vec![b'G']].concat(),
        );
        let place = inbound.poll_message().unwrap().unwrap();
        assert!(inbound.has_more());
        let arrived = inbound.detach(place, &slab);
        assert_eq!(arrived.message().octets(), message(3));
        let place = inbound.poll_message().unwrap().unwrap();
        assert_eq!(inbound.message(place), message(5));
        assert!(!inbound.has_more());
        assert!(inbound.is_within_message());
    }

    #[test]
    fn a_header_that_claims_much_costs_nothing_and_one_that_claims_too_much_is_a_fault() {
        let slab = Slab::new(BUFFER_SIZE, 0);
        let mut inbound = Inbound::new(SIZE_MAX, None);
        put(&mut inbound, &slab, &message(SIZE_MAX - 12)[..20]);
        assert_eq!(inbound.poll_message(), Ok(None));
        assert_eq!(inbound.buffer.as_ref().unwrap().len(), BUFFER_SIZE);
        let mut inbound = Inbound::new(SIZE_MAX, None);
        put(&mut inbound, &slab, &message(SIZE_MAX)[..12]);
        assert_eq!(inbound.poll_message(), Err(ProtocolError::MessageTooLarge));
    }

    #[test]
    fn behind_a_large_message_no_more_than_the_next_header_is_read() {
        let slab = Slab::new(BUFFER_RETAINED_MAX, 0);
        let mut inbound = Inbound::new(SIZE_MAX, None);
        let octets = [message(60_000), message(60_000), message(3)].concat();
        let mut rest = &octets[..];
        let mut left_over = Vec::new();
        while !rest.is_empty() {
            // As much as there is room for, but at first no more than tells how large the message is.
            let space = inbound.space(&slab).unwrap();
            let count = match rest.len() == octets.len() {
                true => HEADER_SIZE,
                false => space.len().min(rest.len()),
            };
            space[..count].copy_from_slice(&rest[..count]);
            inbound.handle_bytes(count);
            rest = &rest[count..];
            while inbound.poll_message().unwrap().is_some() {
                left_over.push(inbound.filled - inbound.consumed);
            }
        }
        assert_eq!(left_over, [HEADER_SIZE, HEADER_SIZE, 0]);
    }

    #[test]
    fn buffers_come_back_from_large_messages_and_stay_of_their_kind() {
        let slab = Slab::new(BUFFER_SIZE, 0);
        slab.fill(1);
        let (mut read, mut written) = (slab.lend(), slab.lend_empty());
        read.resize(4 * BUFFER_RETAINED_MAX, 0);
        written.resize(4 * BUFFER_RETAINED_MAX, 0);
        slab.take_back(read);
        // None is there to write into: the one to read into is left alone.
        slab.take_back_written(slab.lend_empty());
        slab.take_back_written(written);
        let kept = slab.lend();
        assert_eq!(kept.len(), BUFFER_RETAINED_MAX);
        // None is there to read into: those to write into are left alone.
        assert_eq!(slab.lend().len(), BUFFER_SIZE);
        let written = [slab.write.take(), slab.write.take()];
        assert!(written.iter().flatten().all(Vec::is_empty));
        assert!(written.iter().all(Option::is_some));
    }

    #[test]
    fn an_idle_connection_holds_no_buffer() {
        let slab = Slab::new(BUFFER_SIZE, 0);
        let mut inbound = Inbound::new(SIZE_MAX, None);
        put(&mut inbound, &slab, &message(3)[..14]);
        inbound.rest(&slab);
        assert!(inbound.buffer.is_some());
        put(&mut inbound, &slab, &message(3)[14..]);
        assert!(inbound.poll_message().unwrap().is_some());
        inbound.rest(&slab);
        assert!(inbound.buffer.is_none());
    }

    #[test]
    fn unfinished_messages_of_many_connections_share_a_budget() {
        let slab = Slab::new(BUFFER_SIZE, 0);
        let budget = Arc::new(Budget::new(BUFFER_SIZE));
        let connect = || Inbound::new(SIZE_MAX, Some(Arc::clone(&budget)));
        let octets = message(SIZE_MAX - 12);
        let (mut first, mut second, mut third) = (connect(), connect(), connect());
        put(&mut first, &slab, &octets[..BUFFER_SIZE + 1]);
        put(&mut second, &slab, &octets[..BUFFER_SIZE]);
        assert_eq!(second.space(&slab), Err(OverBudget));
        put(&mut third, &slab, &message(3));
        assert!(third.poll_message().unwrap().is_some());
        drop(first);
        assert!(second.space(&slab).is_ok());
        second.discard(&slab);
        assert_eq!(budget.held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn an_unfinished_message_is_known_by_its_beginning() {
        let slab = Slab::new(BUFFER_SIZE, 0);
        let mut inbound = Inbound::new(SIZE_MAX, None);
        let octets = message(3);
        put(&mut inbound, &slab, &octets[..5]);
        assert!(inbound.pause(&slab, || Instant64(7)));
        put(&mut inbound, &slab, &octets[5..9]);
        assert!(inbound.pause(&slab, || Instant64(8)));
        assert_eq!(inbound.begun(), Some(Instant64(7)));
        put(&mut inbound, &slab, &[&octets[9..], &octets[..5]].concat());
        assert!(inbound.poll_message().unwrap().is_some());
        assert!(inbound.pause(&slab, || Instant64(9)));
        assert_eq!(inbound.begun(), Some(Instant64(9)));
        put(&mut inbound, &slab, &octets[5..]);
        assert!(inbound.poll_message().unwrap().is_some());
        assert!(!inbound.pause(&slab, || Instant64(10)));
        assert_eq!(inbound.begun(), None);
    }

    #[test]
    fn a_train_that_does_not_end_keeps_its_beginning_and_trains_that_overlap_have_their_own() {
        let slab = Slab::new(BUFFER_SIZE, 0);
        let mut inbound = Inbound::new(SIZE_MAX, None);
        let part = |kind, more, id| {
            let mut octets = vec![b'G', b'I', b'O', b'P', 1, 2, more, kind, 0, 0, 0, 4];
            octets.extend(u32::to_be_bytes(id));
            octets
        };
        let mut take = |octets: &[u8], now| {
            put(&mut inbound, &slab, octets);
            while let Some(place) = inbound.poll_message().unwrap() {
                if wire::is_fragmented(inbound.message(place.clone())) {
                    inbound.join(place, &slab).unwrap();
                }
            }
            inbound.pause(&slab, || Instant64(now));
            inbound.begun()
        };
        assert_eq!(take(&part(0, 2, 1), 7), Some(Instant64(7)));
        assert_eq!(take(&message(3), 8), Some(Instant64(7)));
        assert_eq!(take(&part(0, 2, 2), 9), Some(Instant64(7)));
        assert_eq!(take(&part(7, 2, 1), 10), Some(Instant64(7)));
        assert_eq!(take(&part(7, 0, 1), 11), Some(Instant64(11)));
        assert_eq!(take(&message(3), 12), Some(Instant64(11)));
        assert_eq!(take(&part(7, 0, 2), 13), None);
    }
}
