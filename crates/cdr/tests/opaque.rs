//! Values whose state only their own code can read: custom values, and chunked values of unknown types.

use crate::states::{
    CHUNKED, CUSTOM, ID_LIST, ONE_ID, POINT, a_chunk, a_custom, back_to, chunk, custom, end,
    interface, octets, parsed, point, structure, valuetype, written,
};
use deckwatch_cdr::typecode::ValueModifier;
use deckwatch_cdr::value::{Opaque, Value, read_value, write_value};
use deckwatch_cdr::{
    Any, ByteOrder, CharSet, Codec, DecodeFact, Divided, EncodeError, Parse, Reader, TypeCode,
    Version, WideSet, Write, Writer,
};

/// The opaque state of an instance that has no other state.
fn state_of(value: &Value) -> &Opaque {
    match value {
        Value::Valuetype(Some(instance)) => match &*instance.state {
            [Value::Opaque(state)] => state,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Checks that the state is what [`a_chunk`] writes, and that its number of eight octets is aligned.
#[track_caller]
fn reads_as_it_was(state: &Opaque) {
    let mut r = state.chunks();
    let size = r.read_u32().expect("a chunk");
    let start = r.position();
    assert_eq!(i32::parse(&mut r), Ok(7));
    assert_eq!(f64::parse(&mut r), Ok(0.5));
    assert_eq!(String::parse(&mut r).as_deref(), Ok("text"));
    assert_eq!((r.position() - start, r.remaining()), (size as usize, 0));
}

#[test]
fn a_custom_value_passes_through_as_it_came_and_in_no_other_form() {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let sent = octets(&custom(), order, a_custom);
        let any = parsed(&sent, order).expect("an Any");
        assert!(any.is_opaque() && any == any.clone());
        assert_eq!(written(&any, order).as_deref(), Ok(&*sent));
        let other = written(&any, order.opposite());
        assert_eq!(other, Err(EncodeError::TypeUnsupported));
        let value = any.to_dynamic().expect("a tree");
        reads_as_it_was(state_of(&value));
        let again = Any::from_dynamic(&custom(), &value).expect("a custom value");
        assert!(again.is_opaque() && again == any);
        assert_eq!(written(&again, order).as_deref(), Ok(&*sent));
        let mut direct = Vec::new();
        let mut w = Writer::new(&mut direct).with_order(order);
        write_value(&custom(), &value, &mut w).expect("it can be written");
        let mut r = Reader::new(&direct, order);
        assert_eq!(read_value(&custom(), &mut r), Ok(value));
    }
    let in_codec = |codec, write: fn(&mut Writer<'_>)| {
        let sent = octets(&custom(), ByteOrder::Big, write);
        let any = parsed(&sent, ByteOrder::Big).expect("an Any");
        let mut octets = Vec::new();
        let w = Writer::new(&mut octets).with_order(ByteOrder::Big);
        any.write(&mut w.with_codec(codec))
    };
    let older = Codec::DEFAULT.with_version(Version::V1_1);
    let utf8 = Codec::DEFAULT.with_chars(CharSet::Utf8);
    // The state may contain wide strings that the other side does not know.
    let narrow = Codec::DEFAULT.with_wide(WideSet::None);
    for codec in [older, utf8, narrow] {
        let refused = in_codec(codec, a_custom);
        assert_eq!(refused, Err(EncodeError::TypeUnsupported));
    }
    // Strings of ASCII alone are the same in all these code sets.
    let plain = |w: &mut Writer<'_>| {
        w.write_u32(ONE_ID | CHUNKED).expect("room");
        CUSTOM.write(w).expect("room");
        chunk(w, |w| "text".write(w).expect("room"));
        end(w);
    };
    assert_eq!(in_codec(utf8, plain), Ok(()));
    // A state from a peer without wide strings contains none.
    let sent = octets(&custom(), ByteOrder::NATIVE, a_custom);
    let mut r = Reader::new(&sent, ByteOrder::NATIVE).with_codec(narrow);
    let any = Any::parse(&mut r).expect("an Any");
    assert!(written(&any, ByteOrder::NATIVE).is_ok());
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets).with_codec(narrow);
    assert_eq!(any.write(&mut w), Ok(()));
}

#[test]
fn an_any_of_a_custom_value_is_inserted_into_another_in_its_form() {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let any = parsed(&octets(&custom(), order, a_custom), order).expect("an Any");
        let within = Any::from_value(&any).expect("an Any of an Any");
        assert!(within.is_opaque());
        assert_eq!(within.extract::<Any>().as_ref(), Ok(&any));
        assert!(written(&within, order).is_ok() && written(&within, order.opposite()).is_err());
        let row = [Any::empty(), any];
        let within = Any::from_value(&row[..]).expect("an Any of Anys");
        assert_eq!(within.extract::<Vec<Any>>().as_deref(), Ok(&row[..]));
    }
}

#[test]
fn what_is_in_a_state_stays_aligned_wherever_the_value_goes() {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        for before in 0..8 {
            for after in 0..8 {
                let code = custom();
                let mut sent = vec![0; before];
                let mut w = Writer::new(&mut sent).with_origin(0).with_order(order);
                code.write(&mut w).expect("a TypeCode");
                a_custom(&mut w);
                let mut r = Reader::new(&sent, order).at_position(before);
                let any = Any::parse(&mut r).expect("an Any");
                let mut again = vec![0; after];
                let mut w = Writer::new(&mut again).with_origin(0).with_order(order);
                any.write(&mut w).expect("it can be written");
                let mut r = Reader::new(&again, order).at_position(after);
                let back = Any::parse(&mut r).expect("it can be read");
                assert_eq!(r.finish(), Ok(()));
                assert!(back == any);
                reads_as_it_was(state_of(&back.to_dynamic().expect("a tree")));
            }
        }
    }
}

#[test]
fn a_custom_value_within_one_in_chunks_has_the_level_of_its_place() {
    let outer = valuetype(
        "IDL:T:1.0",
        ValueModifier::Truncatable,
        &[("c", &custom()), ("x", &TypeCode::long())],
    );
    let order = ByteOrder::Big;
    let sent = octets(&outer, order, |w| {
        w.write_u32(ONE_ID | CHUNKED).expect("room");
        "IDL:T:1.0".write(w).expect("room");
        w.write_u32(ONE_ID | CHUNKED).expect("room");
        CUSTOM.write(w).expect("room");
        a_chunk(w);
        // Two nested values; the first contains another. The last end tag ends all values.
        for id in ["IDL:X:1.0", "IDL:Y:1.0"] {
            w.write_u32(ONE_ID | CHUNKED).expect("room");
            id.write(w).expect("room");
            chunk(w, |w| w.write_u8(1).expect("room"));
        }
        w.write_u32(3_u32.wrapping_neg()).expect("room");
        a_chunk(w);
        w.write_u32(ONE_ID | CHUNKED).expect("room");
        "IDL:Z:1.0".write(w).expect("room");
        chunk(w, |w| w.write_u8(2).expect("room"));
        w.write_u32(2_u32.wrapping_neg()).expect("room");
        chunk(w, |w| w.write_u32(99).expect("room"));
        end(w);
    });
    let any = parsed(&sent, order).expect("an Any");
    assert_eq!(written(&any, order).as_deref(), Ok(&*sent));
    let value = any.to_dynamic().expect("a tree");
    let Value::Valuetype(Some(whole)) = &value else {
        panic!("{value:?}");
    };
    assert_eq!(whole.state[1], Value::Long(99));
    // On its own, the value is one nesting level higher.
    let alone = Any::from_dynamic(&custom(), &whole.state[0]).expect("a custom value");
    let alone = written(&alone, order).expect("it can be written");
    let alone = parsed(&alone, order).expect("it can be read");
    assert_eq!(alone.to_dynamic().as_ref(), Ok(&whole.state[0]));
    let again = Any::from_dynamic(&outer, &value).expect("it is of its type");
    assert_eq!(written(&again, order).as_deref(), Ok(&*sent));
}

#[test]
fn a_value_of_an_unknown_type_stands_in_place_of_an_abstract_interface() {
    let order = ByteOrder::Little;
    let derived = |w: &mut Writer<'_>| {
        w.write_u8(0).expect("room");
        w.write_u32(ID_LIST | CHUNKED).expect("room");
        w.write_u32(2).expect("room");
        "IDL:Derived:1.0".write(w).expect("room");
        POINT.write(w).expect("room");
        a_chunk(w);
        end(w);
    };
    let sent = octets(&interface(), order, derived);
    let any = parsed(&sent, order).expect("an Any");
    assert_eq!(written(&any, order).as_deref(), Ok(&*sent));
    let value = any.to_dynamic().expect("a tree");
    reads_as_it_was(state_of(&value));
    assert!(state_of(&value).bases().eq([POINT]));
    // Four octets further, the list of ids needs one more id.
    let shifted = structure(&[("before", &TypeCode::long()), ("i", &interface())]);
    for (number, before) in [(0, 0), (0, 4), (1, 8)] {
        let parts = vec![Value::Long(number), value.clone()];
        let whole = Any::from_dynamic(&shifted, &Value::Struct(parts)).expect("a struct");
        let mut octets = vec![0; before];
        let mut w = Writer::new(&mut octets).with_origin(0).with_order(order);
        whole.write(&mut w).expect("it can be written");
        let mut r = Reader::new(&octets, order).at_position(before);
        let back = Any::parse(&mut r).expect("it can be read");
        assert!(back == whole, "{before}");
    }
    // If the base type is known, the value is truncated to it.
    let known = structure(&[("i", &interface()), ("p", &point())]);
    let sent = octets(&known, order, |w| {
        derived(w);
        w.write_u32(0).expect("room");
    });
    let any = parsed(&sent, order).expect("an Any");
    assert!(any.is_truncated() && !any.is_opaque());
    // The truncation is also visible in an Any nested in an Any.
    let sent = octets(&TypeCode::any(), order, |w| {
        known.write(w).expect("a TypeCode");
        derived(w);
        w.write_u32(0).expect("room");
    });
    let outer = parsed(&sent, order).expect("an Any");
    let within = outer.extract::<Any>().expect("an Any within");
    assert!(within == any && within.is_truncated());
    let Ok(Value::Any(within)) = outer.to_dynamic() else {
        panic!("an Any within");
    };
    assert!(within.is_truncated());
    // Without chunks, the end of the value is unknown.
    let sent = octets(&interface(), order, |w| {
        w.write_u8(0).expect("room");
        w.write_u32(ONE_ID).expect("room");
        POINT.write(w).expect("room");
        w.write_u32(7).expect("room");
    });
    assert_eq!(parsed(&sent, order), Err(DecodeFact::TypeUnsupported));
}

#[test]
fn a_state_without_anything_is_written_in_any_form() {
    let sent = octets(&custom(), ByteOrder::Big, |w| {
        w.write_u32(ONE_ID | CHUNKED).expect("room");
        CUSTOM.write(w).expect("room");
        end(w);
    });
    let any = parsed(&sent, ByteOrder::Big).expect("an Any");
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let octets = written(&any, order).expect("it can be written");
        let back = parsed(&octets, order).expect("it can be read");
        let back = back.to_dynamic().expect("a tree");
        assert_eq!(state_of(&back).chunks().remaining(), 0);
    }
    let value = any.to_dynamic().expect("a tree");
    assert_eq!(
        Any::from_dynamic(&point(), &value),
        Err(EncodeError::TypeMismatch)
    );
}

#[test]
fn values_that_share_a_list_of_ids_share_it_wherever_they_go() {
    let order = ByteOrder::NATIVE;
    let row = structure(&[
        ("before", &TypeCode::unbounded_string()),
        ("i", &interface()),
    ]);
    let rows = TypeCode::sequence(&row, 0);
    let sent = octets(&rows, order, |w| {
        w.write_u32(40).expect("room");
        let mut list = None;
        for row in 0..40 {
            "four".repeat(row % 3).write(w).expect("room");
            w.write_u8(0).expect("room");
            w.write_u32(ID_LIST | CHUNKED).expect("room");
            if let Some(list) = list {
                w.write_u32(u32::MAX).expect("room");
                let back: usize = w.position() - list;
                w.write_u32((back as u32).wrapping_neg()).expect("room");
            } else {
                list = Some(w.position());
                w.write_u32(9).expect("room");
                "IDL:Own:1.0".write(w).expect("room");
                (0..8).for_each(|base| format!("IDL:Base{base}:1.0").write(w).expect("room"));
            }
            a_chunk(w);
            w.write_u32(u32::MAX).expect("room");
        }
    });
    let any = parsed(&sent, order).expect("an Any");
    let tree = any.to_dynamic().expect("a tree");
    let Value::Elements(all) = &tree else {
        panic!("{tree:?}");
    };
    for row in all {
        let Value::Struct(row) = row else {
            panic!("{row:?}");
        };
        let state = state_of(&row[1]);
        assert_eq!(state.bases().count(), 8);
        reads_as_it_was(state);
    }
    let built = Any::from_dynamic(&rows, &tree).expect("it is of its type");
    for before in 0..8 {
        let mut again = vec![0; before];
        let mut w = Writer::new(&mut again).with_origin(0).with_order(order);
        any.write(&mut w).expect("it can be written");
        // If the first value has another alignment, each id is an indirection.
        assert!(again.len() <= sent.len() + before + 8 * 9 + 40);
        let mut r = Reader::new(&again, order).at_position(before);
        let back = Any::parse(&mut r).expect("it can be read");
        assert_eq!(r.finish(), Ok(()));
        assert!(back.to_dynamic().as_ref() == Ok(&tree));
    }
    let octets = written(&built, order).expect("it can be written");
    let back = parsed(&octets, order).expect("it can be read");
    assert!(back.to_dynamic().as_ref() == Ok(&tree));
}

/// Writes an Any in fragments of this many octets and reads it back.
fn comes_back_from_fragments(any: &Any, size: usize) -> Result<(), EncodeError> {
    let (order, codec) = any.sole_form().expect("it is opaque");
    let mut octets = vec![0; 12];
    let mut w = Writer::new(&mut octets)
        .with_origin(0)
        .with_order(order)
        .with_codec(codec)
        .with_fragments(size);
    any.write(&mut w)?;
    let ends = (size..octets.len()).step_by(size - 12);
    let ends: Vec<u32> = ends.map(|end| end as u32).collect();
    let message = Divided::new(&octets, &ends);
    let mut r = Reader::of_divided(&message, order, 12).with_codec(codec);
    assert!(Any::parse(&mut r).as_ref() == Ok(any), "{size}");
    Ok(())
}

#[test]
fn a_state_stands_in_one_fragment_of_giop_1_1() {
    let codec = Codec::DEFAULT.with_version(Version::V1_1);
    let order = ByteOrder::NATIVE;
    let sent = octets(&custom(), order, a_custom);
    let mut r = Reader::new(&sent, order).with_codec(codec);
    let any = Any::parse(&mut r).expect("an Any");
    let mut kinds = [0, 0];
    for size in (32..160).step_by(8) {
        match comes_back_from_fragments(&any, size) {
            Ok(()) => kinds[0] += 1,
            Err(error) => {
                kinds[1] += 1;
                assert_eq!(error, EncodeError::TypeUnsupported);
            }
        }
    }
    assert!(kinds[0] > 0 && kinds[1] > 0, "{kinds:?}");
}

#[test]
fn a_list_of_ids_that_values_share_may_stand_in_several_fragments() {
    let codec = Codec::DEFAULT.with_version(Version::V1_1);
    let order = ByteOrder::NATIVE;
    let sent = octets(&TypeCode::sequence(&interface(), 0), order, |w| {
        w.write_u32(9).expect("room");
        let mut list = None;
        for _ in 0..9 {
            w.write_u8(0).expect("room");
            w.write_u32(ID_LIST | CHUNKED).expect("room");
            if let Some(list) = list {
                back_to(list, w);
            } else {
                list = Some(w.position());
                w.write_u32(9).expect("room");
                let lens = (1..10).map(|len| "id of some length".split_at(len).0);
                lens.for_each(|id| id.write(w).expect("room"));
            }
            end(w);
        }
    });
    let mut r = Reader::new(&sent, order).with_codec(codec);
    let any = Any::parse(&mut r).expect("an Any");
    for size in (24..240).step_by(8) {
        assert_eq!(comes_back_from_fragments(&any, size), Ok(()), "{size}");
    }
}
