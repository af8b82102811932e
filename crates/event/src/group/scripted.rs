//! A member of a group whose answers a test chooses.

use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException};

use super::others::MEMBER_KEY;
use super::{GroupOptions, Others};
use crate::channel_group::{
    Change, Changes, KeptPush, Member, MemberChangeError, MemberJoinError, MemberKeepError,
    MemberRef, MemberSkeleton, MemberWatchError, NotLeading, Role, Snapshot, Standing,
};

/// The member, in an ORB of its own.
pub(super) struct Scripted {
    orb: Orb,
    pub(super) script: Arc<Script>,
}

type Join = dyn Fn() -> Snapshot + Send;

#[derive(Default)]
pub(super) struct Script {
    /// The answers to questions for its standing, one after the other; the last one for all further questions.
    standings: Mutex<VecDeque<Standing>>,
    pub(super) asked: AtomicUsize,
    /// Makes the reply to `join`.
    join: Mutex<Option<Box<Join>>>,
    /// The reply to `watch`.
    pub(super) delivered: Mutex<Option<u64>>,
    /// The next replies to `keep`; then it succeeds.
    pub(super) keeps: Mutex<VecDeque<MemberKeepError>>,
    /// What `keep` was called with: the epoch, what is delivered, and the number of the push.
    pub(super) kept: Mutex<Vec<(u64, u64, u64)>>,
    pub(super) changed: Mutex<Vec<(u64, Changes)>>,
}

impl Scripted {
    pub(super) fn reporting(standings: &[(Role, u64)]) -> Self {
        let orb = orb();
        let script = Arc::new(Script::default());
        let standings = standings
            .iter()
            .map(|(role, epoch)| standing(*role, *epoch));
        locked(&script.standings).extend(standings);
        let servant: Arc<dyn Servant> = Arc::new(MemberSkeleton::new(Arc::clone(&script)));
        let root = orb.root_poa().expect("a root adapter");
        let object = root.servant_to_reference(&servant).expect("a reference");
        let key = orb.register_plain_key(MEMBER_KEY.as_bytes(), &object);
        key.expect("it is free");
        Self { orb, script }
    }

    /// Its answer to `join`.
    pub(super) fn admits(&self, reply: impl Fn() -> Snapshot + Send + 'static) {
        *locked(&self.script.join) = Some(Box::new(reply));
    }

    pub(super) fn port(&self) -> u16 {
        port(&self.orb)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(true); // The test has failed, or is at its end.
    }
}

impl Member for Script {
    fn report_standing(&self) -> Result<Standing, SystemException> {
        self.asked.fetch_add(1, SeqCst);
        let mut standings = locked(&self.standings);
        let next = if standings.len() > 1 {
            standings.pop_front()
        } else {
            standings.front().copied()
        };
        Ok(next.unwrap_or_default())
    }

    fn join(&self, _place: u16) -> Result<Snapshot, MemberJoinError> {
        let join = locked(&self.join);
        let join = join.as_ref().ok_or(NotLeading {})?;
        Ok(join())
    }

    fn watch(&self, _place: u16, _epoch: u64) -> Result<u64, MemberWatchError> {
        let delivered = *locked(&self.delivered);
        Ok(delivered.ok_or(NotLeading {})?)
    }

    fn change(&self, epoch: u64, records: &[Change]) -> Result<(), MemberChangeError> {
        locked(&self.changed).push((epoch, records.to_vec()));
        Ok(())
    }

    fn keep(&self, epoch: u64, delivered: u64, pushed: &KeptPush) -> Result<(), MemberKeepError> {
        locked(&self.kept).push((epoch, delivered, pushed.number));
        locked(&self.keeps).pop_front().map_or(Ok(()), Err)
    }
}

pub(super) fn standing(member_role: Role, epoch: u64) -> Standing {
    Standing {
        member_role,
        epoch,
        backups: 0,
    }
}

/// A group of the member at `place` and these others, in their order. Calls to them have no time limit.
pub(super) fn group(orb: &Orb, place: usize, others: &[u16]) -> (GroupOptions, Others) {
    let mut ports = others.to_vec();
    ports.insert(place, port(orb));
    let members = ports.iter().map(|port| ("127.0.0.1".to_owned(), *port));
    let group = GroupOptions {
        members: members.collect(),
        place,
    };
    let mut others = Others::new(orb, &group).expect("references");
    for (place, member) in &mut others.members {
        let url = format!("corbaloc::127.0.0.1:{}/{MEMBER_KEY}", ports[*place]);
        *member = MemberRef::unchecked_narrow(object(orb, &url));
    }
    (group, others)
}

fn object(orb: &Orb, url: &str) -> ObjectRef {
    let object = orb.string_to_object(url).expect("a URL");
    object.expect("not nil")
}

/// An ORB that listens and serves.
pub(super) fn orb() -> Orb {
    let builder = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let orb = builder.build().expect("an ORB");
    let root = orb.root_poa().expect("a root adapter");
    root.the_poa_manager()
        .activate()
        .expect("an active manager");
    orb
}

pub(super) fn port(orb: &Orb) -> u16 {
    let port = orb.endpoints().iter().find_map(|at| at.port());
    port.expect("TCP")
}

/// A port at which no process listens.
pub(super) const NOBODY: u16 = 1;

pub(super) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
