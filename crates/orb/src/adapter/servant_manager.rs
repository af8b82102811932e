//! Servant managers: who makes servants when requests come (CORBA 3.3 part 1, 15.3.5 to 15.3.7).

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::Poa;
use crate::{ObjectRef, Servant, SystemException};

/// Makes the servants of an adapter with the policies USE_SERVANT_MANAGER and RETAIN: once for each object, which then
/// stays active.
///
/// The adapter calls one of the two operations at a time. Requests for an object wait while its servant is being made or
/// let go.
pub trait ServantActivator: Send + Sync + 'static {
    /// Makes the servant of an object that is asked and not active.
    ///
    /// # Errors
    /// [`ServantManagerError::ForwardRequest`] sends the caller elsewhere; a system exception goes to the caller.
    fn incarnate(
        &self,
        object_id: &[u8],
        adapter: &Poa,
    ) -> Result<Arc<dyn Servant>, ServantManagerError>;

    /// Takes a servant back after the last request of an object that has been deactivated.
    ///
    /// `cleanup_in_progress`: the adapter is being destroyed or its manager deactivated; else the object alone was.
    /// `remaining_activations`: the servant serves other objects of the adapter still.
    fn etherealize(
        &self,
        object_id: &[u8],
        adapter: &Poa,
        servant: Arc<dyn Servant>,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    );
}

/// Finds the servants of an adapter with the policies USE_SERVANT_MANAGER and NON_RETAIN: anew for each request.
///
/// Requests are independent of one another: both operations are called by many threads at once, unless the adapter's
/// thread policy says otherwise.
pub trait ServantLocator: Send + Sync + 'static {
    /// Finds the servant for one request. What is put into `cookie` comes back in [`ServantLocator::postinvoke`].
    ///
    /// # Errors
    /// [`ServantManagerError::ForwardRequest`] sends the caller elsewhere; a system exception goes to the caller. In both
    /// cases there is no `postinvoke`.
    fn preinvoke(
        &self,
        object_id: &[u8],
        adapter: &Poa,
        operation: &str,
        cookie: &mut Cookie,
    ) -> Result<Arc<dyn Servant>, ServantManagerError>;

    /// The request is done, in whatever way: also where the servant has raised or panicked.
    ///
    /// # Errors
    /// A system exception goes to the caller in place of what the servant has replied.
    fn postinvoke(
        &self,
        object_id: &[u8],
        adapter: &Poa,
        operation: &str,
        cookie: Cookie,
        servant: Arc<dyn Servant>,
    ) -> Result<(), SystemException>;
}

/// What a servant locator keeps from `preinvoke` to `postinvoke` of one request.
pub type Cookie = Option<Box<dyn Any + Send>>;

/// Either kind of servant manager; the adapter's retention policy says which it takes.
#[derive(Clone)]
pub enum ServantManager {
    /// For RETAIN.
    Activator(Arc<dyn ServantActivator>),
    /// For NON_RETAIN.
    Locator(Arc<dyn ServantLocator>),
}

impl fmt::Debug for ServantManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Activator(_) => "ServantManager::Activator",
            Self::Locator(_) => "ServantManager::Locator",
        })
    }
}

/// The caller shall ask another object, this time and from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardRequest {
    /// Which.
    pub forward_reference: ObjectRef,
}

/// Why a servant manager gives no servant.
#[derive(Clone, Debug, PartialEq)]
pub enum ServantManagerError {
    /// The caller is to ask elsewhere.
    ForwardRequest(ForwardRequest),
    /// The caller is to get this exception.
    System(SystemException),
}

impl From<ForwardRequest> for ServantManagerError {
    fn from(forward: ForwardRequest) -> Self {
        Self::ForwardRequest(forward)
    }
}

impl From<SystemException> for ServantManagerError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl fmt::Display for ServantManagerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForwardRequest(_) => f.write_str("The caller is to ask another object."),
            Self::System(exception) => exception.fmt(f),
        }
    }
}

impl std::error::Error for ServantManagerError {}
