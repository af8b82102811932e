//! Policies that travel with a request (CORBA 3.3 part 1, clause 17.3.3): the service context INVOCATION_POLICIES, a
//! `sequence<PolicyValue>` in an encapsulation. The four times of clause 17.2.4 are read, others are passed over.

use deckwatch_cdr::{ByteOrder, DecodeError, Parse};

use crate::ior::encapsulated;
use crate::utc::UtcT;

/// Start and end times of a request and its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The request is not delivered to the servant before this time.
    pub request_start: Option<UtcT>,
    /// The request is not delivered to the servant after this time.
    pub request_end: Option<UtcT>,
    /// The reply is not delivered to the client before this time.
    pub reply_start: Option<UtcT>,
    /// The reply is not delivered to the client after this time.
    pub reply_end: Option<UtcT>,
}

/// Messaging::REQUEST_START_TIME_POLICY_TYPE.
pub const REQUEST_START_TIME: u32 = 27;
/// Messaging::REQUEST_END_TIME_POLICY_TYPE.
pub const REQUEST_END_TIME: u32 = 28;
/// Messaging::REPLY_START_TIME_POLICY_TYPE.
pub const REPLY_START_TIME: u32 = 29;
/// Messaging::REPLY_END_TIME_POLICY_TYPE.
pub const REPLY_END_TIME: u32 = 30;

/// Octets of the longest context that this ORB writes.
pub const TIMES_SIZE_MAX: usize = HEAD + 4 * VALUE;

/// Byte order, padding and count.
const HEAD: usize = 8;
/// Octets of one policy: type, length, and an encapsulation of byte order, padding to eight and a time.
const VALUE: usize = 4 + 4 + ENCAPSULATED;
const ENCAPSULATED: usize = 8 + 16;

impl Times {
    /// Whether none of them is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads the data of the context. The first policy of a kind counts.
    ///
    /// # Errors
    /// What is wrong with its octets.
    pub fn parse(data: &[u8]) -> Result<Self, DecodeError> {
        let mut r = encapsulated(data)?;
        let mut times = Self::default();
        for _ in 0..r.read_count(8)? {
            let kind = r.read_u32()?;
            let value = r.read_octet_sequence()?;
            let place = match kind {
                REQUEST_START_TIME => &mut times.request_start,
                REQUEST_END_TIME => &mut times.request_end,
                REPLY_START_TIME => &mut times.reply_start,
                REPLY_END_TIME => &mut times.reply_end,
                _ => continue,
            };
            let time = UtcT::parse(&mut encapsulated(value)?)?;
            place.get_or_insert(time);
        }
        Ok(times)
    }

    /// Writes the data of the context, in native byte order, to the front of `into`, and returns it.
    pub fn write<'o>(&self, into: &'o mut [u8; TIMES_SIZE_MAX]) -> &'o [u8] {
        let order = ByteOrder::NATIVE.flag();
        let said = [
            (REQUEST_START_TIME, self.request_start),
            (REQUEST_END_TIME, self.request_end),
            (REPLY_START_TIME, self.reply_start),
            (REPLY_END_TIME, self.reply_end),
        ];
        let mut count = 0_u32;
        let mut len = HEAD;
        for (kind, time) in said {
            let Some(time) = time else { continue };
            let value = &mut into[len..len + VALUE];
            value[..4].copy_from_slice(&kind.to_ne_bytes());
            value[4..8].copy_from_slice(&(ENCAPSULATED as u32).to_ne_bytes());
            value[8..16].copy_from_slice(&[order, 0, 0, 0, 0, 0, 0, 0]);
            value[16..].copy_from_slice(&time.to_octets());
            count += 1;
            len += VALUE;
        }
        into[..4].copy_from_slice(&[order, 0, 0, 0]);
        into[4..8].copy_from_slice(&count.to_ne_bytes());
        &into[..len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times {
        request_start: Some(UtcT::new(1, 2, 3)),
        request_end: Some(UtcT::new(u64::MAX, UtcT::INACCURACY_MAX, -1)),
        reply_start: None,
        reply_end: Some(UtcT::new(7, 0, 0)),
    };

    #[test]
    fn times_read_back_as_they_were_written() {
        let all = Times {
            reply_start: TIMES.request_end,
            ..TIMES
        };
        for times in [TIMES, all, Times::default()] {
            let mut octets = [0; TIMES_SIZE_MAX];
            assert_eq!(Times::parse(times.write(&mut octets)), Ok(times));
        }
        assert!(Times::default().is_empty() && !TIMES.is_empty());
    }

    #[test]
    fn the_other_byte_order_is_read_and_other_policies_are_passed_over() {
        // Big-endian: policy 23 (rebind) of four octets, then the end of the request in an encapsulation that is
        // little-endian.
        let mut octets = vec![0, 0, 0, 0, 0, 0, 0, 2];
        octets.extend([0, 0, 0, 23, 0, 0, 0, 4, 0, 0, 0, 1]);
        octets.extend([0, 0, 0, 28, 0, 0, 0, 24, 1, 0, 0, 0, 0, 0, 0, 0]);
        octets.extend([8, 7, 6, 5, 4, 3, 2, 1, 4, 3, 2, 1, 6, 5, 0xff, 0xff]);
        let read = Times::parse(&octets).unwrap();
        let end = UtcT::new(0x0102_0304_0506_0708, 0x0506_0102_0304, -1);
        assert_eq!(read.request_end, Some(end));
        assert_eq!(read.request_start, None);
    }

    #[test]
    fn octets_that_are_cut_short_are_refused_at_every_place() {
        let mut octets = [0; TIMES_SIZE_MAX];
        let whole = TIMES.write(&mut octets);
        for len in 0..whole.len() {
            assert!(Times::parse(&whole[..len]).is_err(), "{len}");
        }
    }
}
