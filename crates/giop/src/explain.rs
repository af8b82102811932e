//! System exceptions in words: the fact behind the minor code, and what to do about it.

mod own;
mod real_time;
mod standard;

use crate::foreign_minor::{self, OMNIORB_VMCID, SAME_IDL, TAO_VMCID};
use crate::minor::{self, EXPERIMENTAL_VMCID, OMG_VMCID};
use crate::{SystemException, SystemExceptionKind as Kind};
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
        let is_this = |known: &&Known| known.0 == self.kind && known.1 == self.minor;
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

/// A kind and a minor code, what happened, and what to do.
type Known = (Kind, u32, &'static str, &'static str);

/// All known minor codes.
fn known() -> impl Iterator<Item = &'static Known> {
    let tables = [standard::CODES, own::CODES, real_time::CODES];
    tables.into_iter().flatten()
}

/// The explanation of a kind, for unknown minor codes.
const fn general(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Unknown => (
            "the servant failed in a way it does not tell",
            "look into the server's log",
        ),
        Kind::BadParam => ("a parameter is not valid", ""),
        Kind::NoMemory => (
            "memory could not be had",
            "send less at once, or give the process more: its container, ulimit -v",
        ),
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
    use crate::{Completion, own_minor};

    #[test]
    fn a_fact_has_one_explanation_and_each_is_half_a_sentence() {
        for (place, (kind, minor, fact, remedy)) in known().enumerate() {
            let same = |known: &&Known| known.0 == *kind && known.1 == *minor;
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
            told(Kind::Transient, own_minor::CONNECT_REFUSED),
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
