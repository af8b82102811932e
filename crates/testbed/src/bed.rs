//! [`Testbed`]: hosts and a network with the lifetime of this value.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use deckwatch_os::isolate::{isolate, may_isolate};
use deckwatch_os::namespace::{Capability, start_time_of_process};
use deckwatch_os::process::effective_user;
use deckwatch_os::schedule;

use crate::TestbedError;
use crate::host::{Host, HostSpec, Place};
use crate::leftovers::{self, Standing, open};
use crate::limits::{HOSTS_MAX, KEPT_TESTBEDS_MAX};
use crate::network::NetworkSpec;
use crate::owner::Owner;
use crate::port::Port;
use crate::recipe;
use crate::relay::driver::RelayState;
use crate::relay::process::RelayProgram;
use crate::switch::{Namespaces, Switch, Wiring};
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

/// Whether this process has moved into a user namespace of its own.
static IS_ISOLATED: AtomicBool = AtomicBool::new(false);

/// The kind of the testbed.
#[derive(Debug)]
enum Stand {
    Namespaces(Switch),
    Loopback { reason: String },
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
        Self::create_by(&RelayProgram::this()?, network, hosts)
    }

    /// As [`Self::create`]; another program carries the frames of a relay.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_by(
        program: &RelayProgram,
        network: &NetworkSpec,
        hosts: &[HostSpec],
    ) -> Result<Self, TestbedError> {
        check(hosts)?;
        let reason = if network.rate_bits_per_s.is_none() {
            Some("The loopback network was asked for.".to_owned())
        } else {
            Self::obstacle()
        };
        match reason {
            Some(reason) => Ok(Self::on_loopback(network, hosts, reason)),
            None => Self::in_namespaces(Owner::this_process(), network, hosts, program)
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
        let (mut testbed, namespaces) =
            Self::in_namespaces(owner, network, hosts, &RelayProgram::this()?)?;
        if let Stand::Namespaces(switch) = &mut testbed.stand {
            switch.keep();
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
        if let Some(lacking) = lacking() {
            let name = lacking.name();
            let remedy = if effective_user() == 0 {
                "this user is root, and the container withholds it: docker run --privileged"
            } else {
                "run as root, with sudo, or where the kernel lets users make namespaces"
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

    /// Moves this process into a user namespace of its own, if it may not emulate hosts otherwise and the kernel allows
    /// that. There it may, but reaches no other network. Call it before the process has other threads. Returns true if
    /// the process has moved.
    ///
    /// # Errors
    /// [`TestbedError::System`], [`TestbedError::ToolFailed`] if it has moved and cannot emulate hosts there either.
    pub fn isolate_if_needed() -> Result<bool, TestbedError> {
        if !Self::will_isolate() {
            return Ok(false);
        }
        isolate().map_err(TestbedError::system("Making a user namespace"))?;
        IS_ISOLATED.store(true, Relaxed);
        // The stamps of the kernel are asked for on it.
        Tool::Ip.run(None, &["link", "set", "lo", "up"], "")?;
        Ok(true)
    }

    /// Whether [`Self::isolate_if_needed`] would move this process now. Tries it in a child.
    #[must_use]
    pub fn will_isolate() -> bool {
        let tools = Tool::ALL.into_iter().all(|tool| tool.path().is_some());
        lacking().is_some() && tools && may_isolate()
    }

    /// Whether [`Self::isolate_if_needed`] has moved this process.
    pub(crate) fn is_isolated() -> bool {
        IS_ISOLATED.load(Relaxed)
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
            (Stand::Namespaces(switch), Place::Port { port, .. }) => switch.port(*port),
            (Stand::Loopback { reason }, _) => Err(on_loopback(reason)),
            (Stand::Namespaces(_), Place::Loopback) => {
                unreachable!("hosts stand where their testbed does")
            }
        }
    }

    /// The process that carries the frames of a relayed network.
    #[must_use]
    pub fn relay_process(&self) -> Option<u32> {
        match &self.stand {
            Stand::Namespaces(switch) => switch.relay_process(),
            Stand::Loopback { .. } => None,
        }
    }

    /// Returns what the relay has done, and where all frames went. Returns `None` without a relay.
    ///
    /// # Errors
    /// [`TestbedError::System`] if the relay does not answer.
    pub fn relay_state(&self) -> Result<Option<RelayState>, TestbedError> {
        match &self.stand {
            Stand::Namespaces(switch) => switch.relay_state(),
            Stand::Loopback { .. } => Ok(None),
        }
    }

    /// Returns how many frames full queues of the network have dropped since the testbed was created: those of the
    /// switch's ports, or of all lines of a relay. What a host's own interface drops is not among them: its sender
    /// gets an error. On loopback there are none.
    ///
    /// # Errors
    /// [`TestbedError::ToolFailed`], or [`TestbedError::System`] if the relay does not answer.
    pub fn queue_drops(&self) -> Result<u64, TestbedError> {
        match &self.stand {
            Stand::Namespaces(switch) => switch.queue_drops(),
            Stand::Loopback { .. } => Ok(0),
        }
    }

    /// Checks that frames still pass.
    ///
    /// # Errors
    /// [`TestbedError::RelayEnded`].
    pub fn check(&self) -> Result<(), TestbedError> {
        let ended = |process| start_time_of_process(process).is_none();
        if self.relay_process().is_some_and(ended) {
            return Err(TestbedError::RelayEnded);
        }
        Ok(())
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
        program: &RelayProgram,
    ) -> Result<(Self, Vec<String>), TestbedError> {
        let known: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
        let wiring = Wiring::new(network, &known)?;
        let names: Vec<String> = std::iter::once(owner.switch_name())
            .chain(hosts.iter().map(|host| owner.host_name(&host.name)))
            .collect();
        let words: Vec<&str> = names.iter().map(String::as_str).collect();
        let namespaces = Namespaces {
            names: names.clone(),
        };
        Tool::Ip.run(None, &["-batch", "-"], &recipe::namespaces(&words))?;
        let switch = wiring.make_switch(namespaces, !owner.is_kept(), program)?;
        let hosts: Result<Vec<Host>, TestbedError> = names[1..]
            .iter()
            .zip(&wiring.ports)
            .zip(hosts)
            .map(|((name, &port), host)| {
                let namespace = open(name)?;
                wiring.make_host(&namespace, port)?;
                Ok(Host {
                    name: host.name.clone(),
                    address: recipe::host_address(port),
                    processors: host.processors.clone(),
                    place: Place::Port {
                        name: name.clone(),
                        namespace,
                        port,
                    },
                })
            })
            .collect();
        let hosts = hosts?;
        for host in &hosts {
            switch.wait_for_link(host)?;
        }
        let testbed = Self {
            network: network.clone(),
            hosts,
            stand: Stand::Namespaces(switch),
        };
        Ok((testbed, names))
    }
}

/// Returns a privilege that emulated hosts need and this process's children lack.
fn lacking() -> Option<Capability> {
    let needed = [Capability::SysAdmin, Capability::NetAdmin];
    needed
        .into_iter()
        .find(|capability| !capability.is_held_by_children())
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

/// Returns an address of 127.0.0.0/8 for each host. Two processes get different addresses if their ids differ in the
/// last 14 bits.
fn loopback_address(process: u32, number: u8) -> Ipv4Addr {
    let [_, _, high, low] = process.to_be_bytes();
    Ipv4Addr::new(127, 64 | (high & 0x3f), low, number)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

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
