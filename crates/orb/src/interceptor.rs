//! Portable interceptors: code of the application that runs on every request (CORBA 3.3 part 1, clause 16).
//!
//! An [`OrbInitializer`] passed to [`crate::OrbBuilder::initializer`] registers interceptors while the ORB is made.
//! After that they are fixed. An ORB without interceptors checks once per call whether it has any. Interceptors may
//! allocate and take time; the ORB sets no bound on that.
//!
//! Starting points are called in the order of registration. An interceptor whose starting point has succeeded is called
//! at exactly one ending point, in reverse order. An interceptor that raises at an ending point changes the ending for
//! the interceptors after it: to an exception, or to a forward.

mod client_attempt;
mod client_info;
mod codec;
mod current;
mod facts;
mod initializer;
mod ior_info;
mod server_flow;
mod server_info;

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

pub use client_info::ClientRequestInfo;
pub use codec::{Codec, CodecError, CodecFactory, Encoding, UnknownEncoding};
pub use current::{PiCurrent, SlotError, SlotId};
pub use deckwatch_giop::ior::{TaggedComponent, TaggedProfile, component_tag, profile_tag};
pub use facts::ReplyStatus;
pub use initializer::{OrbInitError, OrbInitInfo, OrbInitializer, PolicyFactory};
pub use ior_info::{AdapterState, IorInfo, IorInterceptor};
pub use server_info::ServerRequestInfo;

pub(crate) use client_attempt::{
    AsynchronousFlows, Ending, LastAttempt, begin_asynchronous, intercept, intercept_oneway,
};
pub(crate) use initializer::initialise;
pub(crate) use server_flow::{Served, ServerFlow};

use crate::policy::PolicyType;
use crate::{Completion, ForwardRequest, ServiceContexts, SystemException, raise};

/// Intercepts the requests that this ORB sends.
pub trait ClientRequestInterceptor: Send + Sync + 'static {
    /// Returns the name, which is unique among the interceptors of this kind. An empty name need not be unique.
    fn name(&self) -> &str {
        ""
    }

    /// Called before a request is sent. Service contexts can be added to it. Called again if the request is sent to
    /// another target.
    ///
    /// # Errors
    /// A system exception goes to the caller in place of the call. A [`ForwardRequest`] sends the request to another
    /// object.
    fn send_request(&self, _info: &mut ClientRequestInfo) -> Result<(), InterceptorError> {
        Ok(())
    }

    /// Called when a time-independent request is polled. This ORB has no such requests and never calls it.
    ///
    /// # Errors
    /// A system exception for the caller.
    fn send_poll(&self, _info: &mut ClientRequestInfo) -> Result<(), SystemException> {
        Ok(())
    }

    /// Called when the request has ended with results.
    ///
    /// # Errors
    /// A system exception for the caller in place of the results.
    fn receive_reply(&self, _info: &mut ClientRequestInfo) -> Result<(), SystemException> {
        Ok(())
    }

    /// Called when the request has ended in an exception, of the server or of this ORB.
    ///
    /// # Errors
    /// Another system exception replaces it. A [`ForwardRequest`] sends the request to another object.
    fn receive_exception(&self, _info: &mut ClientRequestInfo) -> Result<(), InterceptorError> {
        Ok(())
    }

    /// Called when there is neither results nor an exception: the request is sent to another target, or no caller waits
    /// for a reply.
    ///
    /// # Errors
    /// As [`ClientRequestInterceptor::receive_exception`].
    fn receive_other(&self, _info: &mut ClientRequestInfo) -> Result<(), InterceptorError> {
        Ok(())
    }

    /// Called when the ORB has shut down.
    fn destroy(&self) {}
}

/// Intercepts the requests that this ORB serves.
pub trait ServerRequestInterceptor: Send + Sync + 'static {
    /// Returns the name, which is unique among the interceptors of this kind. An empty name need not be unique.
    fn name(&self) -> &str {
        ""
    }

    /// Called when a request has arrived, before the lookup of its object. Service contexts are copied into slots here.
    ///
    /// # Errors
    /// A system exception goes to the caller. A [`ForwardRequest`] forwards the caller to another object.
    fn receive_request_service_contexts(
        &self,
        _info: &mut ServerRequestInfo<'_>,
    ) -> Result<(), InterceptorError> {
        Ok(())
    }

    /// Called after the lookup of the servant and before its call, on the same thread.
    ///
    /// # Errors
    /// As [`ServerRequestInterceptor::receive_request_service_contexts`].
    fn receive_request(&self, _info: &mut ServerRequestInfo<'_>) -> Result<(), InterceptorError> {
        Ok(())
    }

    /// Called after the servant has returned, on the thread of [`ServerRequestInterceptor::receive_request`], in
    /// reverse order. The ending point follows, perhaps on another thread. The standard has no such point. It undoes
    /// what `receive_request` has set up for its thread.
    ///
    /// # Errors
    /// A system exception for the caller in place of the servant's reply.
    fn servant_returned(&self, _info: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    /// Called when the request has ended with results.
    ///
    /// # Errors
    /// A system exception for the caller in place of the results.
    fn send_reply(&self, _info: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    /// Called when the request has ended in an exception.
    ///
    /// # Errors
    /// Another system exception replaces it. A [`ForwardRequest`] forwards the caller to another object.
    fn send_exception(&self, _info: &mut ServerRequestInfo<'_>) -> Result<(), InterceptorError> {
        Ok(())
    }

    /// Called when the caller is forwarded, or was answered before the servant began.
    ///
    /// # Errors
    /// As [`ServerRequestInterceptor::send_exception`].
    fn send_other(&self, _info: &mut ServerRequestInfo<'_>) -> Result<(), InterceptorError> {
        Ok(())
    }

    /// Called when the ORB has shut down.
    fn destroy(&self) {}
}

/// Orders the requests that wait for a thread of a lane, in place of their priorities.
pub trait RequestOrder: Send + Sync + 'static {
    /// Returns the position of a request with these service contexts. The lowest is served first, equal ones in the
    /// order of arrival.
    fn order(&self, contexts: &ServiceContexts<'_>) -> u64;
}

/// The errors of an interception point that may also forward the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum InterceptorError {
    /// Forwards to another object.
    ForwardRequest(ForwardRequest),
    /// Raises this exception to the caller.
    System(SystemException),
}

impl From<ForwardRequest> for InterceptorError {
    fn from(forward: ForwardRequest) -> Self {
        Self::ForwardRequest(forward)
    }
}

impl From<SystemException> for InterceptorError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl fmt::Display for InterceptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForwardRequest(_) => f.write_str("Another object is to be asked."),
            Self::System(exception) => exception.fmt(f),
        }
    }
}

impl std::error::Error for InterceptorError {}

/// Calls an interceptor. Turns its panic into UNKNOWN, so that the threads of the ORB continue.
fn guarded(call: impl FnOnce() -> Result<(), InterceptorError>) -> Result<(), InterceptorError> {
    let panicked = |_| raise::unknown(0, Completion::Maybe);
    catch_unwind(AssertUnwindSafe(call)).map_err(panicked)?
}

/// What the initializers of one ORB have registered.
pub(crate) struct Registered {
    /// The number of the ORB among those with initializers. It keeps the slots of ORBs apart.
    pub(crate) number: u32,
    pub(crate) orb_id: String,
    pub(crate) server_id: String,
    pub(crate) client: Vec<Arc<dyn ClientRequestInterceptor>>,
    pub(crate) server: Vec<Arc<dyn ServerRequestInterceptor>>,
    pub(crate) ior: Vec<Arc<dyn IorInterceptor>>,
    pub(crate) slots: SlotId,
    pub(crate) factories: Vec<(PolicyType, Arc<dyn PolicyFactory>)>,
    order: Option<Arc<dyn RequestOrder>>,
    /// Initial references that are local objects, by their names.
    pub(crate) locals: Vec<(String, Arc<dyn Any + Send + Sync>)>,
    /// Attempts of asynchronous calls.
    pub(crate) asynchronous: AsynchronousFlows,
    requests: AtomicU32,
}

impl Registered {
    fn next_request(&self) -> u32 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    /// Destroys the interceptors. No thread calls them any more.
    pub(crate) fn destroy(&self) {
        self.client.iter().for_each(|one| one.destroy());
        self.server.iter().for_each(|one| one.destroy());
        self.ior.iter().for_each(|one| one.destroy());
    }
}

/// The interceptors of an ORB. Empty if none are registered.
#[derive(Default)]
pub(crate) struct Registry {
    all: OnceLock<Arc<Registered>>,
    /// The initializers have run.
    fixed: AtomicBool,
}

impl Registry {
    /// Returns everything that the initializers have registered.
    pub(crate) fn all(&self) -> Option<&Arc<Registered>> {
        self.all.get()
    }

    /// Returns whether the initializers have run.
    fn is_fixed(&self) -> bool {
        self.fixed.load(Ordering::Acquire)
    }

    /// Returns the registrations if there are client interceptors.
    #[inline]
    pub(crate) fn client(&self) -> Option<&Arc<Registered>> {
        self.all.get().filter(|all| !all.client.is_empty())
    }

    /// Returns the registrations if there are server interceptors or slots.
    #[inline]
    pub(crate) fn server(&self) -> Option<&Arc<Registered>> {
        let concerns = |all: &&Arc<Registered>| !all.server.is_empty() || all.slots != 0;
        self.all.get().filter(concerns)
    }

    /// Returns the order of waiting requests, if an initializer has set one.
    pub(crate) fn request_order(&self) -> Option<&dyn RequestOrder> {
        self.all.get()?.order.as_deref()
    }

    fn fix(&self, all: Option<Registered>) {
        if let Some(all) = all {
            let _ = self.all.set(Arc::new(all)); // It is made once.
        }
        self.fixed.store(true, Ordering::Release);
    }
}
