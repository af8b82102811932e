//! Constructors of the system exceptions that this ORB raises, and its own minor codes.

use deckwatch_giop::{Completion, SystemException, SystemExceptionKind as Kind};

macro_rules! raises {
    ($($name:ident => $kind:ident;)*) => { $(
        pub(crate) const fn $name(minor: u32, completed: Completion) -> SystemException {
            SystemException::new(Kind::$kind, minor, completed)
        }
    )* };
}

raises! {
    bad_inv_order => BadInvOrder;
    bad_operation => BadOperation;
    bad_param => BadParam;
    codeset_incompatible => CodesetIncompatible;
    comm_failure => CommFailure;
    data_conversion => DataConversion;
    imp_limit => ImpLimit;
    initialize => Initialize;
    internal => Internal;
    intf_repos => IntfRepos;
    inv_objref => InvObjref;
    inv_policy => InvPolicy;
    marshal => Marshal;
    no_implement => NoImplement;
    no_permission => NoPermission;
    no_resources => NoResources;
    obj_adapter => ObjAdapter;
    object_not_exist => ObjectNotExist;
    rebind => Rebind;
    timeout => Timeout;
    transient => Transient;
    unknown => Unknown;
}

pub(crate) use deckwatch_giop::own_minor as own;
