//! The real-time properties in a reference: the policies of its object (TAG_POLICIES) and the lanes of its server. TAO
//! and this ORB write them.

use deckwatch_giop::Ior;
use deckwatch_giop::ior::policies::{
    BandValue, PolicyValue, PriorityModelValue, ProtocolValue, parse_policies, policy_type,
};
use deckwatch_giop::ior::{IiopProfile, LaneEndpoint, LocalLane, component_tag};

use super::{
    Priority, PriorityBand, PriorityModel, PriorityModelPolicy, Protocol, ProtocolProperties,
    SharedMemoryProtocolProperties, TcpProtocolProperties, UnixDomainProtocolProperties,
    protocol_type,
};
use crate::transport::Endpoint;

/// The real-time properties in a reference. Malformed data is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exposed {
    pub(crate) model: Option<PriorityModelPolicy>,
    pub(crate) bands: Vec<PriorityBand>,
    pub(crate) protocols: Vec<Protocol>,
    /// At least one address belongs to a lane with a priority.
    pub(crate) has_lanes: bool,
}

impl Exposed {
    /// Reads them from a reference. Returns `None` if it has none.
    pub(crate) fn of(ior: &Ior) -> Option<Self> {
        let mut exposed = Self::default();
        for profile in ior.iiop_profiles().flatten() {
            let policies = profile.component(component_tag::POLICIES);
            let policies = policies.and_then(|data| parse_policies(data).ok());
            let policies = policies.unwrap_or_default();
            policies.iter().for_each(|policy| exposed.add(policy));
            exposed.has_lanes |= lanes(&profile).iter().any(|(_, lane)| lane.is_some());
        }
        (exposed != Self::default()).then_some(exposed)
    }

    fn add(&mut self, policy: &PolicyValue) {
        let value = &policy.value;
        match policy.policy_type {
            policy_type::PRIORITY_MODEL if self.model.is_none() => {
                self.model = PriorityModelValue::from_octets(value).ok().and_then(model);
            }
            policy_type::PRIORITY_BANDED_CONNECTION if self.bands.is_empty() => {
                let bands = BandValue::list_from_octets(value).unwrap_or_default();
                self.bands = bands.iter().filter_map(band).collect();
            }
            policy_type::CLIENT_PROTOCOL if self.protocols.is_empty() => {
                let protocols = ProtocolValue::list_from_octets(value).unwrap_or_default();
                self.protocols = protocols.into_iter().map(protocol).collect();
            }
            _ => {}
        }
    }

    /// Returns whether requests carry the priority of their caller.
    pub(crate) fn is_propagated(&self) -> bool {
        self.model
            .is_some_and(|model| model.priority_model == PriorityModel::ClientPropagated)
    }
}

/// The protocol number of a lane that speaks TLS, whose port stands in place of a path. RT-CORBA has none: where its
/// policies name TCP, they mean TLS over TCP too.
pub(crate) const TLS_LANE: u32 = 0x4457_0003;

/// Returns the endpoints of a profile's lanes with their priorities. TCP endpoints come first, and each group is in the
/// order of the lanes. Returns none if the profile lists no lanes.
pub(crate) fn lanes(profile: &IiopProfile) -> Vec<(Endpoint, Option<Priority>)> {
    let data = profile.component(component_tag::TAO_ENDPOINTS);
    let lanes = data.and_then(|data| LaneEndpoint::list_from_octets(data).ok());
    let lanes = lanes.unwrap_or_default().into_iter();
    let by_tcp = lanes.filter(|lane| lane.port != 0).map(|lane| {
        let endpoint = Endpoint::tcp(&lane.host, lane.port);
        (endpoint, Priority::new(lane.priority))
    });
    let data = profile.component(component_tag::DECKWATCH_LANES);
    let lanes = data.and_then(|data| LocalLane::list_from_octets(data).ok());
    let lanes = lanes.unwrap_or_default().into_iter();
    let local = lanes.filter_map(
        |LocalLane {
             protocol,
             host,
             path,
             priority,
         }| {
            let endpoint = match protocol {
                protocol_type::UNIX_DOMAIN => Endpoint::Unix { host, path },
                protocol_type::SHARED_MEMORY => Endpoint::SharedMemory { host, path },
                TLS_LANE => Endpoint::tls(&host, path.parse().ok().filter(|port| *port != 0)?),
                _ => return None,
            };
            Some((endpoint, Priority::new(priority)))
        },
    );
    by_tcp.chain(local).collect()
}

fn model(value: PriorityModelValue) -> Option<PriorityModelPolicy> {
    Some(PriorityModelPolicy {
        priority_model: match value.model {
            0 => PriorityModel::ClientPropagated,
            1 => PriorityModel::ServerDeclared,
            _ => return None,
        },
        server_priority: Priority::new(value.server_priority)?,
    })
}

fn band(value: &BandValue) -> Option<PriorityBand> {
    let (low, high) = (Priority::new(value.low)?, Priority::new(value.high)?);
    (low <= high).then_some(PriorityBand { low, high })
}

fn protocol(value: ProtocolValue) -> Protocol {
    let protocol_type = value.number();
    let properties = match value {
        ProtocolValue::Tcp {
            buffers: [send_buffer_size, recv_buffer_size],
            keep_alive,
            dont_route,
            no_delay,
        } => Some(ProtocolProperties::Tcp(TcpProtocolProperties {
            send_buffer_size: send_buffer_size.max(0),
            recv_buffer_size: recv_buffer_size.max(0),
            keep_alive,
            dont_route,
            no_delay,
            enable_network_priority: false,
        })),
        ProtocolValue::UnixDomain {
            buffers: [send_buffer_size, recv_buffer_size],
        } => Some(ProtocolProperties::UnixDomain(
            UnixDomainProtocolProperties {
                send_buffer_size: send_buffer_size.max(0),
                recv_buffer_size: recv_buffer_size.max(0),
            },
        )),
        ProtocolValue::SharedMemory {
            size,
            names: [mmap_filename, mmap_lockname],
        } => Some(ProtocolProperties::SharedMemory(
            SharedMemoryProtocolProperties {
                preallocate_buffer_size: size.max(0),
                mmap_filename,
                mmap_lockname,
            },
        )),
        ProtocolValue::Other(_) => None,
    };
    Protocol {
        protocol_type,
        properties,
    }
}
