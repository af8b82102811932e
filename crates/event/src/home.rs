//! Where the objects of a channel live: their adapter, their numbers and, for a channel with a store, the records of
//! its connected clients.
//!
//! A channel with a store has a persistent adapter, whose object ids are the numbers of the proxies. The number of the
//! channel's present life is in the upper half of each new number, so that none is given twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_cdr::Write;
use deckwatch_orb::{
    Completion, ObjectId, ObjectRef, Orb, Poa, Policies, RequestProcessing, Servant,
    ServantActivator, ServantManager, SystemException, SystemExceptionKind as Kind,
};
use deckwatch_sync::PiMutex;

use crate::channel_group::{Change, Changes, ClientIdentity, ProxyKind, ProxyRecord};
use crate::clients::{Clients, Known, to_record};
use crate::gate::Gate;
use crate::group::{Profiles, Replication};
use crate::raise::system;
use crate::restore::client_text;
use crate::store::{ChannelKind, ChannelStore, ChannelStoreError, encapsulate};

/// Numbers of proxies and administrations, unique in the process.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Name of the adapter of a channel with a store; part of its persistent keys.
const ADAPTER: &str = "channel";

/// The objects that a channel has without a client.
#[derive(Clone, Copy)]
pub(crate) enum Fixed {
    Channel,
    ConsumerAdmin,
    SupplierAdmin,
}

/// Where the objects of one channel live.
pub(crate) struct Home {
    poa: Poa,
    profiles: Profiles,
    pub(crate) gate: Arc<Gate>,
    ledger: Option<Ledger>,
    /// Who they are.
    clients: Clients,
    /// The adapter is this channel's alone, and ends with it.
    owns_poa: bool,
}

/// The records of a channel with a store.
struct Ledger {
    store: ChannelStore,
    /// In the upper half of each number that is given in this life.
    epoch: u64,
    state: PiMutex<State>,
    /// Held while the store is written.
    writing: PiMutex<()>,
    failures: AtomicU64,
    /// For the primary of a group.
    replication: Option<Arc<Replication>>,
}

/// Rows to write, by number. `None`: the row is to be removed.
type Rows = BTreeMap<u64, Option<Arc<[u8]>>>;

#[derive(Default)]
struct State {
    /// The rows of the store, as they were last written or are to be written.
    rows: BTreeMap<u64, Arc<[u8]>>,
    /// Rows that need not be written at once: those of clients that are gone.
    later: Rows,
    is_restored: bool,
}

/// A client that connects, for [`Home::record`].
pub(crate) struct Client<'a, Q> {
    pub(crate) number: u64,
    pub(crate) kind: ProxyKind,
    pub(crate) reference: Option<&'a ObjectRef>,
    pub(crate) qos: Option<&'a Q>,
    pub(crate) is_suspended: bool,
}

/// The type of [`Client::qos`] in a channel without one.
pub(crate) type NoQos = bool;

impl Home {
    /// The objects end with the channel. They are those of the ORB's root adapter, or of one of their own if an access
    /// table is asked about them.
    pub(crate) fn transient(orb: &Orb, gate: Arc<Gate>) -> Result<Self, SystemException> {
        let owns_poa = gate.has_table();
        Ok(Self {
            poa: guarded_poa(orb, &gate)?,
            gate,
            ledger: None,
            clients: Clients::default(),
            profiles: Profiles::default(),
            owns_poa,
        })
    }

    /// The objects keep their keys as long as the store is kept. Returns the records of the clients to connect again.
    pub(crate) fn stored(
        orb: &Orb,
        store: ChannelStore,
        kind: ChannelKind,
        gate: Arc<Gate>,
    ) -> Result<(Self, Vec<ProxyRecord>), ChannelStoreError> {
        let epoch = store.begin(kind)?;
        let records = store.proxies()?;
        // Requests wait until the clients are connected: the manager is a new one.
        let root = orb.root_poa()?;
        let poa = root.create_poa(ADAPTER, None, &Policies::persistent());
        let poa = poa.map_err(system)?;
        gate.protect(&poa)?;
        let ledger = Ledger::new(store, epoch, &records, None)?;
        let home = Self {
            clients: Clients::of(&records),
            poa,
            gate,
            ledger: Some(ledger),
            profiles: Profiles::default(),
            owns_poa: false,
        };
        Ok((home, records))
    }

    /// The adapter of a group's member. While the member is not the primary, `forwarding` answers all requests.
    pub(crate) fn group_adapter(
        orb: &Orb,
        forwarding: Arc<dyn ServantActivator>,
    ) -> Result<Poa, SystemException> {
        let policies = Policies {
            request_processing: RequestProcessing::UseServantManager,
            ..Policies::persistent()
        };
        let poa = orb.root_poa()?.create_poa(ADAPTER, None, &policies);
        let poa = poa.map_err(system)?;
        poa.set_servant_manager(ServantManager::Activator(forwarding))
            .map_err(system)?;
        let active = poa.the_poa_manager().activate();
        active.map_err(|_| crate::raise::raise(Kind::Internal))?;
        Ok(poa)
    }

    /// The objects of a group's primary. Requests wait until [`Home::end_restoring`].
    pub(crate) fn leading(
        (poa, gate): (Poa, Arc<Gate>),
        profiles: Profiles,
        store: ChannelStore,
        replication: Arc<Replication>,
        records: &[ProxyRecord],
    ) -> Result<Self, ChannelStoreError> {
        let held = poa.the_poa_manager().hold_requests(false);
        held.map_err(|_| crate::raise::raise(Kind::Internal))?;
        let epoch = replication.epoch();
        let ledger = Ledger::new(store, epoch, records, Some(replication))?;
        Ok(Self {
            clients: Clients::of(records),
            poa,
            gate,
            ledger: Some(ledger),
            profiles,
            owns_poa: false,
        })
    }

    /// Calls `join` with all records while none is changed.
    pub(crate) fn admit(&self, join: impl FnOnce(Changes)) {
        if let Some(ledger) = &self.ledger {
            let _writing = ledger.writing.lock("event.ledger.write");
            let rows = ledger.state.lock("event.ledger").rows.clone();
            let rows: Rows = rows.into_iter().map(|(n, row)| (n, Some(row))).collect();
            join(changes(&rows));
        }
    }

    /// The primary's side of its group.
    pub(crate) fn replication(&self) -> Option<&Arc<Replication>> {
        self.ledger.as_ref()?.replication.as_ref()
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.ledger.is_some()
    }

    pub(crate) fn is_orb_alive(&self) -> bool {
        self.poa.is_orb_alive()
    }

    /// A number that no other object of the channel has or has had.
    pub(crate) fn next_number(&self) -> u64 {
        let number = NUMBERS.fetch_add(1, Relaxed);
        let epoch = self.ledger.as_ref().map_or(0, |ledger| ledger.epoch);
        epoch << 32 | number
    }

    /// The number of an object that a channel with a store has in every life.
    pub(crate) fn fixed_number(&self, object: Fixed) -> u64 {
        if self.is_stored() {
            object as u64
        } else {
            self.next_number()
        }
    }

    /// Activates the object of a number.
    pub(crate) fn activate(
        &self,
        number: u64,
        servant: Arc<dyn Servant>,
    ) -> Result<(ObjectId, ObjectRef), SystemException> {
        let id = if self.is_stored() {
            let id = number.to_be_bytes();
            let activated = self.poa.activate_object_with_id(&id, servant);
            activated.map_err(system)?;
            ObjectId::new(id)
        } else {
            self.poa.activate_object(servant).map_err(system)?
        };
        let reference = self.poa.id_to_reference(&id).map_err(system)?;
        Ok((id, self.profiles.add_to(reference)))
    }

    pub(crate) fn deactivate(&self, id: &ObjectId) {
        let _ = self.poa.deactivate_object(id); // It may be gone already.
    }

    /// The id of an object in this adapter that the reference is to.
    pub(crate) fn own_id(&self, reference: &ObjectRef) -> Option<ObjectId> {
        self.poa.reference_to_id(reference).ok()
    }

    /// Records a client, then connects it. The record is durable when this returns. Without a store, connects only.
    ///
    /// # Errors
    /// PERSIST_STORE if the record cannot be written; MARSHAL for a QoS that cannot be encoded; NO_PERMISSION in a
    /// channel without types; those of `connect`.
    pub(crate) fn record<T, Q: Write>(
        &self,
        client: &Client<'_, Q>,
        connect: impl FnOnce() -> Result<T, SystemException>,
    ) -> Result<T, SystemException> {
        let generation = self.gate.generation();
        if self.is_restoring() {
            self.check_connecting(client)?;
            return connect();
        }
        let caller = self.gate.caller();
        let identity = to_record(caller.as_ref());
        let known = caller.map(|caller| Known::new(caller, client.kind));
        let before = self.clients.set(client.number, known);
        let connected = self
            .check_connecting(client)
            .and_then(|()| self.record_of(client, identity, connect));
        if connected.is_err() {
            self.clients.set(client.number, before);
        } else if self.gate.generation() != generation {
            // The table that was asked is no longer in force, and who was asked about may not have been this one.
            self.gate.ask_again();
        }
        connected
    }

    fn is_restoring(&self) -> bool {
        let ledger = self.ledger.as_ref();
        ledger.is_some_and(|ledger| !ledger.state.lock("event.ledger").is_restored)
    }

    /// Checks a client of a channel without types; others are checked where their events are known.
    fn check_connecting<Q>(&self, client: &Client<'_, Q>) -> Result<(), SystemException> {
        if client.qos.is_some() {
            return Ok(());
        }
        self.clients.check(&self.gate, client.number)
    }

    /// Checks whether a client that connects may consume or supply these events: pairs of source and type.
    ///
    /// # Errors
    /// NO_PERMISSION.
    pub(crate) fn check_events(
        &self,
        number: u64,
        events: impl Iterator<Item = (i32, i32)>,
    ) -> Result<(), SystemException> {
        self.clients.check_events(&self.gate, number, events)
    }

    /// The clients that the table in force does not permit what they do. `events` returns the pairs of source and type
    /// of a client, if the channel has types.
    pub(crate) fn refused_clients(
        &self,
        events: impl Fn(u64, ProxyKind) -> Option<Vec<(i32, i32)>>,
    ) -> Vec<(u64, ProxyKind)> {
        let all = self.clients.all().into_iter();
        all.filter(|(number, known)| !known.may_stay(&self.gate, events(*number, known.kind)))
            .map(|(number, known)| (number, known.kind))
            .collect()
    }

    fn record_of<T, Q: Write>(
        &self,
        client: &Client<'_, Q>,
        identity: ClientIdentity,
        connect: impl FnOnce() -> Result<T, SystemException>,
    ) -> Result<T, SystemException> {
        match &self.ledger {
            Some(ledger) => {
                let record = ProxyRecord {
                    number: client.number,
                    kind: client.kind,
                    client: client.reference.map_or_else(String::new, client_text),
                    qos: client.qos.map(encapsulate).transpose()?.unwrap_or_default(),
                    is_suspended: client.is_suspended,
                    identity,
                };
                let before = ledger.row(client.number);
                ledger.write(client.number, Some(encapsulate(&record)?.into()))?;
                connect().inspect_err(|_| ledger.write_later(client.number, before))
            }
            None => connect(),
        }
    }

    /// Records whether a consumer is suspended.
    ///
    /// # Errors
    /// PERSIST_STORE if that cannot be written.
    pub(crate) fn record_suspended(
        &self,
        number: u64,
        is_suspended: bool,
    ) -> Result<(), SystemException> {
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        let Some(mut record) = ledger
            .row(number)
            .and_then(|row| crate::clients::record(&row))
        else {
            return Ok(());
        };
        if record.is_suspended == is_suspended {
            return Ok(());
        }
        record.is_suspended = is_suspended;
        ledger.write(number, Some(encapsulate(&record)?.into()))
    }

    /// Removes the record of a client that disconnects.
    ///
    /// # Errors
    /// PERSIST_STORE if that cannot be written: the client stays connected.
    pub(crate) fn forget(&self, number: u64) -> Result<(), SystemException> {
        match &self.ledger {
            Some(ledger) if ledger.row(number).is_some() => ledger.write(number, None),
            _ => Ok(()),
        }
    }

    /// Removes the record of a client that is gone, with the next change that is written. If the channel crashes
    /// before, it finds once more that the client is gone.
    pub(crate) fn forget_later(&self, number: u64) {
        self.clients.set(number, None);
        if let Some(ledger) = &self.ledger
            && ledger.row(number).is_some()
        {
            ledger.write_later(number, None);
        }
    }

    /// Removes all records: the channel has been destroyed.
    pub(crate) fn forget_all(&self) {
        self.clients.clear();
        if let Some(ledger) = &self.ledger {
            let _writing = ledger.writing.lock("event.ledger.write");
            *ledger.state.lock("event.ledger") = State::default();
            if ledger.store.clear().is_err() {
                ledger.failures.fetch_add(1, Relaxed);
            }
        }
    }

    /// The clients of the store are connected: from now on changes are recorded.
    pub(crate) fn end_restoring(&self) {
        if let Some(ledger) = &self.ledger {
            ledger.state.lock("event.ledger").is_restored = true;
            let _ = self.poa.the_poa_manager().activate(); // It fails at the end of the ORB alone.
        }
    }

    /// Changes that could not be written.
    pub(crate) fn store_failures(&self) -> u64 {
        let ledger = self.ledger.as_ref();
        ledger.map_or(0, |ledger| ledger.failures.load(Relaxed))
    }
}

/// The root adapter, or a child of it whose objects a table is asked about.
pub(crate) fn guarded_poa(orb: &Orb, gate: &Gate) -> Result<Poa, SystemException> {
    let root = orb.root_poa()?;
    if !gate.has_table() {
        return Ok(root);
    }
    let name = format!("{ADAPTER} {}", NUMBERS.fetch_add(1, Relaxed));
    let manager = root.the_poa_manager();
    let poa = root.create_poa(&name, Some(manager), &Policies::default());
    let poa = poa.map_err(system)?;
    gate.protect(&poa)?;
    Ok(poa)
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(ledger) = &self.ledger {
            let waiting = std::mem::take(&mut ledger.state.lock("event.ledger").later);
            if !waiting.is_empty() {
                // What cannot be written now is found once more in the next life.
                let _ = ledger.put(&waiting);
            }
        }
        if self.owns_poa {
            let _ = self.poa.destroy(false, false); // The ORB may have ended.
        }
    }
}

impl Ledger {
    fn new(
        store: ChannelStore,
        epoch: u64,
        records: &[ProxyRecord],
        replication: Option<Arc<Replication>>,
    ) -> Result<Self, SystemException> {
        let mut state = State::default();
        for record in records {
            let octets = encapsulate(record)?;
            state.rows.insert(record.number, octets.into());
        }
        Ok(Self {
            store,
            epoch,
            state: PiMutex::new(state),
            writing: PiMutex::new(()),
            failures: AtomicU64::new(0),
            replication,
        })
    }

    fn row(&self, number: u64) -> Option<Arc<[u8]>> {
        self.state.lock("event.ledger").rows.get(&number).cloned()
    }

    /// Writes a row, and what waits, in one transaction.
    fn write(&self, number: u64, row: Option<Arc<[u8]>>) -> Result<(), SystemException> {
        // `state` is free meanwhile: the thread that serves consumers takes it.
        let _writing = self.writing.lock("event.ledger.write");
        let waiting = self.state.lock("event.ledger").later.clone();
        let mut batch = waiting.clone();
        batch.insert(number, row.clone());
        self.put(&batch)?;
        if let Some(replication) = &self.replication {
            replication.change(&changes(&batch))?;
        }
        let mut state = self.state.lock("event.ledger");
        state.note_written(&waiting);
        // The client may be gone meanwhile.
        if !state.later.contains_key(&number) {
            state.set(number, row);
        }
        Ok(())
    }

    fn write_later(&self, number: u64, row: Option<Arc<[u8]>>) {
        let mut state = self.state.lock("event.ledger");
        state.later.insert(number, row.clone());
        state.set(number, row);
    }

    fn put(&self, rows: &Rows) -> Result<(), SystemException> {
        let rows = rows.iter();
        let rows = rows.map(|(number, row)| (*number, row.as_deref()));
        self.store.put(rows).map_err(|_| {
            self.failures.fetch_add(1, Relaxed);
            SystemException::new(Kind::PersistStore, 0, Completion::No)
        })
    }
}

fn changes(rows: &Rows) -> Changes {
    let change = |(number, row): (&u64, &Option<Arc<[u8]>>)| Change {
        number: *number,
        record: row.as_deref().unwrap_or_default().to_vec(),
    };
    rows.iter().map(change).collect()
}

impl State {
    fn set(&mut self, number: u64, row: Option<Arc<[u8]>>) {
        match row {
            Some(row) => self.rows.insert(number, row),
            None => self.rows.remove(&number),
        };
    }

    fn note_written(&mut self, rows: &Rows) {
        self.later
            .retain(|number, row| rows.get(number) != Some(row));
    }
}

#[cfg(test)]
mod tests;
