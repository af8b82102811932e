//! The components in references of a real-time adapter: the endpoints of its lanes, in TAO's format, and the policies
//! that callers must follow.

use deckwatch_cdr::EncodeError;
use deckwatch_giop::ior::policies::{
    BandValue, PriorityModelValue, ProtocolValue, policies_component,
};
use deckwatch_giop::ior::{LaneEndpoint, LocalLane, TaggedComponent};

use crate::Policies;
use crate::rt::{
    Priority, PriorityModelPolicy, Protocol, ProtocolProperties, SharedMemoryProtocolProperties,
    TLS_LANE, TcpProtocolProperties, UnixDomainProtocolProperties, protocol_type,
};
use crate::rtorb::PoolLane;
use crate::transport::Endpoint;

/// Returns the endpoints of these lanes, each with its priority: TCP endpoints in TAO's component, those over TLS and
/// within a host in a component of our own. The endpoints of the first lane come first; they are the profile's own.
pub(crate) fn lane_endpoints<'p>(
    policies: &Policies,
    lanes: impl Iterator<Item = &'p PoolLane>,
) -> Result<Vec<TaggedComponent>, EncodeError> {
    let (mut by_tcp, mut local) = (Vec::new(), Vec::new());
    for at in lanes {
        let priority = at.lane.id.priority.map_or(-1, Priority::value);
        for endpoint in &*policies.places(&at.published) {
            let protocol = endpoint.protocol_type();
            match endpoint.clone() {
                Endpoint::Tcp { host, port } => by_tcp.push(LaneEndpoint {
                    host,
                    port,
                    priority,
                }),
                Endpoint::Tls { host, port } => local.push(LocalLane {
                    protocol: TLS_LANE,
                    host,
                    path: port.to_string(),
                    priority,
                }),
                Endpoint::Unix { host, path } | Endpoint::SharedMemory { host, path } => {
                    local.push(LocalLane {
                        protocol,
                        host,
                        path,
                        priority,
                    });
                }
            }
        }
    }
    let mut components = Vec::with_capacity(2);
    if !by_tcp.is_empty() {
        components.push(LaneEndpoint::list_to_component(&by_tcp)?);
    }
    if !local.is_empty() {
        components.push(LocalLane::list_to_component(&local)?);
    }
    Ok(components)
}

/// Returns the component with the policies of an adapter that its callers must know.
pub(crate) fn exposed_policies(
    policies: &Policies,
    model: PriorityModelPolicy,
) -> Result<TaggedComponent, EncodeError> {
    let model = PriorityModelValue {
        model: model.priority_model as u32,
        server_priority: model.server_priority.value(),
    };
    let mut values = vec![model.to_policy()?];
    if let Some(protocols) = policies.client_protocol {
        let told: Vec<_> = protocols.iter().map(protocol_value).collect();
        values.push(ProtocolValue::list_to_policy(&told)?);
    }
    if let Some(bands) = policies.priority_bands {
        let told = bands.iter().map(|band| BandValue {
            low: band.low.value(),
            high: band.high.value(),
        });
        values.push(BandValue::list_to_policy(&told.collect::<Vec<_>>())?);
    }
    policies_component(&values)
}

/// Returns a protocol with its properties. A protocol without properties gets the defaults of connections without a
/// policy.
fn protocol_value(protocol: &Protocol) -> ProtocolValue {
    let properties = protocol.properties.clone();
    match properties.or_else(|| usual(protocol.protocol_type)) {
        None => ProtocolValue::Other(protocol.protocol_type),
        Some(ProtocolProperties::Tcp(tcp)) => ProtocolValue::Tcp {
            buffers: [tcp.send_buffer_size, tcp.recv_buffer_size],
            keep_alive: tcp.keep_alive,
            dont_route: tcp.dont_route,
            no_delay: tcp.no_delay,
        },
        Some(ProtocolProperties::UnixDomain(unix)) => ProtocolValue::UnixDomain {
            buffers: [unix.send_buffer_size, unix.recv_buffer_size],
        },
        Some(ProtocolProperties::SharedMemory(memory)) => ProtocolValue::SharedMemory {
            size: memory.preallocate_buffer_size,
            names: [memory.mmap_filename, memory.mmap_lockname],
        },
    }
}

/// Returns the default properties of a protocol.
fn usual(protocol: u32) -> Option<ProtocolProperties> {
    use ProtocolProperties as Of;
    use protocol_type as of;
    Some(match protocol {
        of::TCP => Of::Tcp(TcpProtocolProperties::default()),
        of::UNIX_DOMAIN => Of::UnixDomain(UnixDomainProtocolProperties::default()),
        of::SHARED_MEMORY => Of::SharedMemory(SharedMemoryProtocolProperties::default()),
        _ => return None,
    })
}
