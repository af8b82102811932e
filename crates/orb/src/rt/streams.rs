//! Converts protocol properties to the options of an endpoint's connections, on either side.

use deckwatch_os::stream::StreamOptions;

use super::{NetworkPriorityMapping, Priority, Protocol, ProtocolProperties};
use crate::transport::Endpoint;
use crate::{Completion, SystemException, minor, raise};

/// Returns the options of connections made to, or accepted at, an endpoint for calls of this priority. The packets of
/// calls without a priority are marked as those of priority 0.
///
/// # Errors
/// DATA_CONVERSION if their packets need a network priority and the mapping has none.
pub(crate) fn stream_options(
    protocols: &[Protocol],
    endpoint: &Endpoint,
    mapping: &dyn NetworkPriorityMapping,
    priority: Option<Priority>,
) -> Result<StreamOptions, SystemException> {
    let number = endpoint.protocol_type();
    let mut protocols = protocols.iter();
    let protocol = protocols.find(|protocol| protocol.protocol_type == number);
    let properties = protocol.and_then(|protocol| protocol.properties.as_ref());
    let size = |octets: i32| u32::try_from(octets).unwrap_or(0);
    Ok(match properties {
        Some(ProtocolProperties::Tcp(tcp)) => StreamOptions {
            send_buffer: size(tcp.send_buffer_size),
            receive_buffer: size(tcp.recv_buffer_size),
            keep_alive: tcp.keep_alive,
            no_delay: tcp.no_delay,
            dont_route: tcp.dont_route,
            packets: if tcp.enable_network_priority {
                let priority = priority.unwrap_or(Priority::MIN);
                let unmappable = raise::data_conversion(minor::PRIORITY_UNMAPPABLE, Completion::No);
                Some(mapping.to_network(priority).ok_or(unmappable)?.into())
            } else {
                None
            },
        },
        Some(ProtocolProperties::UnixDomain(unix)) => StreamOptions {
            send_buffer: size(unix.send_buffer_size),
            receive_buffer: size(unix.recv_buffer_size),
            ..StreamOptions::default()
        },
        Some(ProtocolProperties::SharedMemory(_)) | None => StreamOptions::default(),
    })
}
