//! The endpoints at which lanes listen, and those published in references.

use std::time::Duration;

use crate::lane::LaneShape;
use crate::rt::Protocols;
use crate::transport::{ANY_ADDRESS, ANY_ADDRESS_IPV6, Endpoint, Transport};

/// The builder's settings for the lanes of an ORB.
pub(crate) struct LaneSettings {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) published: Vec<Endpoint>,
    pub(crate) lane_places: Vec<LanePlace>,
    pub(crate) server_protocols: Option<Protocols>,
    pub(crate) shape: LaneShape,
    pub(crate) dynamic_thread_idle: Duration,
}

/// Endpoints for a lane, set by the user (`-ORBLaneListenEndpoints`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LanePlace {
    /// The number of the pool; `None` for every pool.
    pub(crate) pool: Option<u32>,
    /// The lane's number within the pool; `None` for every lane.
    pub(crate) lane: Option<usize>,
    pub(crate) endpoints: Vec<Endpoint>,
}

impl LanePlace {
    /// Parses `pool:lane`, where either may be `*` for all, and a list of endpoints.
    pub(crate) fn parse(which: &str, endpoints: &str) -> Option<Self> {
        let (pool, lane) = which.split_once(':')?;
        let number = |text: &str| match text {
            "*" => Some(None),
            _ => text.parse::<u32>().ok().map(Some),
        };
        let endpoints = endpoints.split([',', ';']).map(|text| text.parse().ok());
        Some(Self {
            pool: number(pool)?,
            lane: number(lane)?.map(|lane| lane as usize),
            endpoints: endpoints.collect::<Option<_>>()?,
        })
    }

    fn is_of(&self, pool: u32, lane: usize) -> bool {
        self.pool.is_none_or(|of| of == pool) && self.lane.is_none_or(|of| of == lane)
    }
}

/// Where an ORB listens that is told nothing: other hosts reach it only if somebody has said so.
const LOOPBACK: &str = "127.0.0.1";

/// Returns the endpoints at which the lane of the default pool listens.
pub(crate) fn of_default(settings: &LaneSettings) -> Vec<Endpoint> {
    if settings.endpoints.is_empty() {
        return vec![Endpoint::tcp(LOOPBACK, 0)];
    }
    settings.endpoints.clone()
}

/// Returns the endpoints at which a lane of another pool listens. Without endpoints set by the user, the lane uses the
/// hosts of the default pool, at ports of its own. The paths of its unix sockets and shared memory are those of the
/// default pool, followed by the numbers of pool and lane.
pub(crate) fn of_lane(settings: &LaneSettings, pool: u32, lane: usize) -> Vec<Endpoint> {
    let mut said = settings.lane_places.iter().rev();
    if let Some(place) = said.find(|place| place.is_of(pool, lane)) {
        return place.endpoints.clone();
    }
    let mut endpoints = Vec::new();
    for endpoint in of_default(settings) {
        let own = match endpoint {
            Endpoint::Tcp { host, .. } => Endpoint::Tcp { host, port: 0 },
            Endpoint::Tls { host, .. } => Endpoint::Tls { host, port: 0 },
            Endpoint::Unix { host, path } => Endpoint::Unix {
                host,
                path: format!("{path}.{pool}.{lane}"),
            },
            Endpoint::SharedMemory { host, path } => Endpoint::SharedMemory {
                host,
                path: format!("{path}.{pool}.{lane}"),
            },
        };
        if !endpoints.contains(&own) {
            endpoints.push(own);
        }
    }
    endpoints
}

/// Returns the published hosts without their ports, for a lane that has ports of its own.
pub(crate) fn without_ports(published: &[Endpoint]) -> Vec<Endpoint> {
    let hosts = published.iter().filter_map(|endpoint| match endpoint {
        Endpoint::Tcp { host, .. } => Some(Endpoint::tcp(host, 0)),
        Endpoint::Tls { host, .. } => Some(Endpoint::tls(host, 0)),
        Endpoint::Unix { .. } | Endpoint::SharedMemory { .. } => None,
    });
    hosts.collect()
}

/// Returns the endpoints for references. Those in `published` of a kind (plain TCP, TLS) replace those in `listened` of
/// that kind. Without one, the latter are used, with the addresses at which other hosts reach them. Unix sockets and
/// shared memory are always included: only this host can use them.
pub(crate) fn publish<'e>(
    listened: &'e [Endpoint],
    published: &'e [Endpoint],
    transport: &dyn Transport,
) -> Vec<Endpoint> {
    let mut reached = Vec::new();
    for is_tls in [false, true] {
        let all = |from: &'e [Endpoint]| from.iter().filter_map(parts);
        let own = all(listened).filter(|(_, _, tls)| *tls == is_tls);
        let ports = || own.clone().map(|(_, port, _)| port);
        let mut add = |host: &str, port: u16| {
            let over_ipv6 = host == ANY_ADDRESS_IPV6;
            let hosts = match host {
                ANY_ADDRESS | ANY_ADDRESS_IPV6 => transport.outward_hosts(over_ipv6),
                host => vec![host.to_owned()],
            };
            for host in hosts {
                let endpoint = if is_tls {
                    Endpoint::Tls { host, port }
                } else {
                    Endpoint::Tcp { host, port }
                };
                if !reached.contains(&endpoint) {
                    reached.push(endpoint);
                }
            }
        };
        // A host alone stands for each port of either kind.
        let is_meant = |(_, port, tls): &(&str, u16, bool)| *tls == is_tls || *port == 0;
        let mut chosen: Vec<_> = all(published).filter(is_meant).collect();
        if chosen.is_empty() {
            chosen = own.clone().collect();
        }
        for (host, port, _) in chosen {
            match port {
                0 => ports().for_each(|port| add(host, port)),
                port => add(host, port),
            }
        }
    }
    let is_local = |endpoint: &&Endpoint| endpoint.host_of_local().is_some();
    reached.extend(listened.iter().filter(is_local).cloned());
    reached
}

/// Host and port of an endpoint over TCP, and whether it is one of TLS.
fn parts(endpoint: &Endpoint) -> Option<(&str, u16, bool)> {
    match endpoint {
        Endpoint::Tcp { host, port } => Some((host, *port, false)),
        Endpoint::Tls { host, port } => Some((host, *port, true)),
        Endpoint::Unix { .. } | Endpoint::SharedMemory { .. } => None,
    }
}
