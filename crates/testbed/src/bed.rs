//! [`Testbed`]: hosts and a network with the lifetime of this value.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use deckwatch_os::namespace::{Capability, Namespace};
use deckwatch_os::process::effective_user;
use deckwatch_os::schedule;

use crate::TestbedError;
use crate::host::{Host, HostSpec, Place};
use crate::leftovers::{self, Standing, open};
use crate::limits::{HOSTS_MAX, KEPT_TESTBEDS_MAX, LINK_TRIES_MAX};
use crate::network::NetworkSpec;
use crate::owner::Owner;
use crate::port::{Port, Shapers, bind_waker};
use crate::recipe;
use crate::tool::Tool;

/// Hosts and the network between them, removed when dropped (unless [kept](Self::create_kept)).
///
/// Removal also kills the processes that still run on the hosts. A process that was killed leaves its testbed behind;
/// the next process's [`Self::clean_leftovers`] removes it.
#[derive(Debug)]
pub struct Testbed {
    network: NetworkSpec,
    hosts: Vec<Host>,
    stand: Stand,
}

/// The kind of the testbed.
#[derive(Debug)]
enum Stand {
    Namespaces(Switch),
    Loopback { reason: String },
}

/// The switch of an emulated network, and the guard that removes the namespaces.
#[derive(Debug)]
struct Switch {
    namespace: Namespace,
    /// Bound in the switch's namespace. Its frames test the links and wake the shapers of ports.
    waker: UdpSocket,
    _namespaces: Namespaces,
}

/// The kind of a testbed, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Environment {
    /// Each host has its own network namespace, on a shaped switch.
    Namespaces,
    /// Hosts are only addresses of the loopback interface.
    Loopback {
        /// The reason, as a complete sentence.
        reason: String,
    },
}

impl Testbed {
    /// Creates the hosts and the network. The hosts share the loopback interface for the network `loopback`, and
    /// without the privileges for namespaces (see [`Self::obstacle`]). Then [`Self::environment`] returns the reason.
    ///
    /// # Errors
    /// [`TestbedError::HostCount`], [`TestbedError::HostName`], [`TestbedError::HostTwice`],
    /// [`TestbedError::NoSuchProcessor`] for invalid hosts; [`TestbedError::ToolFailed`] and [`TestbedError::System`]
    /// when the system refuses. Nothing is left behind.
    pub fn create(network: &NetworkSpec, hosts: &[HostSpec]) -> Result<Self, TestbedError> {
        check(hosts)?;
        let reason = if network.rate_bits_per_s.is_none() {
            Some("The loopback network was asked for.".to_owned())
        } else {
            Self::obstacle()
        };
        match reason {
            Some(reason) => Ok(Self::on_loopback(network, hosts, reason)),
            None => Self::in_namespaces(Owner::this_process(), network, hosts)
                .map(|(testbed, _)| testbed),
        }
    }

    /// Creates a testbed that no process owns: it exists until [`Standing::take_down`].
    ///
    /// # Errors
    /// As [`Self::create`]; [`TestbedError::OnLoopback`] where that would use loopback.
    pub fn create_kept(
        network: &NetworkSpec,
        hosts: &[HostSpec],
    ) -> Result<Standing, TestbedError> {
        check(hosts)?;
        if network.rate_bits_per_s.is_none() {
            let reason = "The loopback network has none.".to_owned();
            return Err(TestbedError::OnLoopback { reason });
        }
        if let Some(reason) = Self::obstacle() {
            return Err(TestbedError::OnLoopback { reason });
        }
        let taken: BTreeSet<Owner> = leftovers::standing()
            .iter()
            .map(|found| found.owner)
            .collect();
        let owner = (0..KEPT_TESTBEDS_MAX)
            .map(Owner::nobody)
            .find(|owner| !taken.contains(owner))
            .ok_or(TestbedError::TooManyKept)?;
        let (mut testbed, namespaces) = Self::in_namespaces(owner, network, hosts)?;
        if let Stand::Namespaces(switch) = &mut testbed.stand {
            switch._namespaces.names.clear();
        }
        Ok(Standing {
            owner,
            hosts: hosts.iter().map(|host| host.name.clone()).collect(),
            namespaces,
        })
    }

    /// Returns why hosts cannot be namespaces here, as a complete sentence. Returns `None` if they can.
    #[must_use]
    pub fn obstacle() -> Option<String> {
        let needed = [Capability::SysAdmin, Capability::NetAdmin];
        if let Some(lacking) = needed
            .into_iter()
            .find(|capability| !capability.is_held_by_children())
        {
            let name = lacking.name();
            let remedy = if effective_user() == 0 {
                "this user is root, and the container withholds it: docker run --privileged"
            } else {
                "run as root, or with sudo"
            };
            return Some(format!(
                "Emulated hosts need the privilege {name} ({remedy})."
            ));
        }
        let absent = Tool::ALL.into_iter().find(|tool| tool.path().is_none())?;
        let (tool, package) = (absent.name(), absent.package());
        Some(format!(
            "Emulated hosts need `{tool}`: apt-get install {package}."
        ))
    }

    /// Removes the testbeds of processes that have ended, and returns them. Testbeds of living processes, and kept
    /// ones, stay.
    ///
    /// # Errors
    /// As [`Standing::take_down`].
    pub fn clean_leftovers() -> Result<Vec<Standing>, TestbedError> {
        leftovers::clean()
    }

    /// All testbeds on this machine.
    #[must_use]
    pub fn standing() -> Vec<Standing> {
        leftovers::standing()
    }

    /// Returns whether the hosts are namespaces or on loopback, and why.
    #[must_use]
    pub fn environment(&self) -> Environment {
        match &self.stand {
            Stand::Namespaces(_) => Environment::Namespaces,
            Stand::Loopback { reason } => Environment::Loopback {
                reason: reason.clone(),
            },
        }
    }

    /// The emulated network. On loopback it is the requested one, which is not emulated.
    #[must_use]
    pub const fn network(&self) -> &NetworkSpec {
        &self.network
    }

    /// The hosts, in the order of the request.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Returns the host with this name.
    ///
    /// # Errors
    /// [`TestbedError::NoSuchHost`].
    pub fn host(&self, name: &str) -> Result<&Host, TestbedError> {
        let found = self.hosts.iter().find(|host| host.name == name);
        found.ok_or_else(|| TestbedError::NoSuchHost {
            name: name.to_owned(),
        })
    }

    /// Returns the switch port through which frames reach that host; faults are injected there.
    ///
    /// # Errors
    /// [`TestbedError::NoSuchHost`], [`TestbedError::OnLoopback`]; [`TestbedError::System`] when no file descriptor is
    /// left.
    pub fn port(&self, host: &str) -> Result<Port, TestbedError> {
        let host = self.host(host)?;
        let on_loopback = |reason: &str| TestbedError::OnLoopback {
            reason: reason.to_owned(),
        };
        match (&self.stand, &host.place) {
            (Stand::Namespaces(switch), Place::Port { port, .. }) => {
                let shapers = Shapers::of(&self.network)
                    .ok_or_else(|| on_loopback("The network is not shaped."))?;
                let waker = switch.waker.try_clone();
                let waker =
                    waker.map_err(TestbedError::system("Opening a socket in the switch"))?;
                Ok(Port::new(switch.namespace.clone(), *port, shapers, waker))
            }
            (Stand::Loopback { reason }, _) => Err(on_loopback(reason)),
            (Stand::Namespaces(_), Place::Loopback) => {
                unreachable!("hosts stand where their testbed does")
            }
        }
    }

    fn on_loopback(network: &NetworkSpec, hosts: &[HostSpec], reason: String) -> Self {
        let block = std::process::id();
        let hosts = (1..).zip(hosts).map(|(number, host)| Host {
            name: host.name.clone(),
            address: loopback_address(block, number),
            processors: host.processors.clone(),
            place: Place::Loopback,
        });
        Self {
            network: network.clone(),
            hosts: hosts.collect(),
            stand: Stand::Loopback { reason },
        }
    }

    fn in_namespaces(
        owner: Owner,
        network: &NetworkSpec,
        hosts: &[HostSpec],
    ) -> Result<(Self, Vec<String>), TestbedError> {
        let names: Vec<String> = std::iter::once(owner.switch_name())
            .chain(hosts.iter().map(|host| owner.host_name(&host.name)))
            .collect();
        let words: Vec<&str> = names.iter().map(String::as_str).collect();
        let namespaces = Namespaces {
            names: names.clone(),
        };
        Tool::Ip.run(None, &["-batch", "-"], &recipe::namespaces(&words))?;
        let switch = make_switch(network, namespaces, &words)?;
        let hosts: Result<Vec<Host>, TestbedError> = (1..)
            .zip(hosts)
            .map(|(port, host)| {
                let namespace = open(&names[port])?;
                make_host(network, &namespace, port, hosts.len())?;
                Ok(Host {
                    name: host.name.clone(),
                    address: recipe::host_address(port),
                    processors: host.processors.clone(),
                    place: Place::Port {
                        name: names[port].clone(),
                        namespace,
                        port,
                    },
                })
            })
            .collect();
        let hosts = hosts?;
        for host in &hosts {
            wait_for_link(&switch, host)?;
        }
        let testbed = Self {
            network: network.clone(),
            hosts,
            stand: Stand::Namespaces(switch),
        };
        Ok((testbed, names))
    }
}

/// Namespaces that are removed on drop, with all processes inside.
#[derive(Debug)]
struct Namespaces {
    names: Vec<String>,
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // A drop cannot return an error. Namespaces that remain carry this process's id; the next `clean` removes them.
        let _ = leftovers::remove_namespaces(&self.names);
    }
}

fn check(hosts: &[HostSpec]) -> Result<(), TestbedError> {
    if !(1..=HOSTS_MAX).contains(&hosts.len()) {
        return Err(TestbedError::HostCount { count: hosts.len() });
    }
    let allowed =
        schedule::affinity().map_err(TestbedError::system("Asking for the processors"))?;
    let mut names = BTreeSet::new();
    for host in hosts {
        host.check(&allowed)?;
        if !names.insert(&host.name) {
            let name = host.name.clone();
            return Err(TestbedError::HostTwice { name });
        }
    }
    Ok(())
}

fn make_switch(
    network: &NetworkSpec,
    namespaces: Namespaces,
    names: &[&str],
) -> Result<Switch, TestbedError> {
    let count = names.len() - 1;
    let namespace = open(names[0])?;
    let inside = Some(&namespace);
    Tool::Ip.run(
        inside,
        &["-batch", "-"],
        &recipe::switch_links(network, &names[1..]),
    )?;
    let shapers: String = (1..=count)
        .map(|port| recipe::shaper(network, &recipe::port_name(port)))
        .collect();
    Tool::Tc.run(inside, &["-batch", "-"], &shapers)?;
    Tool::Bridge.run(inside, &["-batch", "-"], &recipe::switch_addresses(count))?;
    Tool::Nft.run(inside, &["-f", "-"], &recipe::switch_filter(count))?;
    for port in 1..=count {
        Tool::Ethtool.run(inside, &recipe::offloads_off(&recipe::port_name(port)), "")?;
    }
    let waker = bind_waker(&namespace)?;
    Ok(Switch {
        namespace,
        waker,
        _namespaces: namespaces,
    })
}

fn make_host(
    network: &NetworkSpec,
    namespace: &Namespace,
    port: usize,
    count: usize,
) -> Result<(), TestbedError> {
    let inside = Some(namespace);
    Tool::Ethtool.run(inside, &recipe::offloads_off(recipe::INTERFACE), "")?;
    let links = recipe::front_link(network) + &recipe::host_links(port, count);
    Tool::Ip.run(inside, &["-batch", "-"], &links)?;
    let queues = recipe::shaper(network, recipe::INTERFACE) + &recipe::front_copies();
    Tool::Tc.run(inside, &["-batch", "-"], &queues)?;
    Ok(())
}

/// Waits until frames pass from the switch to the host and back. The kernel starts a new interface's queue some time
/// after it reports that the interface is up; frames sent before are dropped silently.
fn wait_for_link(switch: &Switch, host: &Host) -> Result<(), TestbedError> {
    let refused = || TestbedError::system(format!("Waiting for the link of host `{}`", host.name));
    let bind = || UdpSocket::bind((host.address, 0));
    let there = host
        .namespace()
        .map_or_else(|| Ok(bind()), |namespace| namespace.run_inside(bind));
    let there = there.and_then(|bound| bound).map_err(refused())?;
    let here = &switch.waker;
    let (here_address, there_address) = here
        .local_addr()
        .and_then(|here| Ok((here, there.local_addr()?)))
        .map_err(refused())?;
    let asked = (0..LINK_TRIES_MAX).any(|_| passes(&there, here, here_address));
    if asked && (0..LINK_TRIES_MAX).any(|_| passes(here, &there, there_address)) {
        return Ok(());
    }
    Err(refused()(std::io::ErrorKind::TimedOut.into()))
}

/// Returns true if a datagram from one socket reaches the other within [`LINK_TRY`].
fn passes(from: &UdpSocket, to: &UdpSocket, address: SocketAddr) -> bool {
    let passed = to
        .set_read_timeout(Some(LINK_TRY))
        .and_then(|()| from.send_to(&[0], address))
        .and_then(|_| Ok(to.recv_from(&mut [0])?.1 == from.local_addr()?));
    // A late datagram from a host tested before does not count.
    passed.unwrap_or(false)
}

/// The time that one datagram may take on an idle link; the whole wait is [`LINK_TRIES_MAX`] times that.
const LINK_TRY: Duration = Duration::from_millis(10);

/// Returns an address of 127.0.0.0/8 for each host. Two processes get different addresses if their ids differ in the
/// last 14 bits.
fn loopback_address(process: u32, number: u8) -> Ipv4Addr {
    let [_, _, high, low] = process.to_be_bytes();
    Ipv4Addr::new(127, 64 | (high & 0x3f), low, number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::preset;

    #[test]
    fn hosts_on_loopback_have_addresses_of_their_own_and_a_reason() {
        let hosts = [HostSpec::new("RTS"), HostSpec::new("SONAR").on([0])];
        let testbed = Testbed::create(&preset("loopback").unwrap(), &hosts).unwrap();
        assert!(
            matches!(testbed.environment(), Environment::Loopback { reason } if reason.contains("loopback"))
        );
        let addresses: BTreeSet<Ipv4Addr> = testbed.hosts().iter().map(Host::address).collect();
        assert_eq!(addresses.len(), 2);
        assert!(addresses.iter().all(Ipv4Addr::is_loopback));
        for address in addresses {
            UdpSocket::bind((address, 0)).unwrap();
        }
        assert!(testbed.host("RTS").unwrap().namespace().is_none());
        assert!(testbed.host("RADAR").is_err());
    }

    #[test]
    fn faults_on_loopback_are_refused_with_the_reason() {
        let testbed = Testbed::create(&preset("loopback").unwrap(), &[HostSpec::new("A")]).unwrap();
        let error = testbed.port("A").unwrap_err();
        assert!(error.to_string().contains("was asked for"), "{error}");
        assert!(matches!(
            testbed.port("B"),
            Err(TestbedError::NoSuchHost { .. })
        ));
    }

    #[test]
    fn hosts_that_cannot_be_are_refused_before_anything_is_made() {
        let network = preset("fast-ethernet").unwrap();
        let twice = [HostSpec::new("A"), HostSpec::new("A")];
        assert!(matches!(
            Testbed::create(&network, &twice),
            Err(TestbedError::HostTwice { .. })
        ));
        assert!(matches!(
            Testbed::create(&network, &[]),
            Err(TestbedError::HostCount { count: 0 })
        ));
        let many: Vec<HostSpec> = (0..=HOSTS_MAX)
            .map(|i| HostSpec::new(format!("h{i}")))
            .collect();
        assert!(matches!(
            Testbed::create(&network, &many),
            Err(TestbedError::HostCount { .. })
        ));
    }
}
