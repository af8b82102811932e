//! The system exceptions that this crate raises.

use deckwatch_orb::{Completion, SystemException, SystemExceptionKind as Kind};

pub(crate) use deckwatch_orb::own_minor as own;

pub(crate) const fn bad_inv_order(minor: u32) -> SystemException {
    SystemException::new(Kind::BadInvOrder, minor, Completion::No)
}

pub(crate) const fn bad_param(minor: u32) -> SystemException {
    SystemException::new(Kind::BadParam, minor, Completion::No)
}

pub(crate) const fn no_permission(minor: u32) -> SystemException {
    SystemException::new(Kind::NoPermission, minor, Completion::No)
}

pub(crate) const fn no_resources(minor: u32) -> SystemException {
    SystemException::new(Kind::NoResources, minor, Completion::No)
}

pub(crate) const fn object_not_exist(minor: u32) -> SystemException {
    SystemException::new(Kind::ObjectNotExist, minor, Completion::No)
}

pub(crate) const fn thread_cancelled(completed: Completion) -> SystemException {
    SystemException::new(Kind::ThreadCancelled, 0, completed)
}
