//! The way of a distributable thread with its calls: out, in, and back. The service context SchedulingInfo carries it.

use std::sync::{Arc, Weak};

use deckwatch_giop::{Request, context_id};

use super::current::{self, Active};
use super::table::SchedulingCore;
use super::{IdType, Traveller};
use crate::orb::OrbCore;
use crate::{Completion, SystemException, SystemExceptionKind as Kind, raise};

/// What goes out with a request of the calling thread: nothing where it is no distributable one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Departure {
    pub(crate) traveller: Option<Traveller>,
}

impl Departure {
    /// `is_waited_for`: the thread goes with its request, and comes back with the reply. Else the request begins another.
    ///
    /// # Errors
    /// THREAD_CANCELLED.
    #[inline]
    pub(crate) fn of(orb: &OrbCore, is_waited_for: bool) -> Result<Self, SystemException> {
        match &orb.scheduling {
            None => Ok(Self::default()),
            Some(core) => Self::from(core, is_waited_for),
        }
    }

    fn from(core: &Arc<SchedulingCore>, is_waited_for: bool) -> Result<Self, SystemException> {
        current::with(|slot| {
            if !is_of(core, slot.as_ref()) {
                return Ok(Self::default());
            }
            current::require_active(slot, Completion::No)?;
            let traveller = slot.as_ref().map(|active| {
                if is_waited_for {
                    let mut parameter = active.parameter();
                    core.scheduler.send_request(&active.id, &mut parameter);
                    let id = active.id;
                    return Traveller { id, parameter };
                }
                let (id, mut parameter) = (IdType::fresh(), active.implicit_parameter());
                core.scheduler.send_oneway(&id, &mut parameter);
                Traveller { id, parameter }
            });
            Ok(Self { traveller })
        })
    }

    /// The thread is back from a call that it has waited for.
    ///
    /// # Errors
    /// That of the call; THREAD_CANCELLED where it has been cancelled meanwhile, here or there: `discard` is given what the call came to.
    #[inline]
    pub(crate) fn back<T>(
        self,
        orb: &OrbCore,
        outcome: Result<T, SystemException>,
        discard: impl FnOnce(T),
    ) -> Result<T, SystemException> {
        match (self.traveller, &orb.scheduling) {
            (Some(traveller), Some(core)) => back(core, traveller.id, outcome, discard),
            _ => outcome,
        }
    }
}

fn is_of(core: &Arc<SchedulingCore>, active: Option<&Active>) -> bool {
    active.is_some_and(|active| Arc::ptr_eq(&active.core, core))
}

fn back<T>(
    core: &Arc<SchedulingCore>,
    id: IdType,
    outcome: Result<T, SystemException>,
    discard: impl FnOnce(T),
) -> Result<T, SystemException> {
    current::with(|slot| {
        match &outcome {
            Ok(_) => core.scheduler.receive_reply(&id),
            Err(_) => core.scheduler.receive_exception(&id),
        }
        match outcome {
            Err(exception) if exception.kind == Kind::ThreadCancelled => {
                // It may be known here no longer.
                let _known = core.cancel(id);
                current::end_here(slot);
                Err(exception)
            }
            Ok(reply) => match current::require_active(slot, Completion::Yes) {
                Ok(()) => Ok(reply),
                Err(cancelled) => {
                    discard(reply);
                    Err(cancelled)
                }
            },
            failed @ Err(_) => failed,
        }
    })
}

/// A distributable thread that goes on in the calling thread while that serves its request.
pub(crate) struct Visit {
    core: Arc<SchedulingCore>,
    id: IdType,
    before: Option<Active>,
    is_over: bool,
}

impl Visit {
    /// None: the request is of no distributable thread, or this ORB has no scheduler.
    ///
    /// # Errors
    /// THREAD_CANCELLED where it has been cancelled here; what the scheduler raises; MARSHAL for a context of ours that cannot be read.
    #[inline]
    pub(crate) fn of(
        orb: &Weak<OrbCore>,
        request: &Request<'_>,
    ) -> Result<Option<Self>, SystemException> {
        match request.contexts.find(context_id::SCHEDULING_INFO) {
            None => Ok(None),
            Some(data) => Self::begin(orb, data),
        }
    }

    fn begin(orb: &Weak<OrbCore>, data: &[u8]) -> Result<Option<Self>, SystemException> {
        let orb = orb.upgrade();
        let Some(core) = orb.as_ref().and_then(|orb| orb.scheduling.as_ref()) else {
            return Ok(None);
        };
        let Some(Traveller { id, parameter }) = Traveller::parse(data)? else {
            return Ok(None);
        };
        core.come(id)?;
        let received = core.scheduler.receive_request(&id, &parameter);
        received.inspect_err(|_| core.go(id))?;
        let visit = Active::visit(Arc::clone(core), id, parameter);
        Ok(Some(Self {
            core: Arc::clone(core),
            id,
            before: current::replace(Some(visit)),
            is_over: false,
        }))
    }

    /// The request has been served.
    ///
    /// # Errors
    /// THREAD_CANCELLED where it has been cancelled meanwhile.
    pub(crate) fn end(mut self, has_raised: bool) -> Result<(), SystemException> {
        let is_cancelled = self.core.is_cancelled(self.id);
        self.leave(has_raised);
        if is_cancelled {
            return Err(raise::thread_cancelled(0, Completion::Yes));
        }
        Ok(())
    }

    fn leave(&mut self, has_raised: bool) {
        self.is_over = true;
        let visit = current::replace(self.before.take());
        // Segments that the servant has left open end before the request does.
        drop(visit);
        if has_raised {
            self.core.scheduler.send_exception(&self.id);
        } else {
            self.core.scheduler.send_reply(&self.id);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if !self.is_over {
            self.leave(true);
        }
    }
}

impl SchedulingCore {
    /// Where a request stands among those that wait for a thread of a lane. Those of no distributable thread stand behind all others.
    pub(crate) fn order_of(&self, request: &Request<'_>) -> u64 {
        let data = request.contexts.find(context_id::SCHEDULING_INFO);
        let traveller = data.and_then(|data| Traveller::parse(data).ok().flatten());
        traveller.map_or(u64::MAX, |traveller| {
            self.scheduler.order(&traveller.parameter)
        })
    }
}
