//! Calls that a service makes to others while it serves a request, for the caller of that request (ADR 0025).
//!
//! A serving thread makes such a call itself and waits for it. So few of them are under way at the same time that most
//! threads of a lane remain for other callers, and each peer has a share of them. A call beyond that is refused at once.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::contexts::ExtraContext;
use crate::contexts::hops::{ServiceNumber, contexts_of};
use crate::limits::{HOPS_MAX, OUTWARD_FAILED_AFTER, OUTWARD_TIMEOUT, PASSES_MAX};
use crate::peers::{Peer, Place, Places};
use crate::server::Server;
use crate::transport::Instant64;
use crate::{
    Completion, ObjectRef, Orb, Origin, PoaCurrent, SystemException, SystemExceptionKind as Kind,
    own_minor,
};

/// The calls of one service that are under way.
pub struct Outward {
    orb: Orb,
    current: PoaCurrent,
    /// By which it knows itself among the services on the way of a request.
    number: ServiceNumber,
    under_way: AtomicUsize,
    max: usize,
    shares: Arc<Places>,
}

/// The place of one call, or of several after each other, until it is dropped. Together they take
/// [`OUTWARD_TIMEOUT`] at most.
pub struct UnderWay<'o> {
    outward: &'o Outward,
    contexts: Arc<[ExtraContext]>,
    begun: Instant64,
    _place: Place,
}

impl Outward {
    /// At most `max` calls at the same time, `share` of them for one peer.
    #[must_use]
    pub fn new(orb: &Orb, max: usize, share: usize) -> Self {
        Self {
            orb: orb.clone(),
            current: orb.poa_current(),
            number: RandomState::new().hash_one(max).to_be_bytes(),
            under_way: AtomicUsize::new(0),
            max,
            shares: Places::new(share, own_minor::OUTWARD_SHARE_FULL),
        }
    }

    /// Takes a place for calls for the caller of the request that this thread serves.
    ///
    /// # Errors
    /// IMP_LIMIT at the end of a way of [`HOPS_MAX`] services, and if this one has passed on the request [`PASSES_MAX`]
    /// times; TRANSIENT if too many calls are under way.
    pub fn begin(&self) -> Result<UnderWay<'_>, SystemException> {
        let refuse = |kind, minor| SystemException::new(kind, minor, Completion::No);
        let hops = self.current.hops();
        if hops >= HOPS_MAX {
            return Err(refuse(Kind::ImpLimit, own_minor::TOO_MANY_HOPS));
        }
        let passed_by = Server::passed_by_served_here();
        if passed_by.passes_of(self.number) >= PASSES_MAX {
            return Err(refuse(Kind::ImpLimit, own_minor::TOO_MANY_RETURNS));
        }
        let peer = self.current.peer().unwrap_or(Peer::Unknown);
        let place = self.shares.take(peer);
        let place = place.map_err(|refused| refuse(Kind::Transient, refused.minor))?;
        let one_more = |count| (count < self.max).then_some(count + 1);
        let counted = self.under_way.fetch_update(Relaxed, Relaxed, one_more);
        counted.map_err(|_| refuse(Kind::Transient, own_minor::OUTWARD_FULL))?;
        Ok(UnderWay {
            outward: self,
            contexts: contexts_of(hops + 1, &passed_by.and(self.number)),
            begun: self.orb.transport().now(),
            _place: place,
        })
    }
}

impl UnderWay<'_> {
    /// Returns the object for the call, with the rest of the time limit and the numbers of the services on the way.
    ///
    /// # Errors
    /// NO_PERMISSION if the object may not be called for the peer that gave it.
    pub fn to(&self, object: &ObjectRef) -> Result<ObjectRef, SystemException> {
        object.require_reach()?;
        let spent = self.outward.orb.transport().now().since(self.begun);
        let left = OUTWARD_TIMEOUT.saturating_sub(spent);
        Ok(object
            .passed_on_with(Arc::clone(&self.contexts))
            .with_round_trip_timeout(Some(left)))
    }

    /// Ends a call to `object` that has failed. Returns true if a peer over the network gave the object: that peer must
    /// not be told how it failed. A closed port, a silent one, and a server of another protocol then fail at the same
    /// time, so that the peer cannot use the service to look which ports are open.
    #[must_use]
    pub fn has_failed(self, object: &ObjectRef) -> bool {
        let is_strangers = matches!(object.origin(), Origin::Network(_));
        if is_strangers {
            let end = self.begun.after(OUTWARD_FAILED_AFTER);
            self.outward.orb.transport().sleep_until(end);
        }
        is_strangers
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.outward.under_way.fetch_sub(1, Relaxed);
    }
}

/// Returns true if an exception says that a call was refused before it went anywhere, or that it leads in a circle.
#[must_use]
pub fn is_refusal(exception: SystemException) -> bool {
    let refusals = [
        (Kind::NoPermission, own_minor::OUT_OF_REACH),
        (Kind::ImpLimit, own_minor::TOO_MANY_HOPS),
        (Kind::ImpLimit, own_minor::TOO_MANY_RETURNS),
        (Kind::Transient, own_minor::OUTWARD_FULL),
        (Kind::Transient, own_minor::OUTWARD_SHARE_FULL),
    ];
    refusals.contains(&(exception.kind, exception.minor))
}
