//! Real-time CORBA (RTCORBA 1.2, formal/05-01-04): priorities from caller to servant.

pub(crate) mod current;
pub(crate) mod deadline;
mod exposed;
mod network;
mod policy;
mod priority;
mod streams;

pub(crate) use exposed::{Exposed, TLS_LANE, lanes};
pub use network::{FixedNetwork, LinearNetwork, NetworkPriority, NetworkPriorityMapping};
pub use policy::{
    PriorityBand, PriorityBands, PriorityModel, PriorityModelPolicy, Protocol, ProtocolProperties,
    Protocols, SharedMemoryProtocolProperties, TcpProtocolProperties, ThreadpoolId,
    UnixDomainProtocolProperties, protocol_type,
};
pub use priority::{
    Continuous, Direct, Linear, NativePriority, Priority, PriorityMapping, Scheduling,
};
pub(crate) use priority::{MappingChoice, Mappings};
pub(crate) use streams::stream_options;
