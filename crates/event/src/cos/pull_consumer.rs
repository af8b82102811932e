//! `ProxyPullConsumer`: the channel pulls events from one supplier (Event Service 1.2, clause 2.5.6).

use std::sync::Arc;

use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::PiMutex;

use crate::admin::State;
use crate::cos_event_channel_admin::{
    AlreadyConnected, ProxyPullConsumer, ProxyPullConsumerConnectPullSupplierError, TypeError,
};
use crate::cos_event_comm::{PullConsumer, PullSupplierRef};
use crate::raise::raise;
use crate::shared::Shared;

/// The servant.
pub(crate) struct PullConsumerProxy {
    shared: Arc<Shared>,
    number: u64,
    state: PiMutex<State<()>>,
}

impl PullConsumerProxy {
    pub(crate) fn new(shared: Arc<Shared>, number: u64) -> Self {
        Self {
            shared,
            number,
            state: PiMutex::new(State::Waiting),
        }
    }
}

impl PullConsumer for PullConsumerProxy {
    fn disconnect_pull_consumer(&self) -> Result<(), SystemException> {
        *self.state.lock("event.proxy") = State::Disconnected;
        self.shared.disconnect_source(self.number);
        Ok(())
    }
}

impl ProxyPullConsumer for PullConsumerProxy {
    fn connect_pull_supplier(
        &self,
        pull_supplier: Option<&PullSupplierRef>,
    ) -> Result<(), ProxyPullConsumerConnectPullSupplierError> {
        let supplier = pull_supplier.ok_or_else(|| raise(Kind::BadParam))?;
        let mut state = self.state.lock("event.proxy");
        match *state {
            // A channel that supplies itself would pull its own events for ever.
            State::Waiting if self.shared.is_own(supplier.object()) => Err(TypeError {}.into()),
            State::Waiting => {
                self.shared.connect_source(self.number, supplier)?;
                *state = State::Connected(());
                Ok(())
            }
            State::Connected(()) => Err(AlreadyConnected {}.into()),
            State::Disconnected => Err(raise(Kind::ObjectNotExist).into()),
        }
    }
}
