//! A real-time CORBA ORB: references, object adapters, lanes and connections, over GIOP 1.0 to 1.2.
//!
//! # From an interface to a call
//!
//! The book begins with the whole program: `docs/book/corba-in-rust.md`. These are its parts.
//!
//! 1. Write the interface in OMG IDL, `idl/clock.idl`:
//!
//!    ```text
//!    module Example {
//!        interface Clock {
//!            unsigned long ticks();
//!        };
//!    };
//!    ```
//!
//! 2. Generate Rust in `build.rs`. Dependencies: `deckwatch-orb` and `deckwatch-cdr`; for the build: `deckwatch-idl`.
//!    In `[profile.release]`, `lto = "fat"` makes calls with structs 13% faster.
//!
//!    ```text
//!    fn main() {
//!        deckwatch_idl::build::Builder::new()
//!            .file("idl/clock.idl")
//!            .compile();
//!    }
//!    ```
//!
//! 3. Include it. `Clock` is the trait to serve, `ClockSkeleton` makes a servant of its implementation, and
//!    `ClockRef` calls.
//!
//!    ```text
//!    use deckwatch_orb::{Orb, Servant, SystemException};
//!    use idl::example::{Clock, ClockRef, ClockSkeleton};
//!
//!    mod idl {
//!        include!(concat!(env!("OUT_DIR"), "/clock.rs"));
//!    }
//!
//!    struct Wall;
//!
//!    impl Clock for Wall {
//!        fn ticks(&self) -> Result<u32, SystemException> {
//!            Ok(42)
//!        }
//!    }
//!    ```
//!
//! 4. Serve: an [`Orb`] listens, its root [`Poa`] makes an object of the servant, and the text of its reference goes
//!    to clients.
//!
//!    ```text
//!    let root = orb.root_poa()?;
//!    root.the_poa_manager().activate()?;
//!    let servant: Arc<dyn Servant> = Arc::new(ClockSkeleton::new(Wall));
//!    let object = root.servant_to_reference(&servant)?;
//!    println!("{}", orb.object_to_string(&object));
//!    orb.run()?;
//!    ```
//!
//! 5. Call: an `IOR:`, `corbaloc:` or `corbaname:` becomes an [`ObjectRef`], and that a `ClockRef`.
//!
//!    ```text
//!    let object = orb.string_to_object(reference)?.ok_or("a nil reference")?;
//!    let clock = ClockRef::narrow(&object)?.ok_or("it is no Example::Clock")?;
//!    println!("{} ticks", clock.ticks()?);
//!    ```
//!
//! 6. Both have an ORB of the command line, with its `-ORB` arguments; [`Orb::builder`] makes one without.
//!
//!    ```text
//!    let mut arguments: Vec<String> = std::env::args().collect();
//!    // Takes the -ORB arguments out of the list.
//!    let orb = Orb::init(&mut arguments)?;
//!    ```
//!
//! # What to set
//!
//! | to have | see |
//! | --- | --- |
//! | threads, lanes and priorities | [`RtOrb::create_threadpool_with_lanes`], [`PriorityModelPolicy`], [`RtCurrent`] |
//! | time-outs | [`OrbBuilder::round_trip_timeout`], [`PolicyManager`], [`PolicyCurrent`] |
//! | object life cycles | [`Policies`], [`ServantManager`], [`AdapterActivator`] |
//! | no allocation after a point | [`Orb::seal`] |
//! | interceptors | [`interceptor`] |
//! | a naming service's client | [`cos_naming`], [`Orb::resolve_initial_references`] |
//! | what a peer can cost | [`limits`] |
//!
//! Dynamic invocation, dynamic servants and pollers are in the crate `deckwatch-dynamic`; distributable threads are in
//! `deckwatch-rtscheduling`.
//!
//! # The same without generated code
//!
//! This program is complete. It serves an object and calls it.
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
//!             _ => Err(SystemException::new(
//!                 SystemExceptionKind::BadOperation,
//!                 minor::OPERATION_UNKNOWN,
//!                 Completion::No,
//!             )),
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
// Types of the ORB own each other by handles: to find out whether all of that is `Send` takes the compiler more than
// 128 steps.
#![recursion_limit = "256"]

mod access;
mod accounts;
mod adapter;
mod allotment;
mod arguments;
mod budget;
mod builder;
mod call_side;
mod caller;
mod client;
mod connection;
mod contexts;
pub mod cos_naming;
mod counters;
mod current;
pub mod delivery;
mod exception_detail;
mod forward_request;
#[doc(hidden)]
pub mod fuzzing;
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
mod origin;
pub mod outward;
pub mod peers;
mod policy;
mod raise;
mod reference;
mod rt;
mod rtorb;
mod servant;
mod server;
mod slab;
#[cfg(feature = "tls")]
mod tls;
mod trace;
pub mod transport;
mod value_factories;
mod wire;

pub use access::{
    Access, AccessEvent, AccessLog, AccessWatcher, Guard, Identity, Need, Refusal, Vocabulary,
};
pub use adapter::{
    AdapterActivator, Cookie, IdAssignment, IdUniqueness, ImplicitActivation, Lifespan,
    ManagerAlreadyExists, ManagerState, NoContext, ObjectId, ObjectKey, Poa, PoaCurrent, PoaError,
    PoaManager, PoaManagerError, PoaManagerFactory, Policies, RequestProcessing, ServantActivator,
    ServantLocator, ServantManager, ServantManagerError, ServantRetention, ThreadPolicy,
};
pub use allotment::{lane_threads, memory_for_peers};
pub use builder::{BuildError, OrbBuilder};
pub use caller::{Caller, CallerConnection, LocalProcess};
pub use connection::bidirectional::BidirectionalPolicyValue;
pub use counters::{Counter, Counters, Snapshot};
pub use deckwatch_giop::{
    Completion, Explanation, Ior, ServiceContext, ServiceContexts, SystemException,
    SystemExceptionKind, UtcT, context_id, minor, own_minor,
};
pub use deckwatch_sync::SlotKey;
pub use exception_detail::{exception_detail, explain_exception};
pub use forward_request::ForwardRequest;
/// The result of a call that raises system exceptions alone.
pub type Result<T> = std::result::Result<T, SystemException>;

pub use messaging::{AsynchronousReply, Deliver, ExceptionHolder, PendingReply};
pub use orb::Orb;
pub use origin::{Origin, Reach, ReachMalformed};
pub use policy::{Policy, PolicyErrorCode, PolicyType, RebindMode, SetOverrideType, SyncScope};
pub use reference::ObjectRef;
pub use rt::{
    Continuous, Direct, FixedNetwork, Linear, LinearNetwork, NativePriority, NetworkPriority,
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
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError, TlsFact, TlsOptions};
