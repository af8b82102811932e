//! A naming service on an ORB: its adapters, its root context, and the state that its servants share.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use deckwatch_orb::cos_naming::{
    BindingIteratorRef, BindingIteratorSkeleton, NamingContextExtRef, NamingContextExtSkeleton,
    NamingContextRef,
};
use deckwatch_orb::{
    IdAssignment, Lifespan, ObjectRef, Orb, Poa, PoaError, Policies, SystemException,
    SystemExceptionKind as Kind,
};
use deckwatch_sync::PiMutex;

use crate::context::Context;
use crate::iterator::Listing;
use crate::limits;
use crate::store::{ROOT, Store, StoreError};
use crate::walk::raise;

/// The object key of the root context in `corbaloc:` URLs.
pub const NAME_SERVICE: &str = "NameService";

/// Name of the adapter of the contexts; part of their persistent keys.
const CONTEXTS_ADAPTER: &str = "names";
const LISTINGS_ADAPTER: &str = "listings";

/// The CosNaming service: a tree of contexts, reached by `corbaloc:...:PORT/NameService`.
pub struct NamingService {
    root: NamingContextExtRef,
}

impl NamingService {
    /// Serves the contexts of a store on an ORB.
    ///
    /// # Errors
    /// When the store cannot be read or the ORB cannot activate a context.
    pub fn start(orb: &Orb, store: Store) -> Result<Self, NamingError> {
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
        let numbers = store.contexts()?;
        let shared = Arc::new_cyclic(|own| Shared {
            own: own.clone(),
            orb: orb.clone(),
            store,
            contexts,
            listings,
            open: PiMutex::new(OpenListings::default()),
        });
        for number in numbers {
            shared.activate(number)?;
        }
        let root = NamingContextExtRef::unchecked_narrow(shared.reference(ROOT)?.into());
        orb.register_plain_key(NAME_SERVICE.as_bytes(), root.object())?;
        Ok(Self { root })
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
}

/// The listings that clients have not destroyed, the oldest first.
#[derive(Default)]
struct OpenListings {
    numbers: VecDeque<u64>,
    next: u64,
}

impl Shared {
    fn own(&self) -> Arc<Self> {
        self.own
            .upgrade()
            .expect("a servant of the service holds what it shares")
    }

    /// Activates a context. Returns its reference.
    pub(crate) fn activate(&self, number: u64) -> Result<NamingContextRef, SystemException> {
        let servant = Arc::new(NamingContextExtSkeleton::new(Context::new(
            self.own(),
            number,
        )));
        self.contexts
            .activate_object_with_id(&number.to_be_bytes(), servant)
            .map_err(system)?;
        self.reference(number)
    }

    pub(crate) fn deactivate(&self, number: u64) -> Result<(), SystemException> {
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

    /// Opens a listing that starts after a binding. If too many are open, the oldest is closed.
    pub(crate) fn open_iterator(
        &self,
        context: u64,
        after: Option<(String, String)>,
    ) -> Result<BindingIteratorRef, SystemException> {
        let number = {
            let mut open = self.open.lock("naming.listings");
            open.next += 1;
            open.next - 1
        };
        let listing = Listing::new(self.own(), context, number, after);
        let id = number.to_be_bytes();
        self.listings
            .activate_object_with_id(&id, Arc::new(BindingIteratorSkeleton::new(listing)))
            .map_err(system)?;
        let reference = self.listings.id_to_reference(&id).map_err(system)?;
        // Counted only after its activation: a thread that closes it as the oldest finds it active.
        let oldest = {
            let mut open = self.open.lock("naming.listings");
            open.numbers.push_back(number);
            let is_full = open.numbers.len() > limits::ITERATORS_MAX;
            is_full.then(|| open.numbers.pop_front()).flatten()
        };
        if let Some(oldest) = oldest {
            // Its client may destroy it at this moment.
            let _ = self.close_iterator(oldest); // It may be closed already.
        }
        Ok(BindingIteratorRef::unchecked_narrow(reference))
    }

    pub(crate) fn close_iterator(&self, number: u64) -> Result<(), SystemException> {
        self.open
            .lock("naming.listings")
            .numbers
            .retain(|&open| open != number);
        self.listings
            .deactivate_object(&number.to_be_bytes())
            .map_err(system)
    }
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
