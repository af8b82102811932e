//! System exceptions in words: the fact behind the minor code, and what to do about it.

use crate::foreign_minor::{self, OMNIORB_VMCID, SAME_IDL, TAO_VMCID};
use crate::minor::{self, EXPERIMENTAL_VMCID, OMG_VMCID, omg};
use crate::{SystemException, SystemExceptionKind as Kind, own_minor as own, priority_facts};
use deckwatch_cdr::DecodeFact;
use std::fmt;

/// A system exception in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What happened: a sentence without its full stop.
    pub fact: &'static str,
    /// What to do: a sentence without its full stop; may be empty.
    pub remedy: &'static str,
}

impl SystemException {
    /// Explains the exception as far as kind and minor code are known.
    #[must_use]
    pub fn explain(&self) -> Explanation {
        let is_this =
            |known: &&(Kind, u32, &str, &str)| known.0 == self.kind && known.1 == self.minor;
        if let Some(&(_, _, fact, remedy)) = known().find(is_this) {
            return Explanation { fact, remedy };
        }
        if let Some(fact) = self.decode_fact() {
            return Explanation {
                fact: fact.sentence(),
                remedy: SAME_IDL,
            };
        }
        let (vendor, number) = (self.minor & VMCID_MASK, self.minor & !VMCID_MASK);
        let (fact, remedy) =
            foreign_minor::explain(self.kind, vendor, number).unwrap_or_else(|| general(self.kind));
        Explanation { fact, remedy }
    }

    /// Returns what a decoder of this ORB, or a similar one, found wrong, if the minor code tells.
    #[must_use]
    pub fn decode_fact(&self) -> Option<DecodeFact> {
        let place = self.minor.checked_sub(EXPERIMENTAL_VMCID)?.checked_sub(1)?;
        DecodeFact::ALL.get(place as usize).copied()
    }
}

/// Kind, completion, minor code with its maker, and the explanation.
impl fmt::Display for SystemException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.name())?;
        match (self.minor, self.minor & VMCID_MASK) {
            (minor::NONE, _) | (_, EXPERIMENTAL_VMCID) => {}
            (number, OMG_VMCID) => write!(f, " (OMG minor code {})", number & !VMCID_MASK)?,
            (number, vendor) => match vendor_name(vendor) {
                Some(name) => write!(f, " (minor code {} of {name})", number & !VMCID_MASK)?,
                None => write!(f, " (minor code {number:#010x})")?,
            },
        }
        let Explanation { fact, remedy } = self.explain();
        write!(f, ", {}: {fact}", self.completed)?;
        if !remedy.is_empty() {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

/// The bits of a minor code that identify its vendor.
const VMCID_MASK: u32 = 0xFFFF_F000;

/// Vendors of ORBs still in use, by the vendor ids of their minor codes.
const fn vendor_name(vendor: u32) -> Option<&'static str> {
    Some(match vendor {
        OMNIORB_VMCID => "omniORB",
        TAO_VMCID => "TAO",
        _ => return None,
    })
}

const ADDRESS: &str =
    "check that the server runs and that the reference is not older than its last start";
const RETRY: &str = "try again later";

/// All known minor codes.
fn known() -> impl Iterator<Item = &'static (Kind, u32, &'static str, &'static str)> {
    FACTS.iter().chain(priority_facts::FACTS)
}

/// Known minor codes, by kind and number.
const FACTS: &[(Kind, u32, &str, &str)] = &[
    (
        Kind::Unknown,
        minor::UNKNOWN_USER_EXCEPTION,
        "the server raised a user exception that the operation does not declare",
        SAME_IDL,
    ),
    (
        Kind::Unknown,
        minor::UNKNOWN_SYSTEM_EXCEPTION,
        "the server raised a system exception that is not of the standard",
        "look into the server's log",
    ),
    (
        Kind::BadParam,
        minor::BAD_SCHEME_NAME,
        "the text of the reference begins with no known scheme",
        "begin it with IOR:, corbaloc: or corbaname:",
    ),
    (
        Kind::BadParam,
        minor::BAD_ADDRESS,
        "the address in the text of the reference cannot be read",
        "write corbaloc::HOST:PORT/KEY",
    ),
    (
        Kind::BadParam,
        minor::BAD_SCHEMA_SPECIFIC,
        "what follows the address in the text of the reference cannot be read",
        "write corbaloc::HOST:PORT/KEY or corbaname::HOST:PORT#NAME",
    ),
    (
        Kind::BadParam,
        minor::BAD_REFERENCE_STRING,
        "the text is no object reference, or its name leads nowhere",
        "begin it with IOR:, corbaloc: or corbaname:",
    ),
    (
        Kind::BadParam,
        minor::POLICY_TWICE,
        "two policies of one kind were given at once",
        "",
    ),
    (
        Kind::NoPermission,
        own::ACCESS_DENIED,
        "the access table of the service has no rule that permits this",
        "add a rule to the file that the service was given with --access",
    ),
    (
        Kind::ImpLimit,
        own::CONSUMER_SHARE_FULL,
        "your address or user holds its share of the channel's places for consumers",
        "disconnect consumers, or start the channel with a larger --share-per-peer",
    ),
    (
        Kind::ImpLimit,
        own::SUPPLIER_SHARE_FULL,
        "your address or user holds its share of the channel's places for suppliers",
        "disconnect suppliers, or start the channel with a larger --share-per-peer",
    ),
    (
        Kind::BadParam,
        own::INVALID_ID,
        "an object id is too long, or a name cannot be one",
        "",
    ),
    (
        Kind::BadParam,
        own::INITIAL_REFERENCE_UNKNOWN,
        "no initial reference has this name",
        "give -ORBInitRef NAME=REFERENCE",
    ),
    (
        Kind::Marshal,
        minor::WIDE_IN_GIOP_1_0_REQUEST,
        "GIOP 1.0 has no wide characters",
        "the server must publish references of GIOP 1.1 or later",
    ),
    (
        Kind::Marshal,
        minor::WIDE_IN_GIOP_1_0_REPLY,
        "GIOP 1.0 has no wide characters",
        "the server must publish references of GIOP 1.1 or later",
    ),
    (
        Kind::BadTypecode,
        minor::TYPE_CODE_INCOMPLETE,
        "a TypeCode was to be sent before it was complete",
        "",
    ),
    (
        Kind::BadTypecode,
        minor::TYPE_CODE_MEMBER_ILLEGAL,
        "a TypeCode has a member whose type may not stand there",
        "",
    ),
    (
        Kind::BadOperation,
        minor::OPERATION_UNKNOWN,
        "the object has no operation of this name",
        SAME_IDL,
    ),
    (
        Kind::BadInvOrder,
        minor::ORB_SHUT_DOWN,
        "the ORB has been shut down",
        "",
    ),
    (
        Kind::BadInvOrder,
        minor::WOULD_DEADLOCK,
        "the operation would wait for the request that calls it",
        "do not wait for completion within a servant",
    ),
    (
        Kind::BadInvOrder,
        minor::REQUEST_INVOKED_AGAIN,
        "the dynamic request was invoked or sent before",
        "create another request",
    ),
    (
        Kind::BadInvOrder,
        minor::REQUEST_SENT_AGAIN,
        "the dynamic request was invoked or sent before",
        "create another request",
    ),
    (
        Kind::BadInvOrder,
        minor::REQUEST_NOT_SENT,
        "the dynamic request was not sent",
        "send it by send_deferred first",
    ),
    (
        Kind::BadInvOrder,
        minor::RESPONSE_RETRIEVED,
        "the response of the dynamic request was fetched before",
        "",
    ),
    (
        Kind::BadInvOrder,
        minor::REQUEST_NOT_DEFERRED,
        "the dynamic request was not deferred",
        "send it by send_deferred",
    ),
    (
        Kind::BadInvOrder,
        minor::ARGUMENTS_OUT_OF_ORDER,
        "a dynamic servant has asked for its arguments again, or after it raised",
        "",
    ),
    (
        Kind::BadInvOrder,
        minor::RESULT_OUT_OF_ORDER,
        "a dynamic servant has set its result again, before it asked for its arguments, or after it raised",
        "",
    ),
    (
        Kind::BadParam,
        minor::NOT_AN_EXCEPTION,
        "what a dynamic servant raises is no exception",
        "",
    ),
    (
        Kind::BadInvOrder,
        minor::SERVANT_MANAGER_SET,
        "the adapter has a servant manager already",
        "",
    ),
    (
        Kind::BadInvOrder,
        minor::ADAPTER_BEING_DESTROYED,
        "the adapter is being destroyed and makes no others",
        "",
    ),
    (
        Kind::BadParam,
        minor::OBJECT_ID_INVALID,
        "the adapter chooses object ids itself and cannot have chosen this one",
        "choose USER_ID, or use an id that the adapter gave",
    ),
    (
        Kind::DataConversion,
        minor::CHARACTER_UNMAPPABLE,
        "a character is not in the code set agreed on with the peer",
        "",
    ),
    (
        Kind::CodesetIncompatible,
        minor::CODE_SETS_DISJOINT,
        "no code set is common to both sides",
        "",
    ),
    (
        Kind::CodesetIncompatible,
        minor::CODE_SET_UNSUPPORTED,
        "the client chose a code set that is not had here",
        "",
    ),
    (
        Kind::InvObjref,
        minor::WIDE_CODE_SET_MISSING,
        "the reference does not say in which code set its server reads wide characters",
        "",
    ),
    (
        Kind::InvObjref,
        own::NO_KNOWN_PROFILE,
        "no profile of the reference is IIOP",
        "`deckwatch ior` shows what it holds",
    ),
    (
        Kind::InvObjref,
        own::FORWARD_TO_NIL,
        "the server forwards the call to no object",
        "look for the servant manager or naming entry that gave nil",
    ),
    (
        Kind::BadParam,
        minor::WIDE_CODE_SET_UNSAID,
        "the server was sent wide characters and no code set was chosen for them",
        "call it by a reference that has its code sets, not by a corbaloc",
    ),
    (
        Kind::BadParam,
        minor::ENUM_OUT_OF_RANGE,
        "a number is none of its enumeration's",
        SAME_IDL,
    ),
    (
        Kind::Marshal,
        minor::CODE_SETS_CHANGED,
        "two choices of code sets were told on one connection",
        "",
    ),
    (
        Kind::ImpLimit,
        minor::MESSAGE_TOO_LARGE,
        "the message would be larger than the ORB may send",
        "raise the ORB's largest message, at both ends",
    ),
    (
        Kind::IntfRepos,
        minor::INTERFACE_REPOSITORY_ABSENT,
        "there is no interface repository",
        "",
    ),
    (
        Kind::ObjectNotExist,
        omg(1),
        "no object of this key is active at the server",
        "the reference may be older than the server's last start, or the object has been deactivated",
    ),
    (
        Kind::ObjectNotExist,
        minor::ADAPTER_UNKNOWN,
        "the server has no active object of this key, or no adapter for it",
        "the reference may be older than the server's last start, or the object has been deactivated",
    ),
    (
        Kind::ObjAdapter,
        minor::NO_SERVANT,
        "the adapter has no servant for the object, and no default one",
        "",
    ),
    (
        Kind::ObjAdapter,
        minor::ADAPTER_UNAVAILABLE,
        "the adapter's manager has been deactivated, or the adapter could not be made",
        "",
    ),
    (
        Kind::ObjAdapter,
        minor::NO_SERVANT_MANAGER,
        "the adapter has no servant manager, or one of the wrong kind",
        "the server has to set a servant activator (RETAIN) or a servant locator (NON_RETAIN)",
    ),
    (
        Kind::ObjAdapter,
        minor::INCARNATION_AGAINST_POLICY,
        "the servant activator gave a servant that is active under another id already",
        "the server has to make a new servant for each object, or to choose MULTIPLE_ID",
    ),
    (
        Kind::Transient,
        minor::REQUEST_DISCARDED,
        "the server turned the request away: its adapter discards requests or is full",
        RETRY,
    ),
    (
        Kind::Transient,
        minor::NO_USABLE_PROFILE,
        "no profile of the reference could be used",
        "`deckwatch ior` shows what it holds",
    ),
    (
        Kind::Transient,
        minor::REQUEST_CANCELLED,
        "the request was cancelled",
        "",
    ),
    (
        Kind::Transient,
        minor::ADAPTER_DESTROYED,
        "the object adapter is being destroyed",
        RETRY,
    ),
    (
        Kind::Transient,
        own::CONNECT_FAILED,
        "no connection to the server could be made",
        ADDRESS,
    ),
    (
        Kind::Transient,
        own::CONNECT_REFUSED,
        "nobody listens at the server's address",
        ADDRESS,
    ),
    (
        Kind::Transient,
        own::HOST_UNKNOWN,
        "the name of the server's host has no address",
        "check the host in the reference; the server may have to publish another (-ORBPublishEndpoints)",
    ),
    (
        Kind::Transient,
        own::HOST_UNREACHABLE,
        "there is no way to the server's host",
        "check the network, and the host in the reference",
    ),
    (
        Kind::Transient,
        own::CONNECT_TIMED_OUT,
        "the server's host did not answer within the connection timeout",
        "check that the host is up and that no firewall drops the packets",
    ),
    (
        Kind::Transient,
        own::FORWARD_CIRCLE,
        "servers forward the call to one another without end",
        "look for a naming entry or key that leads back to itself",
    ),
    (
        Kind::CommFailure,
        own::SEND_FAILED,
        "the connection broke before the whole request had gone",
        "try again: it has not been served",
    ),
    (
        Kind::CommFailure,
        own::CONNECTION_LOST,
        "the connection broke before the whole reply had come",
        "look whether the server has died; whether it served the request is not known",
    ),
    (
        Kind::CommFailure,
        own::CONNECTION_CLOSED,
        "the server closed the connection in order before it served the request",
        "try again: it has not been served",
    ),
    (
        Kind::CommFailure,
        own::MESSAGE_REFUSED,
        "the server answered that it could not read the request",
        "it may not know the GIOP version in its own reference, or limit the size of messages",
    ),
    (
        Kind::CommFailure,
        own::REPLY_MALFORMED,
        "what came back is no GIOP message",
        "check that the port belongs to a CORBA server",
    ),
    (
        Kind::ObjAdapter,
        own::NOT_BIDIRECTIONAL,
        "the object's adapter takes no requests over connections that its own ORB has opened",
        "give the adapter the bidirectional policy BOTH",
    ),
    (
        Kind::CommFailure,
        own::ADDRESSING_REFUSED,
        "the server wants the object named in a way that does not exist, or that it has already been named in",
        "",
    ),
    (
        Kind::Timeout,
        own::TIMED_OUT_CONNECTING,
        "the time allowed had passed before there was a connection",
        "check that the host is up and that no firewall drops the packets",
    ),
    (
        Kind::Timeout,
        own::TIMED_OUT_SENDING,
        "the time allowed had passed before the request had gone",
        "look whether the server still reads its connections",
    ),
    (
        Kind::Timeout,
        own::TIMED_OUT_WAITING,
        "the time allowed had passed before the reply had come",
        "the server may still serve the request; allow more time, or look what keeps it",
    ),
    (
        Kind::Timeout,
        own::END_TIME_PASSED,
        "the end time of the request or its reply had passed, so that it was not served",
        "allow more time, look what keeps the request, or compare the clocks of both hosts",
    ),
    (
        Kind::ImpLimit,
        own::START_TOO_FAR,
        "the start time of the request or its reply lies further ahead than a call waits",
        "make the call when its time is near",
    ),
];

/// The explanation of a kind, for unknown minor codes.
const fn general(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Unknown => (
            "the servant failed in a way it does not tell",
            "look into the server's log",
        ),
        Kind::BadParam => ("a parameter is not valid", ""),
        Kind::NoMemory => ("memory could not be had", ""),
        Kind::ImpLimit => ("a limit of the implementation was passed", ""),
        Kind::CommFailure => ("communication failed during the call", ""),
        Kind::InvObjref => (
            "the object reference is malformed",
            "`deckwatch ior` shows what it holds",
        ),
        Kind::NoPermission => ("the caller may not do this", ""),
        Kind::Internal => ("an ORB failed within", "look into the log of the server"),
        Kind::Marshal => (
            "a parameter or result could not be put into octets or read from them",
            SAME_IDL,
        ),
        Kind::Initialize => ("the ORB could not be initialised", ""),
        Kind::NoImplement => ("the operation exists and is not implemented", ""),
        Kind::BadTypecode => ("a TypeCode is malformed", ""),
        Kind::BadOperation => ("the object has no such operation", SAME_IDL),
        Kind::NoResources => ("descriptors, threads or memory have run out", RETRY),
        Kind::NoResponse => ("the response is not there yet", ""),
        Kind::PersistStore => ("persistent storage failed", ""),
        Kind::BadInvOrder => ("operations were called in a wrong order", ""),
        Kind::Transient => ("the object could not be reached", RETRY),
        Kind::InvPolicy => ("a policy cannot be had, or contradicts another", ""),
        Kind::CodesetIncompatible => ("the code sets of both sides do not go together", ""),
        Kind::ObjAdapter => ("the object adapter failed", ""),
        Kind::DataConversion => ("a character or value could not be converted", ""),
        Kind::ObjectNotExist => (
            "the object does not exist",
            "the reference may be older than the server's last start",
        ),
        Kind::IntfRepos => ("the interface repository could not be used", ""),
        Kind::Rebind => (
            "the call would have to go elsewhere or over a new connection, which the rebind policy forbids",
            "call validate_connection, or allow TRANSPARENT",
        ),
        Kind::Timeout => (
            "the time allowed has passed",
            "allow more time, or look what keeps the server",
        ),
        _ => ("the standard has no more to say", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Completion;

    #[test]
    fn a_fact_has_one_explanation_and_each_is_half_a_sentence() {
        for (place, (kind, minor, fact, remedy)) in known().enumerate() {
            let same = |known: &&(Kind, u32, &str, &str)| known.0 == *kind && known.1 == *minor;
            assert_eq!(known().filter(same).count(), 1, "{place}: {fact}");
            for text in [fact, remedy] {
                assert!(!text.ends_with('.') && text.trim() == *text, "{text}");
            }
        }
    }

    #[test]
    fn an_exception_says_what_happened_and_what_to_do() {
        let told = |kind, minor| SystemException::new(kind, minor, Completion::No).to_string();
        assert_eq!(
            told(Kind::Transient, own::CONNECT_REFUSED),
            "TRANSIENT, not completed: nobody listens at the server's address; check that the server runs and that the \
             reference is not older than its last start"
        );
        assert_eq!(
            told(Kind::BadInvOrder, minor::ORB_SHUT_DOWN),
            "BAD_INV_ORDER (OMG minor code 4), not completed: the ORB has been shut down"
        );
        assert_eq!(
            told(Kind::NoPermission, 0x5441_0007),
            "NO_PERMISSION (minor code 7 of TAO), not completed: the caller may not do this"
        );
        assert_eq!(
            told(Kind::Marshal, EXPERIMENTAL_VMCID | 1),
            "MARSHAL, not completed: the octets end before the value does; check that both \
             sides were built from the same IDL"
        );
        assert_eq!(
            told(Kind::Transient, 0x4154_0002),
            "TRANSIENT (minor code 2 of omniORB), not completed: the server could not connect to another one; \
             look which further server it calls"
        );
        // TAO: place 3, errno 1.
        assert_eq!(
            told(Kind::Transient, 0x5441_0181),
            "TRANSIENT (minor code 385 of TAO), not completed: the object's adapter discards requests; try again later"
        );
        assert_eq!(
            told(Kind::NoPermission, 7),
            "NO_PERMISSION (minor code 0x00000007), not completed: the caller may not do this"
        );
    }
}
