//! Which contexts a name leads to.

use std::collections::{BTreeMap, VecDeque};

use deckwatch_store::redb::{ReadTransaction, ReadableTable as _};

use super::rows::{BINDINGS, BindingRow};
use super::{ROOT, StoreError};
use crate::{limits, name};

/// The contexts that the root leads to through contexts of this service, each with one name of it.
#[derive(Debug, Default)]
pub struct Tree(BTreeMap<u64, Place>);

/// The context that a name is in, its id and its kind.
type Place = (u64, String, String);

impl Tree {
    /// Reads all bindings of contexts. A damaged binding leads nowhere.
    pub(super) fn read(read: &ReadTransaction) -> Result<Self, StoreError> {
        let mut inner = BTreeMap::<u64, Vec<(u64, String, String)>>::new();
        for row in read.open_table(BINDINGS)?.iter()? {
            let (key, value) = row?;
            let key = key.value();
            let target = BindingRow::parse(key, value.value()).map(|(binding, _)| binding.target);
            if let Some(number) = target.and_then(|target| target.context()) {
                let (context, id, kind) = key;
                let bound = (number, id.to_owned(), kind.to_owned());
                inner.entry(context).or_default().push(bound);
            }
        }
        let mut places = BTreeMap::new();
        let mut next = VecDeque::from([ROOT]);
        while let Some(context) = next.pop_front() {
            for (number, id, kind) in inner.remove(&context).unwrap_or_default() {
                if number != ROOT && !places.contains_key(&number) {
                    places.insert(number, (context, id, kind));
                    next.push_back(number);
                }
            }
        }
        Ok(Self(places))
    }

    /// Returns true for the root and each context that it leads to.
    #[must_use]
    pub fn reaches(&self, context: u64) -> bool {
        context == ROOT || self.0.contains_key(&context)
    }

    /// Returns a name of a context, empty for the root, or `None` if it has none or only very long ones.
    #[must_use]
    pub fn path(&self, context: u64) -> Option<String> {
        let mut components = Vec::new();
        let mut at = context;
        while at != ROOT {
            let (context, id, kind) = self.0.get(&at)?;
            components.push((id.as_str(), kind.as_str()));
            if components.len() > limits::COMPONENTS_MAX {
                return None;
            }
            at = *context;
        }
        let path = name::to_text(components.into_iter().rev());
        (path.len() <= limits::PATH_TEXT_MAX).then_some(path)
    }
}
