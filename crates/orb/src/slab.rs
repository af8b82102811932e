//! Buffers for messages in flight.

use deckwatch_sync::Pool;

use crate::limits::{BUFFER_RETAINED_MAX, BUFFER_SIZE, BUFFERS_MAX};

/// Buffers lent while messages are in flight: those to read into have been zeroed once, those to write into are empty.
/// Each kind is kept apart, because zeroing is expensive compared with a small call.
#[derive(Debug)]
pub(crate) struct Slab {
    read: Pool<Vec<u8>>,
    write: Pool<Vec<u8>>,
    /// Octets of a new buffer.
    pub(crate) size: usize,
}

impl Slab {
    /// `more`: additional buffers to read into that it keeps, for messages that wait.
    pub(crate) fn new(size: usize, more: usize) -> Self {
        Self {
            read: Pool::with_capacity(BUFFERS_MAX / 2 + more),
            write: Pool::with_capacity(BUFFERS_MAX / 2),
            size,
        }
    }

    /// Keeps `more` additional buffers to write into, for copies of messages that wait.
    pub(crate) fn with_more_written(mut self, more: usize) -> Self {
        self.write = Pool::with_capacity(BUFFERS_MAX / 2 + more);
        self
    }

    /// Allocates `count` buffers of each kind now, so that none is allocated later.
    pub(crate) fn fill(&self, count: usize) {
        self.fill_read(count);
        self.fill_written(count);
    }

    /// As [`Slab::fill`], for buffers to read into.
    pub(crate) fn fill_read(&self, count: usize) {
        for _ in 0..count {
            // A full pool needs no more.
            let _ = self.read.put(vec![0; self.size]);
        }
    }

    /// As [`Slab::fill`], for buffers to write into.
    pub(crate) fn fill_written(&self, count: usize) {
        for _ in 0..count {
            // A full pool needs no more.
            let _ = self.write.put(Vec::with_capacity(self.size));
        }
    }

    /// A buffer to read into, with arbitrary content, at least [`BUFFER_SIZE`] long. Never one to write into: zeroing
    /// it would cost more than a small call.
    pub(crate) fn lend(&self) -> Vec<u8> {
        let buffer = self.read.take();
        buffer.unwrap_or_else(|| vec![0; self.size])
    }

    /// As [`Slab::lend`], for what a peer sends. Returns `None` without memory for it.
    pub(crate) fn try_lend(&self) -> Option<Vec<u8>> {
        self.read.take().or_else(|| self.try_new())
    }

    #[cold]
    fn try_new(&self) -> Option<Vec<u8>> {
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(self.size).ok()?;
        buffer.resize(self.size, 0);
        Some(buffer)
    }

    /// An empty buffer to write into.
    pub(crate) fn lend_empty(&self) -> Vec<u8> {
        let buffer = self.write.take();
        let mut buffer = buffer.unwrap_or_else(|| Vec::with_capacity(self.size));
        buffer.clear();
        buffer
    }

    /// Lends an empty buffer to `write` in place, at half the cost of [`Slab::lend_empty`].
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

    /// Takes back a buffer in which a message has arrived. A large one is shrunk to [`BUFFER_RETAINED_MAX`]; a buffer
    /// that does not fit the pool is freed.
    pub(crate) fn take_back(&self, mut buffer: Vec<u8>) {
        if buffer.len() < buffer.capacity() && buffer.capacity() >= self.size {
            // It was written, not read into: fragments were joined in it, or a message was copied.
            return self.take_back_written(buffer);
        }
        if buffer.len() < BUFFER_SIZE {
            // A copy of a message that waited has its exact size, and is freed.
            return;
        }
        let len_max = BUFFER_RETAINED_MAX.max(self.size);
        buffer.truncate(len_max);
        buffer.shrink_to(len_max);
        // A full pool drops the buffer.
        let _ = self.read.put(buffer);
    }

    /// Takes back a buffer into which a message was written. It keeps its size up to [`BUFFER_RETAINED_MAX`] for the
    /// next large message.
    pub(crate) fn take_back_written(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        buffer.shrink_to(BUFFER_RETAINED_MAX);
        // A full pool drops the buffer.
        let _ = self.write.put(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Arrived;

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
    fn what_waits_keeps_its_buffer_where_that_is_no_longer_than_one_of_the_slab() {
        let slab = Slab::new(BUFFER_SIZE, 0);
        let waiting = |buffer: Vec<u8>, len| Arrived::at_start(buffer, len).into_waiting(&slab);
        assert_eq!(waiting(slab.lend(), 60).buffer.len(), BUFFER_SIZE);
        let large = 4 * BUFFER_SIZE;
        assert_eq!(waiting(vec![0; large], large - 60).buffer.len(), large);
        assert_eq!(waiting(vec![0; large], 60).buffer.capacity(), 60);
        let mut joined = slab.lend_empty();
        joined.extend_from_slice(&[7; 60]);
        assert_eq!(waiting(joined, 60).buffer.capacity(), 60);
        assert!(slab.write.take().is_some());
    }

    #[test]
    fn buffers_come_back_from_large_messages_and_stay_of_their_kind() {
        let slab = Slab::new(BUFFER_SIZE, 0);
        slab.fill(1);
        let (mut read, mut written) = (slab.lend(), slab.lend_empty());
        read.resize(4 * BUFFER_RETAINED_MAX, 0);
        written.resize(4 * BUFFER_RETAINED_MAX, 0);
        slab.take_back(read);
        // No buffer to write into is left: the one to read into is not used for it.
        slab.take_back_written(slab.lend_empty());
        slab.take_back_written(written);
        let kept = slab.lend();
        assert_eq!(kept.len(), BUFFER_RETAINED_MAX);
        let mut joined = Vec::with_capacity(2 * BUFFER_SIZE);
        joined.resize(BUFFER_SIZE + 1, 7);
        slab.take_back(joined);
        // No buffer to read into is left: those to write into are not used for it.
        assert_eq!(slab.lend().len(), BUFFER_SIZE);
        let written = [slab.write.take(), slab.write.take(), slab.write.take()];
        assert!(written.iter().flatten().all(Vec::is_empty));
        assert!(written.iter().all(Option::is_some));
    }
}
