//! The service contexts of real-time CORBA 1.2: RTCorbaPriority, the priority of a request, and RTCorbaPriorityRange,
//! the priorities that come over a connection.

use crate::ior::encapsulated;
use deckwatch_cdr::{ByteOrder, DecodeError, Parse};

/// The data of RTCorbaPriority (10) for this priority.
#[must_use]
pub fn priority_context(priority: i16) -> [u8; 4] {
    let [first, second] = priority.to_ne_bytes();
    [ByteOrder::NATIVE.flag(), 0, first, second]
}

/// The priority in the data of RTCorbaPriority (10).
///
/// # Errors
/// What is wrong with its octets.
pub fn parse_priority_context(data: &[u8]) -> Result<i16, DecodeError> {
    i16::parse(&mut encapsulated(data)?)
}

/// The data of RTCorbaPriorityRange (11) for the priorities from `low` to `high`.
#[must_use]
pub fn priority_range_context(low: i16, high: i16) -> [u8; 6] {
    let ([a, b], [c, d]) = (low.to_ne_bytes(), high.to_ne_bytes());
    [ByteOrder::NATIVE.flag(), 0, a, b, c, d]
}

/// The lowest and the highest priority in the data of RTCorbaPriorityRange (11).
///
/// # Errors
/// What is wrong with its octets.
pub fn parse_priority_range_context(data: &[u8]) -> Result<(i16, i16), DecodeError> {
    let mut r = encapsulated(data)?;
    Ok((i16::parse(&mut r)?, i16::parse(&mut r)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_and_a_range_are_read_in_either_byte_order() {
        assert_eq!(parse_priority_context(&[0, 0, 0x12, 0x34]), Ok(0x1234));
        assert_eq!(parse_priority_context(&[1, 0, 0x34, 0x12]), Ok(0x1234));
        let range = parse_priority_range_context(&[0, 9, 0, 1, 0x7F, 0xFF]);
        assert_eq!(range, Ok((1, i16::MAX)));
    }

    #[test]
    fn what_is_written_is_read_and_less_is_refused() {
        let context = priority_context(0x1234);
        assert_eq!(parse_priority_context(&context), Ok(0x1234));
        let range = priority_range_context(7, -1);
        assert_eq!(parse_priority_range_context(&range), Ok((7, -1)));
        for cut in 0..4 {
            assert!(parse_priority_context(&context[..cut]).is_err());
            assert!(parse_priority_range_context(&range[..cut + 2]).is_err());
        }
        assert!(parse_priority_context(&[2, 0, 0, 0]).is_err());
    }
}
