//! `ProxyPullSupplier`: one consumer pulls events from it (Event Service 1.2, clauses 2.3.3 and 2.5.5).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_cdr::Any;
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{PiMutex, Popped};

use super::pull_queue::PullQueue;
use crate::admin::State;
use crate::cos_event_channel_admin::{
    AlreadyConnected, ProxyPullSupplier, ProxyPullSupplierConnectPullConsumerError,
};
use crate::cos_event_comm::{
    Disconnected, PullConsumerRef, PullSupplier, PullSupplierPullError, PullSupplierTryPullError,
};
use crate::limits;
use crate::raise::raise;
use crate::shared::Shared;

/// The servant.
pub(crate) struct PullSupplierProxy {
    shared: Arc<Shared>,
    number: u64,
    state: PiMutex<State<Arc<PullQueue>>>,
}

impl PullSupplierProxy {
    pub(crate) fn new(shared: Arc<Shared>, number: u64) -> Self {
        Self {
            shared,
            number,
            state: PiMutex::new(State::Waiting),
        }
    }

    /// The queue of the connected consumer, which is calling.
    fn queue(&self) -> Result<Arc<PullQueue>, Disconnected> {
        match &*self.state.lock("event.proxy") {
            State::Connected(queue) => {
                queue.note_call(self.shared.now());
                Ok(queue.clone())
            }
            State::Waiting | State::Disconnected => Err(Disconnected {}),
        }
    }

    fn delivered(&self, event: Any) -> Any {
        self.shared.counters.delivered.fetch_add(1, Relaxed);
        event
    }

    /// Waits for an event, at most for [`limits::PULL_WAIT`].
    fn wait(&self, queue: &PullQueue) -> Result<Any, PullSupplierPullError> {
        let transient = || raise(Kind::Transient).into();
        let Some(_waiting) = self.shared.permits.enter() else {
            self.shared.counters.pulls_refused.fetch_add(1, Relaxed);
            return Err(transient());
        };
        let limit = self.shared.now().after(limits::PULL_WAIT);
        loop {
            let now = self.shared.now();
            if now >= limit || !self.shared.is_orb_alive() {
                return Err(transient());
            }
            match queue.take_until(limit.min(now.after(limits::PULL_SLICE))) {
                Popped::Value(event) => {
                    queue.note_call(self.shared.now());
                    return Ok(event);
                }
                Popped::Closed => return Err(Disconnected {}.into()),
                Popped::TimedOut => {}
            }
        }
    }
}

impl PullSupplier for PullSupplierProxy {
    fn pull(&self) -> Result<Any, PullSupplierPullError> {
        let queue = self.queue()?;
        let event = match queue.try_take() {
            Some(event) => event,
            None => self.wait(&queue)?,
        };
        Ok(self.delivered(event))
    }

    fn try_pull(&self) -> Result<(Any, bool), PullSupplierTryPullError> {
        let event = self.queue()?.try_take();
        Ok(match event {
            Some(event) => (self.delivered(event), true),
            None => (Any::empty(), false),
        })
    }

    fn disconnect_pull_supplier(&self) -> Result<(), SystemException> {
        *self.state.lock("event.proxy") = State::Disconnected;
        self.shared.disconnect_puller(self.number);
        Ok(())
    }
}

impl ProxyPullSupplier for PullSupplierProxy {
    fn connect_pull_consumer(
        &self,
        pull_consumer: Option<&PullConsumerRef>,
    ) -> Result<(), ProxyPullSupplierConnectPullConsumerError> {
        let mut state = self.state.lock("event.proxy");
        match *state {
            State::Waiting => {
                let queue = self.shared.connect_puller(self.number, pull_consumer)?;
                *state = State::Connected(queue);
                Ok(())
            }
            State::Connected(_) => Err(AlreadyConnected {}.into()),
            State::Disconnected => Err(raise(Kind::ObjectNotExist).into()),
        }
    }
}
