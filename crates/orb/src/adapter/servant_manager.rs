//! Servant managers, which provide servants when requests arrive (CORBA 3.3 part 1, 15.3.5 to 15.3.7).

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::Poa;
use crate::{ForwardRequest, Servant, SystemException};

/// Makes the servants of an adapter with the policies USE_SERVANT_MANAGER and RETAIN: once for each object, which then
/// stays active.
///
/// The adapter calls one of the two operations at a time. Requests for an object wait while its servant is made or
/// etherealized.
pub trait ServantActivator: Send + Sync + 'static {
    /// Makes the servant of an object that is not active, for a request.
    ///
    /// # Errors
    /// [`ServantManagerError::ForwardRequest`] forwards the caller; a system exception goes to the caller.
    fn incarnate(
        &self,
        object_id: &[u8],
        adapter: &Poa,
    ) -> Result<Arc<dyn Servant>, ServantManagerError>;

    /// Takes a servant back after the last request of a deactivated object.
    ///
    /// `cleanup_in_progress`: the adapter is being destroyed or its manager deactivated; otherwise only the object was
    /// deactivated. `remaining_activations`: the servant still serves other objects of the adapter.
    fn etherealize(
        &self,
        object_id: &[u8],
        adapter: &Poa,
        servant: Arc<dyn Servant>,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    );
}

/// Provides the servants of an adapter with the policies USE_SERVANT_MANAGER and NON_RETAIN, for each request again.
///
/// Several threads call both operations at the same time, unless the thread policy of the adapter forbids it.
pub trait ServantLocator: Send + Sync + 'static {
    /// Returns the servant for one request. The value of `cookie` is passed to [`ServantLocator::postinvoke`].
    ///
    /// # Errors
    /// [`ServantManagerError::ForwardRequest`] forwards the caller; a system exception goes to the caller. In both
    /// cases `postinvoke` is not called.
    fn preinvoke(
        &self,
        object_id: &[u8],
        adapter: &Poa,
        operation: &str,
        cookie: &mut Cookie,
    ) -> Result<Arc<dyn Servant>, ServantManagerError>;

    /// Called after the request, even if the servant has raised or panicked.
    ///
    /// # Errors
    /// A system exception goes to the caller in place of the servant's reply.
    fn postinvoke(
        &self,
        object_id: &[u8],
        adapter: &Poa,
        operation: &str,
        cookie: Cookie,
        servant: Arc<dyn Servant>,
    ) -> Result<(), SystemException>;
}

/// A value that a servant locator keeps from `preinvoke` to `postinvoke` of one request.
pub type Cookie = Option<Box<dyn Any + Send>>;

/// A servant manager of either kind. The retention policy of the adapter decides which one it accepts.
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

/// Why a servant manager returns no servant.
#[derive(Clone, Debug, PartialEq)]
pub enum ServantManagerError {
    /// The caller is forwarded.
    ForwardRequest(ForwardRequest),
    /// The caller gets this exception.
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
