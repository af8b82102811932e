//! System exceptions (CORBA 3.3 part 1, clause 8.12.3).

use deckwatch_cdr::{DecodeError, DecodeFact, EncodeError, Parse, Reader, Write, Writer};
use std::fmt;

/// How far the operation had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Completion {
    /// It had ended.
    Yes = 0,
    /// It had not begun.
    No = 1,
    /// Nobody can tell.
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

/// What the ORB raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SystemException {
    /// Which exception.
    pub kind: SystemExceptionKind,
    /// Why, within the kind: see [`minor`].
    pub minor: u32,
    /// How far the operation had come.
    pub completed: Completion,
}

/// Minor codes.
pub mod minor {
    /// The OMG's vendor id: the upper twenty bits of a standard minor code.
    pub const OMG_VMCID: u32 = 0x4F4D_0000;

    /// The vendor id reserved for codes without a registered vendor; the facts of this ORB's decoders are under it.
    pub const EXPERIMENTAL_VMCID: u32 = 0xFFFF_F000;

    /// No standard code applies.
    pub const NONE: u32 = 0;

    /// The standard minor code of this number.
    #[must_use]
    pub const fn omg(number: u32) -> u32 {
        OMG_VMCID | number
    }

    /// UNKNOWN: a user exception that the operation does not raise.
    pub const UNKNOWN_USER_EXCEPTION: u32 = omg(1);
    /// UNKNOWN: a system exception that is not known here.
    pub const UNKNOWN_SYSTEM_EXCEPTION: u32 = omg(2);
    /// BAD_PARAM: an object URL's scheme is not known.
    pub const BAD_SCHEME_NAME: u32 = omg(7);
    /// BAD_PARAM: an object URL's address is malformed.
    pub const BAD_ADDRESS: u32 = omg(8);
    /// BAD_PARAM: what follows an object URL's address is malformed.
    pub const BAD_SCHEMA_SPECIFIC: u32 = omg(9);
    /// BAD_PARAM: a string is no reference for another reason.
    pub const BAD_REFERENCE_STRING: u32 = omg(10);
    /// BAD_PARAM: a list of policies has two of one kind.
    pub const POLICY_TWICE: u32 = omg(30);
    /// MARSHAL: wide characters in a request of GIOP 1.0.
    pub const WIDE_IN_GIOP_1_0_REQUEST: u32 = omg(5);
    /// MARSHAL: wide characters in a reply of GIOP 1.0.
    pub const WIDE_IN_GIOP_1_0_REPLY: u32 = omg(6);
    /// BAD_TYPECODE: an incomplete TypeCode was to be marshalled.
    pub const TYPE_CODE_INCOMPLETE: u32 = omg(1);
    /// BAD_TYPECODE: a member's TypeCode is illegal.
    pub const TYPE_CODE_MEMBER_ILLEGAL: u32 = omg(2);
    /// BAD_OPERATION: the object has no such operation.
    pub const OPERATION_UNKNOWN: u32 = omg(2);
    /// BAD_INV_ORDER: the ORB has been shut down.
    pub const ORB_SHUT_DOWN: u32 = omg(4);
    /// DATA_CONVERSION: a character is not in the transmission code set.
    pub const CHARACTER_UNMAPPABLE: u32 = omg(1);
    /// CODESET_INCOMPATIBLE: no transmission code set is common to both.
    pub const CODE_SETS_DISJOINT: u32 = omg(1);
    /// CODESET_INCOMPATIBLE: the code set of a service context is not supported.
    pub const CODE_SET_UNSUPPORTED: u32 = omg(2);
    /// INV_OBJREF: wide characters need a code set component that the reference lacks.
    pub const WIDE_CODE_SET_MISSING: u32 = omg(1);
    /// INTF_REPOS: there is no interface repository.
    pub const INTERFACE_REPOSITORY_ABSENT: u32 = omg(1);
    /// OBJECT_NOT_EXIST: the object is not active, or its adapter does not exist and cannot be made.
    pub const ADAPTER_UNKNOWN: u32 = omg(2);
    /// BAD_PARAM: the object id is none that the adapter can have made.
    pub const OBJECT_ID_INVALID: u32 = omg(14);
    /// BAD_INV_ORDER: the operation would wait for the request that calls it.
    pub const WOULD_DEADLOCK: u32 = omg(3);
    /// BAD_INV_ORDER: a servant manager has been set before.
    pub const SERVANT_MANAGER_SET: u32 = omg(6);
    /// BAD_INV_ORDER: an adapter that is being destroyed makes no others.
    pub const ADAPTER_BEING_DESTROYED: u32 = omg(17);
    /// OBJ_ADAPTER: an adapter activator raised a system exception, or the adapter's manager is inactive.
    pub const ADAPTER_UNAVAILABLE: u32 = omg(1);
    /// OBJ_ADAPTER: no default servant has been set.
    pub const NO_SERVANT: u32 = omg(3);
    /// OBJ_ADAPTER: no servant manager has been set, or one of the wrong kind.
    pub const NO_SERVANT_MANAGER: u32 = omg(4);
    /// OBJ_ADAPTER: a servant activator gave a servant that the adapter's policies do not allow.
    pub const INCARNATION_AGAINST_POLICY: u32 = omg(5);
    /// TRANSIENT: the adapter is being destroyed.
    pub const ADAPTER_DESTROYED: u32 = omg(4);
    /// TRANSIENT: the request was discarded for want of resources, or because the adapter discards.
    pub const REQUEST_DISCARDED: u32 = omg(1);
    /// TRANSIENT: no profile of the reference could be used.
    pub const NO_USABLE_PROFILE: u32 = omg(2);
    /// TRANSIENT: the request was cancelled.
    pub const REQUEST_CANCELLED: u32 = omg(3);
    /// IMP_LIMIT: no profile of the reference can be used.
    pub const PROFILES_UNUSABLE: u32 = omg(1);
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
    /// The unknown exception.
    Unknown = "UNKNOWN";
    /// An invalid parameter was passed.
    BadParam = "BAD_PARAM";
    /// Memory could not be had.
    NoMemory = "NO_MEMORY";
    /// A limit of the implementation was passed.
    ImpLimit = "IMP_LIMIT";
    /// Communication failed during the operation.
    CommFailure = "COMM_FAILURE";
    /// The object reference is malformed.
    InvObjref = "INV_OBJREF";
    /// The caller may not.
    NoPermission = "NO_PERMISSION";
    /// The ORB is at fault.
    Internal = "INTERNAL";
    /// A parameter or result could not be marshalled.
    Marshal = "MARSHAL";
    /// The ORB could not be initialised.
    Initialize = "INITIALIZE";
    /// The operation exists and is not implemented.
    NoImplement = "NO_IMPLEMENT";
    /// A TypeCode is malformed.
    BadTypecode = "BAD_TYPECODE";
    /// The object has no such operation.
    BadOperation = "BAD_OPERATION";
    /// A resource was exhausted.
    NoResources = "NO_RESOURCES";
    /// The response to a deferred request is not there yet.
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
    /// A policy cannot be had, or contradicts another.
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
    /// The quality of service cannot be had.
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

/// The table of what a decoder found and what is raised for it.
impl From<DecodeError> for SystemException {
    fn from(error: DecodeError) -> Self {
        Self::from_fact(error.fact)
    }
}

impl SystemException {
    /// What is raised for a decoder's fact; not completed, as a server has not begun.
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
            DecodeFact::TypeUnsupported => (Kind::NoImplement, experimental(fact)),
            DecodeFact::TypeMismatch => (Kind::BadParam, experimental(fact)),
            DecodeFact::ReferenceMalformed => (Kind::InvObjref, experimental(fact)),
            other => (Kind::Marshal, experimental(other)),
        };
        Self::new(kind, minor, Completion::No)
    }
}

/// The minor code of a fact under the experimental vendor id: its place in [`DecodeFact::ALL`], from 1.
fn experimental(fact: DecodeFact) -> u32 {
    let place = DecodeFact::ALL.iter().position(|known| *known == fact);
    minor::EXPERIMENTAL_VMCID | (place.map_or(0, |place| place as u32 + 1))
}

/// What is raised where a value of ours cannot be written; not completed.
impl From<EncodeError> for SystemException {
    fn from(error: EncodeError) -> Self {
        use SystemExceptionKind as Kind;
        let (kind, minor) = match error {
            EncodeError::NotInCodeSet => (Kind::DataConversion, minor::CHARACTER_UNMAPPABLE),
            EncodeError::WideInGiop10 => (Kind::Marshal, minor::WIDE_IN_GIOP_1_0_REQUEST),
            EncodeError::MessageTooLarge
            | EncodeError::LengthTooLarge
            | EncodeError::NestingTooDeep => (Kind::ImpLimit, minor::NONE),
            EncodeError::BoundExceeded
            | EncodeError::StringHoldsNull
            | EncodeError::TypeMismatch
            | EncodeError::EnumeratorUnknown => (Kind::BadParam, minor::NONE),
            EncodeError::TypeUnsupported => (Kind::NoImplement, minor::NONE),
            _ => (Kind::Marshal, minor::NONE),
        };
        Self::new(kind, minor, Completion::No)
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
