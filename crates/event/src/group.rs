//! A group of processes that serve one real-time channel: a primary, and backups that take its place when it is gone
//! (ADR 0016).
//!
//! * All members have the same list. Object keys are the same at each; a reference has a profile for each member.
//! * The primary sends each change of the administration, and each push, to every backup before it replies.
//! * A backup forwards all clients to the primary. When the primary is gone, the first backup of the list connects the
//!   clients, delivers the pushes that may not have been delivered, and is the primary.

mod member;
mod others;
mod profiles;
mod replication;
#[cfg(test)]
mod scripted;

use std::sync::atomic::Ordering::Relaxed;

use crate::limits;
use crate::raise::raise;
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};

pub use member::RtGroupMember;
pub(crate) use others::Others;
pub(crate) use profiles::Profiles;
pub(crate) use replication::Replication;

/// Which group a member is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOptions {
    /// Host and port of each member, in the order in which they take over; 2 to [`limits::GROUP_MEMBERS_MAX`].
    pub members: Vec<(String, u16)>,
    /// The place of this member in the list.
    pub place: usize,
}

impl GroupOptions {
    fn check(&self) -> Result<(), SystemException> {
        let is_number = (2..=limits::GROUP_MEMBERS_MAX).contains(&self.members.len());
        if is_number && self.place < self.members.len() {
            Ok(())
        } else {
            Err(raise(Kind::BadParam))
        }
    }
}

/// What a member is in its group at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// It looks for the primary.
    Starting,
    /// It has all that the primary has; the primary's place in the list.
    Backup(usize),
    /// It connects the clients of the primary that is gone.
    TakingOver,
    /// It serves the channel; the number of its backups.
    Primary(usize),
    /// Another member has become the primary meanwhile. This one takes no pushes, and delivers those that it has taken.
    Leaving,
    /// Another member has become the primary meanwhile. This one serves no more.
    Superseded,
    /// It could not take over.
    Failed,
}

/// What has happened in a group, as a member has counted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// Backups that did not answer and were left out.
    pub backups_lost: u64,
    /// Pushes that were not kept any more although some consumer had not taken them.
    pub forgotten: u64,
    /// Events that were offered again at the take-over: a consumer may get them twice.
    pub redelivered: u64,
}

impl GroupCounts {
    fn of(replication: &Replication) -> Self {
        Self {
            backups_lost: replication.backups_lost.load(Relaxed),
            forgotten: replication.forgotten.load(Relaxed),
            redelivered: replication.redelivered.load(Relaxed),
        }
    }
}
