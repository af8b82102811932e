//! The shares of the peers of a scheduling service: a stranger that takes its whole share leaves the others served.

use std::sync::Arc;

use deckwatch_orb::peers::{Place, Places, share_of};
use deckwatch_orb::{
    Completion, Orb, PoaCurrent, SystemException, SystemExceptionKind as Kind, own_minor,
};
use deckwatch_sched::limits::{DEPENDENCIES_MAX, OPERATIONS_MAX};
use deckwatch_sched::{Dependency, Handle};
use deckwatch_sync::{PiMutex, PiMutexGuard};

use crate::limits::{SCHEDULER_ANALYSES_MAX, SCHEDULER_ANALYSES_SHARE};
use crate::peers::{Peer, caller};

/// The shares of one service.
pub(super) struct Shares {
    current: PoaCurrent,
    operations: Arc<Places>,
    dependencies: Arc<Places>,
    analyses: Arc<Places>,
    /// Held by the analysis under way.
    turn: PiMutex<()>,
}

/// An analysis under way, until it is dropped.
pub(super) struct Analysis<'s> {
    _turn: PiMutexGuard<'s, ()>,
    _place: Place,
}

impl Shares {
    /// `percent`: the part of the operations and of the dependencies that one peer may declare.
    pub(super) fn new(orb: &Orb, percent: u8) -> Self {
        let minor = own_minor::SCHEDULE_SHARE_FULL;
        Self {
            current: orb.poa_current(),
            operations: Places::new(share_of(OPERATIONS_MAX, percent), minor),
            dependencies: Places::new(share_of(DEPENDENCIES_MAX, percent), minor),
            analyses: Places::within(
                SCHEDULER_ANALYSES_MAX,
                SCHEDULER_ANALYSES_SHARE,
                own_minor::ANALYSES_FULL,
            ),
            turn: PiMutex::default(),
        }
    }

    /// Takes the place of an operation for the calling peer.
    ///
    /// # Errors
    /// IMP_LIMIT if the peer holds its share.
    pub(super) fn operation(&self) -> Result<Place, SystemException> {
        self.operations.take(caller(&self.current))
    }

    /// Takes the place of a dependency for the calling peer.
    ///
    /// # Errors
    /// As [`Shares::operation`].
    pub(super) fn dependency(&self) -> Result<Place, SystemException> {
        self.dependencies.take(caller(&self.current))
    }

    /// Waits for the turn of an analysis for the calling peer.
    ///
    /// # Errors
    /// TRANSIENT if too many analyses are under way or wait.
    pub(super) fn analysis(&self) -> Result<Analysis<'_>, SystemException> {
        let place = self.waiting(caller(&self.current))?;
        Ok(Analysis {
            _turn: self.turn.lock("event.analysis"),
            _place: place,
        })
    }

    fn waiting(&self, peer: Peer) -> Result<Place, SystemException> {
        let full =
            |_| SystemException::new(Kind::Transient, own_minor::ANALYSES_FULL, Completion::No);
        self.analyses.take(peer).map_err(full)
    }
}

/// The places of what is declared, each until it is removed.
#[derive(Default)]
pub(super) struct Declared {
    /// Operations are never removed.
    operations: Vec<Place>,
    dependencies: Vec<(Handle, Dependency, Place)>,
}

impl Declared {
    pub(super) fn operation(&mut self, place: Place) {
        self.operations.push(place);
    }

    pub(super) fn dependency(&mut self, of: Handle, added: Dependency, place: Place) {
        self.dependencies.push((of, added, place));
    }

    /// Gives back the place of a dependency that is removed. Dependencies of the channel itself have none.
    pub(super) fn remove_dependency(&mut self, of: Handle, removed: Dependency) {
        let key = |one: &Dependency| (one.on, one.kind, one.calls);
        let mut all = self.dependencies.iter();
        let position = all.position(|one| one.0 == of && key(&one.1) == key(&removed));
        if let Some(position) = position {
            self.dependencies.swap_remove(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn analyses_of_one_peer_leave_room_for_those_of_others() {
        let orb = Orb::builder().build().expect("an ORB");
        let shares = Shares::new(&orb, 25);
        let wait = |user| shares.waiting(Peer::User(user));
        let user_of = |place: usize| (place / SCHEDULER_ANALYSES_SHARE) as u32;
        let held: Vec<_> = (0..SCHEDULER_ANALYSES_MAX)
            .map(|place| wait(user_of(place)).expect("room"))
            .collect();
        for user in [0, 99] {
            let refused = wait(user).expect_err("full");
            let expected = (Kind::Transient, own_minor::ANALYSES_FULL);
            assert_eq!((refused.kind, refused.minor), expected);
        }
        drop(held);
        assert!(wait(99).is_ok());
    }
}
