//! Access to the objects of an adapter: a table is asked before a request reaches a servant.
//!
//! A [`Guard`] belongs to adapters: [`Poa::set_access`] for an application's own objects, [`Poa::set_guard`] for a
//! service with words of its own for what its operations do. The operations that every object has, such as `_is_a`,
//! are not checked where there is a servant, and this process is not.

mod identity;
mod log;
mod watcher;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Weak};

use deckwatch_access::{Action, Asked, Events, Table};
use deckwatch_cdr::Reader;
use deckwatch_giop::Request;
use deckwatch_sync::PiMutex;
use deckwatch_text::escaped;

pub use identity::Identity;
pub use log::{AccessEvent, AccessLog};
pub use watcher::AccessWatcher;
use watcher::Watchers;

use crate::adapter::{Adapter, Poa, PoaCurrent};
use crate::limits::{ACCESS_VERIFIED_MAX, REFUSALS_KEPT_MAX};
use crate::server::Server;
use crate::{
    Caller, CallerConnection, Completion, Orb, Servant, SystemException,
    SystemExceptionKind as Kind, explain_exception, own_minor,
};

/// The rules for the objects of adapters. All clones share one table: [`Access::replace`] holds for each of them.
#[derive(Clone, Debug)]
pub struct Access {
    rules: Arc<Rules>,
    name: Option<String>,
    file: Option<String>,
}

impl PartialEq for Access {
    fn eq(&self, other: &Self) -> bool {
        let said = |it: &Self| (it.table(), it.name.clone(), it.file.clone());
        said(self) == said(other)
    }
}

impl Eq for Access {}

/// The table in force.
#[derive(Debug)]
struct Rules {
    table: PiMutex<Arc<Table>>,
    /// How many tables have been in force before.
    generation: AtomicU64,
    watchers: Watchers,
}

impl Access {
    /// What no rule of the table permits raises NO_PERMISSION.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self {
            rules: Arc::new(Rules {
                table: PiMutex::new(Arc::new(table)),
                generation: AtomicU64::new(0),
                watchers: Watchers::default(),
            }),
            name: None,
            file: None,
        }
    }

    /// Puts another table in force, for each request that is checked from now on: on open connections too. Clients of
    /// event channels that it does not permit are disconnected; returns their number.
    pub fn replace(&self, table: Table) -> usize {
        let old = std::mem::replace(
            &mut *self.rules.table.lock("access.replace"),
            Arc::new(table),
        );
        // SYNC: pairs with the load in `generation`: a request that is remembered under the new number has been
        // checked by the new table.
        self.rules.generation.fetch_add(1, Release);
        drop(old);
        self.ask_again()
    }

    fn ask_again(&self) -> usize {
        self.rules.watchers.ask_again()
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&self.rules.table.lock("access.table"))
    }

    fn generation(&self) -> u64 {
        // SYNC: pairs with the addition in `replace`.
        self.rules.generation.load(Acquire)
    }

    /// Sets the name that all objects have in the rules. Without it, an object is named by the path of its adapter and
    /// its id: `ship/nav/rudder`. Octets of an id that are no printable ASCII are written as in a `corbaloc` URL, `%`
    /// and two digits.
    #[must_use]
    pub fn named(self, name: Option<String>) -> Self {
        Self { name, ..self }
    }

    /// Sets where the table is written, for the words of refusals.
    #[must_use]
    pub fn from_file(self, file: impl Into<String>) -> Self {
        Self {
            file: Some(file.into()),
            ..self
        }
    }
}

/// What a request needs, by the words of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: it is not checked.
    Nothing,
    /// A rule for its operation.
    Operation,
    /// A rule for the action, with some events. The service checks the events.
    Some(Action),
    /// A rule for the action, with all events.
    All(Action),
}

/// What the operations of a service do.
pub trait Vocabulary: Send + Sync + 'static {
    /// Returns what an operation of an object needs. `kind` holds the interfaces of its servant; an object that is not
    /// active has none.
    fn need(&self, kind: &[&str], operation: &[u8], object_id: &[u8]) -> Need;

    /// Returns false if no operation needs more of one object than of another of its kind. A permission is then
    /// remembered for all objects of a kind together.
    fn needs_differ_by_id(&self) -> bool {
        true
    }

    /// Returns what a request that binds or administers is about, for a log. No secrets.
    fn about(&self, _operation: &[u8], _arguments: Reader<'_>) -> Option<String> {
        None
    }
}

/// The words of an adapter without any: each operation is permitted by its name.
struct Operations;

impl Vocabulary for Operations {
    fn need(&self, _: &[&str], _: &[u8], _: &[u8]) -> Need {
        Need::Operation
    }

    fn needs_differ_by_id(&self) -> bool {
        false
    }
}

/// A request that the table does not permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The peer.
    pub caller: Caller,
    /// The name in its certificate.
    pub name: Option<Arc<str>>,
    /// What it asked for. `None` if its adapter has no words for it.
    pub action: Option<Action>,
    /// The operation; empty if the events of a push or of a connect are the reason.
    pub operation: String,
    /// The name of the object in the rules.
    pub object: Option<String>,
    /// The events that it asked for, if they were the reason.
    pub events: Option<Events>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.caller.fmt(f)?;
        if let Some(name) = &self.name {
            write!(f, " ({})", escaped(name))?;
        }
        match self.action {
            Some(action) => write!(f, " may not {action}")?,
            None => f.write_str(" may not")?,
        }
        if !self.operation.is_empty() {
            write!(f, " (call {}", escaped(&self.operation))?;
            if let Some(object) = &self.object {
                write!(f, " of {}", escaped(object))?;
            }
            f.write_str(")")?;
        }
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

/// A table before the objects of adapters, and what it has refused.
pub struct Guard {
    access: Access,
    words: Box<dyn Vocabulary>,
    /// Weak: the adapter owns its guard.
    adapter: Weak<Adapter>,
    keys: RandomState,
    /// Fingerprints of requests that the table permits: of table, connection, adapter, interface, operation and
    /// object. The next such request needs no look-up. They are keyed, so that a peer cannot make an equal one.
    verified: Box<[AtomicU64]>,
    refused: AtomicU64,
    recent: PiMutex<Vec<Refusal>>,
}

impl Guard {
    /// A guard for adapters of an ORB, whose operations need what `words` says.
    #[must_use]
    pub fn new(orb: &Orb, access: Access, words: impl Vocabulary) -> Arc<Self> {
        Arc::new(Self::with(&orb.poa_current().0, access, Box::new(words)))
    }

    pub(crate) fn of_operations(adapter: &Arc<Adapter>, access: Access) -> Self {
        Self::with(adapter, access, Box::new(Operations))
    }

    fn with(adapter: &Arc<Adapter>, access: Access, words: Box<dyn Vocabulary>) -> Self {
        Self {
            access,
            words,
            adapter: Arc::downgrade(adapter),
            keys: RandomState::new(),
            verified: (0..ACCESS_VERIFIED_MAX)
                .map(|_| AtomicU64::new(0))
                .collect(),
            refused: AtomicU64::new(0),
            recent: PiMutex::default(),
        }
    }

    /// Requests that were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Takes the refusals since the last call; the first of them if there were many.
    #[must_use]
    pub fn take_refusals(&self) -> Vec<Refusal> {
        std::mem::take(&mut *self.recent.lock("access.refusals"))
    }

    /// Checks a request before its servant is reached. Does not allocate for one that was permitted before.
    ///
    /// # Errors
    /// NO_PERMISSION.
    pub(crate) fn check_request(
        &self,
        poa: &Poa,
        request: &Request<'_>,
        id: &[u8],
        servant: Option<&dyn Servant>,
    ) -> Result<(), SystemException> {
        let connection = Server::connection_served_here();
        if !connection.is_remote() {
            return Ok(());
        }
        if is_implicit(request.operation) {
            return match servant {
                Some(_) => Ok(()),
                None => self.check_known(poa, request, id),
            };
        }
        let kind = servant.map_or(&[][..], Servant::repository_ids);
        let is_told_apart = self.access.name.is_none() || self.words.needs_differ_by_id();
        // Adapters that share a guard have objects of the same id, but of other names.
        let what = (
            self.access.name.is_none().then(|| poa.slot()),
            kind.as_ptr().addr(),
            request.operation,
            if is_told_apart { id } else { &[] },
        );
        let fingerprint = self.fingerprint(connection, what);
        if self.is_verified(fingerprint) {
            return Ok(());
        }
        let need = self.words.need(kind, request.operation, id);
        let (action, events) = match need {
            Need::Nothing => return Ok(()),
            Need::Operation => (None, None),
            Need::Some(action) => (Some(action), None),
            Need::All(action) => (Some(action), Some(Events::ANY)),
        };
        let own = self.access.name.clone();
        let object = own.or_else(|| Some(object_name(poa, id)));
        let asked = Asked {
            action,
            operation: request.operation,
            object: object.as_deref(),
            events,
        };
        let adapter = self.adapter.upgrade();
        let log = adapter.as_ref().and_then(|adapter| adapter.log.as_ref());
        let peer = self.look_up(&asked)?;
        match (log, action) {
            // Each of these is told, and so each is looked up.
            (Some(log), Some(action @ (Action::Bind | Action::Administer))) => {
                let about = self.words.about(request.operation, request.body);
                log.note(&AccessEvent::Administered {
                    caller: peer.caller,
                    name: peer.name.as_deref(),
                    action,
                    operation: request.operation,
                    object: object.as_deref(),
                    about: about.as_deref(),
                });
            }
            _ => self.note_verified(fingerprint),
        }
        Ok(())
    }

    /// Checks an operation of every object where a servant manager is asked for the servant: it costs the application
    /// more than a reply, so the caller needs some rule for the object.
    #[cold]
    fn check_known(
        &self,
        poa: &Poa,
        request: &Request<'_>,
        id: &[u8],
    ) -> Result<(), SystemException> {
        let own = self.access.name.clone();
        let object = own.or_else(|| Some(object_name(poa, id)));
        let peer = self.peer();
        if self.access.table().knows(peer.subject(), object.as_deref()) {
            return Ok(());
        }
        let asked = Asked {
            action: None,
            operation: request.operation,
            object: object.as_deref(),
            events: None,
        };
        Err(self.refuse(peer, &asked))
    }

    /// Checks whether the caller may do something with all of these events, as a part of a request that is served. Does
    /// not allocate for one that may.
    ///
    /// # Errors
    /// NO_PERMISSION.
    pub fn check_events(
        &self,
        action: Action,
        events: impl Iterator<Item = Events>,
    ) -> Result<(), SystemException> {
        let connection = Server::connection_served_here();
        if !connection.is_remote() {
            return Ok(());
        }
        // A peer with a rule for all events needs no look at each.
        let fingerprint = self.fingerprint(connection, action);
        if self.is_verified(fingerprint) {
            return Ok(());
        }
        let asked = |events| Asked {
            action: Some(action),
            operation: b"",
            object: self.access.name.as_deref(),
            events: Some(events),
        };
        let (peer, table) = (self.peer(), self.access.table());
        if permits(&table, &peer, &asked(Events::ANY)) {
            self.note_verified(fingerprint);
            return Ok(());
        }
        for events in events {
            let asked = asked(events);
            if !permits(&table, &peer, &asked) {
                return Err(self.refuse(peer, &asked));
            }
        }
        Ok(())
    }

    /// Checks whether a client may do something with all of these events, outside of its requests. `operation` is the one
    /// that connects it, empty where events are all that is asked about.
    ///
    /// # Errors
    /// NO_PERMISSION.
    pub fn check_client(
        &self,
        client: &Identity,
        (action, operation): (Action, &[u8]),
        events: impl Iterator<Item = Events>,
    ) -> Result<(), SystemException> {
        let refused = self.refused_of(client, (action, operation), events.map(Some));
        refused.map_or(Ok(()), |asked| Err(self.refuse(client.clone(), &asked)))
    }

    /// As [`Guard::check_client`], for a client that is disconnected if this returns false: that is counted and told the
    /// log.
    pub fn may_stay(
        &self,
        client: &Identity,
        what: (Action, &[u8]),
        events: impl Iterator<Item = Option<Events>>,
    ) -> bool {
        let Some(asked) = self.refused_of(client, what, events) else {
            return true;
        };
        let refusal = refusal(client.clone(), &asked);
        self.note(&AccessEvent::Disconnected(&refusal));
        self.count(refusal);
        false
    }

    fn refused_of<'a>(
        &'a self,
        client: &Identity,
        (action, operation): (Action, &'a [u8]),
        events: impl Iterator<Item = Option<Events>>,
    ) -> Option<Asked<'a>> {
        let asked = |events| Asked {
            action: Some(action),
            operation,
            object: self.access.name.as_deref(),
            events,
        };
        let table = self.access.table();
        let is_refused = |asked: &Asked<'_>| !permits(&table, client, asked);
        events.map(asked).find(is_refused)
    }

    /// Has a service asked about its clients whenever another table comes into force.
    pub fn watch(&self, watcher: Weak<dyn AccessWatcher>) {
        self.access.rules.watchers.add(watcher);
    }

    /// The number of the table in force: it changes before the watchers are asked.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.access.generation()
    }

    /// Has all services with this table ask again about their clients.
    pub fn ask_again(&self) {
        self.access.ask_again();
    }

    fn fingerprint(&self, connection: CallerConnection, what: impl std::hash::Hash) -> u64 {
        // 0 stands for none.
        let generation = self.access.generation();
        self.keys.hash_one((generation, connection.number(), what)) | 1
    }

    fn place(&self, fingerprint: u64) -> &AtomicU64 {
        let index = (fingerprint >> 32) as usize % ACCESS_VERIFIED_MAX;
        &self.verified[index]
    }

    fn is_verified(&self, fingerprint: u64) -> bool {
        self.place(fingerprint).load(Relaxed) == fingerprint
    }

    fn note_verified(&self, fingerprint: u64) {
        self.place(fingerprint).store(fingerprint, Relaxed);
    }

    fn peer(&self) -> Identity {
        let adapter = self.adapter.upgrade();
        adapter.map_or(Identity::UNKNOWN, |adapter| PoaCurrent(adapter).identity())
    }

    #[inline(never)]
    fn look_up(&self, asked: &Asked<'_>) -> Result<Identity, SystemException> {
        let peer = self.peer();
        if permits(&self.access.table(), &peer, asked) {
            Ok(peer)
        } else {
            Err(self.refuse(peer, asked))
        }
    }

    #[cold]
    fn refuse(&self, peer: Identity, asked: &Asked<'_>) -> SystemException {
        let refusal = refusal(peer, asked);
        let remedy = match &self.access.file {
            Some(file) => format!("add a rule for it to {file}"),
            None => "start the server with --access FILE and a rule for it".to_owned(),
        };
        let words = format!("{refusal}; {remedy}");
        self.note(&AccessEvent::Refused(&refusal));
        self.count(refusal);
        let denied =
            SystemException::new(Kind::NoPermission, own_minor::ACCESS_DENIED, Completion::No);
        explain_exception(denied, words)
    }

    fn note(&self, event: &AccessEvent<'_>) {
        let adapter = self.adapter.upgrade();
        if let Some(log) = adapter.and_then(|adapter| adapter.log.clone()) {
            log.note(event);
        }
    }

    fn count(&self, refusal: Refusal) {
        self.refused.fetch_add(1, Relaxed);
        let mut recent = self.recent.lock("access.refusals");
        if recent.len() < REFUSALS_KEPT_MAX {
            recent.push(refusal);
        }
    }
}

fn refusal(peer: Identity, asked: &Asked<'_>) -> Refusal {
    let operation = &asked.operation[..asked.operation.len().min(OPERATION_SHOWN_MAX)];
    Refusal {
        caller: peer.caller,
        name: peer.name,
        action: asked.action,
        operation: String::from_utf8_lossy(operation).into_owned(),
        object: asked.object.map(str::to_owned),
        events: asked.events.filter(|_| asked.operation.is_empty()),
    }
}

fn permits(table: &Table, peer: &Identity, asked: &Asked<'_>) -> bool {
    table.permits(peer.subject(), asked)
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

/// Characters of an operation's name in a refusal.
const OPERATION_SHOWN_MAX: usize = 64;

/// Whether every object has the operation.
fn is_implicit(operation: &[u8]) -> bool {
    operation.first() == Some(&b'_')
        && matches!(
            operation,
            b"_is_a"
                | b"_non_existent"
                | b"_not_existent"
                | b"_repository_id"
                | b"_component"
                | b"_interface"
                | b"_bind_priority_band"
                | b"_domain_managers"
        )
}

/// The name of an object in the rules: the path of its adapter and its id.
fn object_name(poa: &Poa, id: &[u8]) -> String {
    let mut name = String::new();
    // The root has no name in the rules.
    for part in poa.adapter_name().iter().skip(1) {
        name.push_str(part);
        name.push('/');
    }
    for octet in id {
        match octet {
            b'%' | ..=b' ' | 0x7f.. => name.push_str(&format!("%{octet:02x}")),
            _ => name.push(char::from(*octet)),
        }
    }
    name
}
