//! Who gave a reference to this ORB, and where a reference of that peer may lead (ADR 0025).
//!
//! Without [`OrbBuilder::reach`](crate::OrbBuilder::reach) every reference is [`Origin::Own`] and leads everywhere.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use deckwatch_access::{Network, NetworkError};

use crate::peers::Peer;
use crate::transport::Endpoint;
use crate::{Caller, LocalProcess};

/// The peer that gave a reference. It decides where calls through the reference may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// This program, or a process of its user, or of the superuser, on this host: it leads everywhere.
    #[default]
    Own,
    /// Another process of this host, over loopback or as another user: it leads to every address, but never to unix
    /// sockets or shared memory.
    Host,
    /// A peer over the network: it leads to the addresses that [`Reach`] permits.
    Network(Peer),
}

impl Origin {
    /// Where references lead that this caller gave, whose certificate contains `name`.
    pub(crate) fn of(caller: Caller, name: Option<&str>) -> Self {
        match caller.into() {
            Self::Network(_) => Self::Network(Peer::of(caller, name)),
            near => near,
        }
    }
}

impl From<Caller> for Origin {
    fn from(caller: Caller) -> Self {
        match caller {
            Caller::ThisProcess => Self::Own,
            Caller::Unix(LocalProcess { uid, .. })
            | Caller::SharedMemory(LocalProcess { uid, .. })
                if uid == 0 || uid == deckwatch_os::process::effective_user() =>
            {
                Self::Own
            }
            Caller::Unix(_) | Caller::SharedMemory(_) => Self::Host,
            Caller::Tcp(address) if address.ip().is_loopback() => Self::Host,
            Caller::Tcp(_) | Caller::Unknown => Self::Network(caller.into()),
        }
    }
}

/// Where references lead that a peer over the network gave: always to the networks in which the ORB listens, and to
/// those that are added.
///
/// Its text is a list: `10.2.0.0/16,fd00::/8`, or `any` for all addresses but loopback and link-local ones. Loopback is
/// permitted only by a network that contains it; a link-local address also if the ORB listens in its network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    networks: Vec<Network>,
    is_any: bool,
}

/// A part of the text of a [`Reach`] that is no network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachMalformed {
    part: String,
    meant: Option<Network>,
}

impl fmt::Display for ReachMalformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no network: ", self.part)?;
        match &self.meant {
            Some(meant) => write!(f, "write {meant}, or the address alone"),
            None => f.write_str("write networks such as 10.2.0.0/16,fd00::/8, or any"),
        }
    }
}

impl std::error::Error for ReachMalformed {}

impl FromStr for Reach {
    type Err = ReachMalformed;

    fn from_str(text: &str) -> Result<Self, ReachMalformed> {
        let mut reach = Self::default();
        for part in text.split(',').map(str::trim) {
            if part == "any" {
                reach.is_any = true;
                continue;
            }
            let network = part.parse().map_err(|error| ReachMalformed {
                part: part.to_owned(),
                meant: match error {
                    NetworkError::HostBits(network) => Some(network),
                    _ => None,
                },
            })?;
            reach.networks.push(network);
        }
        Ok(reach)
    }
}

impl Reach {
    /// Whether a reference of a peer over the network may lead to an address. `own`: the networks in which the ORB
    /// listens.
    fn permits(&self, address: IpAddr, own: &[Network]) -> bool {
        // A connection to no address at all goes to loopback.
        let address = match address.to_canonical() {
            none if none.is_unspecified() => IpAddr::from(Ipv4Addr::LOCALHOST),
            address => address,
        };
        let is_in = |networks: &[Network]| networks.iter().any(|one| one.contains(address));
        let is_any = self.is_any && !is_link_local(address);
        is_in(&self.networks) || !address.is_loopback() && (is_any || is_in(own))
    }
}

/// What the ORB knows of its own place in the network, read when it is needed: interfaces come and go.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// The networks in which the ORB listens.
    networks: Vec<Network>,
    /// The addresses of the host.
    addresses: Vec<IpAddr>,
    /// The ports at which the ORB listens.
    ports: Vec<u16>,
}

impl Place {
    /// `interfaces`: the addresses of the host with the prefixes of their networks.
    pub(crate) fn new(interfaces: &[(IpAddr, u8)], listening: &[Endpoint]) -> Self {
        let mut place = Self {
            addresses: interfaces.iter().map(|(address, _)| *address).collect(),
            ..Self::default()
        };
        for endpoint in listening {
            let (Endpoint::Tcp { host, port } | Endpoint::Tls { host, port }) = endpoint else {
                continue;
            };
            place.ports.push(*port);
            let Ok(at) = host.parse::<IpAddr>().map(|at| at.to_canonical()) else {
                continue;
            };
            let is_one = |own: IpAddr| match at {
                IpAddr::V4(any) if any.is_unspecified() => own.is_ipv4(),
                at => at.is_unspecified() || own == at,
            };
            let within = interfaces.iter().filter(|(own, _)| is_one(*own));
            let within = within.filter(|(own, _)| !own.is_loopback());
            let networks = within.filter_map(|(own, prefix)| Network::around(*own, *prefix));
            place.networks.extend(networks);
        }
        place
    }

    /// Whether an address is one at which the ORB itself listens.
    fn is_own(&self, address: IpAddr, port: u16) -> bool {
        let address = address.to_canonical();
        let is_of_host = address.is_loopback() || address.is_unspecified();
        self.ports.contains(&port) && (is_of_host || self.addresses.contains(&address))
    }
}

impl Origin {
    /// Whether a reference may lead to an endpoint. A host name is checked when it is resolved: it may.
    pub(crate) fn may_reach(
        self,
        endpoint: &Endpoint,
        reach: &Reach,
        place: impl FnOnce() -> Place,
    ) -> bool {
        match (self, endpoint) {
            (Self::Own, _) => true,
            (_, Endpoint::Unix { .. } | Endpoint::SharedMemory { .. }) => false,
            (Self::Host, Endpoint::Tcp { .. } | Endpoint::Tls { .. }) => true,
            (Self::Network(_), Endpoint::Tcp { host, port } | Endpoint::Tls { host, port }) => {
                match address_of(host) {
                    None => true,
                    Some(address) => {
                        let place = place();
                        reach.permits(address, &place.networks) && !place.is_own(address, *port)
                    }
                }
            }
        }
    }
}

/// Whether an address leads to the own link alone. Clouds serve secrets of a machine at 169.254.169.254.
const fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// The address that a host is written as, without the scope of a link-local one.
fn address_of(host: &str) -> Option<IpAddr> {
    let (address, _) = host.split_once('%').unwrap_or((host, ""));
    address.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn of(address: &str) -> Origin {
        let address: IpAddr = address.parse().expect("an address");
        Caller::Tcp(SocketAddr::new(address, 7)).into()
    }

    fn stranger() -> Origin {
        of("198.51.100.7")
    }

    /// A host with two interfaces, whose ORB listens at port 2809.
    fn place(listening: &str) -> Place {
        let interfaces = [
            ("127.0.0.1", 8),
            ("10.1.0.5", 24),
            ("10.2.0.5", 24),
            ("fd00::5", 64),
            ("::1", 128),
        ];
        let interfaces = interfaces.map(|(own, prefix)| (own.parse().expect("it is one"), prefix));
        Place::new(&interfaces, &[listening.parse().expect("an endpoint")])
    }

    fn leads(origin: Origin, to: &str, reach: &str, listening: &str) -> bool {
        let reach = match reach {
            "" => Reach::default(),
            text => text.parse().expect("networks"),
        };
        let endpoint = to.parse().expect("an endpoint");
        origin.may_reach(&endpoint, &reach, || place(listening))
    }

    #[test]
    fn peer_of_the_network_leads_to_the_networks_in_which_the_orb_listens() {
        let to = |to, listening| leads(stranger(), to, "", listening);
        let near = "10.1.0.5:2809";
        assert!(to("10.1.0.77:9", near));
        assert!(!to("10.2.0.77:9", near));
        assert!(!to("192.0.2.1:9", near));
        assert!(to("10.2.0.77:9", "0.0.0.0:2809"));
        assert!(!to("[fd00::77]:9", "0.0.0.0:2809"));
        assert!(to("[fd00::77]:9", "[::]:2809") && to("10.2.0.77:9", "[::]:2809"));
        assert!(to("[::ffff:10.1.0.77]:9", near));
        // A name is checked once it is resolved.
        assert!(to("ship:9", near));
    }

    #[test]
    fn peer_of_the_network_never_leads_to_loopback_unless_a_network_contains_it() {
        for to in [
            "127.0.0.1:9",
            "127.8.8.8:9",
            "[::1]:9",
            "0.0.0.0:9",
            "[::]:9",
            "[::ffff:127.0.0.1]:9",
        ] {
            for reach in ["", "any", "0.0.0.0/32"] {
                assert!(
                    !leads(stranger(), to, reach, "0.0.0.0:2809"),
                    "{to} {reach}"
                );
            }
        }
        for to in [
            "169.254.169.254:80",
            "[fe80::1%eth0]:9",
            "[::ffff:169.254.9.9]:9",
        ] {
            assert!(!leads(stranger(), to, "any", "0.0.0.0:2809"), "{to}");
        }
        let listed = "any,169.254.0.0/16";
        assert!(leads(stranger(), "169.254.9.9:9", listed, ":2809"));
        assert!(leads(stranger(), "127.0.0.1:9", "127.0.0.0/8", ":2809"));
        assert!(leads(stranger(), "192.0.2.1:9", "any", ":2809"));
        assert!(leads(stranger(), "192.0.2.1:9", "192.0.2.0/24", ":2809"));
        assert!(!leads(stranger(), "192.0.3.1:9", "192.0.2.0/24", ":2809"));
    }

    #[test]
    fn peer_of_the_network_never_leads_back_to_the_orb_itself() {
        for own in ["10.1.0.5:2809", "10.2.0.5:2809", "[::ffff:10.2.0.5]:2809"] {
            assert!(!leads(stranger(), own, "any", "0.0.0.0:2809"), "{own}");
            let other = own.replace("2809", "2810");
            assert!(leads(stranger(), &other, "any", "0.0.0.0:2809"), "{other}");
        }
        assert!(!leads(stranger(), "127.0.0.1:2809", "127.0.0.0/8", ":2809"));
    }

    #[test]
    fn only_this_user_leads_to_unix_sockets_and_shared_memory() {
        let user = |uid| Origin::from(Caller::Unix(LocalProcess { uid, pid: 1 }));
        let own = deckwatch_os::process::effective_user();
        assert_eq!((user(own), user(0)), (Origin::Own, Origin::Own));
        assert_eq!(user(own.wrapping_add(1).max(1)), Origin::Host);
        for to in ["unix:/run/x", "shm:/run/x"] {
            assert!(leads(Origin::Own, to, "", ":2809"));
            assert!(!leads(of("127.0.0.1"), to, "any", ":2809"));
            assert!(!leads(stranger(), to, "any", ":2809"));
        }
        assert!(leads(of("127.0.0.1"), "127.0.0.1:9", "", ":2809"));
        assert!(leads(of("127.0.0.1"), "192.0.2.1:9", "", ":2809"));
        assert!(matches!(
            Caller::Unknown.into(),
            Origin::Network(Peer::Unknown)
        ));
    }

    #[test]
    fn text_that_is_no_network_says_which_part_and_what_was_meant() {
        let said = |text: &str| text.parse::<Reach>().expect_err(text).to_string();
        assert_eq!(
            said("any,10.1.2.3/16"),
            "'10.1.2.3/16' is no network: write 10.1.0.0/16, or the address alone"
        );
        assert!(said("ship").starts_with("'ship' is no network: write networks such as"));
        assert!(said("").contains("10.2.0.0/16"));
    }
}
