//! Interceptors that log each interception point and then run an action of the test.

use std::sync::{Arc, Mutex};

use deckwatch_orb::interceptor::{
    ClientRequestInfo, ClientRequestInterceptor, InterceptorError, OrbInitError, OrbInitInfo,
    OrbInitializer, ServerRequestInfo, ServerRequestInterceptor,
};
use deckwatch_orb::{Completion, OrbBuilder, SystemException, SystemExceptionKind as Kind};

/// The interceptor and the point of each call, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, line: impl Into<String>) {
        self.0
            .lock()
            .expect("nobody panics with it")
            .push(line.into());
    }

    /// Returns and removes the entries logged since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics with it"))
    }
}

type Done = Result<(), InterceptorError>;
type ClientAct = dyn Fn(&str, &mut ClientRequestInfo) -> Done + Send + Sync;
type ServerAct = dyn Fn(&str, &mut ServerRequestInfo<'_>) -> Done + Send + Sync;

/// A client request interceptor that logs each point, then runs the test's action.
pub(crate) struct AtClient {
    pub(crate) name: &'static str,
    pub(crate) log: Log,
    pub(crate) act: Box<ClientAct>,
}

impl AtClient {
    fn at(&self, point: &str, info: &mut ClientRequestInfo) -> Done {
        self.log.note(format!("{} {point}", self.name));
        (self.act)(point, info)
    }
}

/// For points that must not raise ForwardRequest.
fn exception_alone(done: Done) -> Result<(), SystemException> {
    done.map_err(|error| match error {
        InterceptorError::System(exception) => exception,
        InterceptorError::ForwardRequest(_) => panic!("a forward at a point that has none"),
    })
}

impl ClientRequestInterceptor for AtClient {
    fn name(&self) -> &str {
        self.name
    }

    fn send_request(&self, info: &mut ClientRequestInfo) -> Done {
        self.at("send_request", info)
    }

    fn receive_reply(&self, info: &mut ClientRequestInfo) -> Result<(), SystemException> {
        exception_alone(self.at("receive_reply", info))
    }

    fn receive_exception(&self, info: &mut ClientRequestInfo) -> Done {
        self.at("receive_exception", info)
    }

    fn receive_other(&self, info: &mut ClientRequestInfo) -> Done {
        self.at("receive_other", info)
    }

    fn destroy(&self) {
        self.log.note(format!("{} destroy", self.name));
    }
}

/// A server request interceptor that logs each point, then runs the test's action.
pub(crate) struct AtServer {
    pub(crate) name: &'static str,
    pub(crate) log: Log,
    pub(crate) act: Box<ServerAct>,
}

impl AtServer {
    fn at(&self, point: &str, info: &mut ServerRequestInfo<'_>) -> Done {
        self.log.note(format!("{} {point}", self.name));
        (self.act)(point, info)
    }
}

impl ServerRequestInterceptor for AtServer {
    fn name(&self) -> &str {
        self.name
    }

    fn receive_request_service_contexts(&self, info: &mut ServerRequestInfo<'_>) -> Done {
        self.at("contexts", info)
    }

    fn receive_request(&self, info: &mut ServerRequestInfo<'_>) -> Done {
        self.at("receive_request", info)
    }

    fn send_reply(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        exception_alone(self.at("send_reply", info))
    }

    fn send_exception(&self, info: &mut ServerRequestInfo<'_>) -> Done {
        self.at("send_exception", info)
    }

    fn send_other(&self, info: &mut ServerRequestInfo<'_>) -> Done {
        self.at("send_other", info)
    }

    fn destroy(&self) {
        self.log.note(format!("{} destroy", self.name));
    }
}

/// An ORB initializer that calls a function in `post_init`.
pub(crate) struct Init<F>(pub(crate) F);

impl<F: Fn(&mut OrbInitInfo) -> Result<(), OrbInitError> + Send + Sync + 'static> OrbInitializer
    for Init<F>
{
    fn post_init(&self, info: &mut OrbInitInfo) -> Result<(), OrbInitError> {
        (self.0)(info)
    }
}

/// Builds an ORB with client request interceptors of these names; `act` gets the name and the point.
pub(crate) fn with_clients<const N: usize>(
    builder: OrbBuilder,
    names: [&'static str; N],
    log: &Log,
    act: impl Fn(&str, &str, &mut ClientRequestInfo) -> Done + Send + Sync + 'static,
) -> OrbBuilder {
    let (log, act) = (log.clone(), Arc::new(act));
    builder.initializer(Init(move |info: &mut OrbInitInfo| {
        for name in names {
            let act = Arc::clone(&act);
            info.add_client_request_interceptor(Arc::new(AtClient {
                name,
                log: log.clone(),
                act: Box::new(move |point, info| act(name, point, info)),
            }))?;
        }
        Ok(())
    }))
}

/// Builds an ORB with server request interceptors of these names; `act` gets the name and the point.
pub(crate) fn with_servers<const N: usize>(
    builder: OrbBuilder,
    names: [&'static str; N],
    log: &Log,
    act: impl Fn(&str, &str, &mut ServerRequestInfo<'_>) -> Done + Send + Sync + 'static,
) -> OrbBuilder {
    let (log, act) = (log.clone(), Arc::new(act));
    builder.initializer(Init(move |info: &mut OrbInitInfo| {
        for name in names {
            let act = Arc::clone(&act);
            info.add_server_request_interceptor(Arc::new(AtServer {
                name,
                log: log.clone(),
                act: Box::new(move |point, info| act(name, point, info)),
            }))?;
        }
        Ok(())
    }))
}

/// The exception that interceptors raise in these tests.
pub(crate) const RAISED: SystemException =
    SystemException::new(Kind::NoPermission, 99, Completion::No);
