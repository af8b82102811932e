//! How the channel pulls from a typed supplier: by the `try_` operations of the object that the supplier returns.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use deckwatch_cdr::{Any, DecodeError, Parse as _, Reader};
use deckwatch_orb::SystemExceptionKind as Kind;

use super::channel::Typed;
use super::event::{Arguments, TypedEvent};
use crate::cos::sources::{Asked, Questions};
use crate::cos_event_channel_admin::{ProxyPullConsumerConnectPullSupplierError, TypeError};
use crate::cos_event_comm::PullSupplierRef;
use crate::cos_typed_event_comm::TypedPullSupplierRef;
use crate::limits;
use crate::raise::raise;
use crate::shared::Shared;

/// Asks for the events of one interface.
struct TryOperations {
    /// Weak: a supplier does not keep the channel alive.
    typed: Weak<Typed>,
    interface: usize,
    names: Vec<String>,
}

/// Asks a supplier for the object that the channel will pull from.
///
/// # Errors
/// TypeError for a supplier that has no object of the interface; the exception of a supplier that does not answer.
pub(super) fn typed_supplier(
    typed: &Weak<Typed>,
    interface: usize,
    supplier: &PullSupplierRef,
) -> Result<Asked, ProxyPullConsumerConnectPullSupplierError> {
    let gone = || raise(Kind::ObjectNotExist);
    let declared = &typed.upgrade().ok_or_else(gone)?.interfaces[interface];
    let hurried = supplier
        .object()
        .with_round_trip_timeout(Some(limits::SOURCE_TIMEOUT));
    let object = TypedPullSupplierRef::unchecked_narrow(hurried).get_typed_supplier();
    let object = object.map_err(|exception| match exception.kind {
        Kind::BadOperation => ProxyPullConsumerConnectPullSupplierError::from(TypeError {}),
        _ => exception.into(),
    })?;
    let object = object.ok_or(TypeError {})?;
    let hurried = object.with_round_trip_timeout(Some(limits::SOURCE_TIMEOUT));
    if !hurried.is_a(&declared.pull_id)? {
        return Err(TypeError {}.into());
    }
    let operations = declared.operations.iter();
    Ok(Asked {
        object,
        reference: supplier.clone(),
        questions: Arc::new(TryOperations {
            typed: typed.clone(),
            interface,
            names: operations.map(|it| it.try_name.clone()).collect(),
        }),
    })
}

impl Questions for TryOperations {
    fn count(&self) -> usize {
        self.names.len()
    }

    fn operation(&self, place: usize) -> &str {
        &self.names[place]
    }

    fn read(&self, place: usize, r: &mut Reader<'_>) -> Result<Option<Vec<Any>>, DecodeError> {
        let Some(typed) = self.typed.upgrade() else {
            return Ok(None);
        };
        let has_event = bool::parse(r)?;
        let types = &typed.interfaces[self.interface].operations[place].parameters;
        let values = Any::read_all(types.iter(), r)?;
        Ok(has_event.then_some(values))
    }

    fn offer(&self, shared: &Shared, place: usize, values: Vec<Any>) {
        if let Some(typed) = self.typed.upgrade() {
            let event = TypedEvent {
                interface: self.interface,
                operation: place,
                arguments: Arguments(values.into()),
            };
            // The channel may be destroyed meanwhile; the event is lost with it.
            if typed
                .push(event)
                .is_err_and(|error| error.kind == Kind::NoResources)
            {
                shared.counters.displaced.fetch_add(1, Relaxed);
            }
        }
    }
}
