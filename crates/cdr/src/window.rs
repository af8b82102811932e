//! Small values of a bounded size, written and read within a window: one test of room a value, and none for each of its members.
//!
//! A window begins where alignment counts a multiple of 8, at or before the value. Places in it are kept below its size by a mask, which the
//! compiler knows, so that no place needs a test of its own; [`WINDOW_VALUE_SIZE_MAX`] keeps them from being changed by it.

use crate::limits::WINDOW_VALUE_SIZE_MAX;

/// Octets that a place can be in.
const PLACES: usize = 128;

/// Octets behind the last place: as many as one copy takes.
const BEYOND: usize = 16;

/// Octets of a window.
pub(crate) const WINDOW_SIZE: usize = PLACES + BEYOND;

const _: () = assert!(7 + WINDOW_VALUE_SIZE_MAX < PLACES && PLACES.is_power_of_two());

/// Where an aligned value of `N` octets stands that comes at `position`.
#[inline(always)]
const fn place_of<const N: usize>(position: usize) -> usize {
    position.wrapping_add(N - 1) & (PLACES - 1) & !(N - 1)
}

/// The part of a buffer that a value is written into. All octets behind the position are zero.
#[derive(Debug)]
pub struct WriteWindow<'w> {
    octets: &'w mut [u8; WINDOW_SIZE],
    position: usize,
}

impl<'w> WriteWindow<'w> {
    #[inline(always)]
    pub(crate) const fn new(octets: &'w mut [u8; WINDOW_SIZE], position: usize) -> Self {
        Self { octets, position }
    }

    #[inline(always)]
    pub(crate) const fn position(&self) -> usize {
        self.position
    }

    /// Writes a value of 1, 2, 4 or 8 octets in this machine's order, aligned to its size.
    #[inline(always)]
    pub fn put<const N: usize>(&mut self, octets: [u8; N]) {
        let place = place_of::<N>(self.position);
        self.octets[place..place + N].copy_from_slice(&octets);
        self.position = place + N;
    }

    /// Writes the first `len` octets of a block, whose octets behind them are zero.
    #[inline(always)]
    pub(crate) fn put_block<const N: usize>(&mut self, block: &[u8; N], len: usize) {
        const { assert!(N <= BEYOND) };
        let place = self.position & (PLACES - 1);
        self.octets[place..place + N].copy_from_slice(block);
        self.position = place + len;
    }

    /// Leaves a zero.
    #[inline(always)]
    pub(crate) const fn skip(&mut self) {
        self.position += 1;
    }
}

/// The part of a message that a value is read from.
#[derive(Debug)]
pub struct ReadWindow<'w> {
    octets: &'w [u8; WINDOW_SIZE],
    position: usize,
}

impl<'w> ReadWindow<'w> {
    #[inline(always)]
    pub(crate) const fn new(octets: &'w [u8; WINDOW_SIZE], position: usize) -> Self {
        Self { octets, position }
    }

    #[inline(always)]
    pub(crate) const fn position(&self) -> usize {
        self.position
    }

    /// Reads a value of 1, 2, 4 or 8 octets in this machine's order, aligned to its size.
    #[inline(always)]
    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        let place = place_of::<N>(self.position);
        self.position = place + N;
        let mut octets = [0; N];
        octets.copy_from_slice(&self.octets[place..place + N]);
        octets
    }

    /// The next sixteen octets, of which `count` at most fifteen are taken, and the octet behind those, which is taken too.
    #[inline(always)]
    pub(crate) fn take_block(&mut self, count: usize) -> ([u8; BEYOND], u8) {
        let place = self.position & (PLACES - 1);
        let mut block = [0; BEYOND];
        block.copy_from_slice(&self.octets[place..place + BEYOND]);
        let behind = place + count.min(BEYOND - 1);
        self.position = behind + 1;
        (block, self.octets[behind])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_alignment_puts_them() {
        let mut octets = [0; WINDOW_SIZE];
        let mut window = WriteWindow::new(&mut octets, 3);
        window.put(*b"s");
        window.put(*b"LONG");
        window.put(*b"!");
        window.put(*b"DOUBLING");
        window.put_block(b"text\0\0", 4);
        window.skip();
        assert_eq!(window.position(), 29);
        assert_eq!(&octets[..30], b"\0\0\0sLONG!\0\0\0\0\0\0\0DOUBLINGtext\0\0");
        let mut window = ReadWindow::new(&octets, 3);
        assert_eq!(window.take(), *b"s");
        assert_eq!(window.take(), *b"LONG");
        assert_eq!(window.take(), *b"!");
        assert_eq!(window.take(), *b"DOUBLING");
        let (block, behind) = window.take_block(4);
        assert_eq!((&block[..4], behind), (&b"text"[..], 0));
        assert_eq!(window.position(), 29);
    }
}
