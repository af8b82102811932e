//! This ORB's own minor codes in words.

use super::{ADDRESS, Known};
use crate::{SystemExceptionKind as Kind, own_minor as own};

/// By kind and number.
pub(super) const CODES: &[Known] = &[
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
