//! One datagram of an event set on a multicast group, in the form of TAO's ECG_CDR_Message_Sender.
//!
//! | octets | content |
//! | --- | --- |
//! | 0 | byte order of the whole datagram: 0 big-endian, 1 little-endian |
//! | 1..4 | `ABC` |
//! | 4..8 | number of the request, which the sender counts |
//! | 8..12 | octets of the whole request |
//! | 12..16 | octets of this fragment, without the header |
//! | 16..20 | offset of this fragment in the request |
//! | 20..24 | number of this fragment, from 0 |
//! | 24..28 | fragments of the request |
//! | 28..32 | CRC-32 of octets 0..28 and of what follows the header, big-endian; 0 from a sender that computes none |
//!
//! A request is the CDR of a `RtecEventComm::EventSet`, aligned to its own beginning.

use deckwatch_cdr::{ByteOrder, Parse as _, Reader};

use crate::limits::{MULTICAST_FRAGMENTS_MAX, MULTICAST_REQUEST_SIZE_MAX};

/// Octets of the header.
pub(crate) const HEADER_SIZE: usize = 32;

const MAGIC: [u8; 3] = *b"ABC";

/// One datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment<'a> {
    pub(crate) order: ByteOrder,
    /// The number of its request.
    pub(crate) request: u32,
    /// Octets of its request.
    pub(crate) request_size: u32,
    pub(crate) offset: u32,
    pub(crate) number: u32,
    /// Fragments of its request.
    pub(crate) count: u32,
    pub(crate) octets: &'a [u8],
}

/// What is wrong with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is none, or its numbers contradict each other.
    Malformed,
    /// Its request is larger, or in more fragments, than is accepted.
    TooLarge,
    Checksum,
}

impl<'a> Fragment<'a> {
    pub(crate) fn parse(datagram: &'a [u8]) -> Result<Self, Fault> {
        let (header, octets) = datagram
            .split_first_chunk::<HEADER_SIZE>()
            .ok_or(Fault::Malformed)?;
        let order = match header[0] {
            0 => ByteOrder::Big,
            1 => ByteOrder::Little,
            _ => return Err(Fault::Malformed),
        };
        if header[1..4] != MAGIC {
            return Err(Fault::Malformed);
        }
        let mut r = Reader::new(&header[4..28], order);
        let mut next = || u32::parse(&mut r).map_err(|_| Fault::Malformed);
        let [request, request_size, size] = [next()?, next()?, next()?];
        let [offset, number, count] = [next()?, next()?, next()?];
        let is_whole = size as usize == octets.len()
            && size > 0
            && u64::from(offset) + u64::from(size) <= u64::from(request_size)
            && number < count
            && count <= request_size
            && (count > 1 || size == request_size);
        if !is_whole {
            return Err(Fault::Malformed);
        }
        if request_size > MULTICAST_REQUEST_SIZE_MAX || count > MULTICAST_FRAGMENTS_MAX {
            return Err(Fault::TooLarge);
        }
        let told = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
        if told != 0 && told != checksum(&header[..28], octets) {
            return Err(Fault::Checksum);
        }
        Ok(Self {
            order,
            request,
            request_size,
            offset,
            number,
            count,
            octets,
        })
    }

    /// Writes the datagram, in place of what is in `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let word = |value: u32| match self.order {
            ByteOrder::Big => value.to_be_bytes(),
            ByteOrder::Little => value.to_le_bytes(),
        };
        out.clear();
        out.push(u8::from(self.order == ByteOrder::Little));
        out.extend(MAGIC);
        let words = [
            self.request,
            self.request_size,
            self.octets.len() as u32,
            self.offset,
            self.number,
            self.count,
        ];
        out.extend(words.map(word).as_flattened());
        let sum = checksum(out, self.octets);
        out.extend(sum.to_be_bytes());
        out.extend(self.octets);
    }
}

/// Divides a request of `order` into fragments of at most `size_max` octets each.
pub(crate) fn fragments(
    octets: &[u8],
    order: ByteOrder,
    request: u32,
    size_max: usize,
) -> impl Iterator<Item = Fragment<'_>> {
    let count = octets.len().div_ceil(size_max) as u32;
    let parts = octets.chunks(size_max).zip(0_u32..);
    parts.map(move |(part, number)| Fragment {
        order,
        request,
        request_size: octets.len() as u32,
        offset: number * size_max as u32,
        number,
        count,
        octets: part,
    })
}

fn checksum(header: &[u8], octets: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(octets);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TAO's header of the second of three fragments, little-endian, without a checksum.
    const OF_TAO: [u8; 36] = [
        1, b'A', b'B', b'C', 7, 0, 0, 0, 10, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0,
        0, 0, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef,
    ];

    fn parsed(change: impl FnOnce(&mut Vec<u8>)) -> Result<(), Fault> {
        let mut octets = OF_TAO.to_vec();
        change(&mut octets);
        Fragment::parse(&octets).map(drop)
    }

    #[test]
    fn datagram_of_tao_is_parsed_in_both_byte_orders() {
        let expected = Fragment {
            order: ByteOrder::Little,
            request: 7,
            request_size: 10,
            offset: 4,
            number: 1,
            count: 3,
            octets: &[0xde, 0xad, 0xbe, 0xef],
        };
        assert_eq!(Fragment::parse(&OF_TAO), Ok(expected));
        let mut big = OF_TAO;
        big[0] = 0;
        big[4..28].chunks_mut(4).for_each(<[u8]>::reverse);
        let order = ByteOrder::Big;
        assert_eq!(Fragment::parse(&big), Ok(Fragment { order, ..expected }));
    }

    #[test]
    fn written_datagram_has_the_octets_of_tao_and_its_checksum() {
        let mut out = vec![9; 3];
        Fragment::parse(&OF_TAO).expect("whole").write(&mut out);
        assert_eq!(out[..28], OF_TAO[..28]);
        assert_eq!(out[32..], OF_TAO[32..]);
        // zlib's crc32 of the octets but these four, in network order.
        let summed: Vec<u8> = [&OF_TAO[..28], &OF_TAO[32..]].concat();
        assert_eq!(out[28..32], crc32fast::hash(&summed).to_be_bytes());
        assert_eq!(crc32fast::hash(b"123456789"), 0xCBF4_3926, "the CRC of ACE");
        assert!(Fragment::parse(&out).is_ok());
        out[33] ^= 1;
        assert_eq!(Fragment::parse(&out), Err(Fault::Checksum));
    }

    #[test]
    fn datagram_that_contradicts_itself_is_refused() {
        assert_eq!(parsed(|_| {}), Ok(()));
        let malformed = Err(Fault::Malformed);
        for (at, value) in [
            (0, 2),
            (1, b'B'),
            (8, 7),
            (12, 3),
            (12, 5),
            (16, 7),
            (20, 3),
            (24, 1),
        ] {
            assert_eq!(parsed(|octets| octets[at] = value), malformed, "{at}");
        }
        assert_eq!(parsed(|octets| octets.truncate(31)), malformed);
        assert_eq!(parsed(|octets| octets.truncate(32)), malformed);
        assert_eq!(parsed(|octets| octets[16..20].fill(0xff)), malformed);
        assert_eq!(parsed(|octets| octets[11] = 0x10), Err(Fault::TooLarge));
        let many = |octets: &mut Vec<u8>| {
            octets[8..12].copy_from_slice(&MULTICAST_REQUEST_SIZE_MAX.to_le_bytes());
            octets[24..28].copy_from_slice(&(MULTICAST_FRAGMENTS_MAX + 1).to_le_bytes());
        };
        assert_eq!(parsed(many), Err(Fault::TooLarge));
    }

    #[test]
    fn fragment_at_each_bound_is_taken() {
        let octets = [7; 4];
        let largest = Fragment {
            order: ByteOrder::Little,
            request: 1,
            request_size: MULTICAST_REQUEST_SIZE_MAX,
            offset: MULTICAST_REQUEST_SIZE_MAX - 4,
            number: MULTICAST_FRAGMENTS_MAX - 1,
            count: MULTICAST_FRAGMENTS_MAX,
            octets: &octets,
        };
        let mut out = Vec::new();
        largest.write(&mut out);
        assert_eq!(Fragment::parse(&out), Ok(largest));
    }

    #[test]
    fn empty_fragment_and_one_that_is_alone_but_not_whole_are_refused() {
        let octets = [7; 4];
        let part = Fragment {
            order: ByteOrder::Little,
            request: 1,
            request_size: 8,
            offset: 0,
            number: 0,
            count: 2,
            octets: &octets,
        };
        let parsed = |part: Fragment<'_>| {
            let mut out = Vec::new();
            part.write(&mut out);
            Fragment::parse(&out).map(drop)
        };
        assert_eq!(parsed(part), Ok(()));
        assert_eq!(
            parsed(Fragment {
                octets: &[],
                ..part
            }),
            Err(Fault::Malformed)
        );
        assert_eq!(parsed(Fragment { count: 1, ..part }), Err(Fault::Malformed));
    }

    #[test]
    fn fragments_cover_a_request_without_a_gap() {
        let request: Vec<u8> = (0..10).collect();
        for size_max in [1, 3, 4, 5, 9, 10, 11] {
            let parts: Vec<_> = fragments(&request, ByteOrder::Big, 1, size_max).collect();
            let joined: Vec<u8> = parts.iter().flat_map(|part| part.octets.to_vec()).collect();
            assert_eq!(joined, request);
            for (part, number) in parts.iter().zip(0..) {
                assert_eq!((part.number, part.count as usize), (number, parts.len()));
                assert_eq!(request[part.offset as usize], part.octets[0]);
                let mut out = Vec::new();
                part.write(&mut out);
                assert_eq!(Fragment::parse(&out), Ok(*part));
            }
        }
    }
}
