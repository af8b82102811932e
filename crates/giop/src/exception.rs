//! System exceptions (CORBA 3.3 part 1, clause 8.12.3).

use crate::minor;
use deckwatch_cdr::{DecodeError, DecodeFact, EncodeError, Parse, Reader, Write, Writer};
use std::fmt;

/// Whether the operation completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Completion {
    /// It completed.
    Yes = 0,
    /// It did not begin.
    No = 1,
    /// Unknown.
    Maybe = 2,
}

impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yes => "completed",
            Self::No => "not completed",
            Self::Maybe => "maybe completed",
        })
    }
}

/// A system exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SystemException {
    /// Which exception.
    pub kind: SystemExceptionKind,
    /// The reason, within the kind: see [`minor`].
    pub minor: u32,
    /// Whether the operation completed.
    pub completed: Completion,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $idl:literal;)*) => {
        /// Which system exception.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum SystemExceptionKind { $($(#[$doc])* $name,)* }

        impl SystemExceptionKind {
            /// Every standard system exception.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in the standard, for instance `COMM_FAILURE`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $idl,)* }
            }

            /// The repository id.
            #[must_use]
            pub const fn repository_id(self) -> &'static str {
                match self { $(Self::$name => concat!("IDL:omg.org/CORBA/", $idl, ":1.0"),)* }
            }
        }
    };
}

kinds! {
    /// The cause is unknown.
    Unknown = "UNKNOWN";
    /// An invalid parameter was passed.
    BadParam = "BAD_PARAM";
    /// Memory is exhausted.
    NoMemory = "NO_MEMORY";
    /// A limit of the implementation was exceeded.
    ImpLimit = "IMP_LIMIT";
    /// Communication failed during the operation.
    CommFailure = "COMM_FAILURE";
    /// The object reference is malformed.
    InvObjref = "INV_OBJREF";
    /// The caller has no permission.
    NoPermission = "NO_PERMISSION";
    /// The ORB is at fault.
    Internal = "INTERNAL";
    /// A parameter or result could not be marshalled.
    Marshal = "MARSHAL";
    /// The ORB could not be initialised.
    Initialize = "INITIALIZE";
    /// The operation exists but is not implemented.
    NoImplement = "NO_IMPLEMENT";
    /// A TypeCode is malformed.
    BadTypecode = "BAD_TYPECODE";
    /// The object has no such operation.
    BadOperation = "BAD_OPERATION";
    /// A resource was exhausted.
    NoResources = "NO_RESOURCES";
    /// The response to a deferred request is not here yet.
    NoResponse = "NO_RESPONSE";
    /// Persistent storage failed.
    PersistStore = "PERSIST_STORE";
    /// Operations were called in a wrong order.
    BadInvOrder = "BAD_INV_ORDER";
    /// The object could not be reached; trying again may help.
    Transient = "TRANSIENT";
    /// Memory could not be freed.
    FreeMem = "FREE_MEM";
    /// An identifier is malformed.
    InvIdent = "INV_IDENT";
    /// A flag is invalid.
    InvFlag = "INV_FLAG";
    /// The interface repository could not be used.
    IntfRepos = "INTF_REPOS";
    /// A context object is wrong.
    BadContext = "BAD_CONTEXT";
    /// The object adapter failed.
    ObjAdapter = "OBJ_ADAPTER";
    /// Data could not be converted.
    DataConversion = "DATA_CONVERSION";
    /// The object does not exist, and never will again.
    ObjectNotExist = "OBJECT_NOT_EXIST";
    /// A transaction is needed.
    TransactionRequired = "TRANSACTION_REQUIRED";
    /// The transaction was rolled back.
    TransactionRolledback = "TRANSACTION_ROLLEDBACK";
    /// The transaction is invalid.
    InvalidTransaction = "INVALID_TRANSACTION";
    /// A policy is not available, or contradicts another.
    InvPolicy = "INV_POLICY";
    /// No code set is common to both ends.
    CodesetIncompatible = "CODESET_INCOMPATIBLE";
    /// A rebind was needed and forbidden.
    Rebind = "REBIND";
    /// The time allowed has passed.
    Timeout = "TIMEOUT";
    /// The transaction service is unavailable.
    TransactionUnavailable = "TRANSACTION_UNAVAILABLE";
    /// The transaction's mode does not fit.
    TransactionMode = "TRANSACTION_MODE";
    /// The quality of service is not available.
    BadQos = "BAD_QOS";
    /// The activity is invalid.
    InvalidActivity = "INVALID_ACTIVITY";
    /// The activity was completed.
    ActivityCompleted = "ACTIVITY_COMPLETED";
    /// An activity is needed.
    ActivityRequired = "ACTIVITY_REQUIRED";
    /// The distributable thread was cancelled.
    ThreadCancelled = "THREAD_CANCELLED";
}

impl SystemExceptionKind {
    /// The exception of a repository id.
    #[must_use]
    pub fn from_repository_id(id: &[u8]) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|kind| kind.repository_id().as_bytes() == id)
    }
}

impl SystemException {
    /// An exception.
    #[must_use]
    pub const fn new(kind: SystemExceptionKind, minor: u32, completed: Completion) -> Self {
        Self {
            kind,
            minor,
            completed,
        }
    }

    /// The same with another completion status.
    #[must_use]
    pub const fn with_completion(self, completed: Completion) -> Self {
        Self { completed, ..self }
    }
}

impl std::error::Error for SystemException {}

impl Write for SystemException {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.write_string_octets(self.kind.repository_id().as_bytes())?;
        w.write_u32(self.minor)?;
        w.write_u32(self.completed as u32)
    }
}

impl<'a> Parse<'a> for SystemException {
    const SIZE_MIN: usize = 13;

    /// An exception of an unknown repository id is UNKNOWN with the standard minor code.
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let id = r.read_string_octets()?;
        let minor = r.read_u32()?;
        let completed = match r.read_u32()? {
            0 => Completion::Yes,
            1 => Completion::No,
            2 => Completion::Maybe,
            _ => {
                return Err(DecodeError::new(
                    DecodeFact::EnumeratorUnknown,
                    r.position() - 4,
                ));
            }
        };
        Ok(match SystemExceptionKind::from_repository_id(id) {
            Some(kind) => Self {
                kind,
                minor,
                completed,
            },
            None => Self {
                kind: SystemExceptionKind::Unknown,
                minor: minor::UNKNOWN_SYSTEM_EXCEPTION,
                completed,
            },
        })
    }
}

/// The table from decoder facts to system exceptions.
impl From<DecodeError> for SystemException {
    fn from(error: DecodeError) -> Self {
        Self::from_fact(error.fact)
    }
}

impl SystemException {
    /// Returns the exception for a decoder fact; not completed, as a server has not begun.
    #[must_use]
    pub fn from_fact(fact: DecodeFact) -> Self {
        use SystemExceptionKind as Kind;
        let (kind, minor) = match fact {
            DecodeFact::NotInCodeSet => (Kind::DataConversion, minor::CHARACTER_UNMAPPABLE),
            DecodeFact::WideInGiop10 => (Kind::Marshal, minor::WIDE_IN_GIOP_1_0_REQUEST),
            DecodeFact::TypeCodeMisplaced => (Kind::BadTypecode, minor::TYPE_CODE_MEMBER_ILLEGAL),
            DecodeFact::TypeCodeKindUnknown
            | DecodeFact::IndirectionAstray
            | DecodeFact::TypeCodeEndless => (Kind::BadTypecode, experimental(fact)),
            DecodeFact::TypeCodeTooLarge
            | DecodeFact::ValueTooLarge
            | DecodeFact::NestingTooDeep => (Kind::ImpLimit, experimental(fact)),
            DecodeFact::TypeUnsupported | DecodeFact::ValueCyclic => {
                (Kind::NoImplement, experimental(fact))
            }
            DecodeFact::MemoryExhausted => (Kind::NoMemory, experimental(fact)),
            DecodeFact::TypeMismatch => (Kind::BadParam, experimental(fact)),
            DecodeFact::ValueFactoryMissing => (Kind::Marshal, minor::VALUE_FACTORY_MISSING),
            DecodeFact::ReferenceMalformed => (Kind::InvObjref, experimental(fact)),
            other => (Kind::Marshal, experimental(other)),
        };
        Self::new(kind, minor, Completion::No)
    }
}

/// The minor code of a fact under the experimental vendor id: its index in [`DecodeFact::ALL`], from 1.
fn experimental(fact: DecodeFact) -> u32 {
    let place = DecodeFact::ALL.iter().position(|known| *known == fact);
    minor::EXPERIMENTAL_VMCID | (place.map_or(0, |place| place as u32 + 1))
}

/// Returns the exception for a value of ours that cannot be written; not completed. Where a decoder would raise the
/// same, the minor code is the decoder's.
impl From<EncodeError> for SystemException {
    fn from(error: EncodeError) -> Self {
        use SystemExceptionKind as Kind;
        let (kind, minor) = match error {
            EncodeError::NotInCodeSet => (Kind::DataConversion, minor::CHARACTER_UNMAPPABLE),
            EncodeError::WideInGiop10 => (Kind::Marshal, minor::WIDE_IN_GIOP_1_0_REQUEST),
            EncodeError::WideSetMissing => (Kind::InvObjref, minor::WIDE_CODE_SET_MISSING),
            EncodeError::MessageTooLarge | EncodeError::LengthTooLarge => {
                (Kind::ImpLimit, minor::MESSAGE_TOO_LARGE)
            }
            EncodeError::NestingTooDeep => {
                (Kind::ImpLimit, experimental(DecodeFact::NestingTooDeep))
            }
            EncodeError::MemoryExhausted => {
                (Kind::NoMemory, experimental(DecodeFact::MemoryExhausted))
            }
            EncodeError::BoundExceeded => (Kind::Marshal, experimental(DecodeFact::BoundExceeded)),
            EncodeError::StringHoldsNull => {
                (Kind::BadParam, experimental(DecodeFact::StringHoldsNull))
            }
            EncodeError::TypeMismatch => (Kind::BadParam, experimental(DecodeFact::TypeMismatch)),
            EncodeError::EnumeratorUnknown => (Kind::BadParam, minor::ENUM_OUT_OF_RANGE),
            EncodeError::TypeUnsupported => {
                (Kind::NoImplement, experimental(DecodeFact::TypeUnsupported))
            }
            _ => (Kind::Marshal, minor::NONE),
        };
        Self::new(kind, minor, Completion::No)
    }
}

impl SystemException {
    /// The same exception for a reply: its operation has completed. Wide characters that GIOP 1.0 cannot carry have the
    /// code for replies.
    #[must_use]
    pub fn of_reply(self) -> Self {
        let minor = match (self.kind, self.minor) {
            (SystemExceptionKind::Marshal, minor::WIDE_IN_GIOP_1_0_REQUEST) => {
                minor::WIDE_IN_GIOP_1_0_REPLY
            }
            (_, minor) => minor,
        };
        Self::new(self.kind, minor, Completion::Yes)
    }
}

const _: () = assert!(size_of::<SystemException>() <= 16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ByteOrder;
    use std::collections::HashSet;

    #[test]
    fn every_decode_fact_raises_an_exception_that_tells_it() {
        let mut raised = HashSet::new();
        for fact in DecodeFact::ALL {
            let exception = SystemException::from(DecodeError::new(*fact, 0));
            assert_ne!(exception.kind, SystemExceptionKind::Unknown, "{fact:?}");
            assert_ne!(exception.minor, minor::NONE, "{fact:?}");
            assert!(
                raised.insert(exception),
                "{fact:?} cannot be told from another fact"
            );
        }
    }

    /// How many minor codes the annex has for an exception.
    fn standard_codes(kind: SystemExceptionKind) -> u32 {
        use SystemExceptionKind as Kind;
        match kind {
            Kind::BadParam => 43,
            Kind::BadInvOrder => 26,
            Kind::Marshal => 9,
            Kind::NoImplement => 8,
            Kind::ObjAdapter => 7,
            Kind::ObjectNotExist => 5,
            Kind::Transient => 4,
            Kind::Unknown | Kind::BadTypecode | Kind::InvPolicy | Kind::Timeout => 3,
            Kind::BadContext
            | Kind::BadOperation
            | Kind::CodesetIncompatible
            | Kind::DataConversion
            | Kind::IntfRepos
            | Kind::InvObjref
            | Kind::NoResources => 2,
            Kind::ImpLimit | Kind::Initialize | Kind::NoResponse => 1,
            _ => 0,
        }
    }

    #[test]
    fn a_standard_minor_code_is_one_that_the_annex_has_for_its_exception() {
        let encode = [
            EncodeError::MessageTooLarge,
            EncodeError::BoundExceeded,
            EncodeError::StringHoldsNull,
            EncodeError::NotInCodeSet,
            EncodeError::WideInGiop10,
            EncodeError::WideSetMissing,
            EncodeError::EnumeratorUnknown,
            EncodeError::TypeUnsupported,
        ];
        let decode = DecodeFact::ALL.iter().copied();
        let raised = decode.map(SystemException::from_fact);
        for exception in raised.chain(encode.map(SystemException::from)) {
            for exception in [exception, exception.of_reply()] {
                let is_standard = exception.minor & 0xFFFF_F000 == minor::OMG_VMCID;
                let number = exception.minor & 0xFFF;
                let has = (1..=standard_codes(exception.kind)).contains(&number);
                assert!(!is_standard || has, "{exception}");
                assert!(number != 0, "{exception}");
            }
        }
    }

    #[test]
    fn wide_text_of_giop_1_0_has_a_code_for_requests_and_one_for_replies() {
        let sent = SystemException::from(EncodeError::WideInGiop10);
        let read = SystemException::from_fact(DecodeFact::WideInGiop10);
        assert_eq!((sent.minor, read.minor), (minor::omg(5), minor::omg(5)));
        let returned = sent.of_reply();
        assert_eq!(
            (returned.minor, returned.completed),
            (minor::omg(6), Completion::Yes)
        );
        assert_eq!(read.of_reply(), returned);
    }

    #[test]
    fn every_exception_comes_back_as_it_was_written() {
        for kind in SystemExceptionKind::ALL {
            for order in [ByteOrder::Big, ByteOrder::Little] {
                let exception = SystemException::new(*kind, minor::omg(3), Completion::Maybe);
                let mut buffer = Vec::new();
                exception
                    .write(&mut Writer::new(&mut buffer).with_order(order))
                    .unwrap();
                assert_eq!(
                    SystemException::parse(&mut Reader::new(&buffer, order)),
                    Ok(exception)
                );
            }
        }
    }

    #[test]
    fn a_foreign_exception_is_unknown_with_the_standard_minor() {
        let mut buffer = Vec::new();
        let mut w = Writer::new(&mut buffer);
        w.write_string_octets(b"IDL:acme/OUT_OF_COFFEE:1.0")
            .unwrap();
        w.write_u32(7).unwrap();
        w.write_u32(1).unwrap();
        let exception =
            SystemException::parse(&mut Reader::new(&buffer, ByteOrder::NATIVE)).unwrap();
        assert_eq!(
            (exception.kind, exception.minor),
            (
                SystemExceptionKind::Unknown,
                minor::UNKNOWN_SYSTEM_EXCEPTION
            )
        );
    }
}
