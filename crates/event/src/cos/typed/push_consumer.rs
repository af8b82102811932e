//! `TypedProxyPushConsumer`: a supplier gets an object of its interface from it, and calls that object's operations
//! (clause 2.7.4).

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_cdr::Any;
use deckwatch_orb::{
    Completion, ObjectRef, Poa, Servant, ServerRequest, SystemException,
    SystemExceptionKind as Kind, minor,
};
use deckwatch_sync::PiMutex;

use super::channel::Typed;
use super::event::{Arguments, TypedEvent};
use crate::admin::State;
use crate::cos_event_channel_admin::{
    AlreadyConnected, ProxyPushConsumer, ProxyPushConsumerConnectPushSupplierError,
};
use crate::cos_event_comm::{PushConsumer, PushConsumerPushError, PushSupplierRef};
use crate::cos_typed_event_channel_admin::TypedProxyPushConsumer;
use crate::cos_typed_event_comm::TypedPushConsumer;
use crate::raise::raise;
use crate::shared::Shared;
use crate::suppliers::Activity;

/// The state of a proxy, which its typed object reads.
pub(super) type ProxyState<C> = Arc<PiMutex<State<C>>>;

/// The object whose operations are events.
pub(super) struct PushObject {
    typed: Arc<Typed>,
    interface: usize,
    state: ProxyState<Activity>,
}

impl PushObject {
    pub(super) fn new(typed: Arc<Typed>, interface: usize) -> Self {
        Self {
            typed,
            interface,
            state: Arc::new(PiMutex::new(State::Waiting)),
        }
    }

    pub(super) fn state(&self) -> ProxyState<Activity> {
        self.state.clone()
    }
}

impl Servant for PushObject {
    fn repository_ids(&self) -> &'static [&'static str] {
        crate::gate::TYPED_SUPPLIER_SIDE
    }

    fn primary_interface(&self, _object_id: &[u8], _poa: &Poa) -> Cow<'static, str> {
        Cow::Owned(self.typed.interfaces[self.interface].id.clone())
    }

    fn is_a(&self, _object_id: &[u8], _poa: &Poa, interface: &[u8]) -> bool {
        self.typed.interfaces[self.interface].is_a(interface)
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let interface = &self.typed.interfaces[self.interface];
        let operation = interface.find(request.operation());
        let operation = operation.ok_or_else(unknown_operation)?;
        match &*self.state.lock("event.proxy") {
            State::Connected(has_pushed) => has_pushed.store(true, Relaxed),
            State::Waiting => return Err(raise(Kind::BadInvOrder)),
            State::Disconnected => return Err(raise(Kind::ObjectNotExist)),
        }
        let types = interface.operations[operation].parameters.iter();
        let values = Any::read_all(types, &mut request.arguments())?;
        self.typed.push(TypedEvent {
            interface: self.interface,
            operation,
            arguments: Arguments(values.into()),
        })
    }
}

/// The exception for an operation that a typed object does not have.
pub(super) fn unknown_operation() -> SystemException {
    SystemException::new(Kind::BadOperation, minor::OPERATION_UNKNOWN, Completion::No)
}

/// The servant of the proxy.
pub(super) struct TypedPushConsumerProxy {
    shared: Arc<Shared>,
    number: u64,
    state: ProxyState<Activity>,
    object: ObjectRef,
}

impl TypedPushConsumerProxy {
    pub(super) fn new(
        shared: Arc<Shared>,
        number: u64,
        state: ProxyState<Activity>,
        object: ObjectRef,
    ) -> Self {
        Self {
            shared,
            number,
            state,
            object,
        }
    }
}

impl PushConsumer for TypedPushConsumerProxy {
    /// A typed proxy takes no event of any other form (clause 2.6.1 permits that).
    fn push<'a>(&'a self, _data: &'a Any) -> Result<(), PushConsumerPushError> {
        Err(raise(Kind::NoImplement).into())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        *self.state.lock("event.proxy") = State::Disconnected;
        self.shared.disconnect_supplier(self.number);
        Ok(())
    }
}

impl ProxyPushConsumer for TypedPushConsumerProxy {
    fn connect_push_supplier<'a>(
        &'a self,
        push_supplier: Option<&'a PushSupplierRef>,
    ) -> Result<(), ProxyPushConsumerConnectPushSupplierError> {
        // Without the lock: suppliers are called, which takes time, and events take the lock.
        self.shared.make_room_for_supplier();
        let mut state = self.state.lock("event.proxy");
        match *state {
            State::Waiting => {
                let connected = self.shared.connect_supplier(self.number, push_supplier)?;
                *state = State::Connected(connected);
                Ok(())
            }
            State::Connected(_) => Err(AlreadyConnected {}.into()),
            State::Disconnected => Err(raise(Kind::ObjectNotExist).into()),
        }
    }
}

impl TypedPushConsumer for TypedPushConsumerProxy {
    fn get_typed_consumer(&self) -> Result<Option<ObjectRef>, SystemException> {
        Ok(Some(self.object.clone()))
    }
}

impl TypedProxyPushConsumer for TypedPushConsumerProxy {}
