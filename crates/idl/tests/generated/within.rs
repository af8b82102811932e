//! A sequence of small structs is written and read in windows. Its octets and its errors equal those of its elements
//! written and read one by one.

use deckwatch_cdr::limits::WINDOW_VALUE_SIZE_MAX;
use deckwatch_cdr::{
    BoundedString, ByteOrder, Char, CharSet, Codec, DecodeError, EncodeError, Parse, Reader, Write,
    Writer,
};

use crate::idl::broad::{Colour, Contact};

/// Returns elements with strings of every length, so that each element has another alignment than the one before.
fn contacts(count: usize) -> Vec<Contact> {
    let text = "abcdefghijklm";
    let contact = |index: usize| Contact {
        seen: index.is_multiple_of(2),
        shade: Colour::ALL[index % 3],
        bearing: index as i16,
        name: BoundedString::try_from(&text[..index % 14]).expect("in bounds"),
        range: index as f64 / 3.0,
        mark: Char(0xF0),
        side: BoundedString::try_from(&text[..index % 3]).expect("in bounds"),
    };
    (0..count).map(contact).collect()
}

fn one_by_one(contacts: &[Contact], w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.write_count(contacts.len())?;
    contacts.iter().try_for_each(|contact| contact.write(w))
}

fn read_one_by_one(mut r: Reader<'_>) -> Result<Vec<Contact>, DecodeError> {
    let count = r.read_count(Contact::SIZE_MIN)?;
    (0..count).map(|_| Contact::parse(&mut r)).collect()
}

#[test]
fn a_sequence_of_small_structs_is_written_as_its_elements_at_every_alignment() {
    const { assert!(<Contact as Write>::SIZE_MAX <= WINDOW_VALUE_SIZE_MAX) };
    for before in 0..9 {
        for count in [0, 1, 5, 31, 32, 33, 100] {
            for order in [ByteOrder::Little, ByteOrder::Big] {
                let contacts = contacts(count);
                let (mut one, mut all) = (vec![9; before], vec![9; before]);
                for origin in 0..=before {
                    one.truncate(before);
                    all.truncate(before);
                    let mut w = Writer::new(&mut one).with_order(order).with_origin(origin);
                    one_by_one(&contacts, &mut w).expect("in bounds");
                    let mut w = Writer::new(&mut all).with_order(order).with_origin(origin);
                    contacts.write(&mut w).expect("in bounds");
                    assert_eq!(one, all, "{count} of origin {origin}, {order:?}");
                    let r = Reader::new(&all, order)
                        .with_origin(origin)
                        .at_position(before);
                    assert_eq!(Vec::parse(&mut r.clone()).as_ref(), Ok(&contacts));
                }
            }
        }
    }
}

#[test]
fn text_that_is_not_ascii_is_written_in_the_code_set_that_was_agreed() {
    for chars in [CharSet::Latin1, CharSet::Utf8] {
        let codec = Codec::DEFAULT.with_chars(chars);
        for place in [0, 7, 40, 63] {
            let mut contacts = contacts(64);
            contacts[place].name = BoundedString::try_from("Käpt'n").expect("in bounds");
            let (mut one, mut all) = (Vec::new(), Vec::new());
            one_by_one(&contacts, &mut Writer::new(&mut one).with_codec(codec)).expect("writable");
            contacts
                .write(&mut Writer::new(&mut all).with_codec(codec))
                .expect("writable");
            assert_eq!(one, all, "{chars:?} at {place}");
            let read = Vec::parse(&mut Reader::new(&all, ByteOrder::NATIVE).with_codec(codec));
            assert_eq!(read, Ok(contacts));
        }
    }
}

#[test]
fn what_is_wrong_in_a_sequence_is_said_as_of_its_elements_one_by_one() {
    let mut octets = Vec::new();
    contacts(12)
        .write(&mut Writer::new(&mut octets))
        .expect("in bounds");
    let mut wrong = 0;
    for at in 4..octets.len() {
        for octet in [0, 1, 2, 0x7F, 0x80, 0xFF] {
            let mut changed = octets.clone();
            changed[at] = octet;
            for end in [changed.len(), changed.len() - 1, at + 1] {
                let r = Reader::new(&changed[..end], ByteOrder::NATIVE);
                let (one, all) = (read_one_by_one(r), Vec::<Contact>::parse(&mut r.clone()));
                wrong += usize::from(one.is_err());
                // Compared as text, because a NaN in `range` is not equal to itself.
                assert_eq!(
                    format!("{one:?}"),
                    format!("{all:?}"),
                    "{octet} at {at} of {end}"
                );
            }
        }
    }
    assert!(wrong > 1_000, "{wrong}");
}

#[test]
fn a_message_that_would_grow_too_large_is_refused_wherever_its_end_falls() {
    let contacts = contacts(70);
    let mut whole = Vec::new();
    contacts
        .write(&mut Writer::new(&mut whole))
        .expect("in bounds");
    for limit in 4..whole.len() {
        let mut octets = Vec::new();
        let refused = contacts.write(&mut Writer::new(&mut octets).with_limit(limit));
        assert_eq!(refused, Err(EncodeError::MessageTooLarge), "{limit}");
        assert!(octets.len() <= limit);
    }
    let mut octets = Vec::new();
    let written = contacts.write(&mut Writer::new(&mut octets).with_limit(whole.len()));
    assert_eq!((written, octets), (Ok(()), whole));
}

#[test]
fn a_sequence_of_enumerators_has_the_octets_and_the_faults_of_its_elements() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for before in 0..5 {
            let colours: Vec<Colour> = (0..10).map(|index| Colour::ALL[index % 3]).collect();
            let (mut one, mut all) = (vec![9; before], vec![9; before]);
            let mut w = Writer::new(&mut one).with_order(order).with_origin(0);
            w.write_count(10).expect("in bounds");
            let written = colours.iter().try_for_each(|colour| colour.write(&mut w));
            written.expect("in bounds");
            let mut w = Writer::new(&mut all).with_order(order).with_origin(0);
            colours.write(&mut w).expect("in bounds");
            assert_eq!(one, all);
            for at in before.next_multiple_of(4)..all.len() {
                for octet in [0, 1, 2, 3, 0x80, 0xFF] {
                    let mut changed = all.clone();
                    changed[at] = octet;
                    let r = Reader::new(&changed, order).at_position(before);
                    let mut each = r;
                    let one = each.read_count(4).and_then(|count| {
                        (0..count)
                            .map(|_| Colour::parse(&mut each))
                            .collect::<Result<Vec<_>, _>>()
                    });
                    assert_eq!(Vec::parse(&mut r.clone()), one, "{octet} at {at}");
                }
            }
        }
    }
}
