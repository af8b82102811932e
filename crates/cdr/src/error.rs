//! What can be wrong with octets (a fault of their sender) and with values (ours).

use std::fmt;

/// What is wrong with octets, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DecodeError {
    /// What is wrong.
    pub fact: DecodeFact,
    /// Octets from the start of the slice the reader was given.
    pub offset: u32,
}

impl DecodeError {
    /// Returns `fact` at `offset`; offsets beyond 4 GiB become the largest.
    #[must_use]
    #[cold]
    pub fn new(fact: DecodeFact, offset: usize) -> Self {
        Self {
            fact,
            offset: u32::try_from(offset).unwrap_or(u32::MAX),
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at octet {})", self.fact.sentence(), self.offset)
    }
}

impl std::error::Error for DecodeError {}

macro_rules! facts {
    ($($(#[$doc:meta])* $name:ident => $sentence:literal,)*) => {
        /// What a decoder found wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum DecodeFact { $($(#[$doc])* $name,)* }

        impl DecodeFact {
            /// Every fact, for counters and tables.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The fact as a sentence without its full stop.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$name => $sentence,)* }
            }
        }
    };
}

facts! {
    /// Fewer octets remain than the value needs.
    Truncated => "the octets end before the value does",
    /// A length or count claims more than the remaining octets can hold.
    LengthExceedsMessage => "a length claims more than the remaining octets can hold",
    /// A bounded string or sequence is longer than its bound.
    BoundExceeded => "a bounded value is longer than its bound",
    /// A boolean is neither 0 nor 1.
    BooleanNotZeroOrOne => "a boolean is neither 0 nor 1",
    /// A string's length is 0, though its terminating null counts.
    StringLengthZero => "a string has length 0, though its terminating null counts",
    /// A string does not end in a null.
    StringNotTerminated => "a string does not end in a null",
    /// A string holds a null before its end.
    StringHoldsNull => "a string holds a null before its end",
    /// Octets are not text of the transmission code set.
    NotInCodeSet => "octets are not text of the transmission code set",
    /// A wide character or string in GIOP 1.0, which has none.
    WideInGiop10 => "GIOP 1.0 has no wide characters",
    /// The length of a wide character or string is no multiple of its code unit.
    WideLengthOdd => "a wide string's length is no multiple of its code unit",
    /// An enumerator's number is not one of its enumeration's.
    EnumeratorUnknown => "a number is not one of the enumeration's",
    /// A union's discriminator has no case and the union needs one.
    DiscriminatorUnknown => "a union's discriminator selects no case",
    /// A `fixed` holds a half-octet that is no digit or no sign, or more digits than its type.
    FixedMalformed => "a fixed-point value is not packed decimal of its type",
    /// The first octet of an encapsulation is neither 0 nor 1.
    ByteOrderUnknown => "an encapsulation's byte order is neither 0 nor 1",
    /// An encapsulation is too short to hold its byte order.
    EncapsulationEmpty => "an encapsulation holds no byte order",
    /// Values nest deeper than the limit.
    NestingTooDeep => "values nest deeper than the limit",
    /// A TypeCode's kind is not one of CORBA 3's.
    TypeCodeKindUnknown => "a TypeCode kind is not known",
    /// A TypeCode is not allowed where it stands (for instance `void` as a member's type).
    TypeCodeMisplaced => "a TypeCode may not stand here",
    /// An indirection points outside its TypeCode or at no TypeCode.
    IndirectionAstray => "an indirection points at no TypeCode",
    /// A TypeCode has more nodes, members or text than the limit.
    TypeCodeTooLarge => "a TypeCode is larger than the limit",
    /// A value whose type takes no octets is repeated more often than the limit, or a type contains itself without a
    /// sequence between.
    TypeCodeEndless => "a TypeCode describes a value without end",
    /// A value of this type cannot be carried (a value type that is not known, a local interface).
    TypeUnsupported => "values of this type are not supported",
    /// An Any holds another type than the one asked for.
    TypeMismatch => "the value has another type than the one asked for",
    /// Octets remain after the last value.
    OctetsLeftOver => "octets remain after the last value",
    /// A value has more parts than may be held at once.
    ValueTooLarge => "a value has more parts than the limit",
    /// An object reference is malformed.
    ReferenceMalformed => "an object reference is malformed",
    /// A value of at most eight octets begins in one fragment of GIOP 1.1 and ends in another.
    ValueDivided => "a value is divided between two fragments",
    /// A value of a value type begins with a tag that is none.
    ValueTagUnknown => "a value begins with a tag that is none",
    /// A value comes in chunks that do not fit what is in them.
    ChunkMalformed => "a value's chunks do not fit what is in them",
    /// An indirection points at no value that came before it, or at one of another type.
    ValueAstray => "an indirection points at no value of its type",
    /// A value contains itself, where a tree was asked for.
    ValueCyclic => "a value contains itself",
    /// No factory is registered for a value's type.
    ValueFactoryMissing => "no factory is registered for a value's type",
    /// The process has no memory for a value.
    MemoryExhausted => "there is no memory for the value",
}

/// Why a value cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EncodeError {
    /// The message would exceed the writer's limit.
    MessageTooLarge,
    /// A length does not fit the wire's 32 bits.
    LengthTooLarge,
    /// A bounded string or sequence is longer than its bound.
    BoundExceeded,
    /// A string holds a null.
    StringHoldsNull,
    /// A character is not in the transmission code set.
    NotInCodeSet,
    /// A wide character or string in GIOP 1.0, which has none.
    WideInGiop10,
    /// A wide character or string for a peer that has no code set for it.
    WideSetMissing,
    /// A value does not have the type it is written as.
    TypeMismatch,
    /// An enumerator or discriminator is not one of its type's.
    EnumeratorUnknown,
    /// A value cannot be carried: its value type is unknown, or it is of a local interface. Or not in this form: a
    /// state that no TypeCode describes ([`Opaque`](crate::value::Opaque)).
    TypeUnsupported,
    /// Values nest deeper than the limit.
    NestingTooDeep,
    /// The process has no memory for the message.
    MemoryExhausted,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MessageTooLarge => "the message would exceed its size limit",
            Self::LengthTooLarge => "a length does not fit 32 bits",
            Self::BoundExceeded => "a bounded value is longer than its bound",
            Self::StringHoldsNull => "a string holds a null",
            Self::NotInCodeSet => "a character is not in the transmission code set",
            Self::WideInGiop10 => "GIOP 1.0 has no wide characters",
            Self::WideSetMissing => "the peer offers no code set for wide characters",
            Self::TypeMismatch => "a value does not have the type it is written as",
            Self::EnumeratorUnknown => "an enumerator is not one of its type's",
            Self::TypeUnsupported => "values of this type are not supported",
            Self::NestingTooDeep => "values nest deeper than the limit",
            Self::MemoryExhausted => "there is no memory for the message",
        })
    }
}

impl std::error::Error for EncodeError {}

const _: () = assert!(size_of::<DecodeError>() <= 16 && size_of::<EncodeError>() <= 16);
