//! The fuzzer's octets as choices: what a target makes of them is valid whatever they are.

/// The fuzzer's octets, one after the other; zeros behind the last one.
#[derive(Debug)]
pub struct Choices<'o>(&'o [u8]);

impl<'o> Choices<'o> {
    pub const fn new(octets: &'o [u8]) -> Self {
        Self(octets)
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    pub fn long(&mut self) -> u32 {
        u32::from_be_bytes([0; 4].map(|_| self.octet()))
    }

    pub fn take(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.octet()).collect()
    }

    /// A number below `end`, which is at least 1.
    pub fn below(&mut self, end: usize) -> usize {
        let choice = if end <= 256 {
            u32::from(self.octet())
        } else {
            self.long()
        };
        choice as usize % end
    }

    /// One of some.
    pub fn one<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }
}
