//! What an ORB is given while it is made (CORBA 3.3 part 1, clause 16.7; ORBInitializer and ORBInitInfo).

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
    /// Before initial references can be resolved.
    ///
    /// # Errors
    /// Anything it raises keeps the ORB from being made.
    fn pre_init(&self, _info: &mut OrbInitInfo) -> Result<(), OrbInitError> {
        Ok(())
    }

    /// After all initializers have passed [`OrbInitializer::pre_init`].
    ///
    /// # Errors
    /// Anything it raises keeps the ORB from being made.
    fn post_init(&self, _info: &mut OrbInitInfo) -> Result<(), OrbInitError> {
        Ok(())
    }
}

/// Makes policies from their values.
pub trait PolicyFactory: Send + Sync + 'static {
    /// A policy of a kind that it was registered for.
    ///
    /// # Errors
    /// [`PolicyErrorCode`].
    fn create_policy(&self, kind: PolicyType, value: &AnyValue) -> Result<Policy, PolicyErrorCode>;
}

/// Why an initializer's wish is refused, or what it has refused itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrbInitError {
    /// An interceptor of this kind and name is registered already.
    DuplicateName,
    /// The name of an initial reference is empty, or taken.
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

/// Numbers ORBs that have slots.
static ORBS: AtomicU32 = AtomicU32::new(0);

/// Lets the initializers register what they have, and fixes it.
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
    /// The arguments that the ORB was made with, as [`crate::OrbBuilder::arguments`] was given them.
    #[must_use]
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// The name of the ORB.
    #[must_use]
    pub fn orb_id(&self) -> &str {
        self.orb.id()
    }

    /// Makes codecs.
    #[must_use]
    pub const fn codec_factory(&self) -> CodecFactory {
        CodecFactory
    }

    /// Makes `reference` an initial reference of the ORB.
    ///
    /// # Errors
    /// [`OrbInitError::InvalidName`] for an empty name and one that is taken.
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

    /// An initial reference; in [`OrbInitializer::post_init`] alone.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 before that; [`OrbInitError::InvalidName`] where there is none of this name.
    pub fn resolve_initial_references(&self, name: &str) -> Result<ObjectRef, OrbInitError> {
        facts::require(self.is_post)?;
        let resolved = self.orb.resolve_initial_references(name);
        resolved.map_err(|exception| match exception.minor {
            raise::own::INITIAL_REFERENCE_UNKNOWN => OrbInitError::InvalidName,
            _ => exception.into(),
        })
    }

    /// The ORB; in [`OrbInitializer::post_init`] alone. An interceptor that keeps it keeps it for ever.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 before that.
    pub fn orb(&self) -> Result<&Orb, OrbInitError> {
        facts::require(self.is_post)?;
        Ok(&self.orb)
    }

    /// Has an interceptor look at requests that go out.
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

    /// Has an interceptor look at requests that come in.
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

    /// Has an interceptor look at adapters that are made, and add components to their references.
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
    /// [`OrbInitError::InvalidName`] for an empty name and one that is taken.
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

    /// A slot of `PICurrent` that nobody else has.
    #[must_use]
    pub fn allocate_slot_id(&mut self) -> SlotId {
        self.all.slots += 1;
        self.all.slots - 1
    }

    /// Has a factory make the policies of a kind.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 16 where that kind has one.
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

    /// A policy from its kind and value: by the factory that was registered for the kind, else as [`Policy::create`] makes it.
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
    /// The slots of the calling thread; `PICurrent` among the standard's initial references.
    #[must_use]
    pub fn pi_current(&self) -> PiCurrent {
        PiCurrent(Arc::clone(&self.0.calls.client.interceptors))
    }
}
