//! Memory for what a peer has announced: want of it is a fact about the message, never the end of the process.

use std::borrow::Cow;

use crate::{DecodeError, DecodeFact, Reader};

/// Returns an empty vector with room for `count` values. The count has been checked against the octets that remain.
///
/// # Errors
/// [`DecodeFact::MemoryExhausted`].
#[inline]
pub(crate) fn room<T>(count: usize, r: &Reader<'_>) -> Result<Vec<T>, DecodeError> {
    let mut values = Vec::new();
    match values.try_reserve_exact(count) {
        Ok(()) => Ok(values),
        Err(_) => Err(r.error(DecodeFact::MemoryExhausted)),
    }
}

/// Makes room for `count` more values.
///
/// # Errors
/// [`DecodeFact::MemoryExhausted`].
#[inline]
pub(crate) fn more_room<T>(
    values: &mut Vec<T>,
    count: usize,
    r: &Reader<'_>,
) -> Result<(), DecodeError> {
    let made = values.try_reserve_exact(count);
    made.map_err(|_| r.error(DecodeFact::MemoryExhausted))
}

/// Copies values.
///
/// # Errors
/// [`DecodeFact::MemoryExhausted`].
#[inline]
pub(crate) fn copied<T: Copy>(values: &[T], r: &Reader<'_>) -> Result<Vec<T>, DecodeError> {
    let mut copy = room(values.len(), r)?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// Copies a text unless it is a copy.
///
/// # Errors
/// [`DecodeFact::MemoryExhausted`].
#[inline]
pub(crate) fn owned(text: Cow<'_, str>, r: &Reader<'_>) -> Result<String, DecodeError> {
    match text {
        Cow::Owned(text) => Ok(text),
        Cow::Borrowed(text) => {
            let mut copy = String::new();
            match copy.try_reserve_exact(text.len()) {
                Ok(()) => copy.push_str(text),
                Err(_) => return Err(r.error(DecodeFact::MemoryExhausted)),
            }
            Ok(copy)
        }
    }
}

/// Returns the text of octets in ISO 8859-1.
///
/// # Errors
/// [`DecodeFact::MemoryExhausted`].
pub(crate) fn latin(octets: &[u8], r: &Reader<'_>) -> Result<String, DecodeError> {
    let mut text = String::new();
    // Each character takes two octets in UTF-8 at most.
    let made = text.try_reserve_exact(2 * octets.len());
    made.map_err(|_| r.error(DecodeFact::MemoryExhausted))?;
    text.extend(octets.iter().map(|octet| char::from(*octet)));
    text.shrink_to_fit();
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ByteOrder;

    #[test]
    fn room_that_is_not_to_be_had_is_a_fact_about_the_message() {
        let r = Reader::new(&[0; 8], ByteOrder::NATIVE);
        let refused = |made: Result<Vec<u64>, DecodeError>| made.map_err(|error| error.fact);
        let exhausted = Err(DecodeFact::MemoryExhausted);
        assert_eq!(refused(room(usize::MAX / 8, &r)), exhausted);
        assert_eq!(refused(room(3, &r)), Ok(Vec::new()));
        let made = more_room(&mut vec![1_u8], usize::MAX - 1, &r);
        assert_eq!(
            made.map_err(|error| error.fact),
            Err(DecodeFact::MemoryExhausted)
        );
        assert_eq!(copied(&[1_u64, 2], &r), Ok(vec![1, 2]));
        assert_eq!(owned(Cow::Borrowed("text"), &r), Ok("text".to_owned()));
    }
}
