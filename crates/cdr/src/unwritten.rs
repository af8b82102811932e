//! Octets of a message that stay where they stand.

/// The last octets of a message, which were not copied into it: its sender writes them to the transport behind the
/// message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "without these octets the message is not whole"]
pub struct Unwritten<'s>(&'s [u8]);

impl<'s> Unwritten<'s> {
    /// The octets; mostly empty.
    #[must_use]
    #[inline]
    pub const fn octets(self) -> &'s [u8] {
        self.0
    }
}

/// Nothing is left.
impl From<()> for Unwritten<'_> {
    #[inline]
    fn from((): ()) -> Self {
        Self(&[])
    }
}

impl<'s> From<&'s [u8]> for Unwritten<'s> {
    #[inline]
    fn from(octets: &'s [u8]) -> Self {
        Self(octets)
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::UNWRITTEN_SIZE_MIN;
    use crate::{Any, ByteOrder, CharSet, Codec, EncodeError, Version, Write, Writer};

    /// Returns what the writer wrote, what it left, and what it writes where nothing may be left, each behind an octet.
    fn write<T: Write + ?Sized>(
        value: &T,
        form: impl Fn(Writer<'_>) -> Writer<'_>,
    ) -> (Vec<u8>, usize) {
        let (mut written, mut whole) = (Vec::new(), Vec::new());
        let mut writer = form(Writer::new(&mut written));
        writer.write_u8(9).unwrap();
        let rest = value.write_last(&mut writer).unwrap().octets();
        written.extend_from_slice(rest);
        let mut writer = form(Writer::new(&mut whole));
        writer.write_u8(9).unwrap();
        value.write(&mut writer).unwrap();
        assert_eq!(written, whole);
        (written, rest.len())
    }

    #[test]
    fn many_octets_at_the_end_are_left_and_few_are_not() {
        for (len, left) in [(UNWRITTEN_SIZE_MIN, UNWRITTEN_SIZE_MIN), (0, 0)] {
            assert_eq!(write(&vec![3_u8; len], |w| w).1, left);
        }
        assert_eq!(write(&[3_u8; UNWRITTEN_SIZE_MIN - 1][..], |w| w).1, 0);
        let numbers = vec![0.5_f64; UNWRITTEN_SIZE_MIN];
        assert_eq!(write(&numbers, |w| w).1, 8 * UNWRITTEN_SIZE_MIN);
        assert_eq!(write(&vec!["text".to_owned(); 2_000], |w| w).1, 0);
    }

    #[test]
    fn octets_that_would_stand_otherwise_in_the_message_are_written() {
        let numbers = vec![0x0102_u16; UNWRITTEN_SIZE_MIN];
        let other = [ByteOrder::Little, ByteOrder::Big]
            .into_iter()
            .find(|order| !order.is_native());
        let swapped = write(&numbers, |w| w.with_order(other.unwrap()));
        assert_eq!(swapped.1, 0);
        assert_eq!(write(&numbers, |w| w.with_fragments(1_024)).1, 0);
    }

    #[test]
    fn an_any_leaves_its_value_where_the_message_has_it_as_it_is_kept() {
        let any = Any::from_value(&vec![3_u8; UNWRITTEN_SIZE_MIN]).unwrap();
        let codec = Codec::DEFAULT.with_chars(CharSet::Utf8);
        let of_1_0 = codec.with_version(Version::V1_0);
        for codec in [codec, of_1_0] {
            let left = write(&any, |w| w.with_codec(codec)).1;
            assert_eq!(left, UNWRITTEN_SIZE_MIN + 4);
        }
        let other = ByteOrder::NATIVE.opposite();
        assert_eq!(write(&any, |w| w.with_codec(codec).with_order(other)).1, 0);
        let text = Any::from_value(&vec!["gr\u{fc}n".to_owned(); 2_000]).unwrap();
        assert_eq!(write(&text, |w| w.with_codec(codec)).1, 2_000 * 12 + 4 - 2);
        let other = codec.with_chars(CharSet::Latin1);
        assert_eq!(write(&text, |w| w.with_codec(other)).1, 0);
    }

    #[test]
    fn what_is_left_counts_against_the_limit_of_the_message() {
        let mut buffer = Vec::new();
        let octets = [3_u8; UNWRITTEN_SIZE_MIN];
        let mut writer = Writer::new(&mut buffer).with_limit(octets.len() + 3);
        let written = octets[..].write_last(&mut writer);
        assert_eq!(written.unwrap_err(), EncodeError::MessageTooLarge);
    }
}
