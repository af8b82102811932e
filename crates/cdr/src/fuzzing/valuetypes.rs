//! Values of valuetypes from octets, as code generated from IDL reads them: a base, a type derived from it that may be
//! truncated, a list, a tree, a value box and a custom type. The types are those of this IDL:
//!
//! ```idl
//! valuetype Point { public long x; public long y; };
//! valuetype Place : truncatable Point { public string name; public Place next; };
//! valuetype Node { public long number; public Node next; };
//! valuetype Tree { public Tree left; public Tree right; };
//! valuetype Label string;
//! custom valuetype Stamp { public string zone; public Point at; };
//! ```

#![allow(
    unreachable_pub,
    reason = "the macro is for types that other crates see"
)]

use std::sync::{Arc, Once};

use super::{HEADER_SIZE, order_of};
use crate::generated::{share_read, share_write};
use crate::typecode::{ValueMember, ValueModifier};
use crate::valuetype::{CustomMarshal, ValueBase, ValueFactory, Valuetype, register_value_factory};
use crate::{
    Any, ByteOrder, CharSet, Codec, DecodeError, Divided, EncodeError, Parse, Reader, TypeCode,
    Write, Writer,
};

/// Takes octets as a sequence of values of one of the types. What is accepted is written and read again: sharing stays
/// as it was, and the second writing is equal to the first.
///
/// # Panics
/// If one of these guarantees does not hold.
pub fn valuetypes(octets: &[u8]) {
    are_accepted(octets);
}

/// As [`valuetypes`]. Returns whether the octets are accepted.
fn are_accepted(octets: &[u8]) -> bool {
    static KNOWN: Once = Once::new();
    KNOWN.call_once(|| {
        for factory in [
            ValueFactory::of::<Point>(),
            ValueFactory::of::<Place>(),
            ValueFactory::of::<Node>(),
            ValueFactory::of::<Tree>(),
            ValueFactory::of::<Label>(),
            ValueFactory::of::<Stamp>(),
        ] {
            register_value_factory(factory.repository_id(), factory);
        }
    });
    let Some((&flags, octets)) = octets.split_first() else {
        return false;
    };
    let message = Message {
        octets,
        order: order_of(flags),
        phase: usize::from(flags >> 4 & 1) * 4,
        fragment_size: (flags & 0x20 != 0).then(|| 16 + 8 * usize::from(flags >> 6)),
    };
    match flags >> 1 & 7 {
        0 => message.take::<dyn PointValue>(),
        1 => message.take::<dyn PlaceValue>(),
        2 => message.take::<dyn NodeValue>(),
        3 => message.take::<dyn TreeValue>(),
        4 => message.take::<Label>(),
        5 => message.take::<dyn StampValue>(),
        _ => message.take::<dyn ValueBase>(),
    }
}

/// Octets, and how they are read.
struct Message<'a> {
    octets: &'a [u8],
    order: ByteOrder,
    phase: usize,
    /// The octets of each fragment of GIOP 1.1, if the message comes in fragments.
    fragment_size: Option<usize>,
}

type Values<T> = Vec<Option<Arc<T>>>;

impl Message<'_> {
    fn take<T: Valuetype + ?Sized>(&self) -> bool {
        let ends = self.fragment_size.map_or_else(Vec::new, |size| {
            let ends = (size..self.octets.len()).step_by(size);
            ends.map(|end| end as u32).collect()
        });
        let divided = Divided::new(self.octets, &ends);
        let mut reader = if ends.is_empty() {
            Reader::new(self.octets, self.order).with_phase(self.phase)
        } else {
            Reader::of_divided(&divided, self.order, HEADER_SIZE)
        }
        .with_codec(utf8());
        let Ok(values) = share_read(&mut reader, parse_all::<T>) else {
            return false;
        };
        for order in [self.order.opposite(), self.order] {
            let octets = written(&values, order);
            assert!(
                octets.len() <= 16 * self.octets.len() + 1024,
                "each value is written once"
            );
            let again = read::<T>(&octets, order);
            assert!(
                written(&again, order) == octets,
                "values and their sharing stay the same"
            );
        }
        // A value in an Any is walked over by its TypeCode.
        for value in values.into_iter().flatten().take(4) {
            in_any(value.into_base());
        }
        true
    }
}

fn parse_all<T: Valuetype + ?Sized>(r: &mut Reader<'_>) -> Result<Values<T>, DecodeError> {
    Values::parse(r)
}

fn utf8() -> Codec {
    Codec::DEFAULT.with_chars(CharSet::Utf8)
}

fn written<T: Valuetype + ?Sized>(values: &Values<T>, order: ByteOrder) -> Vec<u8> {
    let mut octets = Vec::new();
    let w = Writer::new(&mut octets).with_order(order);
    share_write(&mut w.with_codec(utf8()), |w| values.write(w)).expect("what was read is written");
    octets
}

fn read<T: Valuetype + ?Sized>(octets: &[u8], order: ByteOrder) -> Values<T> {
    let mut r = Reader::new(octets, order).with_codec(utf8());
    let values = share_read(&mut r, parse_all::<T>).expect("what was written is read");
    r.finish().expect("it is read whole");
    values
}

/// A value comes out of an Any as it went into it.
fn in_any(value: Arc<dyn ValueBase>) {
    let value = Some(value);
    // The walk has limits of its own.
    let Ok(any) = Any::from_value(&value) else {
        return;
    };
    let back = any
        .extract::<Option<Arc<dyn ValueBase>>>()
        .expect("a value in an Any is read");
    let order = ByteOrder::NATIVE;
    assert!(
        written(&vec![back], order) == written(&vec![value], order),
        "a value in an Any stays the same"
    );
}

fn code(
    id: &str,
    modifier: ValueModifier,
    base: Option<&TypeCode>,
    members: [&TypeCode; 2],
) -> TypeCode {
    let members = members.map(|type_code| ValueMember {
        name: "m",
        type_code,
        is_public: true,
    });
    TypeCode::value(id, "V", modifier, base, &members)
}

/// The handle of values of `$name`, whose only base is `$base`, if any.
macro_rules! held {
    ($held:ident: $parent:ident, $accessor:ident, $name:ident, $id:literal, $($of:ident)+) => {
        trait $held: $parent {
            fn $accessor(&self) -> &$name;
        }

        $(impl $held for $of {
            fn $accessor(&self) -> &$name {
                self
            }
        })+

        crate::valuetype! { @held $held $accessor $name $id }
    };
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Point {
    x: i32,
    y: i32,
}

held! { PointValue: ValueBase, as_point, Point, "IDL:Point:1.0", Point Place }

crate::valuetype! {
    Point as [dyn PointValue] ids ["IDL:Point:1.0"] Plain { } { x: i32, y: i32 }
    code code(Point::REPOSITORY_ID, ValueModifier::None, None, [&TypeCode::long(); 2])
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Place {
    base: Point,
    name: String,
    next: Option<Arc<dyn PlaceValue>>,
}

held! { PlaceValue: PointValue, as_place, Place, "IDL:Place:1.0", Place }

crate::valuetype! { @deref Place base: Point }

crate::valuetype! {
    Place as [dyn PlaceValue, dyn PointValue] ids ["IDL:Place:1.0", "IDL:Point:1.0"] Truncatable
    { base: Point } { name: String, next: Option<Arc<dyn PlaceValue>> }
    code code(
        Place::REPOSITORY_ID,
        ValueModifier::Truncatable,
        Some(&Point::_type_code()),
        [&TypeCode::unbounded_string(), &TypeCode::recursive(Place::REPOSITORY_ID)],
    )
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Node {
    number: i32,
    next: Option<Arc<dyn NodeValue>>,
}

held! { NodeValue: ValueBase, as_node, Node, "IDL:Node:1.0", Node }

crate::valuetype! {
    Node as [dyn NodeValue] ids ["IDL:Node:1.0"] Plain { }
    { number: i32, next: Option<Arc<dyn NodeValue>> }
    code code(
        Node::REPOSITORY_ID,
        ValueModifier::None,
        None,
        [&TypeCode::long(), &TypeCode::recursive(Node::REPOSITORY_ID)],
    )
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Tree {
    left: Option<Arc<dyn TreeValue>>,
    right: Option<Arc<dyn TreeValue>>,
}

held! { TreeValue: ValueBase, as_tree, Tree, "IDL:Tree:1.0", Tree }

crate::valuetype! {
    Tree as [dyn TreeValue] ids ["IDL:Tree:1.0"] Plain { }
    { left: Option<Arc<dyn TreeValue>>, right: Option<Arc<dyn TreeValue>> }
    code code(
        Tree::REPOSITORY_ID,
        ValueModifier::None,
        None,
        [&TypeCode::recursive(Tree::REPOSITORY_ID); 2],
    )
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Label(String);

crate::valuetype! {
    box Label "IDL:Label:1.0" String,
    code TypeCode::value_box(Label::REPOSITORY_ID, "Label", &TypeCode::unbounded_string())
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Stamp {
    zone: String,
    at: Option<Arc<dyn PointValue>>,
}

held! { StampValue: ValueBase, as_stamp, Stamp, "IDL:Stamp:1.0", Stamp }

crate::valuetype! {
    Stamp as [dyn StampValue] ids ["IDL:Stamp:1.0"] Custom { }
    { zone: String, at: Option<Arc<dyn PointValue>> }
    code code(
        Stamp::REPOSITORY_ID,
        ValueModifier::Custom,
        None,
        [&TypeCode::unbounded_string(), &Point::_type_code()],
    )
}

impl CustomMarshal for Stamp {
    fn marshal(&self, output: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.zone.write(output)?;
        self.at.write(output)
    }

    fn unmarshal(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            zone: String::parse(input)?,
            at: Option::parse(input)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_accepted_or_refused_as_their_names_say() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/valuetypes");
        let mut seeds = 0;
        for seed in std::fs::read_dir(folder).expect("the corpus") {
            let path = seed.expect("a seed").path();
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            let octets = std::fs::read(&path).expect("readable");
            assert_eq!(
                are_accepted(&octets),
                !name.starts_with("refused-"),
                "{name}"
            );
            // Cut short, any outcome but a panic.
            (0..octets.len()).for_each(|len| valuetypes(&octets[..len]));
            seeds += 1;
        }
        assert!(seeds >= 20, "{seeds}");
    }

    /// Returns the octets of ids looked up for `count` values whose ids are this list, and whether they are accepted.
    fn looked_up(count: u32, id_size: usize) -> (usize, bool) {
        use crate::limits::VALUE_IDS_MAX;
        use crate::valuetype::factory::counted::octets_looked_up;
        use crate::walk::ids::write_indirection;
        use crate::walk::tags::{CHUNKED, FIRST_TAG, ID_LIST};

        let mut octets = Vec::new();
        let mut w = Writer::new(&mut octets).with_order(ByteOrder::Big);
        w.write_u32(count).expect("room");
        let mut list = None;
        for _ in 0..count {
            w.write_u32(FIRST_TAG | ID_LIST | CHUNKED).expect("room");
            if let Some(list) = list {
                write_indirection(list, &mut w).expect("room");
            } else {
                list = Some(w.position());
                w.write_u32(VALUE_IDS_MAX as u32).expect("room");
                let unknown = w.position();
                "U".repeat(id_size).write(&mut w).expect("room");
                w.align(4).expect("room");
                for _ in 2..VALUE_IDS_MAX {
                    write_indirection(unknown, &mut w).expect("room");
                }
                Point::REPOSITORY_ID.write(&mut w).expect("room");
            }
            for number in [8, 1, 2, u32::MAX] {
                w.write_u32(number).expect("room");
            }
        }
        octets.insert(0, 0);
        let before = octets_looked_up();
        let is_accepted = are_accepted(&octets);
        (octets_looked_up() - before, is_accepted)
    }

    #[test]
    fn ids_that_many_values_share_are_looked_up_once() {
        // The second id is too long to be that of a type.
        for id_size in [1_000, 100_000] {
            let (looked_up, is_accepted) = looked_up(500, id_size);
            assert!(is_accepted);
            assert!(looked_up < 20_000, "{looked_up} octets of {id_size}");
        }
    }
}
