//! Small values of a bounded size, written and read within a window: one test of room for each value, none for its
//! members.
//!
//! A window begins at a multiple of 8 at or before the value. A mask of a constant size keeps each place below the
//! window's size, so no place needs a test. [`WINDOW_VALUE_SIZE_MAX`] ensures that the mask never changes a valid
//! place.

use crate::Write;
use crate::limits::WINDOW_VALUE_SIZE_MAX;

/// Number of places in a window.
const PLACES: usize = 128;

/// Octets behind the last place: the size of the largest copy.
const BEYOND: usize = 16;

/// Octets of a window.
pub(crate) const WINDOW_SIZE: usize = PLACES + BEYOND;

/// The high bit of each octet.
const HIGH_BITS: u64 = (u64::MAX / 255) << 7;

/// Read in place of octets that are not there.
static NOTHING: [u8; WINDOW_SIZE] = [0; WINDOW_SIZE];

const _: () = assert!(7 + WINDOW_VALUE_SIZE_MAX < PLACES && PLACES.is_power_of_two());

/// A place in a window: a multiple of a power of two, plus some octets.
///
/// Where the types of the members are known, the compiler knows all of it except the first place and the lengths of
/// strings. The places of adjacent numbers then are one addition and one mask away from the start of the value,
/// independent of each other.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Where alignment was last unknown.
    from: usize,
    /// Added to `from` before rounding down to a multiple of `alignment`.
    ahead: usize,
    alignment: usize,
    /// Octets from that multiple.
    behind: usize,
}

impl Place {
    #[inline(always)]
    const fn at(from: usize) -> Self {
        Self {
            from,
            ahead: 0,
            alignment: 1,
            behind: 0,
        }
    }

    #[inline(always)]
    const fn position(self) -> usize {
        (self.from.wrapping_add(self.ahead) & !(self.alignment - 1)).wrapping_add(self.behind)
    }

    /// The next multiple of `N`.
    #[inline(always)]
    const fn aligned<const N: usize>(self) -> Self {
        if N <= self.alignment {
            let behind = self.behind.wrapping_add(N - 1) & !(N - 1);
            return Self { behind, ..self };
        }
        // Down to a multiple of the smaller alignment, on by multiples of it, and up to one of the larger.
        let behind = self.behind.wrapping_add(self.alignment - 1) & !(self.alignment - 1);
        let ahead = self.ahead.wrapping_add(behind + N - self.alignment);
        Self {
            ahead,
            alignment: N,
            behind: 0,
            ..self
        }
    }

    #[inline(always)]
    const fn behind(self, size: usize) -> Self {
        let behind = self.behind.wrapping_add(size);
        Self { behind, ..self }
    }
}

/// The part of a buffer that a value is written into. All octets behind the position are zero.
#[derive(Debug)]
pub struct WriteWindow<'w> {
    octets: &'w mut [u8; WINDOW_SIZE],
    place: Place,
    /// The high bit of an octet is set when one of the values so far was refused.
    odd: u64,
}

/// Writes adjacent values, each within a window of its own; the first begins `before` octets behind the start of
/// `rest`. Returns where the last one ends; `None` where there is no room for all, or one of them was refused.
#[inline(always)]
pub(crate) fn write_all<T: Write>(
    mut rest: &mut [u8],
    before: usize,
    values: &[T],
) -> Option<usize> {
    let (len, mut end, mut odd) = (rest.len(), before, 0);
    for value in values {
        rest = rest.get_mut(end & (PLACES - 8)..)?;
        let mut window = WriteWindow {
            octets: rest.first_chunk_mut()?,
            place: Place::at(end % 8),
            odd,
        };
        value.write_within(&mut window);
        (end, odd) = (window.place.position(), window.odd);
    }
    (odd & HIGH_BITS == 0).then_some(len - rest.len() + end)
}

impl WriteWindow<'_> {
    /// Refuses the value where an octet of this number has its high bit set: the caller writes it by
    /// [`crate::Write::write`].
    #[inline(always)]
    pub(crate) const fn refuse_by(&mut self, odd: u64) {
        self.odd |= odd;
    }

    /// Writes a value of 1, 2, 4 or 8 octets in this machine's order, aligned to its size.
    #[inline(always)]
    pub fn put<const N: usize>(&mut self, octets: [u8; N]) {
        let place = self.place.aligned::<N>();
        let index = place.position() & (PLACES - 1);
        self.octets[index..index + N].copy_from_slice(&octets);
        self.place = place.behind(N);
    }

    /// Writes the first `len` octets of a block whose other octets are zero.
    #[inline(always)]
    pub(crate) fn put_block<const N: usize>(&mut self, block: &[u8; N], len: usize) {
        const { assert!(N <= BEYOND) };
        let position = self.place.position();
        let index = position & (PLACES - 1);
        self.octets[index..index + N].copy_from_slice(block);
        self.place = Place::at(position.wrapping_add(len));
    }

    /// Leaves an octet zero.
    #[inline(always)]
    pub(crate) const fn skip(&mut self) {
        self.place = self.place.behind(1);
    }
}

/// The part of a message that a value is read from.
#[derive(Debug)]
pub struct ReadWindow<'w> {
    octets: &'w [u8; WINDOW_SIZE],
    place: Place,
    /// The high bit of an octet is set when one of the values so far was refused.
    odd: u64,
}

/// Adjacent windows: each begins where the value in the one before it ended.
#[derive(Debug)]
pub(crate) struct ReadWindows<'w> {
    rest: &'w [u8],
    window: ReadWindow<'w>,
}

impl<'w> ReadWindows<'w> {
    /// The first window is at the start of `rest`, its value some octets behind. Returns `None` where there is no room
    /// for it.
    #[inline(always)]
    pub(crate) fn new(rest: &'w [u8], before: usize) -> Option<Self> {
        let window = ReadWindow {
            octets: rest.first_chunk()?,
            place: Place::at(before),
            odd: 0,
        };
        Some(Self { rest, window })
    }

    /// The next window. Where there is no room, it is one of zeros and refused.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> &mut ReadWindow<'w> {
        let end = self.window.place.position();
        let skipped = end & (PLACES - 8);
        if let Some(octets) = self.rest.get(skipped..skipped + WINDOW_SIZE) {
            self.window.octets = octets.first_chunk().unwrap_or(&NOTHING);
            self.rest = &self.rest[skipped..];
        } else {
            std::hint::cold_path();
            self.window.refuse_if(true);
            (self.rest, self.window.octets) = (&NOTHING, &NOTHING);
        }
        self.window.place = Place::at(end % 8);
        &mut self.window
    }

    /// Octets behind the last value; `None` where one of the values was refused.
    #[inline(always)]
    pub(crate) fn left(&self) -> Option<usize> {
        let left = self.rest.len().checked_sub(self.window.place.position())?;
        (self.window.odd & HIGH_BITS == 0).then_some(left)
    }
}

impl ReadWindow<'_> {
    /// Refuses the value where the condition holds: the caller reads it by [`crate::Parse::parse`], which finds what is
    /// wrong.
    #[inline(always)]
    pub const fn refuse_if(&mut self, is_odd: bool) {
        self.refuse_by((is_odd as u64) << 63);
    }

    /// As [`ReadWindow::refuse_if`], where an octet of the number has its high bit set: many tests in one.
    #[inline(always)]
    pub(crate) const fn refuse_by(&mut self, odd: u64) {
        self.odd |= odd;
    }

    /// Reads a value of 1, 2, 4 or 8 octets in this machine's order, aligned to its size.
    #[inline(always)]
    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        let place = self.place.aligned::<N>();
        let index = place.position() & (PLACES - 1);
        self.place = place.behind(N);
        let mut octets = [0; N];
        octets.copy_from_slice(&self.octets[index..index + N]);
        octets
    }

    /// Returns the next sixteen octets, and takes `count` (at most fifteen) of them and the octet behind those.
    #[inline(always)]
    pub(crate) fn take_block(&mut self, count: usize) -> ([u8; BEYOND], u8) {
        let position = self.place.position();
        let index = position & (PLACES - 1);
        let mut block = [0; BEYOND];
        block.copy_from_slice(&self.octets[index..index + BEYOND]);
        self.place = Place::at(position.wrapping_add(count).wrapping_add(1));
        (block, self.octets[index + count % BEYOND])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_alignment_puts_them() {
        let mut octets = [0; WINDOW_SIZE];
        let mut window = WriteWindow {
            octets: &mut octets,
            place: Place::at(3),
            odd: 0,
        };
        window.put(*b"s");
        window.put(*b"LONG");
        window.put(*b"!");
        window.put(*b"DOUBLING");
        window.put_block(b"text\0\0", 4);
        window.skip();
        assert_eq!(window.place.position(), 29);
        assert_eq!(&octets[..30], b"\0\0\0sLONG!\0\0\0\0\0\0\0DOUBLINGtext\0\0");
        let mut windows = ReadWindows::new(&octets, 3).unwrap();
        let window = windows.next();
        assert_eq!(window.take(), *b"s");
        assert_eq!(window.take(), *b"LONG");
        assert_eq!(window.take(), *b"!");
        assert_eq!(window.take(), *b"DOUBLING");
        let (block, behind) = window.take_block(4);
        assert_eq!((&block[..4], behind), (&b"text"[..], 0));
        assert_eq!(windows.left(), Some(WINDOW_SIZE - 29));
    }

    #[test]
    fn a_value_that_was_refused_and_one_without_room_are_told() {
        let octets = [1; WINDOW_SIZE + 8];
        assert!(ReadWindows::new(&octets[9..], 0).is_none());
        let mut windows = ReadWindows::new(&octets, 0).unwrap();
        windows.next().refuse_if(true);
        windows.next().refuse_if(false);
        assert_eq!(windows.left(), None);
        let mut windows = ReadWindows::new(&octets, 0).unwrap();
        assert_eq!(windows.next().take(), [1; 8]);
        assert_eq!(windows.next().take(), [1; 8]);
        assert_eq!(windows.left(), Some(WINDOW_SIZE - 8));
        assert_eq!(windows.next().take(), [0; 8]);
        assert_eq!(windows.left(), None);
    }
}
