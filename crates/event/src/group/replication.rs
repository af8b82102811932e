//! The primary's side of a group: its backups, and the pushes that are kept until they are delivered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use deckwatch_cdr::{EncodeError, Parse, Write, Writer};
use deckwatch_orb::delivery::Marshalled;
use deckwatch_orb::transport::Instant64;
use deckwatch_orb::{PendingReply, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::PiMutex;

use super::Others;
use crate::channel_group::{
    Changes, KeptPush, KeptPushes, MemberKeepError, MemberRef, Role, Standing, Superseded,
};
use crate::limits::{KEPT_SIZE_MAX, LEASE};
use crate::raise::raise;

/// The primary's side of its group.
pub(crate) struct Replication {
    epoch: u64,
    others: Arc<Others>,
    /// Pushes that are kept at most.
    kept_max: usize,
    backups: PiMutex<Vec<Backup>>,
    joins: AtomicU64,
    kept: PiMutex<Kept>,
    /// When the members that are no backups were last asked for another primary.
    asked: PiMutex<Instant64>,
    /// Another member has become the primary.
    is_superseded: AtomicBool,
    pub(crate) backups_lost: AtomicU64,
    pub(crate) forgotten: AtomicU64,
    pub(crate) redelivered: AtomicU64,
}

#[derive(Clone)]
struct Backup {
    place: u16,
    /// Another one each time it joins.
    serial: u64,
    member: MemberRef,
}

#[derive(Default)]
struct Kept {
    last: u64,
    size: usize,
    pushes: VecDeque<Push>,
}

struct Push {
    push: Arc<KeptPush>,
    /// `None` until it was offered to all consumers.
    bodies: Option<Vec<Marshalled>>,
}

impl Replication {
    pub(crate) fn new(epoch: u64, kept_max: usize, others: Arc<Others>) -> Self {
        let now = others.now();
        Self {
            epoch,
            others,
            kept_max,
            backups: PiMutex::default(),
            joins: AtomicU64::new(0),
            kept: PiMutex::default(),
            asked: PiMutex::new(now),
            is_superseded: AtomicBool::new(false),
            backups_lost: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
            redelivered: AtomicU64::new(0),
        }
    }

    pub(crate) const fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) fn is_superseded(&self) -> bool {
        self.is_superseded.load(Acquire)
    }

    pub(crate) fn supersede(&self) {
        self.is_superseded.store(true, Release);
    }

    /// Adds a backup, or a backup that has come back. Returns the pushes that it must have.
    pub(crate) fn add(&self, place: u16, member: MemberRef) -> KeptPushes {
        // With this lock: each push is either returned here, or kept by the new backup.
        let mut kept = self.kept.lock("group.kept");
        kept.drop_delivered();
        let mut backups = self.backups.lock("group.backups");
        backups.retain(|backup| backup.place != place);
        let serial = self.joins.fetch_add(1, Relaxed);
        backups.push(Backup {
            place,
            serial,
            member,
        });
        let pushes = kept.pushes.iter();
        pushes.map(|kept| KeptPush::clone(&kept.push)).collect()
    }

    pub(crate) fn has(&self, place: u16) -> bool {
        let backups = self.backups.lock("group.backups");
        backups.iter().any(|backup| backup.place == place)
    }

    pub(crate) fn backup_count(&self) -> usize {
        self.backups.lock("group.backups").len()
    }

    /// The number of the last push of which all before are delivered.
    pub(crate) fn delivered(&self) -> u64 {
        let mut kept = self.kept.lock("group.kept");
        kept.drop_delivered();
        kept.delivered()
    }

    /// Gives a push its number, and keeps it.
    ///
    /// # Errors
    /// TRANSIENT if another member is the primary.
    pub(crate) fn begin(
        &self,
        supplier: u64,
        requested: i16,
        events: Vec<u8>,
    ) -> Result<Arc<KeptPush>, SystemException> {
        if self.is_superseded() {
            return Err(raise(Kind::Transient));
        }
        let mut kept = self.kept.lock("group.kept");
        let push = Arc::new(KeptPush {
            number: kept.last + 1,
            supplier,
            requested,
            events,
        });
        self.enter(&mut kept, Arc::clone(&push), None);
        Ok(push)
    }

    /// Keeps a push of the former primary.
    pub(crate) fn adopt(&self, push: KeptPush, bodies: Vec<Marshalled>) {
        let mut kept = self.kept.lock("group.kept");
        self.enter(&mut kept, Arc::new(push), Some(bodies));
    }

    fn enter(&self, kept: &mut Kept, push: Arc<KeptPush>, bodies: Option<Vec<Marshalled>>) {
        kept.drop_delivered();
        kept.last = push.number;
        kept.size += push.events.len();
        kept.pushes.push_back(Push { push, bodies });
        while kept.pushes.len() > self.kept_max || kept.size > KEPT_SIZE_MAX {
            kept.drop_first();
            self.forgotten.fetch_add(1, Relaxed);
        }
    }

    /// A push was offered to all consumers; `bodies` are those that some of them have not taken yet.
    pub(crate) fn note_offered(&self, number: u64, bodies: Vec<Marshalled>) {
        let mut kept = self.kept.lock("group.kept");
        let mut pushes = kept.pushes.iter_mut();
        if let Some(push) = pushes.find(|push| push.push.number == number) {
            push.bodies = Some(bodies);
        }
    }

    pub(crate) fn note_again(&self, events: u64) {
        self.redelivered.fetch_add(events, Relaxed);
    }

    /// Returns true if consumers have not yet taken all that was pushed.
    pub(crate) fn has_kept(&self) -> bool {
        let mut kept = self.kept.lock("group.kept");
        kept.drop_delivered();
        !kept.pushes.is_empty()
    }

    /// Returns once every backup has the push. A backup that does not answer twice is left out.
    ///
    /// # Errors
    /// TRANSIENT if another member is the primary.
    pub(crate) fn keep(&self, push: &KeptPush) -> Result<(), SystemException> {
        let delivered = self.kept.lock("group.kept").delivered();
        self.each("keep", &|w| {
            self.epoch.write(w)?;
            delivered.write(w)?;
            push.write(w)
        })
    }

    /// Returns once every backup has the changes.
    ///
    /// # Errors
    /// TRANSIENT if another member is the primary.
    pub(crate) fn change(&self, changes: &Changes) -> Result<(), SystemException> {
        self.each("change", &|w| {
            self.epoch.write(w)?;
            changes.write(w)
        })
    }

    /// Calls all backups at the same time; those that do not answer in time, once more. The time limit may have passed
    /// because this process did not run: such a backup lives, and may take over without what it was not given.
    fn each(&self, operation: &str, arguments: &Arguments<'_>) -> Result<(), SystemException> {
        let mut asked = self.backups.lock("group.backups").clone();
        for is_last in [false, true] {
            let send = |backup: Backup| {
                let object = backup.member.object();
                (object.send_deferred(operation, arguments), backup)
            };
            let sent: Vec<_> = asked.drain(..).map(send).collect();
            for (call, backup) in sent {
                match outcome(call) {
                    Outcome::Done => {}
                    Outcome::Superseded => self.supersede(),
                    Outcome::Lost if is_last => self.leave_out(&backup),
                    Outcome::Lost => asked.push(backup),
                }
            }
        }
        self.renew();
        if self.is_superseded() {
            return Err(raise(Kind::Transient));
        }
        Ok(())
    }

    /// Asks the members that are no backups for a rival, if the last question is older than [`LEASE`]. A push may be
    /// acknowledged only while no other member has taken over. The backups have just confirmed that. A missing member may
    /// have taken over while this process did not run.
    fn renew(&self) {
        let last = *self.asked.lock("group.asked");
        if self.has_missing() && self.others.now().since(last) >= LEASE {
            self.look_for_rival();
        }
    }

    /// Returns true if some member is no backup.
    pub(crate) fn has_missing(&self) -> bool {
        self.backup_count() < self.others.members.len()
    }

    /// Asks all others whether one of them has become the primary.
    pub(crate) fn look_for_rival(&self) {
        let now = self.others.now();
        let is_rival = |(place, report): &(usize, Standing)| match report.member_role {
            Role::Leading => (report.epoch, self.others.place) > (self.epoch, *place),
            // Its next epoch is higher.
            Role::TakingOver => report.epoch >= self.epoch,
            Role::Starting | Role::Following | Role::Ended => false,
        };
        if self.others.ask().standings.iter().any(is_rival) {
            self.supersede();
        }
        *self.asked.lock("group.asked") = now;
    }

    fn leave_out(&self, lost: &Backup) {
        let mut backups = self.backups.lock("group.backups");
        let before = backups.len();
        // It may have joined again meanwhile.
        backups.retain(|backup| backup.serial != lost.serial);
        if backups.len() < before {
            self.backups_lost.fetch_add(1, Relaxed);
        }
    }
}

/// Writes the arguments of a call.
type Arguments<'a> = dyn Fn(&mut Writer<'_>) -> Result<(), EncodeError> + 'a;

/// Waits for the reply of a backup, until its time limit.
fn outcome(call: Result<PendingReply, SystemException>) -> Outcome {
    let Ok(call) = call else {
        return Outcome::Lost;
    };
    let _ = call.wait(None); // A call that has not ended has no reply.
    let reply = call.take(
        |_| Ok(()),
        |id, r| match id {
            "IDL:ChannelGroup/Superseded:1.0" => {
                Superseded::parse(r).map(|it| Some(MemberKeepError::Superseded(it)))
            }
            _ => Ok(None),
        },
    );
    match reply {
        Some(Ok(())) => Outcome::Done,
        Some(Err(MemberKeepError::Superseded(_))) => Outcome::Superseded,
        Some(Err(MemberKeepError::System(_))) | None => Outcome::Lost,
    }
}

enum Outcome {
    Done,
    /// The backup does not answer.
    Lost,
    /// The backup has another primary.
    Superseded,
}

impl Kept {
    fn delivered(&self) -> u64 {
        let first = self.pushes.front();
        first.map_or(self.last, |first| first.push.number - 1)
    }

    /// Drops the bodies that all consumers have taken, and the pushes without any at the front.
    fn drop_delivered(&mut self) {
        for push in &mut self.pushes {
            if let Some(bodies) = &mut push.bodies {
                bodies.retain(Marshalled::is_shared);
            }
        }
        let is_delivered = |push: &Push| push.bodies.as_ref().is_some_and(Vec::is_empty);
        while self.pushes.front().is_some_and(is_delivered) {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some(first) = self.pushes.pop_front() {
            self.size -= first.push.events.len();
        }
    }
}

#[cfg(test)]
mod tests;
