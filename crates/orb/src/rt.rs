//! Real-time CORBA (RTCORBA 1.2, formal/05-01-04): priorities from caller to servant.

mod components;
pub(crate) mod current;
pub(crate) mod deadline;
mod exposed;
mod mutex;
mod network;
mod places;
mod policy;
mod priority;
mod rtorb;
mod streams;
mod threadpool;

pub(crate) use components::{exposed_policies, lane_endpoints};
pub use current::RtCurrent;
pub(crate) use exposed::{Exposed, lanes};
pub(crate) use mutex::NamedMutexes;
pub use mutex::{MutexNotFound, RtMutex};
pub use network::{
    LinearNetwork, NetworkPriority, NetworkPriorityMapping, NetworkPriorityMappingManager,
};
pub(crate) use places::LanePlace;
pub use policy::{
    PriorityBand, PriorityBands, PriorityModel, PriorityModelPolicy, Protocol, ProtocolProperties,
    Protocols, SharedMemoryProtocolProperties, TcpProtocolProperties, ThreadpoolId,
    UnixDomainProtocolProperties, protocol_type,
};
pub use priority::{
    Continuous, Direct, Linear, NativePriority, Priority, PriorityMapping, PriorityMappingManager,
    Scheduling,
};
pub(crate) use priority::{MappingChoice, Mappings};
pub use rtorb::RtOrb;
pub(crate) use streams::stream_options;
pub(crate) use threadpool::{PoolLane, Threadpool, Threadpools};
pub use threadpool::{RequestBuffering, ThreadpoolError, ThreadpoolLane};
