//! The memory that messages in flight take: buffers that are lent.

use deckwatch_sync::Pool;

use crate::limits::{BUFFER_RETAINED_MAX, BUFFER_SIZE, BUFFERS_MAX};

/// Buffers that are lent while messages are in flight: some to read into, which have been zeroed once, and some to
/// write into, which are empty. Zeroing is dear beside a small call, so each kind is kept as it is.
#[derive(Debug)]
pub(crate) struct Slab {
    read: Pool<Vec<u8>>,
    write: Pool<Vec<u8>>,
    /// What a buffer begins with.
    pub(crate) size: usize,
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

    /// It keeps so many buffers to write into besides, for copies of messages that wait.
    pub(crate) fn with_more_written(mut self, more: usize) -> Self {
        self.write = Pool::with_capacity(BUFFERS_MAX / 2 + more);
        self
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
        if buffer.len() < buffer.capacity() && buffer.capacity() >= self.size {
            // Not read into, but written: fragments were joined in it, or a message was copied.
            return self.take_back_written(buffer);
        }
        if buffer.len() < BUFFER_SIZE {
            // A copy that was made to wait is no longer than it has to be.
            return;
        }
        let len_max = BUFFER_RETAINED_MAX.max(self.size);
        buffer.truncate(len_max);
        buffer.shrink_to(len_max);
        let _has_enough = self.read.put(buffer);
    }

    /// Takes a buffer back into which a message was written. It stays what it is: one that has grown for a large message has its room for the next.
    pub(crate) fn take_back_written(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        buffer.shrink_to(BUFFER_RETAINED_MAX);
        let _has_enough = self.write.put(buffer);
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
        // None is there to write into: the one to read into is left alone.
        slab.take_back_written(slab.lend_empty());
        slab.take_back_written(written);
        let kept = slab.lend();
        assert_eq!(kept.len(), BUFFER_RETAINED_MAX);
        let mut joined = Vec::with_capacity(2 * BUFFER_SIZE);
        joined.resize(BUFFER_SIZE + 1, 7);
        slab.take_back(joined);
        // None is there to read into: those to write into are left alone.
        assert_eq!(slab.lend().len(), BUFFER_SIZE);
        let written = [slab.write.take(), slab.write.take(), slab.write.take()];
        assert!(written.iter().flatten().all(Vec::is_empty));
        assert!(written.iter().all(Option::is_some));
    }
}
