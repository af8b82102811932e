//! The index of subscriptions by source and type: a push costs by its matches, not by the subscribers.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use super::designator::{ANY, SOURCE_ANY};
use super::{Filter, Header};

/// Subscribers of type `T`, which is cheap to clone, by the source and type of the events that they may match.
///
/// A reader takes a snapshot; it then needs no lock. Inserting copies the lists that the subscriber enters, and no
/// others. Peers choose the keys: the maps keep the standard library's hash, which resists collisions.
#[derive(Clone, Debug)]
pub struct Index<T> {
    /// By source and type as they are subscribed to, 0 for any. What no key describes is under (0, 0).
    exact: HashMap<(i32, i32), List<T>>,
    /// By source, whatever the type: for events of any type.
    by_source: HashMap<i32, List<T>>,
    /// By type, whatever the source: for events of any source.
    by_type: HashMap<i32, List<T>>,
    /// For events of any source and type.
    all: List<T>,
}

/// In the order of their numbers.
type List<T> = Arc<Vec<(u64, T)>>;

/// Subscribers that may match one event, each once, in the order of their numbers.
#[derive(Clone, Debug)]
pub struct Candidates<T>([Option<List<T>>; 4]);

impl<T> Default for Index<T> {
    fn default() -> Self {
        Self {
            exact: HashMap::new(),
            by_source: HashMap::new(),
            by_type: HashMap::new(),
            all: Arc::default(),
        }
    }
}

impl<T: Clone> Index<T> {
    /// Enters a subscriber. `number` is its own.
    pub fn insert(&mut self, number: u64, filter: &Filter, subscriber: &T) {
        for (source, event_type) in keys(filter) {
            enter(
                self.exact.entry((source, event_type)).or_default(),
                number,
                subscriber,
            );
            enter(
                self.by_source.entry(source).or_default(),
                number,
                subscriber,
            );
            enter(
                self.by_type.entry(event_type).or_default(),
                number,
                subscriber,
            );
            enter(&mut self.all, number, subscriber);
        }
    }

    /// Removes the subscriber with this number, which was entered with this filter.
    pub fn remove(&mut self, number: u64, filter: &Filter) {
        for (source, event_type) in keys(filter) {
            leave(&mut self.exact, (source, event_type), number);
            leave(&mut self.by_source, source, number);
            leave(&mut self.by_type, event_type, number);
            take_out(&mut self.all, number);
        }
    }

    /// Returns the subscribers that may match an event. Does not allocate.
    #[must_use]
    pub fn candidates(&self, event: Header) -> Candidates<T> {
        let Header { event_type, source } = event;
        let exact = |source, event_type| self.exact.get(&(source, event_type)).cloned();
        Candidates(match (source == SOURCE_ANY, event_type == ANY) {
            (false, false) => [
                exact(source, event_type),
                exact(source, ANY),
                exact(SOURCE_ANY, event_type),
                exact(SOURCE_ANY, ANY),
            ],
            (true, false) => [
                self.by_type.get(&event_type).cloned(),
                self.by_type.get(&ANY).cloned(),
                None,
                None,
            ],
            (false, true) => [
                self.by_source.get(&source).cloned(),
                self.by_source.get(&SOURCE_ANY).cloned(),
                None,
                None,
            ],
            (true, true) => [Some(self.all.clone()), None, None, None],
        })
    }

    /// Returns true if no subscriber may match an event with this header.
    #[must_use]
    pub fn is_unwanted(&self, event: Header) -> bool {
        let Candidates(lists) = self.candidates(event);
        lists.iter().flatten().all(|list| list.is_empty())
    }
}

impl<T> Candidates<T> {
    /// Calls `visit` for each candidate.
    pub fn for_each(&self, mut visit: impl FnMut(&T)) {
        let mut lists: [&[(u64, T)]; 4] = self
            .0
            .each_ref()
            .map(|list| list.as_ref().map_or(&[][..], |list| list));
        loop {
            // The lowest number at the head of a list; a subscriber may be in several.
            let heads = lists
                .iter()
                .filter_map(|list| list.first())
                .min_by_key(|head| head.0);
            let Some((number, subscriber)) = heads else {
                return;
            };
            visit(subscriber);
            for list in &mut lists {
                if let Some((head, rest)) = list.split_first()
                    && head.0 == *number
                {
                    *list = rest;
                }
            }
        }
    }
}

fn keys(filter: &Filter) -> BTreeSet<(i32, i32)> {
    filter
        .keys()
        .unwrap_or_else(|| BTreeSet::from([(SOURCE_ANY, ANY)]))
}

/// Puts a subscriber into a list, unless it is there.
fn enter<T: Clone>(list: &mut List<T>, number: u64, subscriber: &T) {
    if let Err(place) = list.binary_search_by_key(&number, |entry| entry.0) {
        Arc::make_mut(list).insert(place, (number, subscriber.clone()));
    }
}

fn take_out<T: Clone>(list: &mut List<T>, number: u64) {
    if let Ok(place) = list.binary_search_by_key(&number, |entry| entry.0) {
        Arc::make_mut(list).remove(place);
    }
}

fn leave<K: Eq + Hash, T: Clone>(lists: &mut HashMap<K, List<T>>, key: K, number: u64) {
    if let Some(list) = lists.get_mut(&key) {
        take_out(list, number);
        if list.is_empty() {
            lists.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Entry;

    #[test]
    fn subscriber_that_leaves_leaves_no_key_behind() {
        let list = [16, 17].map(|event_type| Entry {
            event_type,
            source: 3,
            time: 0,
        });
        let filter = Filter::build(&list).expect("a filter");
        let mut index = Index::default();
        index.insert(1, &filter, &());
        assert_eq!(index.exact.len(), 2);
        index.remove(1, &filter);
        let left = [
            index.exact.len(),
            index.by_source.len(),
            index.by_type.len(),
        ];
        assert_eq!((left, index.all.len()), ([0; 3], 0));
    }
}
