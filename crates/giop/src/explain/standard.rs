//! The minor codes of the standard in words.

use super::{Known, RETRY};
use crate::SystemExceptionKind as Kind;
use crate::foreign_minor::SAME_IDL;
use crate::minor::{self, omg};

/// By kind and number.
pub(super) const CODES: &[Known] = &[
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
];
