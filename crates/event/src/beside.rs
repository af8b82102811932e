//! A servant that serves a second interface of Deckwatch's beside its own.

use std::borrow::Cow;
use std::sync::Arc;

use deckwatch_orb::{Poa, Servant, ServerRequest, SystemException};

/// Serves some operations by another servant. The type in references stays that of the first one, so that foreign
/// clients find the interface that they know.
pub(crate) struct Beside {
    own: Arc<dyn Servant>,
    other: Arc<dyn Servant>,
    /// The operations of `other`.
    operations: &'static [&'static [u8]],
}

impl Beside {
    pub(crate) fn new(
        own: Arc<dyn Servant>,
        other: Arc<dyn Servant>,
        operations: &'static [&'static [u8]],
    ) -> Self {
        Self {
            own,
            other,
            operations,
        }
    }
}

impl Servant for Beside {
    fn repository_ids(&self) -> &'static [&'static str] {
        self.own.repository_ids()
    }

    fn primary_interface(&self, object_id: &[u8], poa: &Poa) -> Cow<'static, str> {
        self.own.primary_interface(object_id, poa)
    }

    fn is_a(&self, object_id: &[u8], poa: &Poa, interface: &[u8]) -> bool {
        self.own.is_a(object_id, poa, interface) || self.other.is_a(object_id, poa, interface)
    }

    fn non_existent(&self, object_id: &[u8]) -> Result<bool, SystemException> {
        self.own.non_existent(object_id)
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        if self.operations.contains(&request.operation()) {
            self.other.dispatch(request)
        } else {
            self.own.dispatch(request)
        }
    }
}
