//! A ring of octets with one writer and one reader, in memory that either end may corrupt.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Octets that may be in transit in one direction: a whole message of 64 KiB fits while another is being read.
pub const RING_SIZE: usize = 128 << 10;

const WORD: usize = size_of::<u64>();

/// The memory layout of one direction. All zeros are an empty ring. Positions count all octets ever written or read.
#[repr(C)]
pub(super) struct Ring {
    /// Written by the writer.
    pub(super) written: Line<Written>,
    /// The reader's position. The writer loads it only when the room that it knows of is too small.
    read: Line<AtomicU64>,
    /// The reader's state: the writer loads it on each write, and the reader seldom changes it.
    pub(super) reader: Line<Reader>,
    /// How the writer waits for room: the reader loads it, and the writer seldom changes it.
    pub(super) writer_waits: Line<AtomicU32>,
    octets: [AtomicU64; RING_SIZE / WORD],
}

/// A value with two cache lines of its own: processors fetch cache lines in pairs.
#[repr(C, align(128))]
pub(super) struct Line<T>(pub(super) T);

#[repr(C)]
pub(super) struct Written {
    position: AtomicU64,
    /// Not 0 if the writer has ended its direction.
    pub(super) ended: AtomicU32,
}

#[repr(C)]
pub(super) struct Reader {
    /// How the reader waits for octets: one of the [`wait`] words. The reader sets it; the writer resets it.
    pub(super) waits: AtomicU32,
    /// Not 0 if the reader reads no more.
    pub(super) deaf: AtomicU32,
    /// Not 0 once the reader has mapped the memory. If that never happens, octets already written are lost.
    pub(super) taken: AtomicU32,
}

/// The writer's private state.
#[derive(Debug, Default)]
pub(super) struct Writer {
    position: AtomicU64,
    /// Room that the writer knows of; there may be more.
    room: AtomicUsize,
}

/// How an end waits.
pub(super) mod wait {
    /// The end is awake and checks the ring by itself.
    pub(in super::super) const AWAKE: u32 = 0;
    /// It sleeps in a futex on this word.
    pub(in super::super) const SLEEPS: u32 = 1;
    /// A poller watches its socket.
    pub(in super::super) const WATCHES: u32 = 2;
}

/// The other end's position is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spoiled;

impl Ring {
    /// Returns the octets available to a reader that has read up to `position`.
    pub(super) fn waiting(&self, position: u64) -> Result<usize, Spoiled> {
        // SYNC: pairs with the store in `put`: the octets before the position are visible.
        let written = self.written.0.position.load(Ordering::Acquire);
        within(written.wrapping_sub(position))
    }

    /// Returns the octets that a writer may add that has written up to `position`.
    fn room(&self, position: u64) -> Result<usize, Spoiled> {
        // SYNC: pairs with the store in `take`: the octets up to that position have been read and may be overwritten.
        let read = self.read.0.load(Ordering::Acquire);
        within(position.wrapping_sub(read)).map(|used| RING_SIZE - used)
    }

    /// Copies octets out `into` the buffer and advances the reader's `position`. Returns how many octets were copied,
    /// and how many were available before.
    pub(super) fn take(
        &self,
        position: &AtomicU64,
        into: &mut [u8],
    ) -> Result<(usize, usize), Spoiled> {
        let from = position.load(Ordering::Relaxed);
        let waited = self.waiting(from)?;
        let count = waited.min(into.len());
        if count != 0 {
            self.copy_out(from, &mut into[..count]);
            let next = from.wrapping_add(count as u64);
            position.store(next, Ordering::Relaxed);
            // SYNC: pairs with the load in `room`.
            self.read.0.store(next, Ordering::Release);
        }
        Ok((count, waited))
    }

    /// Copies in those of `octets` that there is room for, and advances the writer's position. Returns how many octets
    /// were copied.
    pub(super) fn put(&self, writer: &Writer, octets: &[u8]) -> Result<usize, Spoiled> {
        let from = writer.position.load(Ordering::Relaxed);
        let mut room = writer.room.load(Ordering::Relaxed);
        if room < octets.len() {
            room = self.room(from)?;
        }
        let count = room.min(octets.len());
        writer.room.store(room - count, Ordering::Relaxed);
        if count != 0 {
            self.copy_in(from, &octets[..count]);
            let next = from.wrapping_add(count as u64);
            writer.position.store(next, Ordering::Relaxed);
            // SYNC: pairs with the load in `waiting`.
            self.written.0.position.store(next, Ordering::Release);
        }
        Ok(count)
    }

    /// Splits a position. Returns the index of its word, the offset in that word, and the octets (at most `len`) up to
    /// the next whole word if the offset is not 0.
    fn place(position: u64, len: usize) -> (usize, usize, usize) {
        let at = (position % RING_SIZE as u64) as usize;
        let offset = at % WORD;
        let first = if offset == 0 {
            0
        } else {
            len.min(WORD - offset)
        };
        (at / WORD, offset, first)
    }

    /// Returns `count` words from `index` on: those up to the end of the ring, and those from its beginning.
    fn words(&self, index: usize, count: usize) -> [&[AtomicU64]; 2] {
        let (before, from) = self.octets.split_at(index % self.octets.len());
        let first = count.min(from.len());
        [&from[..first], &before[..(count - first).min(before.len())]]
    }

    /// Overwrites both positions, as a hostile end may.
    #[cfg(test)]
    pub(super) fn spoil(&self, position: u64) {
        self.written.0.position.store(position, Ordering::Relaxed);
        self.read.0.store(position ^ 1, Ordering::Relaxed);
    }

    fn copy_in(&self, position: u64, octets: &[u8]) {
        let (index, offset, first) = Self::place(position, octets.len());
        let (first, rest) = octets.split_at(first);
        if !first.is_empty() {
            merge(&self.octets[index], offset, first);
        }
        let index = index + usize::from(!first.is_empty());
        let (whole, last) = rest.as_chunks::<WORD>();
        let words = self.words(index, whole.len());
        let (up_to_end, from_beginning) = whole.split_at(words[0].len());
        for (words, whole) in words.into_iter().zip([up_to_end, from_beginning]) {
            for (word, octets) in words.iter().zip(whole) {
                word.store(u64::from_ne_bytes(*octets), Ordering::Relaxed);
            }
        }
        if !last.is_empty() {
            merge(
                &self.octets[(index + whole.len()) % self.octets.len()],
                0,
                last,
            );
        }
    }

    fn copy_out(&self, position: u64, into: &mut [u8]) {
        let (index, offset, first) = Self::place(position, into.len());
        let (first, rest) = into.split_at_mut(first);
        let octets_of = |index: usize| self.octets[index].load(Ordering::Relaxed).to_ne_bytes();
        if !first.is_empty() {
            first.copy_from_slice(&octets_of(index)[offset..offset + first.len()]);
        }
        let index = index + usize::from(!first.is_empty());
        let (whole, last) = rest.as_chunks_mut::<WORD>();
        let count = whole.len();
        let words = self.words(index, count);
        let (up_to_end, from_beginning) = whole.split_at_mut(words[0].len());
        for (words, whole) in words.into_iter().zip([up_to_end, from_beginning]) {
            for (word, octets) in words.iter().zip(whole) {
                *octets = word.load(Ordering::Relaxed).to_ne_bytes();
            }
        }
        if !last.is_empty() {
            let word = octets_of((index + count) % self.octets.len());
            last.copy_from_slice(&word[..last.len()]);
        }
    }
}

/// Writes a part of a word. Only the writer of a ring stores words, so that the other octets of the word do not change.
fn merge(word: &AtomicU64, offset: usize, octets: &[u8]) {
    let mut whole = word.load(Ordering::Relaxed).to_ne_bytes();
    whole[offset..offset + octets.len()].copy_from_slice(octets);
    word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
}

fn within(count: u64) -> Result<usize, Spoiled> {
    match usize::try_from(count) {
        Ok(count) if count <= RING_SIZE => Ok(count),
        _ => Err(Spoiled),
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::Memory;
    use super::*;

    impl Writer {
        fn at(position: u64) -> Self {
            Self {
                position: AtomicU64::new(position),
                room: AtomicUsize::new(0),
            }
        }
    }

    fn octets(from: u64, len: usize) -> Vec<u8> {
        (from..).map(|n| (n ^ n >> 8) as u8).take(len).collect()
    }

    #[test]
    fn octets_come_out_as_they_went_in_at_every_offset_and_round_the_end() {
        let memory = Memory::private().unwrap();
        let ring = &memory.rings()[0];
        let mut into = [0; 64];
        for start in (0..24).chain(RING_SIZE as u64 - 40..RING_SIZE as u64 + 1) {
            for len in 1..40 {
                let (writer, reader) = (Writer::at(start), AtomicU64::new(start));
                ring.read.0.store(start, Ordering::Relaxed);
                ring.written.0.position.store(start, Ordering::Relaxed);
                let sent = octets(start, len);
                assert_eq!(ring.put(&writer, &sent), Ok(len));
                assert_eq!(ring.waiting(start), Ok(len));
                assert_eq!(ring.take(&reader, &mut into), Ok((len, len)));
                assert_eq!(&into[..len], sent, "{len} from {start}");
                assert_eq!(ring.take(&reader, &mut into), Ok((0, 0)));
            }
        }
    }

    #[test]
    fn a_part_written_leaves_what_waits_before_it() {
        let memory = Memory::private().unwrap();
        let ring = &memory.rings()[1];
        let (writer, reader) = (Writer::at(0), AtomicU64::new(0));
        for part in [&b"ab"[..], b"cde", b"fghijklmnopq", b"r"] {
            assert_eq!(ring.put(&writer, part), Ok(part.len()));
        }
        let mut into = [0; 18];
        for range in [0..1, 1..11, 11..18] {
            let len = range.len();
            assert_eq!(ring.take(&reader, &mut into[range]).unwrap().0, len);
        }
        assert_eq!(&into, b"abcdefghijklmnopqr");
    }

    #[test]
    fn a_full_ring_takes_no_more_and_positions_may_pass_their_last_number() {
        let memory = Memory::private().unwrap();
        let ring = &memory.rings()[0];
        let start = u64::MAX - 100;
        let (writer, reader) = (Writer::at(start), AtomicU64::new(start));
        ring.read.0.store(start, Ordering::Relaxed);
        ring.written.0.position.store(start, Ordering::Relaxed);
        let sent = octets(7, RING_SIZE + 5);
        assert_eq!(ring.put(&writer, &sent), Ok(RING_SIZE));
        assert_eq!(ring.put(&writer, &sent), Ok(0));
        let mut into = vec![0; RING_SIZE];
        assert_eq!(ring.take(&reader, &mut into), Ok((RING_SIZE, RING_SIZE)));
        assert!(into == sent[..RING_SIZE]);
    }

    #[test]
    fn a_position_that_makes_no_sense_is_found_at_either_end() {
        let memory = Memory::private().unwrap();
        let ring = &memory.rings()[0];
        for wrong in [RING_SIZE as u64 + 1, u64::MAX / 2, 1 << 63] {
            ring.written.0.position.store(wrong, Ordering::Relaxed);
            let taken = ring.take(&AtomicU64::new(0), &mut [0; 8]);
            assert_eq!(taken, Err(Spoiled));
            ring.read.0.store(wrong, Ordering::Relaxed);
            assert_eq!(ring.put(&Writer::at(0), &[0; 8]), Err(Spoiled));
        }
    }

    #[test]
    fn two_threads_pass_octets_in_order() {
        const TOTAL: usize = 3 * RING_SIZE + 77;
        let memory = Memory::private().unwrap();
        let ring = &memory.rings()[0];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (writer, sent) = (Writer::at(0), octets(0, TOTAL));
                let mut rest = &sent[..];
                for step in (1..300).cycle() {
                    let count = ring.put(&writer, &rest[..step.min(rest.len())]).unwrap();
                    rest = &rest[count..];
                    if rest.is_empty() {
                        break;
                    }
                    if count == 0 {
                        std::thread::yield_now();
                    }
                }
            });
            let (reader, mut got) = (AtomicU64::new(0), Vec::new());
            let mut into = [0; 257];
            while got.len() < TOTAL {
                match ring.take(&reader, &mut into).unwrap().0 {
                    0 => std::thread::yield_now(),
                    count => got.extend_from_slice(&into[..count]),
                }
            }
            assert!(got == octets(0, TOTAL));
        });
    }
}
