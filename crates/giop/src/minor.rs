//! Minor codes of system exceptions: the standard's (CORBA 3.3 part 1, annex A.6), and this ORB's own where the
//! standard has none.

/// The OMG's vendor id: the upper twenty bits of a standard minor code.
pub const OMG_VMCID: u32 = 0x4F4D_0000;

/// The vendor id for codes without a registered vendor; used for the facts of this ORB's decoders.
pub const EXPERIMENTAL_VMCID: u32 = 0xFFFF_F000;

/// No code applies.
pub const NONE: u32 = 0;

/// The standard minor code of this number.
#[must_use]
pub const fn omg(number: u32) -> u32 {
    OMG_VMCID | number
}

/// UNKNOWN: a user exception that the operation does not raise.
pub const UNKNOWN_USER_EXCEPTION: u32 = omg(1);
/// UNKNOWN: a system exception with an unknown repository id.
pub const UNKNOWN_SYSTEM_EXCEPTION: u32 = omg(2);

/// BAD_PARAM: the scheme of an object URL is unknown.
pub const BAD_SCHEME_NAME: u32 = omg(7);
/// BAD_PARAM: an object URL's address is malformed.
pub const BAD_ADDRESS: u32 = omg(8);
/// BAD_PARAM: the part behind an object URL's address is malformed.
pub const BAD_SCHEMA_SPECIFIC: u32 = omg(9);
/// BAD_PARAM: a string is not a reference for another reason.
pub const BAD_REFERENCE_STRING: u32 = omg(10);
/// BAD_PARAM: the adapter cannot have made this object id.
pub const OBJECT_ID_INVALID: u32 = omg(14);
/// BAD_PARAM: a dynamic servant raises an Any without an exception.
pub const NOT_AN_EXCEPTION: u32 = omg(21);
/// BAD_PARAM: wide characters in a request, without a negotiated code set for them.
pub const WIDE_CODE_SET_UNSAID: u32 = omg(23);
/// BAD_PARAM: a number is not an enumerator of its type.
pub const ENUM_OUT_OF_RANGE: u32 = omg(25);
/// BAD_PARAM: an interceptor asks for a service context that is absent.
pub const SERVICE_CONTEXT_UNKNOWN: u32 = omg(26);
/// BAD_PARAM: an interceptor asks for a component that is absent.
pub const COMPONENT_ID_INVALID: u32 = omg(28);
/// BAD_PARAM: an interceptor adds a component to a profile that references do not contain.
pub const PROFILE_ID_INVALID: u32 = omg(29);
/// BAD_PARAM: a pollable is added twice to a set.
pub const POLLABLE_TWICE: u32 = omg(43);
/// BAD_PARAM: a list of policies has two of one kind.
pub const POLICY_TWICE: u32 = omg(30);

/// BAD_PARAM: no value factory is registered with this repository id.
pub const VALUE_FACTORY_UNKNOWN: u32 = omg(1);
/// MARSHAL: no value factory is registered for the type of a value.
pub const VALUE_FACTORY_MISSING: u32 = omg(1);
/// MARSHAL: wide characters in a request of GIOP 1.0.
pub const WIDE_IN_GIOP_1_0_REQUEST: u32 = omg(5);
/// MARSHAL: wide characters in a reply of GIOP 1.0.
pub const WIDE_IN_GIOP_1_0_REPLY: u32 = omg(6);
/// MARSHAL: the code sets of a connection are chosen twice.
pub const CODE_SETS_CHANGED: u32 = omg(9);

/// BAD_TYPECODE: an incomplete TypeCode was to be marshalled.
pub const TYPE_CODE_INCOMPLETE: u32 = omg(1);
/// BAD_TYPECODE: a member's TypeCode is illegal.
pub const TYPE_CODE_MEMBER_ILLEGAL: u32 = omg(2);

/// BAD_OPERATION: the object has no such operation.
pub const OPERATION_UNKNOWN: u32 = omg(2);

/// BAD_INV_ORDER: the operation would wait for the request that calls it.
pub const WOULD_DEADLOCK: u32 = omg(3);
/// BAD_INV_ORDER: a dynamic request is invoked that was used before.
pub const REQUEST_INVOKED_AGAIN: u32 = omg(5);
/// BAD_INV_ORDER: the arguments of a dynamic server request are read twice, or after an exception was set.
pub const ARGUMENTS_OUT_OF_ORDER: u32 = omg(7);
/// BAD_INV_ORDER: the result of a dynamic server request is set twice, before its arguments were read, or after an
/// exception was set.
pub const RESULT_OUT_OF_ORDER: u32 = omg(9);
/// BAD_INV_ORDER: a dynamic request is sent that was used before.
pub const REQUEST_SENT_AGAIN: u32 = omg(10);
/// BAD_INV_ORDER: the response of a dynamic request that was not sent.
pub const REQUEST_NOT_SENT: u32 = omg(11);
/// BAD_INV_ORDER: the response of a dynamic request that was retrieved before.
pub const RESPONSE_RETRIEVED: u32 = omg(12);
/// BAD_INV_ORDER: the response of a dynamic request that was not deferred.
pub const REQUEST_NOT_DEFERRED: u32 = omg(13);
/// BAD_INV_ORDER: the source of a poller's exception, before the poller was polled.
pub const POLLER_NOT_ASKED: u32 = omg(22);
/// BAD_INV_ORDER: the ORB has been shut down.
pub const ORB_SHUT_DOWN: u32 = omg(4);
/// BAD_INV_ORDER: a servant manager was set before.
pub const SERVANT_MANAGER_SET: u32 = omg(6);
/// BAD_INV_ORDER: an interceptor calls an operation that is not valid at its point.
pub const CALL_OUT_OF_PLACE: u32 = omg(14);
/// BAD_INV_ORDER: a service context of this id was added before, and may not be replaced.
pub const SERVICE_CONTEXT_ADDED_TWICE: u32 = omg(15);
/// BAD_INV_ORDER: the kind of policy has a factory already.
pub const POLICY_FACTORY_REGISTERED: u32 = omg(16);
/// BAD_INV_ORDER: an adapter that is being destroyed creates no others.
pub const ADAPTER_BEING_DESTROYED: u32 = omg(17);

/// DATA_CONVERSION: a character is not in the transmission code set.
pub const CHARACTER_UNMAPPABLE: u32 = omg(1);
/// DATA_CONVERSION: the priority mapping has no native priority for a CORBA priority, or the reverse.
pub const PRIORITY_UNMAPPABLE: u32 = omg(2);

/// INV_POLICY: a policy of the reference cannot be reconciled with one that the caller has set.
pub const POLICIES_IRRECONCILABLE: u32 = omg(1);

/// CODESET_INCOMPATIBLE: no transmission code set is common to both.
pub const CODE_SETS_DISJOINT: u32 = omg(1);
/// CODESET_INCOMPATIBLE: the code set of a service context is not supported.
pub const CODE_SET_UNSUPPORTED: u32 = omg(2);

/// INV_OBJREF: wide characters for a server that offers no code set for them.
pub const WIDE_CODE_SET_MISSING: u32 = omg(1);

/// NO_RESOURCES: an interceptor asks for values that are not kept.
pub const OPERATION_NOT_SUPPORTED_HERE: u32 = omg(1);

/// INV_POLICY: the kind of policy has no factory.
pub const POLICY_FACTORY_MISSING: u32 = omg(2);

/// INTF_REPOS: there is no interface repository.
pub const INTERFACE_REPOSITORY_ABSENT: u32 = omg(1);

/// OBJECT_NOT_EXIST: the object is not active, or its adapter does not exist and cannot be created.
pub const ADAPTER_UNKNOWN: u32 = omg(2);

/// OBJECT_NOT_EXIST: the reply of an asynchronous call was taken before.
pub const REPLY_DELIVERED: u32 = omg(5);

/// NO_RESPONSE: a poller has no reply yet, with a timeout of 0.
pub const NO_REPLY_YET: u32 = omg(1);

/// TIMEOUT: a poller got no reply in time.
pub const NO_REPLY_IN_TIME: u32 = omg(1);

/// OBJ_ADAPTER: an adapter activator raised a system exception, or the adapter's manager is inactive.
pub const ADAPTER_UNAVAILABLE: u32 = omg(1);
/// OBJ_ADAPTER: no default servant is set.
pub const NO_SERVANT: u32 = omg(3);
/// OBJ_ADAPTER: no servant manager is set, or one of the wrong kind.
pub const NO_SERVANT_MANAGER: u32 = omg(4);
/// OBJ_ADAPTER: an interceptor refuses an adapter.
pub const ADAPTER_REFUSED: u32 = omg(6);
/// OBJ_ADAPTER: a servant activator returned a servant that the adapter's policies do not allow.
pub const INCARNATION_AGAINST_POLICY: u32 = omg(5);

/// TRANSIENT: the request was discarded for lack of resources, or because the adapter discards.
pub const REQUEST_DISCARDED: u32 = omg(1);
/// TRANSIENT: no profile of the reference is usable now.
pub const NO_USABLE_PROFILE: u32 = omg(2);
/// TRANSIENT: the request was cancelled.
pub const REQUEST_CANCELLED: u32 = omg(3);
/// TRANSIENT: the adapter is being destroyed.
pub const ADAPTER_DESTROYED: u32 = omg(4);

/// IMP_LIMIT: no profile of the reference is usable.
pub const PROFILES_UNUSABLE: u32 = omg(1);
/// IMP_LIMIT: a message exceeds the size limit; this ORB's own.
pub const MESSAGE_TOO_LARGE: u32 = EXPERIMENTAL_VMCID | 0x80;
