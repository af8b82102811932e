//! All bindings of an ORB, and when their idle connections are closed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use deckwatch_sync::PiMutex;

use super::binding::{Binding, Quality};
use crate::counters::Counters;
use crate::limits::ENDPOINTS_MAX;
use crate::transport::{Endpoint, Instant64};

/// The bindings of an ORB.
pub(crate) struct Bindings {
    /// By endpoint and code sets: what a connection has announced holds for all its requests.
    shared: PiMutex<HashMap<Key, Arc<Binding>>>,
    /// Bindings of one reference each, which drops them.
    private: PiMutex<Vec<Weak<Binding>>>,
    /// How long a connection may be unused before it is closed.
    idle_timeout: Duration,
    /// When connections are next checked for that.
    idle_due: AtomicU64,
}

/// An endpoint, the code sets service context announced there, and what else all its connections have.
type Key = (Endpoint, Option<[u8; 12]>, Quality);

impl Bindings {
    pub(super) fn new(idle_timeout: Duration) -> Self {
        Self {
            shared: PiMutex::default(),
            private: PiMutex::default(),
            idle_timeout,
            idle_due: AtomicU64::new(0),
        }
    }

    pub(super) const fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }

    /// The connections of this quality to `endpoint`, shared by all references to it.
    pub(crate) fn shared(
        &self,
        endpoint: Endpoint,
        code_sets: Option<[u8; 12]>,
        quality: Quality,
    ) -> Arc<Binding> {
        let key = (endpoint, code_sets, quality);
        let mut bindings = self.shared.lock("client.bindings");
        if let Some(binding) = bindings.get(&key) {
            return Arc::clone(binding);
        }
        if bindings.len() >= ENDPOINTS_MAX {
            bindings.retain(|_, binding| Arc::strong_count(binding) > 1);
        }
        let binding = Arc::new(Binding::new(key.0.clone(), quality));
        bindings.insert(key, Arc::clone(&binding));
        binding
    }

    /// As [`Bindings::shared`], for one reference alone: its connections close when it is dropped.
    pub(crate) fn private(&self, endpoint: Endpoint, quality: Quality) -> Arc<Binding> {
        let binding = Arc::new(Binding::new(endpoint, quality));
        let mut private = self.private.lock("client.private");
        private.retain(|binding| binding.strong_count() != 0);
        private.push(Arc::downgrade(&binding));
        binding
    }

    /// Removes all shared bindings; returns them and the private ones.
    pub(super) fn take_all(&self) -> Vec<Arc<Binding>> {
        let shared = std::mem::take(&mut *self.shared.lock("client.close"));
        let mut all: Vec<_> = shared.into_values().collect();
        let private = self.private.lock("client.private");
        all.extend(private.iter().filter_map(Weak::upgrade));
        all
    }

    /// Closes idle connections if it is time to look for them.
    #[inline]
    pub(super) fn close_idle_at(&self, counters: &Counters, now: Instant64) {
        if now.0 >= self.idle_due.load(Ordering::Relaxed) {
            self.close_idle(counters, now);
        }
    }

    #[cold]
    fn close_idle(&self, counters: &Counters, now: Instant64) {
        // A connection may be idle for a quarter longer than it should.
        let next = now.after(self.idle_timeout / 4).0;
        let due = self.idle_due.swap(next, Ordering::Relaxed);
        if due > now.0 || due == 0 {
            return;
        }
        for binding in self.shared.lock("client.idle").values() {
            binding.close_idle(counters, now, self.idle_timeout);
        }
        let private = self.private.lock("client.idle");
        for binding in private.iter().filter_map(Weak::upgrade) {
            binding.close_idle(counters, now, self.idle_timeout);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use crate::transport::StreamOptions;

    #[test]
    fn endpoints_without_a_reference_are_forgotten_at_the_limit_and_others_are_not() {
        let bindings = Bindings::new(Duration::from_secs(1));
        let quality = Quality {
            band: None,
            options: StreamOptions::default(),
            origin: Origin::Own,
        };
        let shared = |port: usize| {
            let endpoint = format!("192.0.2.1:{port}").parse().expect("an endpoint");
            bindings.shared(endpoint, None, quality)
        };
        let (own, held) = (shared(1), shared(2));
        for port in 3..=ENDPOINTS_MAX {
            drop(shared(port));
        }
        assert_eq!(bindings.shared.lock("test").len(), ENDPOINTS_MAX);
        drop(shared(ENDPOINTS_MAX + 1));
        assert_eq!(bindings.shared.lock("test").len(), 3);
        assert!(Arc::ptr_eq(&own, &shared(1)) && Arc::ptr_eq(&held, &shared(2)));
    }
}
