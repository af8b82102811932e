//! Values of generated valuetypes by clause (CORBA 3.3 part 2, clause 9.3.4): compared with octets made by hand.

use std::sync::Arc;

use crate::common::{ORDERS, Octets, Order};
use crate::values_mirror::{
    Label, NodeValue, Pair, PlaceValue, PointValue, Stamp, StampValue, place, point,
};
use deckwatch_cdr::limits::VALUE_NESTING_MAX;
use deckwatch_cdr::{Any, ByteOrder, DecodeError, DecodeFact, Parse, Reader, Write, Writer};

const POINT: &str = "IDL:Deckwatch/Values/Point:1.0";
const PLACE: &str = "IDL:Deckwatch/Values/Place:1.0";
const STAMP: &str = "IDL:Deckwatch/Values/Stamp:1.0";
const LABEL: &str = "IDL:Deckwatch/Values/Label:1.0";
const ONE_ID: u32 = 0x7fff_ff02;
const CHUNKED: u32 = 8;
const ID_LIST: u32 = 0x7fff_ff06;

type Place_ = Option<Arc<dyn PlaceValue>>;
type Point_ = Option<Arc<dyn PointValue>>;

fn byte_order(order: Order) -> ByteOrder {
    match order {
        Order::Big => ByteOrder::Big,
        Order::Little => ByteOrder::Little,
    }
}

fn read<T: for<'a> Parse<'a>>(octets: &[u8], order: Order) -> Result<T, DecodeError> {
    let mut r = Reader::new(octets, byte_order(order));
    let value = deckwatch_cdr::generated::share_read(&mut r, |r| T::parse(r))?;
    r.finish()?;
    Ok(value)
}

fn written<T: Write>(value: &T, order: Order) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets).with_order(byte_order(order));
    deckwatch_cdr::generated::share_write(&mut w, |w| value.write(w)).expect("it can be written");
    octets
}

fn made(order: Order, form: impl Fn(&mut Octets)) -> Vec<u8> {
    let mut octets = Octets::new(order);
    form(&mut octets);
    octets.octets
}

/// Checks that the octets are read as the value, and the value is written as the octets.
#[track_caller]
fn is_written_as<T: Write + for<'a> Parse<'a> + PartialEq + std::fmt::Debug>(
    value: &T,
    form: impl Fn(&mut Octets),
) {
    for order in ORDERS {
        let octets = made(order, &form);
        assert_eq!(written(value, order), octets, "{order:?}");
        assert_eq!(read::<T>(&octets, order).as_ref(), Ok(value), "{order:?}");
    }
}

#[track_caller]
fn is_read_as<T: for<'a> Parse<'a> + PartialEq + std::fmt::Debug>(
    value: &T,
    form: impl Fn(&mut Octets),
) {
    for order in ORDERS {
        assert_eq!(
            read::<T>(&made(order, &form), order).as_ref(),
            Ok(value),
            "{order:?}"
        );
    }
}

#[track_caller]
fn is_refused<T: for<'a> Parse<'a>>(fact: DecodeFact, form: impl Fn(&mut Octets)) {
    for order in ORDERS {
        let read = read::<T>(&made(order, &form), order).map(drop);
        assert_eq!(read.map_err(|error| error.fact), Err(fact), "{order:?}");
    }
}

/// How far back `target` is from an indirection's offset here.
fn back(o: &mut Octets, target: usize) {
    o.u32(u32::MAX);
    let distance = o.octets.len() - target;
    o.u32(0_u32.wrapping_sub(distance as u32));
}

#[test]
fn a_value_is_a_tag_its_repository_id_and_its_members() {
    is_written_as(&Some(point(3, -4)), |o| {
        o.u32(ONE_ID).string(POINT).u32(3).u32(-4_i32 as u32);
    });
    is_written_as(&None::<Arc<dyn PointValue>>, |o| {
        o.u32(0);
    });
    is_written_as(&Some(Arc::new(Label("ahoy".to_owned()))), |o| {
        o.u32(ONE_ID).string(LABEL).string("ahoy");
    });
    // Without an id, the value is of the declared type; a URL of code is passed over.
    is_read_as(&Some(point(3, 4)), |o| {
        o.u32(0x7fff_ff00).u32(3).u32(4);
    });
    is_read_as(&Some(point(3, 4)), |o| {
        o.u32(ONE_ID | 1)
            .string("http://x")
            .string(POINT)
            .u32(3)
            .u32(4);
    });
}

#[test]
fn a_shared_value_and_a_shared_id_are_indirections() {
    let one = point(1, 2);
    let pair = Pair {
        left: Some(one.clone()),
        right: Some(one),
    };
    is_written_as(&pair, |o| {
        o.u32(ONE_ID).string(POINT).u32(1).u32(2);
        back(o, 0);
    });
    let pair = Pair {
        left: Some(point(1, 2)),
        right: Some(point(1, 2)),
    };
    is_written_as(&pair, |o| {
        o.u32(ONE_ID).string(POINT).u32(1).u32(2).u32(ONE_ID);
        back(o, 4);
        o.u32(1).u32(2);
    });
}

#[test]
fn a_truncatable_value_comes_in_chunks_with_the_ids_of_its_bases() {
    let far: Arc<dyn PlaceValue> = Arc::new(place(2, "far", None));
    let near: Place_ = Some(Arc::new(place(1, "near", Some(far))));
    let form = |o: &mut Octets| {
        o.u32(ID_LIST | CHUNKED).u32(2).string(PLACE).string(POINT);
        // The numbers and the name, and behind the name a new chunk, which the next value ends before it begins.
        o.u32(17).u32(1).u32(-1_i32 as u32).string("near");
        o.u32(ID_LIST | CHUNKED).u32(2);
        back(o, 8);
        back(o, 44);
        o.u32(16)
            .u32(2)
            .u32(-2_i32 as u32)
            .string("far")
            .u32(4)
            .u32(0);
        // Both end here.
        o.u32(u32::MAX);
    };
    is_written_as(&near, form);
    // Where only a point is known, its numbers are read, and all else is passed over.
    is_read_as(&Some(point(7, 8)), |o| {
        o.u32(ID_LIST | CHUNKED)
            .u32(2)
            .string("IDL:Un/Known:1.0")
            .string(POINT);
        o.u32(8).u32(7).u32(8).u32(4).u32(1);
        o.u32(ONE_ID | CHUNKED).string("IDL:More:1.0").u32(4).u32(1);
        o.u32(u32::MAX);
    });
}

#[test]
fn members_may_begin_in_any_chunk_and_texts_be_divided_between_them() {
    let expected: Place_ = Some(Arc::new(place(1, "near", None)));
    is_read_as(&expected, |o| {
        o.u32(ONE_ID | CHUNKED).string(PLACE);
        o.u32(4).u32(1).u32(4).u32(-1_i32 as u32);
        o.u32(6)
            .u32(5)
            .raw(b"ne")
            .align(4)
            .u32(3)
            .raw(b"ar\0")
            .align(4);
        o.u32(0).u32(u32::MAX);
    });
    is_refused::<Place_>(DecodeFact::ValueDivided, |o| {
        o.u32(ONE_ID | CHUNKED)
            .string(PLACE)
            .u32(2)
            .raw(&[0, 0])
            .align(4)
            .u32(2)
            .raw(&[0, 0]);
        o.align(4).u32(u32::MAX);
    });
}

#[test]
fn a_custom_value_is_what_its_own_code_reads_and_writes() {
    let stamp: Option<Arc<dyn StampValue>> = Some(Arc::new(Stamp {
        seconds: 1.5,
        zone: "UTC".to_owned(),
    }));
    is_written_as(&stamp, |o| {
        o.u32(ONE_ID | CHUNKED).string(STAMP);
        let at = o.octets.len();
        let size = if (at + 4 + 8) % 8 == 0 { 16 } else { 20 };
        o.u32(size).string("UTC").u64(150).u32(u32::MAX);
    });
    // What its code leaves unread is passed over.
    is_read_as(&stamp, |o| {
        o.u32(ONE_ID | CHUNKED).string(STAMP);
        let size = if (o.octets.len() + 4 + 8).is_multiple_of(8) {
            20
        } else {
            24
        };
        o.u32(size).string("UTC").u64(150).u32(9).u32(u32::MAX);
    });
}

#[test]
fn values_that_lie_are_refused() {
    is_refused::<Point_>(DecodeFact::ValueTagUnknown, |o| {
        o.u32(7).u32(3).u32(4);
    });
    is_refused::<Point_>(DecodeFact::ValueFactoryMissing, |o| {
        o.u32(ONE_ID).string("IDL:Un/Known:1.0").u32(3).u32(4);
    });
    is_refused::<Point_>(DecodeFact::ValueFactoryMissing, |o| {
        o.u32(ONE_ID).string(LABEL).u32(3).u32(4);
    });
    for target in [-4_i32, 4, -1000, i32::MIN, i32::MAX] {
        is_refused::<Point_>(DecodeFact::ValueAstray, |o| {
            o.u32(u32::MAX).u32(target as u32);
        });
    }
    // A list that contains itself.
    is_refused::<Option<Arc<dyn NodeValue>>>(DecodeFact::ValueCyclic, |o| {
        o.u32(0x7fff_ff00).u32(1);
        back(o, 0);
    });
    is_refused::<Point_>(DecodeFact::Truncated, |o| {
        o.u32(ONE_ID | CHUNKED)
            .string(POINT)
            .u32(1 << 20)
            .u32(1)
            .u32(2)
            .u32(u32::MAX);
    });
    is_refused::<Point_>(DecodeFact::ChunkMalformed, |o| {
        o.u32(ONE_ID | CHUNKED)
            .string(POINT)
            .u32(12)
            .u32(1)
            .u32(2)
            .u32(3)
            .u32(u32::MAX);
    });
    is_refused::<Point_>(DecodeFact::ChunkMalformed, |o| {
        o.u32(ONE_ID | CHUNKED)
            .string(POINT)
            .u32(8)
            .u32(1)
            .u32(2)
            .u32(-2_i32 as u32);
    });
    // Read as its base, or within a value in chunks, a value has to come in chunks too.
    is_refused::<Point_>(DecodeFact::ChunkMalformed, |o| {
        o.u32(ID_LIST)
            .u32(2)
            .string("IDL:Un/Known:1.0")
            .string(POINT)
            .u32(1)
            .u32(2);
    });
    is_refused::<Place_>(DecodeFact::ChunkMalformed, |o| {
        o.u32(ONE_ID | CHUNKED)
            .string(PLACE)
            .u32(13)
            .u32(1)
            .u32(2)
            .string("")
            .align(4);
        o.u32(ONE_ID)
            .string(PLACE)
            .u32(1)
            .u32(2)
            .string("")
            .u32(0)
            .u32(u32::MAX);
    });
    is_refused::<Option<Arc<dyn NodeValue>>>(DecodeFact::NestingTooDeep, |o| {
        for number in 0..=u32::from(VALUE_NESTING_MAX) {
            o.u32(0x7fff_ff00).u32(number);
        }
        o.u32(0);
    });
}

#[test]
fn no_octet_of_a_value_can_do_harm() {
    let far: Arc<dyn PlaceValue> = Arc::new(place(2, "far", None));
    let near: Arc<dyn PlaceValue> = Arc::new(place(1, "near", Some(far.clone())));
    let values: Vec<Place_> = vec![Some(near.clone()), None, Some(far), Some(near)];
    for order in ORDERS {
        let octets = written(&values, order);
        assert_eq!(read::<Vec<Place_>>(&octets, order).as_ref(), Ok(&values));
        for len in 0..octets.len() {
            assert!(read::<Vec<Place_>>(&octets[..len], order).is_err(), "{len}");
        }
        for at in 0..octets.len() {
            for change in [1, 4, 8, 0x80, 0xff] {
                let mut changed = octets.clone();
                changed[at] ^= change;
                // Any outcome but a panic, or memory without end.
                let _ = read::<Vec<Place_>>(&changed, order);
                let _ = read::<Vec<Point_>>(&changed, order);
            }
        }
    }
}

/// `any` members of a value in chunks, with a value in them.
#[test]
fn an_any_in_a_custom_value_may_hold_a_value() {
    let inner = Any::from_value(&Some(
        Arc::new(place(5, "inner", None)) as Arc<dyn PlaceValue>
    ));
    let inner = inner.expect("an any");
    for order in ORDERS {
        let mut octets = Vec::new();
        let mut w = Writer::new(&mut octets).with_order(byte_order(order));
        let carrier = Carrier(inner.clone());
        let value: Arc<dyn deckwatch_cdr::valuetype::ValueBase> = Arc::new(carrier.clone());
        deckwatch_cdr::generated::share_write(&mut w, |w| {
            Some(value).write(w)?;
            7_u32.write(w)
        })
        .expect("it can be written");
        let factory = deckwatch_cdr::valuetype::ValueFactory::of::<Carrier>();
        deckwatch_cdr::valuetype::register_value_factory(Carrier::REPOSITORY_ID, factory);
        let mut r = Reader::new(&octets, byte_order(order));
        let back = deckwatch_cdr::generated::share_read(&mut r, |r| {
            let value = Option::<Arc<dyn deckwatch_cdr::valuetype::ValueBase>>::parse(r)?;
            Ok((value, u32::parse(r)?))
        });
        let (value, behind) = back.expect("it can be read");
        let back = deckwatch_cdr::valuetype::narrow::<Carrier>(value.expect("not null"));
        assert_eq!((back.as_deref(), behind), (Some(&carrier), 7));
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Carrier(Any);

impl Carrier {
    const REPOSITORY_ID: &'static str = "IDL:Deckwatch/Values/Carrier:1.0";
}

impl deckwatch_cdr::valuetype::ValueBase for Carrier {
    fn about(&self) -> &'static deckwatch_cdr::valuetype::About {
        &<Self as deckwatch_cdr::valuetype::State>::ABOUT
    }

    fn value_type_code(&self) -> deckwatch_cdr::TypeCode {
        deckwatch_cdr::TypeCode::value_base()
    }

    fn write_state(&self, w: &mut Writer<'_>) -> Result<(), deckwatch_cdr::EncodeError> {
        1_u8.write(w)?;
        self.0.write(w)?;
        2_u8.write(w)
    }

    fn widen(self: Arc<Self>, slot: &mut dyn std::any::Any) {
        deckwatch_cdr::valuetype::offer::<dyn deckwatch_cdr::valuetype::ValueBase>(slot, || {
            self.clone()
        });
        deckwatch_cdr::valuetype::offer::<Self>(slot, || self);
    }

    fn equals(&self, other: &dyn deckwatch_cdr::valuetype::ValueBase) -> bool {
        other.downcast_ref::<Self>() == Some(self)
    }
}

impl deckwatch_cdr::valuetype::State for Carrier {
    const ABOUT: deckwatch_cdr::valuetype::About = deckwatch_cdr::valuetype::About {
        ids: &[Self::REPOSITORY_ID],
        form: deckwatch_cdr::valuetype::Form::Truncatable,
    };

    fn parse_state(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        assert_eq!(u8::parse(r)?, 1);
        let any = Any::parse(r)?;
        assert_eq!(u8::parse(r)?, 2);
        Ok(Self(any))
    }
}
