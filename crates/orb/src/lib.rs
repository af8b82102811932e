//! The ORB: references, object adapter, lanes, connections, and the CosNaming client stubs.
//!
//! ```
//! use std::sync::Arc;
//! use deckwatch_orb::{Completion, Orb, Servant, ServerRequest, SystemException, SystemExceptionKind, minor};
//!
//! struct Clock;
//! impl Servant for Clock {
//!     fn repository_ids(&self) -> &'static [&'static str] {
//!         &["IDL:Example/Clock:1.0"]
//!     }
//!     fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
//!         match request.operation() {
//!             b"ticks" => Ok(request.reply()?.write_u32(42)?),
//!             _ => Err(SystemException::new(SystemExceptionKind::BadOperation, minor::OPERATION_UNKNOWN, Completion::No)),
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), SystemException> {
//! let orb = Orb::builder().listen("127.0.0.1:0").and_then(|builder| builder.build()).expect("a free port");
//! let root = orb.root_poa()?;
//! root.the_poa_manager().activate().expect("a fresh manager");
//! let servant: Arc<dyn Servant> = Arc::new(Clock);
//! let text = orb.object_to_string(&root.servant_to_reference(&servant).expect("implicit activation"));
//!
//! let clock = orb.string_to_object(&text)?.expect("not nil");
//! let ticks: Result<u32, SystemException> = clock.invoke("ticks", |_| Ok(()), |r| r.read_u32(), |_, _| Ok(None));
//! assert_eq!(ticks?, 42);
//! orb.shutdown(true)?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
// Types of the ORB own each other by handles: to find out whether all of that is `Send` takes the compiler more than 128 steps.
#![recursion_limit = "256"]

mod adapter;
mod arguments;
mod budget;
mod builder;
mod call_side;
mod client;
mod connection;
mod contexts;
pub mod cos_naming;
mod counters;
mod current;
mod forward_request;
#[doc(hidden)]
pub mod generated;
mod initial;
pub mod interceptor;
mod lane;
mod life;
mod life_state;
pub mod limits;
mod messaging;
mod orb;
mod policy;
mod raise;
mod reference;
mod rt;
mod rtorb;
mod servant;
mod server;
mod slab;
mod trace;
pub mod transport;
mod wire;

pub use adapter::{
    AdapterActivator, Cookie, IdAssignment, IdUniqueness, ImplicitActivation, Lifespan,
    ManagerAlreadyExists, ManagerState, NoContext, ObjectId, ObjectKey, Poa, PoaCurrent, PoaError,
    PoaManager, PoaManagerError, PoaManagerFactory, Policies, RequestProcessing, ServantActivator,
    ServantLocator, ServantManager, ServantManagerError, ServantRetention, ThreadPolicy,
};
pub use builder::{BuildError, OrbBuilder};
pub use connection::bidirectional::BidirectionalPolicyValue;
pub use counters::{Counter, Counters, Snapshot};
pub use deckwatch_giop::{
    Completion, Explanation, Ior, ServiceContext, ServiceContexts, SystemException,
    SystemExceptionKind, UtcT, context_id, minor, own_minor,
};
pub use deckwatch_sync::SlotKey;
pub use forward_request::ForwardRequest;
/// The result of a call that raises system exceptions alone.
pub type Result<T> = std::result::Result<T, SystemException>;

pub use messaging::{AsynchronousReply, Deliver, ExceptionHolder, PendingReply};
pub use orb::Orb;
pub use policy::{Policy, PolicyErrorCode, PolicyType, RebindMode, SetOverrideType, SyncScope};
pub use reference::ObjectRef;
pub use rt::{
    Continuous, Direct, Linear, LinearNetwork, NativePriority, NetworkPriority,
    NetworkPriorityMapping, Priority, PriorityBand, PriorityBands, PriorityMapping, PriorityModel,
    PriorityModelPolicy, Protocol, ProtocolProperties, Protocols, Scheduling,
    SharedMemoryProtocolProperties, TcpProtocolProperties, ThreadpoolId,
    UnixDomainProtocolProperties, protocol_type,
};
pub use rtorb::{
    MutexNotFound, NetworkPriorityMappingManager, PolicyCurrent, PolicyManager,
    PriorityMappingManager, RequestBuffering, RtCurrent, RtMutex, RtOrb, ThreadpoolError,
    ThreadpoolLane,
};
pub use servant::{Servant, ServerRequest};
