//! Real-time CORBA (RTCORBA 1.x, formal/05-01-04): priorities from caller to servant.

pub(crate) mod current;
pub(crate) mod deadline;
mod policy;
mod priority;

pub use current::RtCurrent;
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
