//! The real-time interface of an ORB: RTCORBA::RTORB with its threadpools and mutexes, and the handles by which an
//! application sets priorities, mappings and policies.

mod current;
mod mutex;
mod network_mapping;
mod places;
mod policy_levels;
mod priority_mapping;
mod threadpool;

use std::fmt;
use std::sync::Arc;

use crate::rt::{
    PriorityBand, PriorityBands, PriorityModel, PriorityModelPolicy, Protocol, Protocols,
    SharedMemoryProtocolProperties, TcpProtocolProperties, ThreadpoolId,
    UnixDomainProtocolProperties,
};
use crate::{Completion, Policy, Priority, SystemException, minor, raise};

pub use current::RtCurrent;
pub(crate) use mutex::NamedMutexes;
pub use mutex::{MutexNotFound, RtMutex};
pub use network_mapping::NetworkPriorityMappingManager;
pub(crate) use places::{LanePlace, LaneSettings};
pub use policy_levels::{PolicyCurrent, PolicyManager};
pub use priority_mapping::PriorityMappingManager;
pub(crate) use threadpool::{CannotMakePool, PoolLane, Threadpool, Threadpools};
pub use threadpool::{RequestBuffering, ThreadpoolError, ThreadpoolLane};

/// Creates threadpools, mutexes, and policies for object adapters and callers; `RTORB` among the standard's initial
/// references.
#[derive(Clone)]
pub struct RtOrb {
    pub(crate) pools: Arc<Threadpools>,
    pub(crate) mutexes: Arc<NamedMutexes>,
}

impl RtOrb {
    /// Returns the policy that determines the priority at which the objects of an adapter are served; for
    /// [`crate::Policies::priority_model`].
    #[must_use]
    pub const fn create_priority_model_policy(
        &self,
        priority_model: PriorityModel,
        server_priority: Priority,
    ) -> PriorityModelPolicy {
        PriorityModelPolicy {
            priority_model,
            server_priority,
        }
    }

    /// Returns the policy that selects the pool for the objects of an adapter; for [`crate::Policies::threadpool`].
    ///
    /// # Errors
    /// [`ThreadpoolError::InvalidThreadpool`] for a number that no pool has.
    pub fn create_threadpool_policy(
        &self,
        threadpool: ThreadpoolId,
    ) -> Result<ThreadpoolId, ThreadpoolError> {
        let pools = self.pools.all();
        let is_there = pools.iter().any(|pool| pool.id == threadpool);
        is_there
            .then_some(threadpool)
            .ok_or(ThreadpoolError::InvalidThreadpool)
    }

    /// Returns the policy of one connection per priority band; for [`Policy::PriorityBandedConnection`] and
    /// [`crate::Policies::priority_bands`].
    ///
    /// # Errors
    /// As [`PriorityBands::new`].
    pub fn create_priority_banded_connection_policy(
        &self,
        priority_bands: &[PriorityBand],
    ) -> Result<PriorityBands, SystemException> {
        PriorityBands::new(priority_bands)
    }

    /// Returns the policy of the protocols by which clients reach the objects of an adapter.
    ///
    /// # Errors
    /// As [`Protocols::new`].
    pub fn create_server_protocol_policy(
        &self,
        protocols: &[Protocol],
    ) -> Result<Protocols, SystemException> {
        Protocols::new(protocols)
    }

    /// Returns the policy of the protocols for calls of objects; for [`Policy::ClientProtocol`] and
    /// [`crate::Policies::client_protocol`].
    ///
    /// # Errors
    /// As [`Protocols::new`].
    pub fn create_client_protocol_policy(
        &self,
        protocols: &[Protocol],
    ) -> Result<Protocols, SystemException> {
        Protocols::new(protocols)
    }

    /// Returns the policy that a reference shares its connections with no other.
    #[must_use]
    pub const fn create_private_connection_policy(&self) -> Policy {
        Policy::PrivateConnection
    }

    /// Returns the properties of TCP connections. Buffers are in octets; 0 keeps the system's default. The last
    /// parameter is TAO's.
    #[must_use]
    pub const fn create_tcp_protocol_properties(
        &self,
        send_buffer_size: i32,
        recv_buffer_size: i32,
        keep_alive: bool,
        dont_route: bool,
        no_delay: bool,
        enable_network_priority: bool,
    ) -> TcpProtocolProperties {
        TcpProtocolProperties {
            send_buffer_size,
            recv_buffer_size,
            keep_alive,
            dont_route,
            no_delay,
            enable_network_priority,
        }
    }

    /// Returns the properties of unix-socket connections. Buffers are in octets; 0 keeps the system's default.
    #[must_use]
    pub const fn create_unix_domain_protocol_properties(
        &self,
        send_buffer_size: i32,
        recv_buffer_size: i32,
    ) -> UnixDomainProtocolProperties {
        UnixDomainProtocolProperties {
            send_buffer_size,
            recv_buffer_size,
        }
    }

    /// Returns the properties of shared-memory connections: octets of memory and file names. 0 and empty names keep the
    /// transport's defaults.
    #[must_use]
    pub fn create_shared_memory_protocol_properties(
        &self,
        preallocate_buffer_size: i32,
        mmap_filename: &str,
        mmap_lockname: &str,
    ) -> SharedMemoryProtocolProperties {
        SharedMemoryProtocolProperties {
            preallocate_buffer_size,
            mmap_filename: mmap_filename.to_owned(),
            mmap_lockname: mmap_lockname.to_owned(),
        }
    }

    /// Not supported: this ORB has no UDP transport.
    ///
    /// # Errors
    /// NO_IMPLEMENT.
    pub const fn create_user_datagram_protocol_properties(
        &self,
    ) -> Result<std::convert::Infallible, SystemException> {
        Err(raise::no_implement(minor::NONE, Completion::No))
    }

    /// Not supported: this ORB has no SCTP transport.
    ///
    /// # Errors
    /// NO_IMPLEMENT.
    pub const fn create_stream_control_protocol_properties(
        &self,
    ) -> Result<std::convert::Infallible, SystemException> {
        Err(raise::no_implement(minor::NONE, Completion::No))
    }
}

impl fmt::Debug for RtOrb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RtOrb").finish_non_exhaustive()
    }
}
