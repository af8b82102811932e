//! Minor codes of other ORBs in words: omniORB and TAO, as the server of a caller, or as the server of that server.
//!
//! omniORB numbers the facts of each kind separately (its `minorCode.h`). TAO puts the location into five bits and the
//! system's errno into seven (its `ORB_Constants.h`).

use crate::SystemExceptionKind as Kind;

/// The vendor id of omniORB's minor codes.
pub(crate) const OMNIORB_VMCID: u32 = 0x4154_0000;

/// The vendor id of TAO's minor codes.
pub(crate) const TAO_VMCID: u32 = 0x5441_0000;

/// Returns fact and remedy of a minor code under one of the two vendor ids, given without the vendor id.
pub(crate) const fn explain(
    kind: Kind,
    vendor: u32,
    number: u32,
) -> Option<(&'static str, &'static str)> {
    match vendor {
        OMNIORB_VMCID => omniorb(kind, number),
        TAO_VMCID => tao(number >> 7),
        _ => None,
    }
}

/// The remedy where the two sides understand the same octets differently.
pub(crate) const SAME_IDL: &str = "check that both sides were built from the same IDL";
const BEHIND: &str = "look which further server it calls";

const fn omniorb(kind: Kind, number: u32) -> Option<(&'static str, &'static str)> {
    Some(match (kind, number) {
        (Kind::Transient, 1) => (
            "the server it was forwarded to could not be reached",
            BEHIND,
        ),
        (Kind::Transient, 2) => ("the server could not connect to another one", BEHIND),
        (Kind::Transient | Kind::Timeout, 8) => (
            "a call of the server's to another one took too long",
            BEHIND,
        ),
        (Kind::Timeout, 124) => ("the request took longer than the server allows", ""),
        (Kind::Transient, 17) => (
            "a connection of the server's to another one was closed",
            BEHIND,
        ),
        (Kind::Transient, 62) => (
            "the object was deactivated while its adapter held the request",
            "",
        ),
        (Kind::CommFailure, 3 | 6 | 7) => {
            ("a connection of the server's to another one broke", BEHIND)
        }
        (Kind::CommFailure, 4 | 5) => ("the server lost the connection of its caller", ""),
        (Kind::Marshal, 9 | 18 | 19 | 20) => (
            "a string or sequence is longer than its type or the message allows",
            SAME_IDL,
        ),
        (Kind::Marshal, 10) => ("the message ends before its values do", SAME_IDL),
        (Kind::Marshal, 11 | 12 | 69) => (
            "the message is larger than the server takes",
            "raise its giopMaxMsgSize",
        ),
        (Kind::Marshal, 22) => ("a string does not end in a null", SAME_IDL),
        (Kind::Marshal, 26) => ("a number is none of the enumeration's", SAME_IDL),
        (Kind::Marshal, 52) => ("a reference could not be read", ""),
        (Kind::BadOperation, 38) => ("the object has no operation of this name", SAME_IDL),
        (Kind::Unknown, 98) => (
            "a Python servant raised what is no CORBA exception",
            "look into the server's log",
        ),
        (Kind::ObjectNotExist, 58) | (Kind::ObjAdapter, 53) => {
            ("the server's object adapter has not been started", "")
        }
        _ => return None,
    })
}

const fn tao(place: u32) -> Option<(&'static str, &'static str)> {
    Some(match place {
        0x01 => ("a location forward could not be followed", BEHIND),
        0x02 => (
            "a request of the server's to another one could not be sent",
            BEHIND,
        ),
        0x03 => ("the object's adapter discards requests", "try again later"),
        0x04 => (
            "the object's adapter holds requests, and TAO keeps none",
            "try again later",
        ),
        0x05 => (
            "the servant threw a C++ exception that is none of CORBA's",
            "look into the server's log",
        ),
        0x06 => (
            "a reply to the server from another one did not come",
            BEHIND,
        ),
        0x07 | 0x08 => ("a reference has no address that the server can use", ""),
        0x09..=0x0B => (
            "a call of the server's to another one took too long",
            BEHIND,
        ),
        0x0C => (
            "the implementation repository could not help",
            "look whether it runs",
        ),
        0x11 => ("the object's adapter is being destroyed", ""),
        0x12 => ("the manager of the object's adapter is inactive", ""),
        _ => return None,
    })
}
