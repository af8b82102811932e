//! Access to a channel: each object of the channel asks the table before it serves a request.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_access::{Action, Events, Subject, Table};
use deckwatch_orb::{
    Caller, Completion, Orb, Poa, PoaCurrent, Servant, ServerRequest, SystemException,
    SystemExceptionKind as Kind, own_minor,
};
use deckwatch_sync::PiMutex;

use crate::limits::REFUSALS_KEPT_MAX;

/// The rules of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The table. What no rule permits raises NO_PERMISSION.
    pub table: Arc<Table>,
    /// The name of the channel in the rules; a channel without a name has the rules for all objects only.
    pub name: Option<String>,
}

/// A request that the table does not permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The peer.
    pub caller: Caller,
    /// What it asked for.
    pub action: Action,
    /// The events that it asked for, if they were the reason.
    pub events: Option<Events>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} may not {}", self.caller, self.action)?;
        let Some(Events { event_type, source }) = self.events else {
            return Ok(());
        };
        let number = |value: Option<i32>| value.map_or("any".to_owned(), |it| it.to_string());
        write!(
            f,
            " (type {}, source {})",
            number(event_type),
            number(source)
        )
    }
}

/// The table of one channel, and what it has refused.
pub(crate) struct Gate {
    access: Option<Access>,
    /// Events have types and sources: rules about these are checked with each event.
    has_types: bool,
    current: PoaCurrent,
    refused: AtomicU64,
    recent: PiMutex<VecDeque<Refusal>>,
}

impl Gate {
    pub(crate) fn new(orb: &Orb, access: Option<Access>, has_types: bool) -> Arc<Self> {
        Arc::new(Self {
            access,
            has_types,
            current: orb.poa_current(),
            refused: AtomicU64::new(0),
            recent: PiMutex::default(),
        })
    }

    /// Requests that were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Takes the refusals since the last call; the first of them if there were many.
    pub(crate) fn take_refusals(&self) -> Vec<Refusal> {
        self.recent.lock("event.refusals").drain(..).collect()
    }

    /// The caller of the request that this thread serves. Outside of a request it is this process.
    fn caller(&self) -> Caller {
        if self.current.caller_connection().is_remote() {
            self.current.caller().unwrap_or(Caller::Unknown)
        } else {
            Caller::ThisProcess
        }
    }

    /// The table, and the caller about which it is asked. `None` if the caller may do everything.
    fn asked(&self) -> Option<(&Access, Caller, Subject)> {
        let access = self.access.as_ref()?;
        let caller = self.caller();
        Some((access, caller, subject(caller)?))
    }

    fn refuse(&self, refusal: Refusal) -> SystemException {
        self.refused.fetch_add(1, Relaxed);
        let mut recent = self.recent.lock("event.refusals");
        if recent.len() < REFUSALS_KEPT_MAX {
            recent.push_back(refusal);
        }
        SystemException::new(Kind::NoPermission, own_minor::ACCESS_DENIED, Completion::No)
    }

    /// Checks whether the caller may do something with some events.
    ///
    /// # Errors
    /// NO_PERMISSION.
    fn check(&self, action: Action) -> Result<(), SystemException> {
        let Some((access, caller, subject)) = self.asked() else {
            return Ok(());
        };
        let name = access.name.as_deref();
        let is_permitted = match action {
            Action::Supply | Action::Consume if !self.has_types => {
                access.table.permits(subject, action, name, Events::ANY)
            }
            _ => access.table.permits_some(subject, action, name),
        };
        if is_permitted {
            return Ok(());
        }
        Err(self.refuse(Refusal {
            caller,
            action,
            events: None,
        }))
    }

    /// Checks whether the caller may do something with all of these events. Does not allocate for one that may.
    ///
    /// # Errors
    /// NO_PERMISSION.
    pub(crate) fn check_events(
        &self,
        action: Action,
        mut events: impl Iterator<Item = (i32, i32)>,
    ) -> Result<(), SystemException> {
        let Some((access, caller, subject)) = self.asked() else {
            return Ok(());
        };
        let name = access.name.as_deref();
        // 0 is any source or type.
        let asked = |(source, event_type): (i32, i32)| Events {
            event_type: Some(event_type).filter(|it| *it != 0),
            source: Some(source).filter(|it| *it != 0),
        };
        let refused = events.find_map(|event| {
            let events = asked(event);
            let is_permitted = access.table.permits(subject, action, name, events);
            (!is_permitted).then_some(events)
        });
        refused.map_or(Ok(()), |events| {
            Err(self.refuse(Refusal {
                caller,
                action,
                events: Some(events),
            }))
        })
    }

    /// Has the table asked before each request of a servant. Without a table, the servant stays as it is.
    pub(crate) fn guard(self: &Arc<Self>, servant: Arc<dyn Servant>) -> Arc<dyn Servant> {
        if self.access.is_none() {
            return servant;
        }
        let side = Side::of(servant.repository_ids());
        self.guard_side(side, servant)
    }

    /// As [`Gate::guard`], for a servant without interfaces of its own: the objects of a typed channel.
    pub(crate) fn guard_side(
        self: &Arc<Self>,
        side: Side,
        servant: Arc<dyn Servant>,
    ) -> Arc<dyn Servant> {
        if self.access.is_none() {
            return servant;
        }
        Arc::new(Guarded {
            gate: Arc::clone(self),
            side,
            servant,
            verified: AtomicU64::new(NOBODY),
        })
    }
}

/// `None` for this process, which is not checked.
fn subject(caller: Caller) -> Option<Subject> {
    Some(match caller {
        Caller::ThisProcess => return None,
        Caller::Tcp(address) => Subject::Address(address.ip()),
        Caller::Unix(process) | Caller::SharedMemory(process) => Subject::User(process.uid),
        _ => Subject::Unknown,
    })
}

/// The side of a channel that an object belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Suppliers,
    Consumers,
    /// The channel itself, or a factory.
    Channel,
}

impl Side {
    fn of(ids: &[&str]) -> Self {
        let has = |parts: [&str; 3]| ids.iter().any(|id| parts.iter().any(|it| id.contains(it)));
        if has(["SupplierAdmin:", "ProxyPushConsumer:", "ProxyPullConsumer:"]) {
            Self::Suppliers
        } else if has(["ConsumerAdmin:", "ProxyPushSupplier:", "ProxyPullSupplier:"]) {
            Self::Consumers
        } else {
            Self::Channel
        }
    }

    fn action(self, operation: &[u8]) -> Option<Action> {
        match (self, operation) {
            (Self::Suppliers, _) => Some(Action::Supply),
            (Self::Consumers, _) => Some(Action::Consume),
            (Self::Channel, b"destroy" | b"create_object" | b"create_channel") => {
                Some(Action::Administer)
            }
            (Self::Channel, b"report" | b"append_observer" | b"remove_observer") => {
                Some(Action::Observe)
            }
            (Self::Channel, _) => None,
        }
    }
}

/// No connection has this number in [`Guarded::verified`].
const NOBODY: u64 = u64::MAX;

/// A servant whose callers are checked.
struct Guarded {
    gate: Arc<Gate>,
    side: Side,
    servant: Arc<dyn Servant>,
    /// The connection whose requests the table permits, of the last caller of a proxy: its next push needs no look-up.
    verified: AtomicU64,
}

impl Guarded {
    fn check(&self, operation: &[u8]) -> Result<(), SystemException> {
        let Some(action) = self.side.action(operation) else {
            return Ok(());
        };
        let connection = self.gate.current.caller_connection().number();
        if self.side != Side::Channel && self.verified.load(Relaxed) == connection {
            return Ok(());
        }
        self.gate.check(action)?;
        self.verified.store(connection, Relaxed);
        Ok(())
    }
}

impl Servant for Guarded {
    fn repository_ids(&self) -> &'static [&'static str] {
        self.servant.repository_ids()
    }

    fn primary_interface(&self, object_id: &[u8], poa: &Poa) -> Cow<'static, str> {
        self.servant.primary_interface(object_id, poa)
    }

    fn is_a(&self, object_id: &[u8], poa: &Poa, interface: &[u8]) -> bool {
        self.servant.is_a(object_id, poa, interface)
    }

    fn non_existent(&self, object_id: &[u8]) -> Result<bool, SystemException> {
        self.servant.non_existent(object_id)
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        self.check(request.operation())?;
        self.servant.dispatch(request)
    }
}
