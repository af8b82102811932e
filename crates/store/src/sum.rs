//! Checksums of rows, and sums of them.
//!
//! The checksum of a row covers the name of its table, its key and its value. A row whose octets have changed is seen,
//! and so is a row that stands under another key.
//!
//! A [`Tally`] is the count of some rows and the sum of their checksums. It is written in the same transaction as the
//! rows: a row that vanished, or that came back in an older form, is seen.

use twox_hash::XxHash3_64;

/// Octets of a checksum at the end of a row.
pub const SUM_SIZE: usize = size_of::<u64>();

/// Returns the checksum of a row. A key of several parts is not the same as one of their concatenation.
#[must_use]
pub fn of(table: &str, key: &[&[u8]], value: &[u8]) -> u64 {
    let parts = || [table.as_bytes()].into_iter().chain(key.iter().copied());
    let size: usize = parts().map(|part| part.len() + SUM_SIZE).sum();
    let mut octets = Vec::with_capacity(size + value.len());
    for part in parts() {
        octets.extend((part.len() as u64).to_le_bytes());
        octets.extend(part);
    }
    octets.extend(value);
    XxHash3_64::oneshot(&octets)
}

/// Appends the checksum of a row to its value. Returns the checksum.
pub fn append(table: &str, key: &[&[u8]], value: &mut Vec<u8>) -> u64 {
    let sum = of(table, key, value);
    value.extend(sum.to_le_bytes());
    sum
}

/// Returns the value of a row and its checksum, or `None` if they do not match.
#[must_use]
pub fn split<'r>(table: &str, key: &[&[u8]], row: &'r [u8]) -> Option<(&'r [u8], u64)> {
    let (value, sum) = row.split_last_chunk::<SUM_SIZE>()?;
    let sum = u64::from_le_bytes(*sum);
    (of(table, key, value) == sum).then_some((value, sum))
}

/// The count of some rows, and the sum of their checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many rows there are.
    pub count: u64,
    /// The sum of their checksums, modulo 2^64. A sum does not depend on the order of the rows.
    pub sum: u64,
}

impl Tally {
    /// Adds a row by its checksum.
    pub fn add(&mut self, sum: u64) {
        self.count = self.count.wrapping_add(1);
        self.sum = self.sum.wrapping_add(sum);
    }

    /// Removes a row by its checksum.
    pub fn remove(&mut self, sum: u64) {
        self.count = self.count.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_back_under_its_own_key_only() {
        let mut row = b"value".to_vec();
        let sum = append("table", &[b"a", b"bc"], &mut row);
        assert_eq!(
            split("table", &[b"a", b"bc"], &row),
            Some((&b"value"[..], sum))
        );
        assert_eq!(split("table", &[b"ab", b"c"], &row), None);
        assert_eq!(split("other", &[b"a", b"bc"], &row), None);
        for place in 0..row.len() {
            let mut damaged = row.clone();
            damaged[place] ^= 1;
            assert_eq!(split("table", &[b"a", b"bc"], &damaged), None, "{place}");
        }
        assert_eq!(split("table", &[b"a", b"bc"], b"short"), None);
    }

    /// The exclusive or of CRCs would not see this: a CRC is linear, and the names of a block differ in a pattern.
    #[test]
    fn rows_that_vanish_together_change_the_sum() {
        let sums: Vec<u64> = (0..256_u64)
            .map(|number| of("table", &[&number.to_be_bytes()], b""))
            .collect();
        let mut whole = Tally::default();
        sums.iter().for_each(|sum| whole.add(*sum));
        for block in sums.chunks(64) {
            let mut rest = whole;
            block.iter().for_each(|sum| rest.remove(*sum));
            assert_ne!(rest.sum, whole.sum);
            block.iter().for_each(|sum| rest.add(*sum));
            assert_eq!(rest, whole, "in any order");
        }
    }
}
