//! A naming service on an ORB: its adapters, its root context, and the state that its servants share.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Instant;

use deckwatch_orb::cos_naming::{
    BindingIteratorRef, BindingIteratorSkeleton, NamingContextExtRef, NamingContextExtSkeleton,
    NamingContextRef,
};
use deckwatch_orb::limits::{MEMORY_MESSAGES, MESSAGE_SIZE_MAX};
use deckwatch_orb::outward::Outward;
use deckwatch_orb::peers::Peer;
use deckwatch_orb::{
    Access, Caller, Guard, IdAssignment, Lifespan, ObjectRef, Orb, Poa, PoaCurrent, PoaError,
    Policies, SystemException, SystemExceptionKind as Kind, lane_threads, memory_for_peers,
};
use deckwatch_sync::PiMutex;

use crate::access::guard;
use crate::context::Context;
use crate::iterator::Listing;
use crate::limits;
use crate::listings::OpenListings;
use crate::outward::maker_over_network;
use crate::store::rows::UNKNOWN;
use crate::store::{ROOT, Store, StoreError};
use crate::walk::{Fault, raise};

/// The object key of the root context in `corbaloc:` URLs.
pub const NAME_SERVICE: &str = "NameService";

/// Name of the adapter of the contexts; part of their persistent keys.
const CONTEXTS_ADAPTER: &str = "names";
const LISTINGS_ADAPTER: &str = "listings";

/// The largest message that a service should accept whose process has `memory` octets for its peers; without a number,
/// those that [`memory_for_peers`] returns. Each thread of a lane may then read one name of this size.
#[must_use]
pub fn message_size_max(memory: Option<u64>) -> usize {
    let memory = memory.or_else(memory_for_peers).unwrap_or(u64::MAX);
    let part = memory / (MEMORY_MESSAGES as u64 * limits::NAME_GROWTH);
    let part = usize::try_from(part.max(limits::MESSAGE_SIZE_MIN)).unwrap_or(usize::MAX);
    part.min(MESSAGE_SIZE_MAX)
}

/// The CosNaming service: a tree of contexts, reached by `corbaloc:...:PORT/NameService`.
pub struct NamingService {
    root: NamingContextExtRef,
    guard: Option<Arc<Guard>>,
}

impl NamingService {
    /// Serves the contexts of a store on an ORB.
    ///
    /// # Errors
    /// When the store cannot be read or the ORB cannot activate a context.
    pub fn start(orb: &Orb, store: Store) -> Result<Self, NamingError> {
        Self::start_with(orb, store, None)
    }

    /// As [`NamingService::start`], with a table that is asked before each request. All its objects have the name
    /// [`NAMES`](crate::NAMES) in the rules.
    ///
    /// # Errors
    /// As [`NamingService::start`].
    pub fn start_with(
        orb: &Orb,
        store: Store,
        access: Option<Access>,
    ) -> Result<Self, NamingError> {
        let (shared, guard) = Shared::new(orb, store, access, Instant::now())?;
        let root = NamingContextExtRef::unchecked_narrow(shared.reference(ROOT)?.into());
        orb.register_plain_key(NAME_SERVICE.as_bytes(), root.object())?;
        Ok(Self { root, guard })
    }

    /// The table before its objects, and what that has refused.
    #[must_use]
    pub fn guard(&self) -> Option<&Arc<Guard>> {
        self.guard.as_ref()
    }

    /// The root context.
    #[must_use]
    pub fn root(&self) -> &NamingContextExtRef {
        &self.root
    }
}

/// The state that the servants of one service share.
pub(crate) struct Shared {
    own: Weak<Self>,
    pub(crate) orb: Orb,
    pub(crate) store: Store,
    contexts: Poa,
    listings: Poa,
    open: PiMutex<OpenListings>,
    current: PoaCurrent,
    started: Instant,
    /// When each context was last used, in seconds since the start.
    used: PiMutex<HashMap<u64, Arc<AtomicU64>>>,
    /// Calls to other naming services.
    pub(crate) outward: Outward,
}

impl Shared {
    /// Activates the contexts of a store.
    fn new(
        orb: &Orb,
        store: Store,
        access: Option<Access>,
        started: Instant,
    ) -> Result<(Arc<Self>, Option<Arc<Guard>>), NamingError> {
        let root_poa = orb.root_poa()?;
        let named = Policies {
            lifespan: Lifespan::Persistent,
            id_assignment: IdAssignment::UserId,
            ..Policies::default()
        };
        let manager = root_poa.the_poa_manager();
        let contexts = root_poa.create_poa(CONTEXTS_ADAPTER, Some(manager), &named)?;
        let passing = Policies {
            id_assignment: IdAssignment::UserId,
            ..Policies::default()
        };
        let listings = root_poa.create_poa(LISTINGS_ADAPTER, Some(manager), &passing)?;
        let guard = access.map(|access| guard(orb, access));
        for poa in [&contexts, &listings] {
            guard.iter().try_for_each(|guard| poa.set_guard(guard))?;
        }
        let numbers = store.contexts()?;
        let shared = Arc::new_cyclic(|own| Self {
            own: own.clone(),
            orb: orb.clone(),
            store,
            contexts,
            listings,
            open: PiMutex::new(OpenListings::default()),
            current: orb.poa_current(),
            started,
            used: PiMutex::default(),
            outward: outward(orb),
        });
        for number in numbers {
            shared.activate(number)?;
        }
        Ok((shared, guard))
    }

    fn own(&self) -> Arc<Self> {
        self.own
            .upgrade()
            .expect("a servant of the service holds what it shares")
    }

    /// Activates a context. Returns its reference.
    pub(crate) fn activate(&self, number: u64) -> Result<NamingContextRef, SystemException> {
        let used = Arc::new(AtomicU64::new(self.now_s()));
        let context = Context::new(self.own(), number, Arc::clone(&used));
        let servant = Arc::new(NamingContextExtSkeleton::new(context));
        self.used.lock("naming.used").insert(number, used);
        self.contexts
            .activate_object_with_id(&number.to_be_bytes(), servant)
            .map_err(system)?;
        self.reference(number)
    }

    /// Seconds since the start.
    pub(crate) fn now_s(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// Returns true if no request came to a context for [`limits::UNBOUND_LIFETIME`].
    pub(crate) fn is_idle(&self, number: u64) -> bool {
        let used = self.used.lock("naming.used");
        let last = used.get(&number).map_or(0, |used| used.load(Relaxed));
        self.now_s().saturating_sub(last) >= limits::UNBOUND_LIFETIME.as_secs()
    }

    /// Makes a context without a name. Another one may give way to it.
    pub(crate) fn new_context(&self) -> Result<NamingContextRef, Fault> {
        let made = self
            .store
            .create_context(&self.maker(), &|number| self.is_idle(number))?;
        if let Some(expired) = made.expired {
            // A client may destroy it at this moment.
            let _ = self.deactivate(expired); // It may be deactivated already.
        }
        Ok(self.activate(made.number)?)
    }

    pub(crate) fn deactivate(&self, number: u64) -> Result<(), SystemException> {
        self.used.lock("naming.used").remove(&number);
        self.contexts
            .deactivate_object(&number.to_be_bytes())
            .map_err(system)
    }

    pub(crate) fn reference(&self, number: u64) -> Result<NamingContextRef, SystemException> {
        let object = self
            .contexts
            .create_reference_with_id(&number.to_be_bytes(), NamingContextExtRef::REPOSITORY_ID)
            .map_err(system)?;
        Ok(NamingContextRef::unchecked_narrow(object))
    }

    /// Returns the number of a context of this service, or `None` for any other reference. The key alone is not enough:
    /// another naming service has contexts with the same numbers.
    pub(crate) fn own_context(&self, reference: &ObjectRef) -> Option<u64> {
        if !reference.is_local() {
            return None;
        }
        if reference.object_key() == Some(NAME_SERVICE.as_bytes()) {
            return Some(ROOT);
        }
        let id = self.contexts.reference_to_id(reference).ok()?;
        id.as_ref().try_into().ok().map(u64::from_be_bytes)
    }

    /// Opens a listing that starts after a binding. If too many are open, another one is closed.
    pub(crate) fn open_iterator(
        &self,
        context: u64,
        after: Option<(String, String)>,
    ) -> Result<BindingIteratorRef, SystemException> {
        let number = self.open.lock("naming.listings").number();
        let listing = Listing::new(self.own(), context, number, after);
        let id = number.to_be_bytes();
        self.listings
            .activate_object_with_id(&id, Arc::new(BindingIteratorSkeleton::new(listing)))
            .map_err(system)?;
        let reference = self.listings.id_to_reference(&id).map_err(system)?;
        // Counted only after its activation: a thread that closes it as the oldest finds it active.
        let peer = self.current.peer().unwrap_or(Peer::Unknown);
        let oldest = self.open.lock("naming.listings").add(number, peer);
        if let Some(oldest) = oldest {
            // Its client may destroy it at this moment.
            let _ = self.close_iterator(oldest); // It may be closed already.
        }
        Ok(BindingIteratorRef::unchecked_narrow(reference))
    }

    /// Returns who sent the request of the calling thread, in words; empty for this process itself.
    pub(crate) fn maker(&self) -> String {
        match self.current.caller() {
            Ok(Caller::ThisProcess) => String::new(),
            Ok(Caller::Tcp(address)) => {
                let name = self.current.caller_name().unwrap_or_default();
                maker_over_network(address.ip(), name.as_deref())
            }
            Ok(Caller::Unix(process) | Caller::SharedMemory(process)) => {
                format!("uid {}", process.uid)
            }
            _ => UNKNOWN.to_owned(),
        }
    }

    pub(crate) fn close_iterator(&self, number: u64) -> Result<(), SystemException> {
        self.open.lock("naming.listings").remove(number);
        self.listings
            .deactivate_object(&number.to_be_bytes())
            .map_err(system)
    }
}

/// The calls to other naming services. A process with few addresses has fewer threads.
fn outward(orb: &Orb) -> Outward {
    let (max, share) = outward_max(lane_threads());
    Outward::new(orb, max, share)
}

/// Returns how many of a lane's threads may wait for other naming services, and how many of them for one peer.
fn outward_max(threads: usize) -> (usize, usize) {
    let max = limits::OUTWARD_MAX.min(threads / 2);
    (max, limits::OUTWARD_SHARE.min(max / 2))
}

/// Converts an adapter's error to the system exception that a caller of the service receives.
fn system(error: PoaError) -> SystemException {
    match error {
        PoaError::System(exception) => exception,
        PoaError::ObjectNotActive => raise(Kind::ObjectNotExist),
        _ => raise(Kind::Internal),
    }
}

/// Why a naming service does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamingError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The object adapter raised an exception.
    #[error(transparent)]
    Adapter(#[from] PoaError),
    /// The ORB raised a system exception.
    #[error(transparent)]
    Orb(#[from] SystemException),
}

#[cfg(test)]
mod tests {
    use deckwatch_orb::cos_naming::NamingContext as _;

    use super::*;

    #[test]
    fn context_is_idle_until_a_request_comes() {
        let lifetime_s = limits::UNBOUND_LIFETIME.as_secs();
        let orb = Orb::builder().build().expect("an ORB");
        let started = Instant::now()
            .checked_sub(limits::UNBOUND_LIFETIME)
            .expect("the machine runs for longer");
        let store = Store::in_memory().expect("a store");
        let (shared, _) = Shared::new(&orb, store, None, started).expect("a service");
        assert!((lifetime_s..lifetime_s + 60).contains(&shared.now_s()));
        assert!(!shared.is_idle(ROOT), "it was made now");
        let used = Arc::clone(&shared.used.lock("naming.used")[&ROOT]);
        used.store(0, Relaxed);
        assert!(shared.is_idle(ROOT));
        let root = Context::new(Arc::clone(&shared), ROOT, used);
        assert!(root.resolve(&[]).is_err(), "a name has a component");
        assert!(!shared.is_idle(ROOT), "the request counts");
    }

    #[test]
    fn a_half_of_the_threads_serves_while_the_others_wait_for_other_services() {
        let (most, share) = (limits::OUTWARD_MAX, limits::OUTWARD_SHARE);
        assert_eq!(outward_max(1_000), (most, share));
        assert_eq!(outward_max(2 * most), (most, share));
        assert_eq!(outward_max(13), (6, 3));
        assert_eq!(outward_max(1), (0, 0));
    }

    #[test]
    fn an_object_that_is_not_active_does_not_exist_for_the_caller() {
        let own = raise(Kind::NoPermission);
        assert_eq!(system(PoaError::System(own)), own);
        assert_eq!(
            system(PoaError::ObjectNotActive),
            raise(Kind::ObjectNotExist)
        );
        let other = PoaError::ObjectAlreadyActive;
        assert_eq!(system(other), raise(Kind::Internal));
    }

    #[test]
    fn names_that_all_threads_read_at_once_fit_into_the_memory_of_the_service() {
        let of = |mib: u64| message_size_max(Some(mib << 20));
        assert_eq!(of(1 << 20), MESSAGE_SIZE_MAX);
        assert_eq!(of(1), 256 << 10);
        let threads = MEMORY_MESSAGES / 2;
        let values = of(216) * threads * usize::try_from(limits::NAME_GROWTH).expect("few");
        assert!(values <= 108 << 20, "a half of the memory");
    }
}
