//! `ProxyPullSupplier`: one consumer pulls events from it (Event Service 1.2, clauses 2.3.3 and 2.5.5).

use std::sync::Arc;

use deckwatch_cdr::Any;
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::PiMutex;

use super::pull_queue::PullQueue;
use super::pullers::{Connected, Unpulled};
use crate::admin::State;
use crate::cos_event_channel_admin::{
    AlreadyConnected, ProxyPullSupplier, ProxyPullSupplierConnectPullConsumerError,
};
use crate::cos_event_comm::{
    Disconnected, PullConsumerRef, PullSupplier, PullSupplierPullError, PullSupplierTryPullError,
};
use crate::raise::raise;
use crate::shared::Shared;

/// The servant.
pub(crate) struct PullSupplierProxy {
    shared: Arc<Shared>,
    number: u64,
    state: PiMutex<State<Connected<PullQueue>>>,
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
    fn queue(&self) -> Result<Connected<PullQueue>, Disconnected> {
        match &*self.state.lock("event.proxy") {
            State::Connected(connected) => {
                connected.note_call(self.shared.now());
                Ok(connected.clone())
            }
            State::Waiting | State::Disconnected => Err(Disconnected {}),
        }
    }
}

impl PullSupplier for PullSupplierProxy {
    fn pull(&self) -> Result<Any, PullSupplierPullError> {
        let connected = self.queue()?;
        let pulled = self.shared.pull(&connected.queue);
        connected.note_call(self.shared.now());
        pulled.map_err(|error| match error {
            Unpulled::Disconnected => Disconnected {}.into(),
            Unpulled::Transient => raise(Kind::Transient).into(),
        })
    }

    fn try_pull(&self) -> Result<(Any, bool), PullSupplierTryPullError> {
        let event = self.shared.try_pull(&self.queue()?.queue);
        let has_event = event.is_some();
        Ok((event.unwrap_or_else(Any::empty), has_event))
    }

    fn disconnect_pull_supplier(&self) -> Result<(), SystemException> {
        self.shared.objects.home.forget(self.number)?;
        *self.state.lock("event.proxy") = State::Disconnected;
        self.shared
            .disconnect_puller(&self.shared.pullers, self.number);
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
                let shared = &self.shared;
                let queue = PullQueue::new(shared.options());
                let pullers = &shared.pullers;
                let connected =
                    shared.connect_puller(pullers, self.number, pull_consumer, queue)?;
                *state = State::Connected(connected);
                Ok(())
            }
            State::Connected(_) => Err(AlreadyConnected {}.into()),
            State::Disconnected => Err(raise(Kind::ObjectNotExist).into()),
        }
    }
}
