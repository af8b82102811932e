//! Damage to a file, as disks and crashes do it. The same seed does the same damage.

/// Random numbers from a seed (splitmix64).
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns a number below `below`.
    pub fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below as u64) as usize
    }
}

const PAGE: usize = 4_096;

/// Damages a database's file of more than a page in one of nine ways, and returns which. `earlier` is the file as it was
/// before its last changes.
pub fn damage(octets: &mut Vec<u8>, earlier: &[u8], random: &mut Random) -> &'static str {
    let len = octets.len();
    let page = random.next(len / PAGE) * PAGE;
    match random.next(9) {
        0 => {
            octets[random.next(len)] ^= 1 << random.next(8);
            "one bit"
        }
        1 => {
            octets[random.next(320)] ^= 1 << random.next(8);
            "one bit of the header"
        }
        2 => {
            let start = random.next(320);
            octets[start..start + 1 + random.next(128)].fill(0);
            "zeros in the header"
        }
        3 => {
            for _ in 0..=random.next(64) {
                octets[random.next(len)] = random.next(256) as u8;
            }
            "some octets"
        }
        4 => {
            octets[page..page + PAGE].fill(0);
            "a page of zeros"
        }
        5 => {
            let end = (page + (1 + random.next(32)) * PAGE).min(len);
            octets[page..end].fill(0);
            "pages of zeros"
        }
        6 => {
            octets.truncate(random.next(len));
            "cut short"
        }
        7 => {
            let other = random.next(len / PAGE) * PAGE;
            octets.copy_within(other..other + PAGE, page);
            "a page in the place of another"
        }
        _ => {
            let end = (page + PAGE).min(earlier.len());
            if page < end {
                octets[page..end].copy_from_slice(&earlier[page..end]);
            }
            "a page as it was earlier"
        }
    }
}
