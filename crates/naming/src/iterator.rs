//! The iterator over bindings that `list` did not return (Naming Service 1.3, clause 2.3.4).

use std::borrow::Cow;
use std::sync::Arc;

use deckwatch_orb::cos_naming::{Binding, BindingIterator, BindingType};
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::PiMutex;

use crate::context::binding;
use crate::limits;
use crate::service::Shared;
use crate::walk::{Fault, raise};

/// An open listing. It stores only the last binding it returned, and reads the store from there.
pub(crate) struct Listing {
    shared: Arc<Shared>,
    context: u64,
    number: u64,
    after: PiMutex<Option<(String, String)>>,
}

impl Listing {
    pub(crate) fn new(
        shared: Arc<Shared>,
        context: u64,
        number: u64,
        after: Option<(String, String)>,
    ) -> Self {
        Self {
            shared,
            context,
            number,
            after: PiMutex::new(after),
        }
    }

    fn next(&self, count: usize) -> Result<Vec<Binding>, SystemException> {
        let mut after = self.after.lock("naming.listing");
        let from = after
            .as_ref()
            .map(|(id, kind)| (id.as_str(), kind.as_str()));
        let rows = self
            .shared
            .store
            .list(self.context, from, count)
            .map_err(|error| Fault::from(error).into_system())?;
        if let Some(last) = rows.last() {
            *after = Some((last.id.clone(), last.kind.clone()));
        }
        Ok(rows.into_iter().map(binding).collect())
    }
}

impl BindingIterator for Listing {
    fn next_one(&self) -> Result<(bool, Binding), SystemException> {
        let nothing = || Binding {
            binding_name: Vec::new(),
            binding_type: BindingType::Nobject,
        };
        let found = self.next(1)?.pop();
        Ok((found.is_some(), found.unwrap_or_else(nothing)))
    }

    fn next_n(&self, how_many: u32) -> Result<(bool, Cow<'_, [Binding]>), SystemException> {
        if how_many == 0 {
            return Err(raise(Kind::BadParam));
        }
        let count =
            usize::try_from(how_many).map_or(limits::LIST_MAX, |count| count.min(limits::LIST_MAX));
        let found = self.next(count)?;
        Ok((!found.is_empty(), found.into()))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.shared.close_iterator(self.number)
    }
}
