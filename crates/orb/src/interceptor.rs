//! Portable interceptors: code of the application's on the road of every request (CORBA 3.3 part 1, clause 16).
//!
//! An [`OrbInitializer`] given to [`crate::OrbBuilder::initializer`] registers them while the ORB is made; from then on they are fixed, and an ORB
//! without any looks once whether it has some. They may take memory and time: what they cost is theirs.
//!
//! Starting points are called in the order of registration, and an interceptor whose starting point has succeeded is called at exactly
//! one ending point, in reverse order. Whoever raises at an ending point changes what those behind it see: an exception, or another place to ask.

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
    AsynchronousFlows, Ending, begin_asynchronous, intercept, intercept_oneway,
};
pub(crate) use initializer::initialise;
pub(crate) use server_flow::{Served, ServerFlow};

use crate::policy::PolicyType;
use crate::{Completion, ForwardRequest, ServiceContexts, SystemException, raise};

/// Looks at requests that this ORB sends, and at what comes of them.
pub trait ClientRequestInterceptor: Send + Sync + 'static {
    /// Tells it from the others of its ORB; empty: it needs no name.
    fn name(&self) -> &str {
        ""
    }

    /// A request is about to be sent: service contexts can be added to it. Called again where it is sent to another place.
    ///
    /// # Errors
    /// The caller gets a system exception in place of the call; a [`ForwardRequest`] has another object asked.
    fn send_request(&self, _info: &mut ClientRequestInfo) -> Result<(), InterceptorError> {
        Ok(())
    }

    /// A time-independent request is polled for. This ORB has no such requests and does not call it.
    ///
    /// # Errors
    /// A system exception for the caller.
    fn send_poll(&self, _info: &mut ClientRequestInfo) -> Result<(), SystemException> {
        Ok(())
    }

    /// The results are there.
    ///
    /// # Errors
    /// A system exception for the caller in place of the results.
    fn receive_reply(&self, _info: &mut ClientRequestInfo) -> Result<(), SystemException> {
        Ok(())
    }

    /// The request has ended in an exception, the server's or this ORB's.
    ///
    /// # Errors
    /// Another system exception in place of that; a [`ForwardRequest`] has another object asked.
    fn receive_exception(&self, _info: &mut ClientRequestInfo) -> Result<(), InterceptorError> {
        Ok(())
    }

    /// There is neither reply nor exception: the request is sent to another place, or nobody waits for its end.
    ///
    /// # Errors
    /// As [`ClientRequestInterceptor::receive_exception`].
    fn receive_other(&self, _info: &mut ClientRequestInfo) -> Result<(), InterceptorError> {
        Ok(())
    }

    /// The ORB has shut down.
    fn destroy(&self) {}
}

/// Looks at requests that this ORB serves.
pub trait ServerRequestInterceptor: Send + Sync + 'static {
    /// Tells it from the others of its ORB; empty: it needs no name.
    fn name(&self) -> &str {
        ""
    }

    /// A request has come, and nobody has looked for its object yet: the place to take service contexts into slots.
    ///
    /// # Errors
    /// The caller gets a system exception; a [`ForwardRequest`] sends it elsewhere.
    fn receive_request_service_contexts(
        &self,
        _info: &mut ServerRequestInfo<'_>,
    ) -> Result<(), InterceptorError> {
        Ok(())
    }

    /// The servant is found and is called next, by this thread.
    ///
    /// # Errors
    /// As [`ServerRequestInterceptor::receive_request_service_contexts`].
    fn receive_request(&self, _info: &mut ServerRequestInfo<'_>) -> Result<(), InterceptorError> {
        Ok(())
    }

    /// The servant has returned. Called by the thread of [`ServerRequestInterceptor::receive_request`], in reverse order; the ending point
    /// follows, perhaps on another thread. The standard has no such point: it ends what `receive_request` has begun for its thread.
    ///
    /// # Errors
    /// A system exception for the caller in place of what the servant has done.
    fn servant_returned(&self, _info: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    /// The servant has replied.
    ///
    /// # Errors
    /// A system exception for the caller in place of the results.
    fn send_reply(&self, _info: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    /// The request has ended in an exception.
    ///
    /// # Errors
    /// Another system exception in place of that; a [`ForwardRequest`] sends the caller elsewhere.
    fn send_exception(&self, _info: &mut ServerRequestInfo<'_>) -> Result<(), InterceptorError> {
        Ok(())
    }

    /// The caller is told to ask elsewhere, or was answered before the servant began.
    ///
    /// # Errors
    /// As [`ServerRequestInterceptor::send_exception`].
    fn send_other(&self, _info: &mut ServerRequestInfo<'_>) -> Result<(), InterceptorError> {
        Ok(())
    }

    /// The ORB has shut down.
    fn destroy(&self) {}
}

/// Orders the requests that wait for a thread of a lane, in place of their priorities.
pub trait RequestOrder: Send + Sync + 'static {
    /// Returns the place of a request with these service contexts. The lowest is served first, equal ones in the order of arrival.
    fn order(&self, contexts: &ServiceContexts<'_>) -> u64;
}

/// What an interceptor raises where it may send the caller elsewhere too.
#[derive(Clone, Debug, PartialEq)]
pub enum InterceptorError {
    /// Another object is to be asked.
    ForwardRequest(ForwardRequest),
    /// The caller is to get this exception.
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

/// Calls an interceptor; its panic is UNKNOWN, so that threads of the ORB live on.
fn guarded(call: impl FnOnce() -> Result<(), InterceptorError>) -> Result<(), InterceptorError> {
    let panicked = |_| raise::unknown(0, Completion::Maybe);
    catch_unwind(AssertUnwindSafe(call)).map_err(panicked)?
}

/// What the initializers of one ORB have registered.
pub(crate) struct Registered {
    /// Tells its slots from those of other ORBs.
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

    /// Nobody calls interceptors any more.
    pub(crate) fn destroy(&self) {
        self.client.iter().for_each(|one| one.destroy());
        self.server.iter().for_each(|one| one.destroy());
        self.ior.iter().for_each(|one| one.destroy());
    }
}

/// Where an ORB looks whether anything is registered: nothing is there unless something is.
#[derive(Default)]
pub(crate) struct Registry {
    all: OnceLock<Arc<Registered>>,
    /// The initializers have run.
    fixed: AtomicBool,
}

impl Registry {
    /// All of it.
    pub(crate) fn all(&self) -> Option<&Arc<Registered>> {
        self.all.get()
    }

    /// Whether the initializers have run.
    fn is_fixed(&self) -> bool {
        self.fixed.load(Ordering::Acquire)
    }

    /// Who looks at requests that go out.
    #[inline]
    pub(crate) fn client(&self) -> Option<&Arc<Registered>> {
        self.all.get().filter(|all| !all.client.is_empty())
    }

    /// Who looks at requests that come in, or keeps something in slots meanwhile.
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
            let _made_once = self.all.set(Arc::new(all));
        }
        self.fixed.store(true, Ordering::Release);
    }
}
