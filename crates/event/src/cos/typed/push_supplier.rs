//! `ProxyPushSupplier` of a typed channel: it calls the operations of the object that a consumer returns (clause
//! 2.7.2).

use std::sync::Arc;

use deckwatch_orb::{ObjectRef, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::PiMutex;

use super::channel::Typed;
use super::client_object::client_object;
use super::consumers::Newcomer;
use crate::admin::State;
use crate::channel_group::ProxyKind;
use crate::cos_event_channel_admin::{
    AlreadyConnected, ProxyPushSupplier, ProxyPushSupplierConnectPushConsumerError, TypeError,
};
use crate::cos_event_comm::{PushConsumerRef, PushSupplier};
use crate::cos_typed_event_comm::TypedPushConsumerRef;
use crate::home::{Client, NoQos};
use crate::raise::raise;

/// The servant.
pub(super) struct TypedPushSupplierProxy {
    typed: Arc<Typed>,
    number: u64,
    interface: usize,
    state: PiMutex<State<()>>,
}

impl TypedPushSupplierProxy {
    pub(super) fn new(typed: Arc<Typed>, number: u64, interface: usize) -> Self {
        Self {
            typed,
            number,
            interface,
            state: PiMutex::new(State::Waiting),
        }
    }

    fn check(state: &State<()>) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
        match state {
            State::Waiting => Ok(()),
            State::Connected(()) => Err(AlreadyConnected {}.into()),
            State::Disconnected => Err(raise(Kind::ObjectNotExist).into()),
        }
    }

    /// Asks a consumer for the object whose operations are called.
    fn typed_consumer(
        &self,
        consumer: &PushConsumerRef,
    ) -> Result<ObjectRef, ProxyPushSupplierConnectPushConsumerError> {
        let shared = &self.typed.shared;
        let interface = &self.typed.interfaces[self.interface].id;
        let get = |called| TypedPushConsumerRef::unchecked_narrow(called).get_typed_consumer();
        let object: Result<_, ProxyPushSupplierConnectPushConsumerError> =
            client_object(&shared.outward, consumer.object(), interface, get);
        Ok(object?.with_round_trip_timeout(Some(shared.options().push_timeout)))
    }
}

impl PushSupplier for TypedPushSupplierProxy {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        *self.state.lock("event.proxy") = State::Disconnected;
        self.typed.consumers.disconnect(self.number);
        self.typed.shared.objects.retire(self.number);
        Ok(())
    }
}

impl ProxyPushSupplier for TypedPushSupplierProxy {
    fn connect_push_consumer<'a>(
        &'a self,
        push_consumer: Option<&'a PushConsumerRef>,
    ) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
        let consumer = push_consumer.ok_or_else(|| raise(Kind::BadParam))?;
        if self.typed.shared.objects.is_own(consumer.object()) {
            return Err(TypeError {}.into());
        }
        // The lock is released while the consumer is called: it may call this proxy.
        Self::check(&self.state.lock("event.proxy"))?;
        let object = self.typed_consumer(consumer)?;
        let mut state = self.state.lock("event.proxy");
        Self::check(&state)?;
        let newcomer = Newcomer {
            proxy: self.number,
            interface: self.interface,
            object,
            reference: consumer.clone(),
        };
        let client = Client::<NoQos> {
            number: self.number,
            kind: ProxyKind::PushSupplier,
            reference: Some(consumer.object()),
            qos: None,
            is_suspended: false,
        };
        let home = &self.typed.shared.objects.home;
        home.record(&client, || self.typed.connect_consumer(&newcomer))?;
        *state = State::Connected(());
        Ok(())
    }
}
