//! Why a system exception was raised, in words: the service context ExceptionDetailMessage (CORBA 3.3 part 2, 7.7.1),
//! an encapsulated `wstring` of GIOP 1.2 in UTF-16.

use deckwatch_cdr::{DecodeError, EncodeError, Parse as _, WString, Write as _};
use deckwatch_text::is_shown;

use crate::ior::{encapsulated, encapsulation};
use crate::limits::EXCEPTION_DETAIL_UNITS_MAX;

/// Returns the octets of the context. A longer text is cut off at [`EXCEPTION_DETAIL_UNITS_MAX`].
///
/// # Errors
/// [`EncodeError::StringHoldsNull`].
pub fn exception_detail_context(detail: &str) -> Result<Vec<u8>, EncodeError> {
    let text = WString::from(cut(detail));
    encapsulation(|w| text.write(w))
}

/// Reads the octets of the context. Control characters, and those that change the direction of text, are replaced; a
/// longer text is cut off at [`EXCEPTION_DETAIL_UNITS_MAX`].
///
/// # Errors
/// [`DecodeError`] of an encapsulation without a `wstring`.
pub fn parse_exception_detail(data: &[u8]) -> Result<String, DecodeError> {
    let text = WString::parse(&mut encapsulated(data)?)?.to_string_lossy();
    let printable = |c: char| {
        if is_shown(c) {
            c
        } else {
            char::REPLACEMENT_CHARACTER
        }
    };
    Ok(cut(&text).chars().map(printable).collect())
}

/// Returns the longest start of a text that has at most [`EXCEPTION_DETAIL_UNITS_MAX`] units of UTF-16.
fn cut(text: &str) -> &str {
    let mut units = 0;
    let is_beyond = |(_, c): &(usize, char)| {
        units += c.len_utf16();
        units > EXCEPTION_DETAIL_UNITS_MAX
    };
    match text.char_indices().find(is_beyond) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detail_is_an_encapsulated_wstring_of_giop_1_2_in_big_endian_utf_16() {
        let octets = exception_detail_context("dé").expect("short");
        let length = 4_u32.to_ne_bytes();
        let order = u8::from(cfg!(target_endian = "little"));
        let head = [order, 0, 0, 0];
        assert_eq!(octets, [&head[..], &length, &[0, b'd', 0, 0xe9]].concat());
        assert_eq!(parse_exception_detail(&octets), Ok("dé".to_owned()));
    }

    #[test]
    fn details_of_other_orbs_are_read_in_both_byte_orders_and_with_a_mark() {
        for octets in [
            &b"\0\0\0\0\0\0\0\x04\0a\0b"[..],
            b"\x01\0\0\0\x04\0\0\0\0a\0b",
            b"\0\0\0\0\0\0\0\x06\xfe\xff\0a\0b",
            b"\x01\0\0\0\x06\0\0\0\xff\xfea\0b\0",
        ] {
            assert_eq!(parse_exception_detail(octets), Ok("ab".to_owned()));
        }
    }

    #[test]
    fn hostile_details_are_cut_off_refused_or_lose_their_control_characters() {
        let evil = exception_detail_context("a\x1b[31m\r\n\u{202e}b").expect("short");
        let read = parse_exception_detail(&evil).expect("sound");
        assert_eq!(read, "a\u{fffd}[31m\u{fffd}\u{fffd}\u{fffd}b");
        let long = "\u{1f600}".repeat(EXCEPTION_DETAIL_UNITS_MAX);
        let octets = exception_detail_context(&long).expect("it is cut off");
        assert_eq!(octets.len(), 8 + 2 * EXCEPTION_DETAIL_UNITS_MAX);
        let mut long = b"\0\0\0\0\0\x01\0\0".to_vec();
        long.resize(8 + 0x1_0000, b'x');
        let read = parse_exception_detail(&long).expect("sound");
        assert_eq!(read.encode_utf16().count(), EXCEPTION_DETAIL_UNITS_MAX);
        for malformed in [
            &b""[..],
            b"\0",
            b"\0\0\0\0\0\0\0\x04\0a",
            b"\0\0\0\0\xff\xff\xff\xff",
        ] {
            assert!(parse_exception_detail(malformed).is_err(), "{malformed:?}");
        }
    }
}
