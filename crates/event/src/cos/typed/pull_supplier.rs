//! `TypedProxyPullSupplier`: a consumer gets an object from it whose operations return the arguments of events (clause
//! 2.7.5).

use std::borrow::Cow;
use std::sync::Arc;

use deckwatch_cdr::{Any, Write as _};
use deckwatch_orb::{
    ObjectRef, Poa, Servant, ServerRequest, SystemException, SystemExceptionKind as Kind,
};
use deckwatch_sync::PiMutex;

use super::channel::Typed;
use super::event::{Arguments, KeptEvent, TypedEvent};
use super::push_consumer::{ProxyState, unknown_operation};
use crate::admin::State;
use crate::cos::pull_queue::PullQueue;
use crate::cos::pullers::{Connected, Pulled, Unpulled};
use crate::cos_event_channel_admin::{
    AlreadyConnected, ProxyPullSupplier, ProxyPullSupplierConnectPullConsumerError,
};
use crate::cos_event_comm::{
    PullConsumerRef, PullSupplier, PullSupplierPullError, PullSupplierTryPullError,
};
use crate::cos_typed_event_channel_admin::TypedProxyPullSupplier;
use crate::cos_typed_event_comm::TypedPullSupplier;
use crate::counters::Counters;
use crate::raise::raise;

/// The events that one consumer has not pulled yet: a queue for each operation of the interface.
pub(super) struct TypedQueues {
    pub(super) interface: usize,
    queues: Vec<PullQueue<TypedEvent>>,
}

impl TypedQueues {
    pub(super) fn offer(&self, event: &KeptEvent, counters: &Counters) {
        if event.event.interface == self.interface {
            self.queues[event.event.operation].offer(event, counters);
        }
    }
}

impl Pulled for TypedQueues {
    fn size(&self) -> usize {
        self.queues.iter().map(PullQueue::size).sum()
    }

    fn drop_oldest(&self, counters: &Counters) -> bool {
        let largest = self.queues.iter().max_by_key(|queue| queue.size());
        largest.is_some_and(|largest| largest.drop_oldest(counters))
    }

    fn close(&self) {
        self.queues.iter().for_each(PullQueue::close);
    }
}

/// The object whose operations return events.
pub(super) struct PullObject {
    typed: Arc<Typed>,
    interface: usize,
    state: ProxyState<Connected<TypedQueues>>,
}

impl PullObject {
    pub(super) fn new(typed: Arc<Typed>, interface: usize) -> Self {
        Self {
            typed,
            interface,
            state: Arc::new(PiMutex::new(State::Waiting)),
        }
    }

    pub(super) fn state(&self) -> ProxyState<Connected<TypedQueues>> {
        self.state.clone()
    }

    fn connected(&self) -> Result<Connected<TypedQueues>, SystemException> {
        match &*self.state.lock("event.proxy") {
            State::Connected(connected) => {
                connected.note_call(self.typed.shared.now());
                Ok(connected.clone())
            }
            State::Waiting => Err(raise(Kind::BadInvOrder)),
            State::Disconnected => Err(raise(Kind::ObjectNotExist)),
        }
    }

    /// Waits for a call of this operation.
    fn wait(&self, operation: usize) -> Result<Arguments, SystemException> {
        let connected = self.connected()?;
        let pulled = self.typed.shared.pull(&connected.queue.queues[operation]);
        connected.note_call(self.typed.shared.now());
        let arguments = pulled.map(|event| event.arguments);
        arguments.map_err(|error| match error {
            Unpulled::Disconnected => raise(Kind::ObjectNotExist),
            Unpulled::Transient => raise(Kind::Transient),
        })
    }
}

impl Servant for PullObject {
    fn repository_ids(&self) -> &'static [&'static str] {
        crate::gate::TYPED_CONSUMER_SIDE
    }

    fn primary_interface(&self, _object_id: &[u8], _poa: &Poa) -> Cow<'static, str> {
        Cow::Owned(self.typed.interfaces[self.interface].pull_id.clone())
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let interface = &self.typed.interfaces[self.interface];
        if let Some(operation) = interface.find(request.operation()) {
            let event = self.wait(operation)?;
            return request
                .reply_with(|w| event.0.iter().try_for_each(|value| value.write_value(w)));
        }
        let operation = interface.find_try(request.operation());
        let operation = operation.ok_or_else(unknown_operation)?;
        let queues = self.connected()?.queue;
        let event = self.typed.shared.try_pull(&queues.queues[operation]);
        let nothing = &interface.operations[operation].nothing;
        request.reply_with(|w| {
            event.is_some().write(w)?;
            let values = event
                .as_ref()
                .map_or(nothing.as_slice(), |event| &event.arguments.0);
            values.iter().try_for_each(|value| value.write_value(w))
        })
    }

    fn is_a(&self, _object_id: &[u8], _poa: &Poa, interface: &[u8]) -> bool {
        let own = &self.typed.interfaces[self.interface].pull_id;
        own.as_bytes() == interface
    }
}

/// The servant of the proxy.
pub(super) struct TypedPullSupplierProxy {
    typed: Arc<Typed>,
    number: u64,
    interface: usize,
    state: ProxyState<Connected<TypedQueues>>,
    object: ObjectRef,
}

impl TypedPullSupplierProxy {
    pub(super) fn new(
        typed: Arc<Typed>,
        number: u64,
        interface: usize,
        state: ProxyState<Connected<TypedQueues>>,
        object: ObjectRef,
    ) -> Self {
        Self {
            typed,
            number,
            interface,
            state,
            object,
        }
    }
}

impl PullSupplier for TypedPullSupplierProxy {
    /// A typed proxy returns no event of any other form.
    fn pull(&self) -> Result<Any, PullSupplierPullError> {
        Err(raise(Kind::NoImplement).into())
    }

    fn try_pull(&self) -> Result<(Any, bool), PullSupplierTryPullError> {
        Err(raise(Kind::NoImplement).into())
    }

    fn disconnect_pull_supplier(&self) -> Result<(), SystemException> {
        *self.state.lock("event.proxy") = State::Disconnected;
        let typed = &self.typed;
        typed.shared.disconnect_puller(&typed.pullers, self.number);
        Ok(())
    }
}

impl ProxyPullSupplier for TypedPullSupplierProxy {
    fn connect_pull_consumer(
        &self,
        pull_consumer: Option<&PullConsumerRef>,
    ) -> Result<(), ProxyPullSupplierConnectPullConsumerError> {
        let mut state = self.state.lock("event.proxy");
        match *state {
            State::Waiting => {
                let (shared, pullers) = (&self.typed.shared, &self.typed.pullers);
                let operations = self.typed.interfaces[self.interface].operations.iter();
                let queues = operations.map(|_| PullQueue::new(shared.options()));
                let queues = TypedQueues {
                    interface: self.interface,
                    queues: queues.collect(),
                };
                let connected =
                    shared.connect_puller(pullers, self.number, pull_consumer, queues)?;
                *state = State::Connected(connected);
                Ok(())
            }
            State::Connected(_) => Err(AlreadyConnected {}.into()),
            State::Disconnected => Err(raise(Kind::ObjectNotExist).into()),
        }
    }
}

impl TypedPullSupplier for TypedPullSupplierProxy {
    fn get_typed_supplier(&self) -> Result<Option<ObjectRef>, SystemException> {
        Ok(Some(self.object.clone()))
    }
}

impl TypedProxyPullSupplier for TypedPullSupplierProxy {}

#[cfg(test)]
mod tests {
    use deckwatch_sync::Popped;

    use super::*;
    use crate::ChannelOptions;

    #[test]
    fn consumer_that_leaves_ends_the_pulls_of_each_operation() {
        let queue = || PullQueue::new(&ChannelOptions::default());
        let queues = TypedQueues {
            interface: 0,
            queues: vec![queue(), queue()],
        };
        queues.close();
        for queue in &queues.queues {
            let pulled = queue.take_until(deckwatch_orb::transport::Instant64(0));
            assert!(matches!(pulled, Popped::Closed));
        }
    }
}
