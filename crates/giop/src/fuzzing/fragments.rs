//! A message in fragments means what it means whole.

use crate::limits::FRAGMENT_SIZE_MIN;
use crate::{
    Assembly, ByteOrder, Codec, Format, Message, Parts, RequestHeader, Response, Target, Version,
};
use deckwatch_cdr::{DecodeError, Divided, EncodeError, Parse, Reader, Write, Writer};

/// Most octets of all unfinished messages.
const SIZE_MAX: usize = 1 << 18;

/// A value of a message, chosen by some octets.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Octet(u8),
    Short(u16),
    Long(u32),
    LongLong(u64),
    Text(Vec<u8>),
    Numbers(Vec<u64>),
    Shorts(Vec<u16>),
    Inside(u64),
}

/// Takes octets as a list of values; writes these as the body of a request, divides that, and gives the parts to an
/// assembly in turn with those of a second request. Then reads the values back. The rest of the octets follows as
/// further messages.
///
/// # Panics
/// When the values differ, or one of our parts is refused.
pub fn fragments(octets: &[u8]) {
    let [flags, part_size, count, rest @ ..] = octets else {
        return;
    };
    let order = if flags & 1 == 0 {
        ByteOrder::Big
    } else {
        ByteOrder::Little
    };
    let version = if flags & 2 == 0 {
        Version::V1_1
    } else {
        Version::V1_2
    };
    let part_size = usize::from(*part_size);
    let mut left = rest;
    let values: Vec<Part> = (0..*count).map_while(|_| take_part(&mut left)).collect();
    let format = Format {
        codec: Codec::DEFAULT.with_version(version),
        order,
        size_max: SIZE_MAX,
        fragment_size: Some(part_size),
    };
    let Ok(message) = request(7, format, &values) else {
        return;
    };
    // Fragments of 1.1 have no number: there one message follows the other.
    let other = (version == Version::V1_2).then(|| request(8, format, &values));
    let mut assembly = Assembly::new(2 * SIZE_MAX);
    let mut others = other
        .iter()
        .flatten()
        .flat_map(|other| parts(other, part_size));
    let mut joined = None;
    for part in parts(&message, part_size) {
        assert!(
            part.len() <= part_size.max(FRAGMENT_SIZE_MIN),
            "a part keeps to its size"
        );
        joined = accept(&mut assembly, &part).or(joined);
        if let Some(other) = others.next() {
            joined = accept(&mut assembly, &other).or(joined);
        }
    }
    for other in others {
        joined = accept(&mut assembly, &other).or(joined);
    }
    let (octets, ends) = joined.expect("the last part completes the message");
    look_at(&Divided::new(&octets, &ends), &values);
    assert_eq!(assembly.unfinished(), 0, "nothing is left over");
    super::stream(left);
}

fn request(id: u32, format: Format, values: &[Part]) -> Result<Vec<u8>, EncodeError> {
    let header = RequestHeader {
        id,
        response: Response::Outcome,
        target: Target::Key(b"key"),
        operation: "operation",
        contexts: &[],
    };
    let mut message = Vec::new();
    let open = header.begin(&mut message, format)?;
    let mut w = open.writer(&mut message);
    values.iter().try_for_each(|value| value.write(&mut w))?;
    open.finish(&mut message)?;
    Ok(message)
}

fn parts(message: &[u8], size_max: usize) -> impl Iterator<Item = Vec<u8>> {
    let parts = Parts::of(message, size_max).expect("a message of ours");
    parts.map(|part| [part.header(), part.data].concat())
}

/// Returns the message that this part completes, if it is number 7.
fn accept(assembly: &mut Assembly, part: &[u8]) -> Option<(Vec<u8>, Vec<u32>)> {
    let whole = assembly.accept(part).expect("a part of ours is accepted")?;
    match Message::parse_joined(&whole) {
        Ok(Message::Request(request)) if request.id == 7 => {
            Some((whole.octets().to_vec(), whole.ends().to_vec()))
        }
        Ok(Message::Request(_)) => None,
        other => panic!("a joined request is a request: {other:?}"),
    }
}

fn look_at(joined: &Divided<'_>, values: &[Part]) {
    let Ok(Message::Request(request)) = Message::parse_joined(joined) else {
        unreachable!("it was one before")
    };
    let mut r = request.body;
    for value in values {
        let read = value.read_alike(&mut r);
        assert_eq!(
            read.as_ref(),
            Ok(value),
            "a value is read as it was written"
        );
    }
    assert_eq!(r.finish(), Ok(()), "nothing is left of the body");
}

fn take_part(left: &mut &[u8]) -> Option<Part> {
    let (kind, mut rest) = left.split_first()?;
    let mut number = || {
        let (octet, behind) = rest.split_first()?;
        rest = behind;
        Some(*octet)
    };
    let first = number()?;
    let wide = u64::from(first).wrapping_mul(0x0101_0203_0508_0D15);
    let len = usize::from(first);
    let part = match kind % 8 {
        0 => Part::Octet(first),
        1 => Part::Short(wide as u16),
        2 => Part::Long(wide as u32),
        3 => Part::LongLong(wide),
        4 => Part::Text(vec![*kind | 1; len * 3]),
        5 => Part::Numbers((0..u64::from(first)).map(|index| wide ^ index).collect()),
        6 => Part::Shorts((0..u16::from(first)).collect()),
        _ => Part::Inside(wide),
    };
    *left = rest;
    Some(part)
}

impl Write for Part {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Octet(value) => value.write(w),
            Self::Short(value) => value.write(w),
            Self::Long(value) => value.write(w),
            Self::LongLong(value) => value.write(w),
            Self::Text(octets) => w.write_string_octets(octets),
            Self::Numbers(values) => values.write(w),
            Self::Shorts(values) => values.write(w),
            Self::Inside(value) => w.write_encapsulation(|w| value.write(w)),
        }
    }
}

impl Part {
    /// A value of the same shape.
    fn read_alike(&self, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match self {
            Self::Octet(_) => Self::Octet(Parse::parse(r)?),
            Self::Short(_) => Self::Short(Parse::parse(r)?),
            Self::Long(_) => Self::Long(Parse::parse(r)?),
            Self::LongLong(_) => Self::LongLong(Parse::parse(r)?),
            Self::Text(_) => Self::Text(r.read_string_octets()?.to_vec()),
            Self::Numbers(_) => Self::Numbers(Parse::parse(r)?),
            Self::Shorts(_) => Self::Shorts(Parse::parse(r)?),
            Self::Inside(_) => {
                let mut inner = r.read_encapsulation()?;
                let value = Parse::parse(&mut inner)?;
                inner.finish()?;
                Self::Inside(value)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_every_kind_of_value_mean_the_same_in_parts_of_every_size() {
        let kinds: Vec<u8> = (0..8).flat_map(|kind| [kind, 9, kind, 40]).collect();
        for flags in 0..4 {
            for part_size in 0..=u8::MAX {
                for first in 0..8 {
                    let head = [flags, part_size, 17, first, 1];
                    fragments(&[&head[..], &kinds].concat());
                }
            }
        }
    }
}
