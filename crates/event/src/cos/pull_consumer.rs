//! `ProxyPullConsumer`: the channel pulls events from one supplier (Event Service 1.2, clause 2.5.6).

use std::sync::Arc;

use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::PiMutex;

use super::sources::{Asked, TryPull};
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
    ask: Ask,
}

/// Returns how a supplier is asked for events.
pub(super) type Ask = Box<
    dyn Fn(&PullSupplierRef) -> Result<Asked, ProxyPullConsumerConnectPullSupplierError>
        + Send
        + Sync,
>;

impl PullConsumerProxy {
    /// A proxy that asks its supplier by `try_pull`.
    pub(crate) fn new(shared: Arc<Shared>, number: u64) -> Self {
        let ask = |supplier: &PullSupplierRef| {
            Ok(Asked {
                object: supplier.object().clone(),
                reference: supplier.clone(),
                questions: Arc::new(TryPull),
            })
        };
        Self::asking(shared, number, Box::new(ask))
    }

    pub(super) fn asking(shared: Arc<Shared>, number: u64, ask: Ask) -> Self {
        Self {
            shared,
            number,
            state: PiMutex::new(State::Waiting),
            ask,
        }
    }

    fn check(state: &State<()>) -> Result<(), ProxyPullConsumerConnectPullSupplierError> {
        match state {
            State::Waiting => Ok(()),
            State::Connected(()) => Err(AlreadyConnected {}.into()),
            State::Disconnected => Err(raise(Kind::ObjectNotExist).into()),
        }
    }
}

impl PullConsumer for PullConsumerProxy {
    fn disconnect_pull_consumer(&self) -> Result<(), SystemException> {
        self.shared.objects.home.forget(self.number)?;
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
        // The lock is released while a typed supplier is called: it may call this proxy.
        Self::check(&self.state.lock("event.proxy"))?;
        // A channel that supplies itself would pull its own events for ever.
        if self.shared.objects.is_own(supplier.object()) {
            return Err(TypeError {}.into());
        }
        let asked = (self.ask)(supplier)?;
        let mut state = self.state.lock("event.proxy");
        Self::check(&state)?;
        self.shared.connect_source(self.number, asked)?;
        *state = State::Connected(());
        Ok(())
    }
}
