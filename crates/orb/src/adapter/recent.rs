//! Where things were found lately: a hint from the octets of a name to its slot, read without a lock.
//!
//! A hint may be wrong (two names can share a place): whoever follows it looks whether the slot holds what was meant.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::SlotKey;

pub(super) struct Recent {
    places: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl Recent {
    /// `count`: a power of two.
    pub(super) fn new(count: usize) -> Self {
        debug_assert!(count.is_power_of_two(), "a mask chooses the place");
        Self {
            places: (0..count).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
        }
    }

    pub(super) fn hint(&self, name: &[u8]) -> SlotKey {
        let packed = self.place(name).load(Ordering::Relaxed);
        SlotKey {
            slot: (packed >> 32) as u32,
            generation: packed as u32,
        }
    }

    pub(super) fn remember(&self, name: &[u8], at: SlotKey) {
        let packed = u64::from(at.slot) << 32 | u64::from(at.generation);
        self.place(name).store(packed, Ordering::Relaxed);
    }

    fn place(&self, name: &[u8]) -> &AtomicU64 {
        let hash = self.hasher.hash_one(name) as usize;
        &self.places[hash & (self.places.len() - 1)]
    }
}
