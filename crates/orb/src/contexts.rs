//! Service contexts: what travels with a request or reply beside its arguments (CORBA 3.3 part 2, clause 7.7).
//!
//! `written.rs` has the table of those that are written, with their writers; `read.rs` that of those that are read,
//! with their readers. A new context has its id in `giop::context_id`, a row and a writer in the one file, a row and a
//! reader in the other.

pub(crate) mod hops;
pub(crate) mod read;
pub(crate) mod written;

use deckwatch_giop::ServiceContext;

use crate::limits::CONTEXTS_FEW;

/// A service context that an interceptor has added: its id and its octets.
pub(crate) type ExtraContext = (u32, Vec<u8>);

/// The service contexts of one message that is about to be written, in the order they were added. The first
/// [`CONTEXTS_FEW`] allocate nothing; the ORB has fewer of its own.
#[derive(Debug)]
pub(crate) struct ContextList<'a> {
    few: [ServiceContext<'a>; CONTEXTS_FEW],
    count: usize,
    /// All of them, once they are more than [`CONTEXTS_FEW`].
    many: Vec<ServiceContext<'a>>,
}

const NONE: ServiceContext<'static> = ServiceContext { id: 0, data: &[] };

impl<'a> ContextList<'a> {
    pub(crate) const fn new() -> Self {
        Self {
            few: [NONE; CONTEXTS_FEW],
            count: 0,
            many: Vec::new(),
        }
    }

    /// A list with these contexts.
    pub(crate) fn of(contexts: &[ServiceContext<'a>]) -> Self {
        let mut list = Self::new();
        for context in contexts {
            list.push(context.id, context.data);
        }
        list
    }

    /// This list with one more context.
    pub(crate) fn with(mut self, id: u32, data: &'a [u8]) -> Self {
        self.push(id, data);
        self
    }

    /// Adds a context; `data` is its encapsulation.
    pub(crate) fn push(&mut self, id: u32, data: &'a [u8]) {
        let context = ServiceContext { id, data };
        if let Some(place) = self.few.get_mut(self.count) {
            *place = context;
            self.count += 1;
            return;
        }
        if self.many.is_empty() {
            self.many.extend_from_slice(&self.few);
        }
        self.many.push(context);
    }

    pub(crate) fn as_slice(&self) -> &[ServiceContext<'a>] {
        if self.many.is_empty() {
            &self.few[..self.count]
        } else {
            &self.many
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_keep_their_order_however_many_they_are() {
        let data = [1, 2, 3];
        let mut contexts = ContextList::new();
        for id in 0..20 {
            contexts.push(id, &data);
            let ids: Vec<u32> = contexts.as_slice().iter().map(|one| one.id).collect();
            assert_eq!(ids, (0..=id).collect::<Vec<_>>());
        }
    }
}
