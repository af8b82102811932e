//! What each maker holds of a store, and the share that it may hold.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};

use super::StoreError;
use super::rows::ContextRow;
use crate::limits;
use crate::outward::CERTIFICATE;

/// What one maker holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Held {
    contexts: u64,
    bindings: u64,
    /// Contexts that were never bound, by number and so by age.
    unbound: BTreeSet<u64>,
}

/// What each maker holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holders(HashMap<String, Held>);

/// A change of what a maker holds.
#[derive(Debug)]
pub(super) enum Change {
    Context {
        maker: String,
        number: u64,
        was_bound: bool,
        is_added: bool,
    },
    Binding {
        maker: String,
        is_added: bool,
    },
}

impl Change {
    pub(super) fn context(number: u64, context: &ContextRow, is_added: bool) -> Self {
        Self::Context {
            maker: context.maker.clone(),
            number,
            was_bound: context.was_bound,
            is_added,
        }
    }
}

/// How many contexts and bindings one maker may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) contexts: u64,
    pub(super) bindings: u64,
}

impl Holders {
    pub(super) fn apply(&mut self, change: Change) {
        let (Change::Context { maker, .. } | Change::Binding { maker, .. }) = &change;
        let key = holder(maker);
        let held = self.0.entry(key.clone()).or_default();
        match change {
            Change::Binding { is_added, .. } => {
                held.bindings = held.bindings.wrapping_add_signed(sign(is_added));
            }
            Change::Context {
                number,
                was_bound,
                is_added,
                ..
            } => {
                held.contexts = held.contexts.wrapping_add_signed(sign(is_added));
                if is_added && !was_bound {
                    held.unbound.insert(number);
                } else {
                    held.unbound.remove(&number);
                }
            }
        }
        if *held == Held::default() {
            self.0.remove(&key);
        }
    }

    /// Refuses one more context to a maker that holds its share. The process of the service has none.
    pub(super) fn check_contexts(&self, maker: &str, share: Share) -> Result<(), StoreError> {
        self.check(maker, |held| held.contexts >= share.contexts)
    }

    /// Refuses one more binding to a maker that holds its share.
    pub(super) fn check_bindings(&self, maker: &str, share: Share) -> Result<(), StoreError> {
        self.check(maker, |held| held.bindings >= share.bindings)
    }

    fn check(&self, maker: &str, is_full: impl Fn(&Held) -> bool) -> Result<(), StoreError> {
        if !maker.is_empty() && self.0.get(&holder(maker)).is_some_and(is_full) {
            return Err(StoreError::ShareFull);
        }
        Ok(())
    }

    /// The oldest contexts that were never bound, of one maker or of all.
    pub(super) fn unbound(&self, maker: Option<&str>) -> Vec<u64> {
        let held: Vec<&Held> = match maker {
            Some(maker) => self.0.get(&holder(maker)).into_iter().collect(),
            None => self.0.values().collect(),
        };
        let mut oldest: Vec<u64> = held
            .into_iter()
            .flat_map(|held| held.unbound.iter().take(limits::EXPIRED_MAX))
            .copied()
            .collect();
        oldest.sort_unstable();
        oldest.truncate(limits::EXPIRED_MAX);
        oldest
    }
}

const fn sign(is_added: bool) -> i64 {
    if is_added { 1 } else { -1 }
}

/// The key of a maker's share: the name in its certificate, else its address. One host may use all addresses of an IPv6
/// network of 64 bits: they share.
fn holder(maker: &str) -> String {
    if let Some(place) = maker.find(CERTIFICATE) {
        return maker[place..].to_owned();
    }
    match maker.parse() {
        Ok(IpAddr::V6(address)) => {
            let network = address.to_bits() & (u128::MAX << 64);
            format!("{}/64", Ipv6Addr::from_bits(network))
        }
        _ => maker.to_owned(),
    }
}
