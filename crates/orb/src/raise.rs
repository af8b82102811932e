//! The system exceptions that this ORB raises, by name, and its own minor codes.

use deckwatch_giop::{Completion, SystemException, SystemExceptionKind as Kind, minor};

macro_rules! raises {
    ($($name:ident => $kind:ident;)*) => { $(
        pub(crate) const fn $name(minor: u32, completed: Completion) -> SystemException {
            SystemException::new(Kind::$kind, minor, completed)
        }
    )* };
}

raises! {
    bad_inv_order => BadInvOrder;
    bad_param => BadParam;
    codeset_incompatible => CodesetIncompatible;
    comm_failure => CommFailure;
    imp_limit => ImpLimit;
    initialize => Initialize;
    intf_repos => IntfRepos;
    inv_objref => InvObjref;
    inv_policy => InvPolicy;
    no_implement => NoImplement;
    no_resources => NoResources;
    obj_adapter => ObjAdapter;
    object_not_exist => ObjectNotExist;
    rebind => Rebind;
    timeout => Timeout;
    transient => Transient;
    unknown => Unknown;
}

/// Minor codes of facts that the standard has no number for, apart from those of the decoders.
pub(crate) mod own {
    use super::minor::EXPERIMENTAL_VMCID;

    const fn code(number: u32) -> u32 {
        EXPERIMENTAL_VMCID | 0x100 | number
    }

    /// TRANSIENT: the connection could not be made.
    pub(crate) const CONNECT_FAILED: u32 = code(1);
    /// COMM_FAILURE: the request could not be written whole.
    pub(crate) const SEND_FAILED: u32 = code(2);
    /// COMM_FAILURE: the connection broke before the reply was whole.
    pub(crate) const CONNECTION_LOST: u32 = code(3);
    /// COMM_FAILURE: the server closed the connection in order before it served the request.
    pub(crate) const CONNECTION_CLOSED: u32 = code(4);
    /// COMM_FAILURE: the server answered that it could not read the request.
    pub(crate) const MESSAGE_REFUSED: u32 = code(5);
    /// COMM_FAILURE: the reply is no GIOP message that could be read.
    pub(crate) const REPLY_MALFORMED: u32 = code(6);
    /// TRANSIENT: location forwards lead in a circle.
    pub(crate) const FORWARD_CIRCLE: u32 = code(7);
    /// OBJ_ADAPTER: the adapter's manager has been deactivated.
    pub(crate) const ADAPTER_INACTIVE: u32 = code(8);
    /// INV_OBJREF: no profile of the reference is IIOP.
    pub(crate) const NO_KNOWN_PROFILE: u32 = code(9);
    /// BAD_PARAM: no initial reference has this name.
    pub(crate) const INITIAL_REFERENCE_UNKNOWN: u32 = code(11);
    /// BAD_PARAM: an object id is too long, or a name cannot be one.
    pub(crate) const INVALID_ID: u32 = code(10);
    /// COMM_FAILURE: the server wants the object named in a way that does not exist, or that it has already been named in.
    pub(crate) const ADDRESSING_REFUSED: u32 = code(12);
}

/// OBJECT_NOT_EXIST: the key is of no active object (standard minor code 1).
pub(crate) const NO_OBJECT: u32 = minor::omg(1);
