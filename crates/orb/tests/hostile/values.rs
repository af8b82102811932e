//! Malformed arguments: lengths, nesting, TypeCodes, discriminators, references. For each, the server raises the
//! exception of its `DecodeFact` with COMPLETED_NO and counts it. The connection stays open, and the server still
//! serves.

use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use crate::support::Server;
use deckwatch_cdr::typecode::Case;
use deckwatch_cdr::value::Value;
use deckwatch_cdr::{Any, ByteOrder, DecodeFact, Parse, Reader, TypeCode, Write, Writer};
use deckwatch_giop::{
    Completion, Format, Frame, Ior, Message, ReplyStatus, RequestHeader, Response, SystemException,
    Target,
};
use deckwatch_orb::{Counter, ObjectRef, Orb, Servant, ServerRequest, SystemExceptionKind as Kind};

/// A servant that reads one value of each type and returns nothing.
struct Taker;

impl Servant for Taker {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:deckwatch.test/Taker:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let r = &mut request.arguments();
        match request.operation() {
            b"octets" => drop(Vec::<u8>::parse(r)?),
            b"doubles" => drop(Vec::<f64>::parse(r)?),
            b"texts" => drop(Vec::<String>::parse(r)?),
            b"nested" => drop(Vec::<Vec<Vec<bool>>>::parse(r)?),
            b"any" => drop(Any::parse(r)?),
            b"anys" => drop((Any::parse(r)?, Any::parse(r)?)),
            b"object" => drop(Option::<ObjectRef>::parse(r)?),
            _ => unreachable!("the tests call nothing else"),
        }
        request.reply()?;
        Ok(())
    }
}

/// A connection to the taker; tests send octets over it as the arguments of a request.
struct Wire {
    server: Server,
    key: Vec<u8>,
    stream: TcpStream,
}

impl Wire {
    fn new() -> Self {
        let server = Server::start();
        let taker: Arc<dyn Servant> = Arc::new(Taker);
        let reference = server.root.servant_to_reference(&taker).unwrap();
        let key = reference.object_key().unwrap().to_vec();
        let stream = TcpStream::connect(server.address()).unwrap();
        Self {
            server,
            key,
            stream,
        }
    }

    /// The exception that the server raises. Returns `None` if it served the request.
    fn ask(
        &mut self,
        operation: &str,
        order: ByteOrder,
        arguments: &[u8],
    ) -> Option<SystemException> {
        let header = RequestHeader {
            id: 1,
            response: Response::Outcome,
            target: Target::Key(&self.key),
            operation,
            contexts: &[],
        };
        let format = Format {
            order,
            ..Format::default()
        };
        let mut message = Vec::new();
        let open = header.begin(&mut message, format).unwrap();
        open.writer(&mut message).write_octets(arguments).unwrap();
        open.finish(&mut message).unwrap();
        self.stream.write_all(&message).unwrap();
        let answer = self.hear();
        let Ok(Message::Reply(mut reply)) = Message::parse(&answer) else {
            panic!("a reply")
        };
        (reply.status == ReplyStatus::SystemException)
            .then(|| SystemException::parse(&mut reply.body).unwrap())
    }

    fn hear(&mut self) -> Vec<u8> {
        let mut octets = vec![0; 12];
        self.stream.read_exact(&mut octets).unwrap();
        if let Frame::Need(missing) = Frame::parse(&octets, usize::MAX).unwrap() {
            octets.resize(12 + missing, 0);
            self.stream.read_exact(&mut octets[12..]).unwrap();
        }
        octets
    }

    fn malformed(&self) -> u64 {
        self.server.orb.counters().read(Counter::MalformedRequests)
    }
}

fn big(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut octets = Vec::new();
    write(&mut Writer::new(&mut octets).with_order(ByteOrder::Big));
    octets
}

fn longs(longs: &[u32]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_be_bytes()).collect()
}

const INDIRECTION: u32 = u32::MAX;
const TK_ALIAS: u32 = 21;
const TK_SEQUENCE: u32 = 19;
const TK_LONG: u32 = 3;

/// An alias without a name whose content is an indirection with this offset.
fn alias_of_indirection(offset: i32) -> Vec<u8> {
    let content = [INDIRECTION, offset.cast_unsigned()];
    longs(&[&[TK_ALIAS, 28, 0, 1, 0, 1, 0][..], &content].concat())
}

/// Nested Anys; the innermost contains a long.
fn anys_within_anys(depth: usize) -> Vec<u8> {
    const TK_ANY: u32 = 11;
    let mut words = vec![TK_ANY; depth];
    words.extend([TK_LONG, 7]);
    longs(&words)
}

/// An Any with a union over an enumeration of two values, with this discriminator.
fn union_any(number: u32) -> Vec<u8> {
    let colour = TypeCode::enumeration("IDL:C:1.0", "C", &["red", "green"]);
    let cases = [Case {
        label: Some(1),
        name: "g",
        type_code: &TypeCode::octet(),
    }];
    let union = TypeCode::union("IDL:U:1.0", "U", &colour, &cases);
    let mut octets = big(|w| union.write(w).unwrap());
    octets.resize(octets.len().next_multiple_of(4), 0);
    octets.extend(number.to_be_bytes());
    octets.push(9);
    octets
}

fn reference_with_profiles(count: u32) -> Vec<u8> {
    let profile = big(|w| w.write_octet_sequence(&[0; 8]).unwrap());
    let mut octets = big(|w| {
        w.write_string_octets(b"IDL:X:1.0").unwrap();
        w.write_u32(count).unwrap();
    });
    for _ in 0..count {
        octets.extend(0_u32.to_be_bytes());
        octets.extend(&profile);
    }
    octets
}

#[test]
fn each_lie_is_answered_by_its_exception_and_counted_and_the_connection_goes_on() {
    use DecodeFact as Fact;
    let long_any = longs(&[TK_LONG, 7]);
    // An Any of a sequence of longs, 20 octets, then an indirection into it, which is invalid.
    let sequence_any = longs(&[TK_SEQUENCE, 12, 0, TK_LONG, 0, 0]);
    let into_the_first = [
        &sequence_any[..],
        &longs(&[INDIRECTION, (-28_i32).cast_unsigned()]),
    ];
    let cases: [(&str, &str, Vec<u8>, Fact); 22] = [
        ("no arguments", "octets", vec![], Fact::Truncated),
        (
            "a length beyond the message",
            "octets",
            longs(&[9, 0]),
            Fact::LengthExceedsMessage,
        ),
        (
            "the greatest length",
            "octets",
            longs(&[u32::MAX]),
            Fact::LengthExceedsMessage,
        ),
        (
            "a count whose size wraps",
            "doubles",
            longs(&[0x2000_0001, 0, 0, 0]),
            Fact::LengthExceedsMessage,
        ),
        (
            "more texts than octets",
            "texts",
            longs(&[3, 1, 0]),
            Fact::LengthExceedsMessage,
        ),
        (
            "a text of no octets",
            "texts",
            longs(&[1, 0, 0]),
            Fact::StringLengthZero,
        ),
        (
            "a text without its null",
            "texts",
            longs(&[1, 4, 0x6161_6161]),
            Fact::StringNotTerminated,
        ),
        (
            "a text with a null",
            "texts",
            longs(&[1, 4, 0x6100_6100]),
            Fact::StringHoldsNull,
        ),
        (
            "counts within counts",
            "nested",
            longs(&[2, 1, 0xFFFF, 0, 0]),
            Fact::LengthExceedsMessage,
        ),
        (
            "a boolean of two",
            "nested",
            [&longs(&[1, 1, 1])[..], &[2]].concat(),
            Fact::BooleanNotZeroOrOne,
        ),
        (
            "an unknown kind",
            "any",
            longs(&[99, 0]),
            Fact::TypeCodeKindUnknown,
        ),
        (
            "a value that is cut",
            "any",
            long_any[..6].to_vec(),
            Fact::Truncated,
        ),
        (
            "an indirection to nowhere",
            "any",
            longs(&[INDIRECTION, 0xFFFF_FF00]),
            Fact::IndirectionAstray,
        ),
        (
            "an indirection forwards",
            "any",
            alias_of_indirection(8),
            Fact::IndirectionAstray,
        ),
        (
            "an indirection to itself",
            "any",
            alias_of_indirection(-4),
            Fact::IndirectionAstray,
        ),
        (
            "an indirection into the middle",
            "any",
            alias_of_indirection(-8),
            Fact::IndirectionAstray,
        ),
        (
            "an alias of itself",
            "any",
            alias_of_indirection(-32),
            Fact::TypeCodeEndless,
        ),
        (
            "an indirection into another Any",
            "anys",
            into_the_first.concat(),
            Fact::IndirectionAstray,
        ),
        (
            "Anys within Anys",
            "any",
            anys_within_anys(100),
            Fact::NestingTooDeep,
        ),
        (
            "a selector that is no enumerator",
            "any",
            union_any(2),
            Fact::EnumeratorUnknown,
        ),
        (
            "a hundred profiles",
            "object",
            reference_with_profiles(100),
            Fact::ReferenceMalformed,
        ),
        (
            "more profiles than octets",
            "object",
            longs(&[1, 0, 0x7FFF_FFFF]),
            Fact::LengthExceedsMessage,
        ),
    ];
    let mut wire = Wire::new();
    for (name, operation, arguments, fact) in cases {
        let before = wire.malformed();
        let raised = wire.ask(operation, ByteOrder::Big, &arguments);
        assert_eq!(raised, Some(SystemException::from_fact(fact)), "{name}");
        assert_eq!(wire.malformed(), before + 1, "{name}");
        assert_eq!(wire.ask("any", ByteOrder::Big, &long_any), None, "{name}");
    }
    assert_eq!(wire.server.orb.counters().read(Counter::ServantPanics), 0);
}

#[test]
fn what_looks_like_a_lie_and_is_none_is_served() {
    let mut wire = Wire::new();
    for depth in [0, 10, 40] {
        assert_eq!(
            wire.ask("any", ByteOrder::Big, &anys_within_anys(depth)),
            None,
            "{depth}"
        );
    }
    // Red has no case; the value is valid without one.
    for number in [0, 1] {
        assert_eq!(wire.ask("any", ByteOrder::Big, &union_any(number)), None);
    }
    for profiles in [0, 1, 64] {
        let raised = wire.ask("object", ByteOrder::Big, &reference_with_profiles(profiles));
        assert_eq!(raised, None, "{profiles}");
    }
    let empty = Any::from_dynamic(
        &TypeCode::sequence(&TypeCode::long(), 0),
        &Value::Elements(vec![]),
    );
    let empty = big(|w| empty.unwrap().write(w).unwrap());
    assert_eq!(wire.ask("any", ByteOrder::Big, &empty), None);
    assert_eq!(wire.malformed(), 0);
}

#[test]
fn a_reference_of_a_hundred_profiles_is_refused_as_text_and_in_a_message_alike() {
    let orb = Orb::builder().build().unwrap();
    let octets = reference_with_profiles(100);
    let fact = Ior::parse(&mut Reader::new(&octets, ByteOrder::Big)).map_err(|error| error.fact);
    assert_eq!(fact, Err(DecodeFact::ReferenceMalformed));
    // An encapsulation: the byte order, then the same octets at offset 4.
    let hex: String = [&[0; 4][..], &octets]
        .concat()
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect();
    let raised = orb.string_to_object(&format!("IOR:{hex}")).unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::BadParam, Completion::No)
    );
}
