//! Access to a channel: what its operations need by the words of access tables. The guard of the channel's adapter asks
//! the table before it calls a servant; events are checked here, by their types and sources.

use std::sync::{Arc, Weak};

use deckwatch_access::{Action, Events};
use deckwatch_orb::{
    Access, AccessWatcher, Guard, Identity, Need, Orb, Poa, PoaCurrent, Refusal, SystemException,
    Vocabulary,
};

/// The table of one channel, if it has one.
pub(crate) struct Gate {
    guard: Option<Arc<Guard>>,
    current: PoaCurrent,
}

impl Gate {
    /// With `has_types`, events have types and sources: rules about these are checked with each event.
    pub(crate) fn new(orb: &Orb, access: Option<Access>, has_types: bool) -> Arc<Self> {
        let guard = access.map(|access| Guard::new(orb, access, Words { has_types }));
        let current = orb.poa_current();
        Arc::new(Self { guard, current })
    }

    pub(crate) fn has_table(&self) -> bool {
        self.guard.is_some()
    }

    /// Has the table asked before each request for an object of an adapter.
    pub(crate) fn protect(&self, poa: &Poa) -> Result<(), SystemException> {
        let guard = self.guard.as_ref();
        guard.map_or(Ok(()), |guard| poa.set_guard(guard))
    }

    /// Requests that were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.guard.as_ref().map_or(0, |guard| guard.refused())
    }

    /// Takes the refusals since the last call; the first of them if there were many.
    pub(crate) fn take_refusals(&self) -> Vec<Refusal> {
        self.guard
            .as_ref()
            .map_or_else(Vec::new, |guard| guard.take_refusals())
    }

    /// Checks whether the caller may do something with all of these events: pairs of source and type, in which 0 is any.
    ///
    /// # Errors
    /// NO_PERMISSION.
    pub(crate) fn check_events(
        &self,
        action: Action,
        events: impl Iterator<Item = (i32, i32)>,
    ) -> Result<(), SystemException> {
        let Some(guard) = &self.guard else {
            return Ok(());
        };
        guard.check_events(action, events.map(asked))
    }

    /// Who sent the request that the calling thread serves; `None` for this process.
    pub(crate) fn caller(&self) -> Option<Identity> {
        let is_remote = self.current.caller_connection().is_remote();
        is_remote.then(|| self.current.identity())
    }

    /// As [`Gate::check_events`], for a client, whose request is not served now if it comes from a store.
    ///
    /// # Errors
    /// NO_PERMISSION.
    pub(crate) fn check_client(
        &self,
        client: &Identity,
        what: (Action, &[u8]),
        events: impl Iterator<Item = (i32, i32)>,
    ) -> Result<(), SystemException> {
        let guard = self.guard.as_ref();
        guard.map_or(Ok(()), |guard| {
            guard.check_client(client, what, events.map(asked))
        })
    }

    /// Checks a client after another table has come into force. One for which it returns false is counted, and is to be
    /// disconnected.
    pub(crate) fn may_stay(
        &self,
        client: &Identity,
        what: (Action, &[u8]),
        events: impl Iterator<Item = (i32, i32)>,
    ) -> bool {
        let guard = self.guard.as_ref();
        guard.is_none_or(|guard| guard.may_stay(client, what, events.map(asked).map(Some)))
    }

    /// As [`Gate::may_stay`], for an observer: `None` is this process.
    pub(crate) fn may_observe(&self, observer: Option<&Identity>) -> bool {
        let (Some(guard), Some(observer)) = (&self.guard, observer) else {
            return true;
        };
        let what = (Action::Observe, &b"append_observer"[..]);
        // Some rule to observe is enough, whatever its events.
        guard.may_stay(observer, what, std::iter::once(None))
    }

    /// Has the channel asked about its clients whenever another table comes into force.
    pub(crate) fn watch(&self, channel: Weak<dyn AccessWatcher>) {
        if let Some(guard) = &self.guard {
            guard.watch(channel);
        }
    }

    /// The number of the table in force.
    pub(crate) fn generation(&self) -> u64 {
        self.guard.as_ref().map_or(0, |guard| guard.generation())
    }

    /// Has all clients asked about again.
    pub(crate) fn ask_again(&self) {
        if let Some(guard) = &self.guard {
            guard.ask_again();
        }
    }
}

fn asked((source, event_type): (i32, i32)) -> Events {
    Events {
        event_type: Some(event_type).filter(|it| *it != 0),
        source: Some(source).filter(|it| *it != 0),
    }
}

/// What the operations of a channel need.
struct Words {
    has_types: bool,
}

impl Vocabulary for Words {
    fn need(&self, kind: &[&str], operation: &[u8], _object_id: &[u8]) -> Need {
        match action(kind, operation) {
            None => Need::Nothing,
            Some(action @ (Action::Supply | Action::Consume)) if !self.has_types => {
                Need::All(action)
            }
            Some(action) => Need::Some(action),
        }
    }

    fn needs_differ_by_id(&self) -> bool {
        false
    }
}

/// The kinds of the objects of a typed channel, whose interfaces are not known here.
pub(crate) const TYPED_SUPPLIER_SIDE: &[&str] = &["SupplierAdmin:typed"];
pub(crate) const TYPED_CONSUMER_SIDE: &[&str] = &["ConsumerAdmin:typed"];

fn action(kind: &[&str], operation: &[u8]) -> Option<Action> {
    let has = |parts: [&str; 3]| {
        kind.iter()
            .any(|id| parts.iter().any(|part| id.contains(part)))
    };
    if has(["SupplierAdmin:", "ProxyPushConsumer:", "ProxyPullConsumer:"]) {
        return Some(Action::Supply);
    }
    if has(["ConsumerAdmin:", "ProxyPushSupplier:", "ProxyPullSupplier:"]) {
        return Some(Action::Consume);
    }
    match operation {
        _ if has_part(kind, MEMBER) => Some(Action::Administer),
        b"destroy" | b"create_object" | b"create_channel" => Some(Action::Administer),
        b"report" | b"append_observer" | b"remove_observer" => Some(Action::Observe),
        b"for_consumers" | b"for_suppliers" | b"supports" | b"is_alive" | b"join_channel" => None,
        // A backup has no active objects: it forwards its callers to the primary, whose table is asked.
        _ if kind.is_empty() => None,
        // An operation that is added later is closed until it has a word here.
        _ => Some(Action::Administer),
    }
}

/// A member of a group. Its operations replace what the channel knows of its clients.
const MEMBER: &str = "ChannelGroup/Member:";

/// The operations of a member, for a rule that permits the other members.
pub const MEMBER_OPERATIONS: [&str; 5] = ["report_standing", "join", "watch", "change", "keep"];

fn has_part(kind: &[&str], part: &str) -> bool {
    kind.iter().any(|id| id.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_of_a_channel_has_a_word_and_unknown_ones_are_administration() {
        let channel = ["IDL:RtecEventChannelAdmin/EventChannel:1.0"];
        for open in [&b"for_consumers"[..], b"for_suppliers"] {
            assert_eq!(action(&channel, open), None);
        }
        assert_eq!(action(&channel, b"report"), Some(Action::Observe));
        assert_eq!(action(&channel, b"destroy"), Some(Action::Administer));
        assert_eq!(action(&channel, b"replace_all"), Some(Action::Administer));
        let proxy = ["IDL:CosEventChannelAdmin/ProxyPushConsumer:1.0"];
        assert_eq!(action(&proxy, b"push"), Some(Action::Supply));
        assert_eq!(action(&[], b"push"), None, "a backup forwards it");
        assert_eq!(action(&[], b"destroy"), Some(Action::Administer));
        let member = [crate::channel_group::MemberRef::REPOSITORY_ID];
        for operation in MEMBER_OPERATIONS {
            let needed = action(&member, operation.as_bytes());
            assert_eq!(needed, Some(Action::Administer), "{operation}");
        }
        // Whatever an operation of a member is called, it is closed.
        for operation in [&b"report"[..], b"is_alive"] {
            assert_eq!(action(&member, operation), Some(Action::Administer));
        }
    }
}
