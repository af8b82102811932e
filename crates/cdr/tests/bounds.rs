//! The bounds of one message: what reaches a bound is read, and one more is refused with its fact.

use std::sync::Arc;
use std::thread;

use deckwatch_cdr::limits::{
    NESTING_MAX, TYPE_CODE_MEMBERS_MAX, TYPE_CODE_NODES_MAX, TYPE_CODE_PATH_MAX, VALUE_JOINS_MAX,
    VALUE_NESTING_MAX,
};
use deckwatch_cdr::typecode::{Member, ValueModifier};
use deckwatch_cdr::value::skip_value;
use deckwatch_cdr::valuetype::ValueFactory;
use deckwatch_cdr::{ByteOrder, DecodeFact, EncodeError, Parse, Reader, TypeCode, Write, Writer};

fn octets(code: &TypeCode) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets).with_order(ByteOrder::Big);
    code.write(&mut w).expect("a TypeCode");
    octets
}

/// What is wrong with these octets, as a `T`.
fn fact<T: for<'a> Parse<'a>>(octets: &[u8]) -> Option<DecodeFact> {
    let mut r = Reader::new(octets, ByteOrder::Big);
    let fact = T::parse(&mut r).err().map(|error| error.fact);
    assert!(fact.is_some() || r.finish().is_ok());
    fact
}

fn structure(id: &str, members: &[TypeCode]) -> TypeCode {
    let member = |type_code| Member {
        name: "m",
        type_code,
    };
    let members: Vec<_> = members.iter().map(member).collect();
    TypeCode::structure(id, "S", &members)
}

#[test]
fn type_code_of_too_many_nodes_is_refused() {
    // The struct is a node itself.
    let of = |members| {
        let code = structure("IDL:S:1.0", &vec![TypeCode::long(); members]);
        fact::<TypeCode>(&octets(&code))
    };
    assert_eq!(of(TYPE_CODE_NODES_MAX - 1), None);
    assert_eq!(of(TYPE_CODE_NODES_MAX), Some(DecodeFact::TypeCodeTooLarge));
}

#[test]
fn type_code_of_too_many_members_altogether_is_refused() {
    let enumeration = |len| TypeCode::enumeration("IDL:E:1.0", "E", &vec!["e"; len]);
    let of = |len| {
        let both = [enumeration(len), enumeration(TYPE_CODE_MEMBERS_MAX / 2)];
        fact::<TypeCode>(&octets(&structure("IDL:S:1.0", &both)))
    };
    // The struct has two members.
    let room = TYPE_CODE_MEMBERS_MAX - TYPE_CODE_MEMBERS_MAX / 2 - 2;
    assert_eq!(of(room), None);
    assert_eq!(of(room + 1), Some(DecodeFact::TypeCodeTooLarge));
}

/// A struct with a path of so many aliases: `struct { sequence<struct of parts of the path>; path }`.
///
/// Octets nest less deeply than the path is long: each part of the path ends with an indirection to the part before.
/// The path is measured from its far end first, because elements of a sequence are measured on their own.
fn with_path(aliases: usize) -> TypeCode {
    const PART: usize = 50;
    let path = (0..aliases).fold(TypeCode::long(), |content, number| {
        TypeCode::alias(&format!("IDL:A{number}:1.0"), "A", &content)
    });
    let content = |code: TypeCode, _| code.content_type().expect("an alias");
    let end = |len: usize| (len..aliases).fold(path.clone(), content);
    let parts: Vec<_> = (PART..aliases).step_by(PART).map(end).collect();
    let parts = structure(
        "IDL:P:1.0",
        &[&parts[..], std::slice::from_ref(&path)].concat(),
    );
    let sequence = TypeCode::sequence(&parts, 0);
    let parts = sequence.content_type().expect("a sequence");
    let path = parts.member_type(parts.member_count() - 1).expect("it");
    structure("IDL:S:1.0", &[sequence, path])
}

#[test]
fn type_code_with_too_long_a_path_is_refused() {
    // The path ends with `long`.
    let of = |aliases| fact::<TypeCode>(&octets(&with_path(aliases)));
    assert_eq!(of(TYPE_CODE_PATH_MAX - 1), None);
    assert_eq!(of(TYPE_CODE_PATH_MAX), Some(DecodeFact::NestingTooDeep));
}

#[test]
fn types_and_values_that_nest_too_deeply_are_refused() {
    let nested =
        |levels| (0..levels).fold(TypeCode::long(), |code, _| TypeCode::sequence(&code, 0));
    let deepest = octets(&nested(NESTING_MAX));
    assert_eq!(fact::<TypeCode>(&deepest), None);
    // sequence<deepest>: the writer refuses it too.
    let refused = nested(NESTING_MAX + 1).write(&mut Writer::new(&mut Vec::new()));
    assert_eq!(refused, Err(EncodeError::NestingTooDeep));
    let size = u32::try_from(deepest.len() + 8).expect("short");
    let head = [19, size, 0].map(u32::to_be_bytes).concat();
    let deeper = [&head[..], &deepest, &[0; 4]].concat();
    assert_eq!(fact::<TypeCode>(&deeper), Some(DecodeFact::NestingTooDeep));
    // Structs, each with a sequence of such structs; the innermost sequence is empty.
    let inner = TypeCode::sequence(&TypeCode::recursive("IDL:S:1.0"), 0);
    let code = structure("IDL:S:1.0", &[inner]);
    let skipped = |structs: u8| {
        let mut counts = vec![1; usize::from(structs)];
        counts[usize::from(structs) - 1] = 0;
        let octets = counts.into_iter().flat_map(u32::to_be_bytes);
        let octets: Vec<u8> = octets.collect();
        skip_value(&code, &mut Reader::new(&octets, ByteOrder::Big))
    };
    assert_eq!(skipped(NESTING_MAX / 2), Ok(()));
    let error = skipped(NESTING_MAX / 2 + 1).expect_err("it is too deep");
    assert_eq!(error.fact, DecodeFact::NestingTooDeep);
}

/// A list of texts.
#[derive(Debug, PartialEq)]
struct List {
    texts: Vec<String>,
    next: Option<Arc<List>>,
}

const LIST_ID: &str = "IDL:List:1.0";

deckwatch_cdr::valuetype! {
    List as [] ids ["IDL:List:1.0"] Plain {} { texts: Vec<String>, next: Option<Arc<List>> }
    code TypeCode::value(LIST_ID, "List", ValueModifier::None, None, &[])
}

deckwatch_cdr::valuetype! {
    @declared List, "IDL:List:1.0", Some(ValueFactory::of::<List>()), List::_type_code()
}

const VALUE_TAG: u32 = 0x7fff_ff00;
const CHUNKED: u32 = 8;

#[test]
fn values_in_one_another_beyond_the_limit_are_refused() {
    let of = |depth: u16| {
        let without_texts = [VALUE_TAG, 0].map(u32::to_be_bytes).concat();
        let values = [without_texts.repeat(depth.into()), vec![0; 4]].concat();
        fact::<Option<Arc<List>>>(&values)
    };
    assert_eq!(of(VALUE_NESTING_MAX), None);
    assert_eq!(of(VALUE_NESTING_MAX + 1), Some(DecodeFact::NestingTooDeep));
}

#[test]
fn texts_in_several_chunks_beyond_the_limit_are_refused() {
    let chunk = |octets: &[u8]| {
        let size = u32::try_from(octets.len()).expect("short");
        let mut chunk = [&size.to_be_bytes(), octets].concat();
        chunk.resize(chunk.len().next_multiple_of(4), 0);
        chunk
    };
    let of = |texts: usize| {
        let text = [chunk(&[0, 0, 0, 3, b'a']), chunk(b"b\0")].concat();
        let count = u32::try_from(texts).expect("few").to_be_bytes();
        let value = [
            (VALUE_TAG | CHUNKED).to_be_bytes().to_vec(),
            chunk(&count),
            text.repeat(texts),
            chunk(&[0; 4]),
            (-1_i32).to_be_bytes().to_vec(),
        ];
        fact::<Option<Arc<List>>>(&value.concat())
    };
    // Texts that are kept take no stack each.
    let kept = thread::scope(|scope| {
        let small = thread::Builder::new().stack_size(256 << 10);
        let reading = small.spawn_scoped(scope, || of(VALUE_JOINS_MAX));
        reading.expect("a thread").join().expect("no panic")
    });
    assert_eq!(kept, None);
    assert_eq!(of(VALUE_JOINS_MAX + 1), Some(DecodeFact::ValueTooLarge));
}
