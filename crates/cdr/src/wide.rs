//! `wchar`.

use crate::text::{mark, wide_units, wide_version, write_utf16};
use crate::traits::{parse_each, write_each};
use crate::{
    Codec, DecodeError, DecodeFact, EncodeError, Parse, Reader, Version, WideSet, Write, Writer,
};

/// Octets of most characters in GIOP 1.2: their length, and one unit of UTF-16, big-endian.
const SIZE: usize = 3;

/// Characters that are converted together before they are written.
const BLOCK: usize = 64;

impl Write for char {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let mut units = [0; 2];
        let units = self.encode_utf16(&mut units);
        match wide_version(w)? {
            Version::V1_0 => Err(EncodeError::WideInGiop10),
            Version::V1_1 => match units {
                [unit] => unit.write(w),
                _ => Err(EncodeError::NotInCodeSet),
            },
            Version::V1_2 => {
                w.write_u8(((units.len() + mark(units.first().copied()).len()) * 2) as u8)?;
                write_utf16(units.iter().copied(), w)
            }
        }
    }

    fn write_slice(slice: &[Self], w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let Codec { version, wide, .. } = w.codec();
        if version != Version::V1_2 || wide == WideSet::None {
            return write_each(slice, w);
        }
        let mut block = [0; SIZE * BLOCK];
        slice.chunks(BLOCK).try_for_each(|some| {
            let octets = &mut block[..SIZE * some.len()];
            if write_units(some, octets.as_chunks_mut().0) {
                w.write_octets(octets)
            } else {
                some.iter().try_for_each(|character| character.write(w))
            }
        })
    }
}

/// Converts the characters. Returns false where one of them is not a single unit, or needs a byte order mark.
fn write_units(characters: &[char], octets: &mut [[u8; SIZE]]) -> bool {
    let mut is_plain = true;
    for (character, octets) in characters.iter().zip(octets) {
        let number = u32::from(*character);
        let [high, low] = (number as u16).to_be_bytes();
        *octets = [2, high, low];
        is_plain &= number <= 0xFFFF && !is_mark(number as u16);
    }
    is_plain
}

/// Whether a unit would be taken for a byte order mark.
const fn is_mark(unit: u16) -> bool {
    matches!(unit, 0xFEFF | 0xFFFE)
}

/// Returns the character of one unit; `None` for half a surrogate pair, or a byte order mark.
fn of_unit(octets: [u8; 2]) -> Option<char> {
    let unit = u16::from_be_bytes(octets);
    char::from_u32(u32::from(unit)).filter(|_| !is_mark(unit))
}

impl<'a> Parse<'a> for char {
    const SIZE_MIN: usize = 2;

    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = r.position();
        match r.codec().version {
            Version::V1_0 => return Err(r.error(DecodeFact::WideInGiop10)),
            Version::V1_1 => char::from_u32(u32::from(u16::parse(r)?)),
            Version::V1_2 => {
                let len = r.read_u8()?;
                let octets = r.read_octets(usize::from(len))?;
                if let [high, low] = octets
                    && let Some(character) = of_unit([*high, *low])
                {
                    return Ok(character);
                }
                let units = wide_units(octets, start)?;
                let mut characters = char::decode_utf16(units);
                let first = characters.next().and_then(Result::ok);
                first.filter(|_| characters.next().is_none())
            }
        }
        .ok_or_else(|| DecodeError::new(DecodeFact::NotInCodeSet, start))
    }
    fn parse_vec(r: &mut Reader<'a>, count: usize) -> Result<Vec<Self>, DecodeError> {
        let mut ahead = *r;
        if r.codec().version == Version::V1_2
            && let Some(octets) = ahead.read_octets(SIZE.saturating_mul(count)).ok()
        {
            let mut is_plain = true;
            let characters = octets.as_chunks().0.iter().map(|[len, high, low]| {
                let character = of_unit([*high, *low]);
                is_plain &= *len == 2 && character.is_some();
                character.unwrap_or_default()
            });
            let characters: Vec<char> = characters.collect();
            if is_plain {
                r.go_to(ahead);
                return Ok(characters);
            }
        }
        parse_each(r, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ByteOrder;

    fn one_by_one(octets: &[u8], count: usize) -> Result<Vec<char>, DecodeError> {
        let mut r = Reader::new(octets, ByteOrder::NATIVE);
        (0..count).map(|_| char::parse(&mut r)).collect()
    }

    #[test]
    fn a_slice_has_the_octets_of_its_characters() {
        for count in [0_usize, 1, 63, 64, 65, 200] {
            for odd in ['x', '\0', '\u{FEFF}', '\u{FFFE}', '\u{FFFF}', '😀'] {
                for at in [0, count / 2, count.saturating_sub(1)] {
                    let mut text = vec!['ä'; count];
                    text.iter_mut()
                        .skip(at)
                        .take(1)
                        .for_each(|place| *place = odd);
                    let (mut one, mut all) = (vec![7], vec![7]);
                    let mut w = Writer::new(&mut one);
                    text.iter()
                        .try_for_each(|character| character.write(&mut w))
                        .unwrap();
                    char::write_slice(&text, &mut Writer::new(&mut all)).unwrap();
                    assert_eq!(one, all);
                    let mut r = Reader::new(&all, ByteOrder::NATIVE).at_position(1);
                    assert_eq!(char::parse_vec(&mut r, count), Ok(text));
                    r.finish().unwrap();
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_in_a_slice_is_said_as_of_its_characters() {
        let mut octets = Vec::new();
        char::write_slice(&['a', 'Ω', '😀', 'z'], &mut Writer::new(&mut octets)).unwrap();
        let plain = [2, 0, b'a', 2, 3, 0xA9, 2, 0, b'z', 2, 0, b'!'];
        let mut wrong = 0;
        for octets in [&octets[..], &plain] {
            for at in 0..octets.len() {
                for octet in [0, 1, 2, 3, 4, 0xD8, 0xDC, 0xFE, 0xFF] {
                    let mut changed = octets.to_vec();
                    changed[at] = octet;
                    for end in [changed.len(), changed.len() - 1] {
                        let mut r = Reader::new(&changed[..end], ByteOrder::NATIVE);
                        let all = char::parse_vec(&mut r, 4);
                        assert_eq!(all, one_by_one(&changed[..end], 4), "{changed:?}");
                        wrong += usize::from(all.is_err());
                    }
                }
            }
        }
        assert!(wrong > 100, "{wrong}");
    }
}
