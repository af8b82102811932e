//! Initializers run while an ORB is made (CORBA 3.3 part 1, clause 16.7; ORBInitializer and ORBInitInfo).

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use deckwatch_cdr::Any as AnyValue;

use super::{
    AsynchronousFlows, ClientRequestInterceptor, CodecFactory, IorInterceptor, PiCurrent,
    Registered, RequestOrder, ServerRequestInterceptor, SlotId, facts,
};
use crate::orb::Orb;
use crate::policy::{Policy, PolicyErrorCode, PolicyType};
use crate::{Completion, ObjectRef, SystemException, minor, raise};

/// Registers interceptors, initial references, slots and policy factories with an ORB that is being made.
pub trait OrbInitializer: Send + Sync + 'static {
    /// Called before initial references can be resolved.
    ///
    /// # Errors
    /// Any error makes the creation of the ORB fail.
    fn pre_init(&self, _info: &mut OrbInitInfo) -> Result<(), OrbInitError> {
        Ok(())
    }

    /// Called after [`OrbInitializer::pre_init`] of all initializers.
    ///
    /// # Errors
    /// Any error makes the creation of the ORB fail.
    fn post_init(&self, _info: &mut OrbInitInfo) -> Result<(), OrbInitError> {
        Ok(())
    }
}

/// Makes policies from their values.
pub trait PolicyFactory: Send + Sync + 'static {
    /// Makes a policy of a type that the factory was registered for.
    ///
    /// # Errors
    /// [`PolicyErrorCode`].
    fn create_policy(&self, kind: PolicyType, value: &AnyValue) -> Result<Policy, PolicyErrorCode>;
}

/// Why a registration is refused, or why an initializer refuses the ORB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrbInitError {
    /// An interceptor of this kind and name is registered already.
    DuplicateName,
    /// The name of an initial reference is empty, or in use.
    InvalidName,
    /// A system exception.
    System(SystemException),
}

impl From<SystemException> for OrbInitError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl fmt::Display for OrbInitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateName => f.write_str("An interceptor of this name is registered."),
            Self::InvalidName => f.write_str("No initial reference can have this name."),
            Self::System(exception) => exception.fmt(f),
        }
    }
}

impl std::error::Error for OrbInitError {}

/// An ORB that is being made.
pub struct OrbInitInfo {
    orb: Orb,
    arguments: Vec<String>,
    is_post: bool,
    all: Registered,
}

/// The number of ORBs with initializers so far.
static ORBS: AtomicU32 = AtomicU32::new(0);

/// Runs the initializers, then fixes what they have registered.
pub(crate) fn initialise(
    orb: &Orb,
    initializers: &[Arc<dyn OrbInitializer>],
    arguments: Vec<String>,
    server_id: String,
) -> Result<(), OrbInitError> {
    let registry = &orb.0.calls.client.interceptors;
    if initializers.is_empty() {
        registry.fix(None);
        return Ok(());
    }
    let mut info = OrbInitInfo {
        orb: orb.clone(),
        arguments,
        is_post: false,
        all: Registered {
            number: ORBS.fetch_add(1, Ordering::Relaxed),
            orb_id: orb.id().to_owned(),
            server_id,
            client: Vec::new(),
            server: Vec::new(),
            ior: Vec::new(),
            slots: 0,
            factories: Vec::new(),
            order: None,
            locals: Vec::new(),
            asynchronous: AsynchronousFlows::default(),
            requests: AtomicU32::new(0),
        },
    };
    for initializer in initializers {
        initializer.pre_init(&mut info)?;
    }
    info.is_post = true;
    for initializer in initializers {
        initializer.post_init(&mut info)?;
    }
    let all = &info.all;
    let is_bare = all.client.is_empty() && all.server.is_empty() && all.ior.is_empty();
    let is_needed = !is_bare
        || all.slots != 0
        || !all.factories.is_empty()
        || all.order.is_some()
        || !all.locals.is_empty();
    registry.fix(is_needed.then_some(info.all));
    Ok(())
}

impl OrbInitInfo {
    /// Returns the arguments of the ORB, as passed to [`crate::OrbBuilder::arguments`].
    #[must_use]
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Returns the id of the ORB.
    #[must_use]
    pub fn orb_id(&self) -> &str {
        self.orb.id()
    }

    /// Returns the codec factory.
    #[must_use]
    pub const fn codec_factory(&self) -> CodecFactory {
        CodecFactory
    }

    /// Makes `reference` an initial reference of the ORB.
    ///
    /// # Errors
    /// [`OrbInitError::InvalidName`] for an empty name and one that is in use.
    pub fn register_initial_reference(
        &self,
        name: &str,
        reference: &ObjectRef,
    ) -> Result<(), OrbInitError> {
        let is_taken = || {
            self.orb
                .list_initial_services()
                .iter()
                .any(|one| one == name)
        };
        if name.is_empty() || is_taken() {
            return Err(OrbInitError::InvalidName);
        }
        self.orb.register_initial_reference(name, reference);
        Ok(())
    }

    /// Returns an initial reference; only in [`OrbInitializer::post_init`].
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 in `pre_init`; [`OrbInitError::InvalidName`] if no reference has
    /// this name.
    pub fn resolve_initial_references(&self, name: &str) -> Result<ObjectRef, OrbInitError> {
        facts::require(self.is_post)?;
        let resolved = self.orb.resolve_initial_references(name);
        resolved.map_err(|exception| match exception.minor {
            raise::own::INITIAL_REFERENCE_UNKNOWN => OrbInitError::InvalidName,
            _ => exception.into(),
        })
    }

    /// Returns the ORB; only in [`OrbInitializer::post_init`]. An interceptor that owns this handle keeps the ORB alive
    /// for ever.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 in `pre_init`.
    pub fn orb(&self) -> Result<&Orb, OrbInitError> {
        facts::require(self.is_post)?;
        Ok(&self.orb)
    }

    /// Registers an interceptor for requests that this ORB sends.
    ///
    /// # Errors
    /// [`OrbInitError::DuplicateName`].
    pub fn add_client_request_interceptor(
        &mut self,
        interceptor: Arc<dyn ClientRequestInterceptor>,
    ) -> Result<(), OrbInitError> {
        let known = self.all.client.iter().map(|one| one.name());
        check_name(interceptor.name(), known)?;
        self.all.client.push(interceptor);
        Ok(())
    }

    /// Registers an interceptor for requests that this ORB serves.
    ///
    /// # Errors
    /// [`OrbInitError::DuplicateName`].
    pub fn add_server_request_interceptor(
        &mut self,
        interceptor: Arc<dyn ServerRequestInterceptor>,
    ) -> Result<(), OrbInitError> {
        let known = self.all.server.iter().map(|one| one.name());
        check_name(interceptor.name(), known)?;
        self.all.server.push(interceptor);
        Ok(())
    }

    /// Registers an interceptor that adds components to the references of new adapters.
    ///
    /// # Errors
    /// [`OrbInitError::DuplicateName`].
    pub fn add_ior_interceptor(
        &mut self,
        interceptor: Arc<dyn IorInterceptor>,
    ) -> Result<(), OrbInitError> {
        let known = self.all.ior.iter().map(|one| one.name());
        check_name(interceptor.name(), known)?;
        self.all.ior.push(interceptor);
        Ok(())
    }

    /// Sets the order of the requests that wait for a thread of a lane.
    pub fn set_request_order(&mut self, order: Arc<dyn RequestOrder>) {
        self.all.order = Some(order);
    }

    /// Makes a local object an initial reference of the ORB; [`Orb::resolve_local_reference`] returns it.
    ///
    /// # Errors
    /// [`OrbInitError::InvalidName`] for an empty name and one that is in use.
    pub fn register_local_reference(
        &mut self,
        name: &str,
        object: Arc<dyn Any + Send + Sync>,
    ) -> Result<(), OrbInitError> {
        let is_taken = self.all.locals.iter().any(|(known, _)| known == name);
        if name.is_empty() || is_taken {
            return Err(OrbInitError::InvalidName);
        }
        self.all.locals.push((name.to_owned(), object));
        Ok(())
    }

    /// Allocates a slot of `PICurrent`.
    #[must_use]
    pub fn allocate_slot_id(&mut self) -> SlotId {
        self.all.slots += 1;
        self.all.slots - 1
    }

    /// Registers a factory for the policies of a type.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 16 if the type has a factory.
    pub fn register_policy_factory(
        &mut self,
        kind: PolicyType,
        factory: Arc<dyn PolicyFactory>,
    ) -> Result<(), OrbInitError> {
        if self.all.factories.iter().any(|(known, _)| *known == kind) {
            let twice = minor::POLICY_FACTORY_REGISTERED;
            return Err(raise::bad_inv_order(twice, Completion::No).into());
        }
        self.all.factories.push((kind, factory));
        Ok(())
    }
}

fn check_name<'n>(
    name: &str,
    mut known: impl Iterator<Item = &'n str>,
) -> Result<(), OrbInitError> {
    if !name.is_empty() && known.any(|one| one == name) {
        return Err(OrbInitError::DuplicateName);
    }
    Ok(())
}

impl Orb {
    /// Returns the local object that an initializer has registered under this name.
    #[must_use]
    pub fn resolve_local_reference(&self, name: &str) -> Option<Arc<dyn Any + Send + Sync>> {
        let all = self.0.calls.client.interceptors.all()?;
        let found = all.locals.iter().find(|(known, _)| known == name);
        found.map(|(_, object)| Arc::clone(object))
    }

    /// Makes a policy from its type and value: with the factory that is registered for the type, else with
    /// [`Policy::create`].
    ///
    /// # Errors
    /// [`PolicyErrorCode`].
    pub fn create_policy(
        &self,
        kind: PolicyType,
        value: &AnyValue,
    ) -> Result<Policy, PolicyErrorCode> {
        let all = self.0.calls.client.interceptors.all();
        let factories = all.map_or(&[][..], |all| &all.factories);
        match factories.iter().find(|(known, _)| *known == kind) {
            Some((_, factory)) => factory.create_policy(kind, value),
            None => Policy::create(kind, value),
        }
    }
}

impl fmt::Debug for OrbInitInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrbInitInfo")
            .field("orb_id", &self.orb_id())
            .field("arguments", &self.arguments)
            .finish_non_exhaustive()
    }
}

impl Orb {
    /// Returns the slots of the calling thread. It is the initial reference `PICurrent`.
    #[must_use]
    pub fn pi_current(&self) -> PiCurrent {
        PiCurrent(Arc::clone(&self.0.calls.client.interceptors))
    }
}
