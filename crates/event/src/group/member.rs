//! One member of a group: what it knows, and how it finds, follows and replaces the primary.

mod forwarding;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;

use deckwatch_orb::{Orb, Poa, Servant, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::PiMutex;

use forwarding::Forwarding;

use super::others::{Answers, MEMBER_KEY};
use super::{GroupCounts, GroupOptions, Others, Profiles, Replication, Standing};
use crate::channel_group::{
    Change, KeptPush, KeptPushes, Member, MemberChangeError, MemberJoinError, MemberKeepError,
    MemberSkeleton, MemberWatchError, NotLeading, ProxyRecord, Role, Snapshot, Standing as Report,
    Superseded,
};
use crate::clients;
use crate::gate::Gate;
use crate::home::{Fixed, Home, guarded_poa};
use crate::limits;
use crate::raise::{raise, system};
use crate::rt::{RtChannelOptions, RtEventChannel};
use crate::rtec_event_channel_admin::EventChannelRef;
use crate::store::{ChannelKind, ChannelStore, ChannelStoreError};

/// One process of a group that serves a real-time channel.
pub struct RtGroupMember {
    inner: Arc<Inner>,
    reference: EventChannelRef,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and the servant of a member share.
struct Inner {
    orb: Orb,
    options: RtChannelOptions,
    group: GroupOptions,
    poa: OnceLock<Poa>,
    gate: Arc<Gate>,
    others: Arc<Others>,
    /// Taken by the take-over.
    store: PiMutex<Option<ChannelStore>>,
    state: PiMutex<State>,
    is_closed: AtomicBool,
}

struct State {
    role: Role,
    epoch: u64,
    /// The place of the primary, as far as it is known.
    leader: Option<usize>,
    held: Held,
    /// The epoch of the primary that this member joins, and what has come from it meanwhile.
    joining: Option<(u64, Held)>,
    forgotten: u64,
    has_failed: bool,
    channel: Option<Arc<RtEventChannel>>,
    replication: Option<Arc<Replication>>,
}

/// What a backup has of the primary.
#[derive(Default)]
struct Held {
    /// Encapsulated records, by number.
    rows: BTreeMap<u64, Vec<u8>>,
    kept: BTreeMap<u64, KeptPush>,
}

/// What the former primary has left: records, pushes that it may not have delivered, and the next epoch.
type Left = (Vec<(u64, Vec<u8>)>, KeptPushes, u64);

impl RtGroupMember {
    /// Starts a member. It becomes the primary, or a backup of the primary that it finds, in a thread of its own.
    ///
    /// # Errors
    /// BAD_PARAM for a list without this member, or out of bounds; NO_RESOURCES without a thread; the exceptions of the
    /// adapter.
    pub fn start(
        orb: &Orb,
        options: RtChannelOptions,
        group: GroupOptions,
        store: ChannelStore,
    ) -> Result<Self, SystemException> {
        group.check()?;
        let others = Others::new(orb, &group)?;
        let (inner, reference) = Inner::start(orb, options, (group, others), store)?;
        let turning = Arc::clone(&inner);
        let thread = std::thread::Builder::new()
            .name("channel-group".to_owned())
            .spawn(move || turning.run())
            .map_err(|_| raise(Kind::NoResources))?;
        Ok(Self {
            inner,
            reference,
            thread: Some(thread),
        })
    }

    /// The channel's reference, with a profile for each member.
    #[must_use]
    pub fn reference(&self) -> &EventChannelRef {
        &self.reference
    }

    /// What the member is at the moment.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let state = self.inner.state.lock("group.state");
        match state.role {
            _ if state.has_failed => Standing::Failed,
            Role::Starting => Standing::Starting,
            Role::Following => state.leader.map_or(Standing::Starting, Standing::Backup),
            Role::TakingOver => Standing::TakingOver,
            Role::Leading => match &state.replication {
                Some(replication) if replication.is_superseded() => Standing::Leaving,
                replication => {
                    Standing::Primary(replication.as_ref().map_or(0, |it| it.backup_count()))
                }
            },
            Role::Ended => Standing::Superseded,
        }
    }

    /// The channel, if this member is the primary.
    #[must_use]
    pub fn channel(&self) -> Option<Arc<RtEventChannel>> {
        self.inner.state.lock("group.state").channel.clone()
    }

    /// What the member has counted.
    #[must_use]
    pub fn counts(&self) -> GroupCounts {
        let state = self.inner.state.lock("group.state");
        let replication = state.replication.as_deref();
        let counts = replication.map_or_else(GroupCounts::default, GroupCounts::of);
        GroupCounts {
            forgotten: counts.forgotten + state.forgotten,
            ..counts
        }
    }
}

impl Drop for RtGroupMember {
    fn drop(&mut self) {
        self.inner.is_closed.store(true, Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join(); // Its panic was reported.
        }
    }
}

impl Inner {
    /// A member without its thread, and its channel's reference.
    fn start(
        orb: &Orb,
        options: RtChannelOptions,
        (group, others): (GroupOptions, Others),
        store: ChannelStore,
    ) -> Result<(Arc<Self>, EventChannelRef), SystemException> {
        let gate = Gate::new(orb, options.access.clone(), true);
        let inner = Arc::new(Self {
            orb: orb.clone(),
            options,
            group,
            poa: OnceLock::new(),
            gate,
            others: Arc::new(others),
            store: PiMutex::new(Some(store)),
            state: PiMutex::new(State {
                role: Role::Starting,
                epoch: 0,
                leader: None,
                held: Held::default(),
                joining: None,
                forgotten: 0,
                has_failed: false,
                channel: None,
                replication: None,
            }),
            is_closed: AtomicBool::new(false),
        });
        let poa = Home::group_adapter(orb, Arc::new(Forwarding(Arc::downgrade(&inner))))?;
        inner.gate.protect(&poa)?;
        let id = (Fixed::Channel as u64).to_be_bytes();
        let reference = poa.create_reference_with_id(&id, EventChannelRef::REPOSITORY_ID);
        let reference = inner.profiles().add_to(reference.map_err(system)?);
        let _ = inner.poa.set(poa); // It is new.
        let servant: Arc<dyn Servant> =
            Arc::new(MemberSkeleton::new(MemberServant(Arc::downgrade(&inner))));
        let poa = guarded_poa(orb, &inner.gate)?;
        let id = poa.activate_object(servant).map_err(system)?;
        let object = poa.id_to_reference(&id).map_err(system)?;
        orb.register_plain_key(MEMBER_KEY.as_bytes(), &object)?;
        Ok((inner, EventChannelRef::unchecked_narrow(reference)))
    }

    fn profiles(&self) -> Profiles {
        let others = self.others.members.iter();
        let others = others.map(|(place, _)| self.group.members[*place].clone());
        Profiles::new(&self.orb, others.collect())
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Acquire)
    }

    fn role(&self) -> Role {
        self.state.lock("group.state").role
    }

    /// The body of the thread.
    fn run(&self) {
        let begun = self.orb.transport().now();
        while !self.is_closed() {
            match self.role() {
                Role::Starting => {
                    let waited = self.orb.transport().now().since(begun);
                    self.look_for_primary(waited >= limits::TAKE_OVER_AFTER);
                }
                Role::Following => self.follow(),
                Role::Leading => self.look_for_rival(),
                Role::TakingOver | Role::Ended => return,
            }
        }
    }

    /// A member without the state of a group. It leads only if no other member has that state, nor hangs: that one may
    /// be the primary.
    fn look_for_primary(&self, is_patient: bool) {
        let Answers {
            standings,
            has_silent,
        } = self.others.ask();
        if let Some(leader) = newest_leader(&standings) {
            return self.join(leader);
        }
        let has_state =
            |report: &Report| matches!(report.member_role, Role::Following | Role::TakingOver);
        let is_first = standings.iter().all(|(place, _)| *place > self.group.place);
        let must_wait = has_silent || standings.iter().any(|(_, report)| has_state(report));
        if must_wait || !is_first || !(self.group.place == 0 || is_patient) {
            return std::thread::park_timeout(limits::STANDING_PERIOD);
        }
        self.lead(None, &[]);
    }

    /// Becomes a backup of the primary with this epoch, at this place.
    fn join(&self, (epoch, leader): (u64, usize)) {
        let Some(member) = self.others.member(leader) else {
            return;
        };
        // Changes and pushes may come before the reply does. What this member has stays until then: the new primary may
        // die.
        self.state.lock("group.state").joining = Some((epoch, Held::default()));
        let joined = member.join(self.group.place as u16);
        let mut state = self.state.lock("group.state");
        let joining = state.joining.take();
        let (snapshot, mut held) = match (joined, joining) {
            (Ok(snapshot), Some((_, held))) if snapshot.epoch == epoch => (snapshot, held),
            // The primary does not answer, or the process is another one.
            _ => {
                drop(state);
                return std::thread::park_timeout(limits::STANDING_PERIOD);
            }
        };
        for change in snapshot.records {
            held.rows.entry(change.number).or_insert(change.record);
        }
        // A record that was removed meanwhile is an empty one until now.
        held.rows.retain(|_, record| !record.is_empty());
        for push in snapshot.pushes {
            held.kept.insert(push.number, push);
        }
        state.held = held;
        state.epoch = epoch;
        state.leader = Some(leader);
        state.role = Role::Following;
    }

    /// Asks the primary whether it lives; decides what follows if it does not.
    fn follow(&self) {
        let (leader, epoch) = {
            let state = self.state.lock("group.state");
            (state.leader.unwrap_or_default(), state.epoch)
        };
        let Some(member) = self.others.member(leader) else {
            return;
        };
        match member.watch(self.group.place as u16, epoch) {
            Ok(delivered) => {
                let mut state = self.state.lock("group.state");
                state.held.kept.retain(|number, _| *number > delivered);
            }
            // It has left this member out, or does not answer. Perhaps this member did not run for a while.
            Err(MemberWatchError::NotLeading(_) | MemberWatchError::System(_)) => self.elect(epoch),
        }
    }

    /// The primary does not answer a watch. Asks all, the primary too: if none leads, the first backup of the list takes
    /// over.
    fn elect(&self, epoch: u64) {
        while !self.is_closed() {
            let standings = self.others.ask().standings;
            if let Some(leader) = newest_leader(&standings).filter(|(newest, _)| *newest >= epoch) {
                return self.join(leader);
            }
            let must_wait = |(place, report): &(usize, Report)| match report.member_role {
                Role::TakingOver => true,
                Role::Following => (report.epoch, self.group.place) > (epoch, *place),
                Role::Starting | Role::Leading | Role::Ended => false,
            };
            if !standings.iter().any(must_wait) {
                let followers = standings.into_iter();
                let followers = followers.filter(|(_, it)| it.member_role == Role::Following);
                return self.take_over(&followers.map(|(place, _)| place).collect::<Vec<_>>());
            }
            std::thread::park_timeout(limits::STANDING_PERIOD);
        }
    }

    fn take_over(&self, followers: &[usize]) {
        let left = {
            let mut state = self.state.lock("group.state");
            // From now on nothing of the former primary is taken: it cannot tell a supplier that a push is safe.
            state.role = Role::TakingOver;
            let held = std::mem::take(&mut state.held);
            let rows = held.rows.into_iter().collect();
            let pushes = held.kept.into_values().collect();
            (rows, pushes, state.epoch + 1)
        };
        self.lead(Some(left), followers);
    }

    /// Becomes the primary: with what the former primary left, or with what the store has.
    fn lead(&self, left: Option<Left>, followers: &[usize]) {
        if let Err(_cannot) = self.try_lead(left, followers) {
            let mut state = self.state.lock("group.state");
            state.has_failed = true;
            state.role = Role::Ended;
        }
    }

    fn try_lead(&self, left: Option<Left>, followers: &[usize]) -> Result<(), ChannelStoreError> {
        let store = self.store.lock("group.store").take();
        let (Some(store), Some(poa)) = (store, self.poa.get()) else {
            return Ok(());
        };
        let (records, pushes, epoch) = match left {
            None => {
                let epoch = store.begin(ChannelKind::RealTime)?;
                (store.proxies()?, Vec::new(), epoch)
            }
            Some((rows, pushes, epoch)) => {
                store.take_over(epoch, &rows)?;
                let rows = rows.iter().map(|(_, row)| clients::record(row));
                let records: Option<Vec<ProxyRecord>> = rows.collect();
                let damaged = ChannelStoreError::Damaged("a record of the primary cannot be read");
                (records.ok_or(damaged)?, pushes, epoch)
            }
        };
        let others = Arc::clone(&self.others);
        let replication = Arc::new(Replication::new(epoch, self.options.queue_len, others));
        let home = Home::leading(
            (poa.clone(), Arc::clone(&self.gate)),
            self.profiles(),
            store,
            Arc::clone(&replication),
            &records,
        )?;
        let options = self.options.clone();
        let channel = RtEventChannel::start_leading(home, &self.orb, options, (&records, pushes))?;
        let channel = Arc::new(channel);
        {
            let mut state = self.state.lock("group.state");
            state.epoch = epoch;
            state.leader = Some(self.group.place);
            state.channel = Some(Arc::clone(&channel));
            state.replication = Some(Arc::clone(&replication));
            state.role = Role::Leading;
        }
        self.wait_for(followers, &replication);
        channel.open();
        Ok(())
    }

    /// Waits until the other backups of the former primary are backups of this one: if it died before that, they would
    /// not have what it acknowledges. One that does not answer delays the take-over by the time limit of a call.
    fn wait_for(&self, followers: &[usize], replication: &Replication) {
        let begun = self.others.now();
        let is_missing = |place: &usize| !replication.has(*place as u16);
        while followers.iter().any(is_missing)
            && self.others.now().since(begun) < limits::BACKUP_TIMEOUT
            && !self.is_closed()
        {
            std::thread::park_timeout(limits::JOIN_PERIOD);
        }
    }

    /// A primary that was cut off from the others may have been replaced.
    fn look_for_rival(&self) {
        let Some(replication) = self.state.lock("group.state").replication.clone() else {
            return;
        };
        let period = if replication.has_missing() {
            limits::WATCH_PERIOD
        } else {
            limits::TAKE_OVER_AFTER
        };
        std::thread::park_timeout(period);
        if !replication.is_superseded() {
            replication.look_for_rival();
        }
        if replication.is_superseded() {
            self.deliver_last(&replication);
            self.state.lock("group.state").role = Role::Ended;
        }
    }

    /// Takes no more pushes, but delivers those that it has acknowledged: while the members did not see each other, it
    /// may have been alone with them.
    fn deliver_last(&self, replication: &Replication) {
        let begun = self.others.now();
        while replication.has_kept()
            && self.others.now().since(begun) < limits::LAST_DELIVERIES
            && !self.is_closed()
        {
            std::thread::park_timeout(limits::STANDING_PERIOD);
        }
    }
}

/// The member that leads with the highest epoch: the epoch and the place.
fn newest_leader(standings: &[(usize, Report)]) -> Option<(u64, usize)> {
    let leading = standings.iter();
    let leading = leading.filter(|(_, report)| report.member_role == Role::Leading);
    leading.map(|(place, report)| (report.epoch, *place)).max()
}

/// The servant for the other members.
struct MemberServant(Weak<Inner>);

impl MemberServant {
    fn inner(&self) -> Result<Arc<Inner>, SystemException> {
        self.0.upgrade().ok_or_else(|| raise(Kind::ObjectNotExist))
    }

    fn replication(inner: &Inner) -> Result<(Arc<Replication>, Arc<RtEventChannel>), NotLeading> {
        let state = inner.state.lock("group.state");
        match (&state.replication, &state.channel) {
            (Some(replication), Some(channel)) if !replication.is_superseded() => {
                Ok((Arc::clone(replication), Arc::clone(channel)))
            }
            _ => Err(NotLeading {}),
        }
    }
}

impl Member for MemberServant {
    fn report_standing(&self) -> Result<Report, SystemException> {
        let inner = self.inner()?;
        let state = inner.state.lock("group.state");
        let replication = state.replication.as_ref();
        let member_role = match replication {
            Some(it) if it.is_superseded() => Role::Ended,
            _ => state.role,
        };
        Ok(Report {
            member_role,
            epoch: state.epoch,
            backups: replication.map_or(0, |it| it.backup_count() as u32),
        })
    }

    fn join(&self, place: u16) -> Result<Snapshot, MemberJoinError> {
        let inner = self.inner()?;
        let (replication, channel) = Self::replication(&inner)?;
        let member = inner.others.member(usize::from(place));
        let member = member.ok_or_else(|| raise(Kind::BadParam))?;
        let mut snapshot = Snapshot {
            epoch: replication.epoch(),
            records: Vec::new(),
            pushes: Vec::new(),
        };
        channel.admit(|records| {
            snapshot.records = records;
            snapshot.pushes = replication.add(place, member.clone());
        });
        Ok(snapshot)
    }

    fn watch(&self, place: u16, epoch: u64) -> Result<u64, MemberWatchError> {
        let inner = self.inner()?;
        let (replication, _) = Self::replication(&inner)?;
        if replication.epoch() != epoch || !replication.has(place) {
            return Err(NotLeading {}.into());
        }
        std::thread::sleep(limits::WATCH_PERIOD);
        Ok(replication.delivered())
    }

    fn change(&self, epoch: u64, records: &[Change]) -> Result<(), MemberChangeError> {
        let inner = self.inner()?;
        let mut state = inner.state.lock("group.state");
        let is_joining = state.joining.is_some();
        let held = state.held_of::<MemberChangeError>(epoch)?;
        for change in records {
            // While this member joins, the snapshot must not put a removed record back.
            if change.record.is_empty() && !is_joining {
                held.rows.remove(&change.number);
            } else {
                held.rows.insert(change.number, change.record.clone());
            }
        }
        Ok(())
    }

    fn keep(&self, epoch: u64, delivered: u64, pushed: &KeptPush) -> Result<(), MemberKeepError> {
        let inner = self.inner()?;
        let mut state = inner.state.lock("group.state");
        let kept = &mut state.held_of::<MemberKeepError>(epoch)?.kept;
        while let Some(first) = kept.first_entry()
            && *first.key() <= delivered
        {
            first.remove();
        }
        kept.insert(pushed.number, pushed.clone());
        if kept.len() > inner.options.queue_len {
            kept.pop_first();
            state.forgotten += 1;
        }
        Ok(())
    }
}

impl State {
    /// What a primary with this epoch changes.
    ///
    /// # Errors
    /// Superseded, if this member has another primary meanwhile, or becomes it. TRANSIENT, if this member has not joined
    /// that primary: the primary leaves it out.
    fn held_of<E>(&mut self, epoch: u64) -> Result<&mut Held, E>
    where
        E: From<Superseded> + From<SystemException>,
    {
        let (known, held) = match &mut self.joining {
            Some((epoch, held)) => (*epoch, Some(held)),
            None if self.role == Role::Following => (self.epoch, Some(&mut self.held)),
            None => (self.epoch, None),
        };
        match held {
            Some(held) if epoch == known => Ok(held),
            _ if epoch > known => Err(raise(Kind::Transient).into()),
            _ => Err(Superseded {}.into()),
        }
    }
}

#[cfg(test)]
mod tests;
