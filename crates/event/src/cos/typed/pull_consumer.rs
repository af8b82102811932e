//! How the channel pulls from a typed supplier: by the `try_` operations of the object that the supplier returns.

use std::sync::{Arc, Weak};

use deckwatch_cdr::{Any, DecodeError, Parse as _, Reader};
use deckwatch_orb::SystemExceptionKind as Kind;

use super::channel::Typed;
use super::client_object::client_object;
use super::event::{Arguments, TypedEvent};
use crate::cos::sources::{Asked, Questions};
use crate::cos_event_channel_admin::ProxyPullConsumerConnectPullSupplierError;
use crate::cos_event_comm::PullSupplierRef;
use crate::cos_typed_event_comm::TypedPullSupplierRef;
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
/// Those of [`client_object`].
pub(super) fn typed_supplier(
    typed: &Weak<Typed>,
    interface: usize,
    supplier: &PullSupplierRef,
) -> Result<Asked, ProxyPullConsumerConnectPullSupplierError> {
    let gone = || raise(Kind::ObjectNotExist);
    let channel = typed.upgrade().ok_or_else(gone)?;
    let declared = &channel.interfaces[interface];
    let get = |called| TypedPullSupplierRef::unchecked_narrow(called).get_typed_supplier();
    let object: Result<_, ProxyPullConsumerConnectPullSupplierError> = client_object(
        &channel.shared.outward,
        supplier.object(),
        &declared.pull_id,
        get,
    );
    let operations = declared.operations.iter();
    Ok(Asked {
        object: object?,
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

    fn offer(&self, _shared: &Shared, place: usize, values: Vec<Any>) {
        if let Some(typed) = self.typed.upgrade() {
            let event = TypedEvent {
                interface: self.interface,
                operation: place,
                arguments: Arguments(values.into()),
            };
            let _ = typed.push(event); // Refused only by a channel that was destroyed meanwhile.
        }
    }
}
