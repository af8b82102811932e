//! Structs whose CDR form equals their memory layout are written and borrowed as a whole; the result is the same as
//! member by member.

use std::borrow::Cow;

use deckwatch_cdr::plain::{self, Plain};
use deckwatch_cdr::{
    ByteOrder, DecodeError, DecodeFact, Divided, EncodeError, Parse, Reader, Write, Writer,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A struct as generated code has it. It starts with a `long`, so that after a sequence count the `double` is not where
/// the memory layout has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Fix {
    track: i32,
    channel: u16,
    marks: [u8; 2],
    range: f64,
}

impl Plain for Fix {
    const LEAD: usize = <i32 as Plain>::LEAD;
    const ALIGNMENT: usize = plain::largest(&[
        <i32 as Plain>::ALIGNMENT,
        <u16 as Plain>::ALIGNMENT,
        <[u8; 2] as Plain>::ALIGNMENT,
        <f64 as Plain>::ALIGNMENT,
    ]);
}

impl Write for Fix {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.track.write(w)?;
        self.channel.write(w)?;
        self.marks.write(w)?;
        self.range.write(w)
    }

    fn laid_out<'s>(
        slice: &'s [Self],
        w: &mut Writer<'_>,
    ) -> Result<Option<&'s [u8]>, EncodeError> {
        plain::laid_out(slice, w)
    }
}

impl<'a> Parse<'a> for Fix {
    const SIZE_MIN: usize = 16;

    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            track: Parse::parse(r)?,
            channel: Parse::parse(r)?,
            marks: Parse::parse(r)?,
            range: Parse::parse(r)?,
        })
    }

    fn parse_vec(r: &mut Reader<'a>, count: usize) -> Result<Vec<Self>, DecodeError> {
        plain::parse_vec(r, count)
    }

    fn parse_cow(r: &mut Reader<'a>, count: usize) -> Result<Cow<'a, [Self]>, DecodeError> {
        plain::parse_cow(r, count)
    }
}

fn fixes(count: i32) -> Vec<Fix> {
    let one = |index: i32| Fix {
        track: index - 3,
        channel: 7,
        marks: [1, index as u8],
        range: f64::from(index) / 8.0,
    };
    (0..count).map(one).collect()
}

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

#[test]
fn a_sequence_is_the_same_octets_as_its_elements_one_by_one_wherever_it_stands() {
    for (order, before) in ORDERS.into_iter().flat_map(|o| (0..8).map(move |b| (o, b))) {
        for values in [fixes(0), fixes(1), fixes(5)] {
            let begin = || vec![0; before];
            let (mut whole, mut single) = (begin(), begin());
            let mut w = Writer::new(&mut whole).with_origin(0).with_order(order);
            values.write(&mut w).unwrap();
            let mut w = Writer::new(&mut single).with_origin(0).with_order(order);
            w.write_count(values.len()).unwrap();
            for value in &values {
                value.write(&mut w).unwrap();
            }
            assert_eq!(whole, single, "{order:?} {before}");
            // At any address in memory.
            for shift in 0..8 {
                let memory = [&vec![0; shift][..], &whole].concat();
                let reader = || {
                    let reader = Reader::new(&memory[shift..], order);
                    reader.at_position(before)
                };
                let (mut owned, mut lent) = (reader(), reader());
                assert_eq!(Vec::<Fix>::parse(&mut owned).as_ref(), Ok(&values));
                let cow = Cow::<[Fix]>::parse(&mut lent).unwrap();
                assert_eq!(cow, values);
                assert_eq!(lent.position(), owned.position());
                owned.finish().unwrap();
            }
        }
    }
}

/// The octets start at an address that is aligned for any value.
#[repr(C, align(8))]
struct Aligned([u8; 88]);

#[test]
fn what_stands_in_place_is_lent_and_nothing_else() {
    let values = fixes(5);
    let lent = |before: usize, order: ByteOrder| {
        let mut octets = vec![0; before];
        let mut w = Writer::new(&mut octets).with_origin(0).with_order(order);
        values.write(&mut w).unwrap();
        let mut memory = Aligned([0; 88]);
        memory.0[..octets.len()].copy_from_slice(&octets);
        let mut r = Reader::new(&memory.0, order).at_position(before);
        let cow = Cow::<[Fix]>::parse(&mut r).unwrap();
        assert_eq!(cow, values);
        matches!(cow, Cow::Borrowed(_))
    };
    // After a count at 4, the elements start at 8. After a count at 0, they start at 4, and there is padding before the
    // double.
    assert!(lent(4, ByteOrder::NATIVE));
    assert!(!lent(0, ByteOrder::NATIVE));
    let other = ORDERS.into_iter().find(|order| !order.is_native());
    assert!(!lent(4, other.unwrap()));
}

#[test]
fn a_count_that_lies_is_refused_before_anything_is_taken() {
    let mut octets = vec![0; 4];
    let mut w = Writer::new(&mut octets).with_origin(0);
    fixes(3).write(&mut w).unwrap();
    octets.truncate(octets.len() - 1);
    let mut r = Reader::new(&octets, ByteOrder::NATIVE).at_position(4);
    let refused = Cow::<[Fix]>::parse(&mut r).map_err(|error| error.fact);
    assert_eq!(refused, Err(DecodeFact::LengthExceedsMessage));
}

#[test]
fn elements_in_fragments_are_aligned_from_the_header_of_each() {
    for order in ORDERS {
        let mut octets = vec![0; 12];
        let mut w = Writer::new(&mut octets);
        w = w.with_origin(0).with_order(order).with_fragments(40);
        fixes(9).write(&mut w).unwrap();
        let ends: Vec<u32> = (40..octets.len() as u32).step_by(28).collect();
        let message = Divided::new(&octets, &ends);
        let mut r = Reader::of_divided(&message, order, 12);
        assert_eq!(Cow::<[Fix]>::parse(&mut r).unwrap(), fixes(9));
        r.finish().unwrap();
    }
}
