//! The switch of a testbed: a bridge with shapers, or a relay.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use deckwatch_os::namespace::Namespace;

use crate::TestbedError;
use crate::host::Host;
use crate::layout::Layout;
use crate::leftovers::{self, open};
use crate::limits::LINK_TRIES_MAX;
use crate::network::{Emulation, NetworkSpec};
use crate::port::{Means, Port, Shapers, bind_waker};
use crate::recipe;
use crate::relay::control::{Answer, Control, Order};
use crate::relay::driver::{RelayPlan, RelayState};
use crate::relay::process::{RelayProcess, RelayProgram};
use crate::tool::Tool;

/// The switch of an emulated network, and the guard that removes the namespaces.
#[derive(Debug)]
pub(crate) struct Switch {
    pub(crate) namespace: Namespace,
    // Dropped before the namespaces, in which it runs.
    kind: Kind,
    pub(crate) namespaces: Namespaces,
}

#[derive(Debug)]
enum Kind {
    Bridge {
        /// Bound in the switch's namespace. Its frames test the links and wake the shapers of ports.
        waker: UdpSocket,
        shapers: Shapers,
    },
    Relay(Option<RelayProcess>),
}

/// Namespaces that are removed on drop, with all processes inside.
#[derive(Debug)]
pub(crate) struct Namespaces {
    pub(crate) names: Vec<String>,
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // A drop cannot return an error. Namespaces that remain carry this process's id; the next `clean` removes them.
        let _ = leftovers::remove_namespaces(&self.names);
    }
}

/// What is the same for all hosts of a testbed: the network, and the ports.
pub(crate) struct Wiring<'n> {
    network: &'n NetworkSpec,
    /// With a relay.
    layout: Option<Layout>,
    /// The number of each host's port, counted from 1.
    pub(crate) ports: Vec<usize>,
    /// Ports of the whole network.
    count: usize,
}

impl<'n> Wiring<'n> {
    /// # Errors
    /// [`TestbedError::NoSuchHost`] for a host that the layout does not have, [`TestbedError::Layout`].
    pub(crate) fn new(network: &'n NetworkSpec, hosts: &[String]) -> Result<Self, TestbedError> {
        if network.emulation == Emulation::Shaper && network.layout.is_none() {
            return Ok(Self {
                network,
                layout: None,
                ports: (1..=hosts.len()).collect(),
                count: hosts.len(),
            });
        }
        let layout = network.layout_for(hosts.to_vec());
        let layout = layout.unwrap_or_else(|| unreachable!("loopback has no switch"));
        layout.check()?;
        let port = |host: &String| {
            let found = layout.hosts.iter().position(|name| name == host);
            let name = host.clone();
            found
                .map(|index| index + 1)
                .ok_or(TestbedError::NoSuchHost { name })
        };
        Ok(Self {
            network,
            ports: hosts.iter().map(port).collect::<Result<_, _>>()?,
            count: layout.hosts.len(),
            layout: Some(layout),
        })
    }

    /// Makes the switch in the first of these namespaces, with a port for each of the others.
    pub(crate) fn make_switch(
        &self,
        namespaces: Namespaces,
        ends_with_input: bool,
        program: &RelayProgram,
    ) -> Result<Switch, TestbedError> {
        let names = namespaces.names.clone();
        let namespace = open(&names[0])?;
        let hosts: Vec<&str> = names[1..].iter().map(String::as_str).collect();
        let kind = match &self.layout {
            None => self.make_bridge(&namespace, &hosts)?,
            Some(layout) => {
                let plan = RelayPlan {
                    layout: layout.clone(),
                    seed: self.network.seed,
                    spins: self.network.emulation == Emulation::SpinningRelay,
                    ends_with_input,
                };
                self.make_relay(&namespace, &hosts, program, &plan)?
            }
        };
        Ok(Switch {
            namespace,
            kind,
            namespaces,
        })
    }

    fn make_bridge(&self, namespace: &Namespace, hosts: &[&str]) -> Result<Kind, TestbedError> {
        let inside = Some(namespace);
        let batch = ["-batch", "-"];
        let links = recipe::switch_links(self.network, hosts);
        Tool::Ip.run(inside, &batch, &links)?;
        let ports = 1..=self.count;
        let shaper = |port| recipe::shaper(self.network, &recipe::port_name(port));
        let shapers: String = ports.clone().map(shaper).collect();
        Tool::Tc.run(inside, &batch, &shapers)?;
        Tool::Bridge.run(inside, &batch, &recipe::switch_addresses(self.count))?;
        Tool::Nft.run(inside, &["-f", "-"], &recipe::switch_filter(self.count))?;
        for port in ports {
            Tool::Ethtool.run(inside, &recipe::offloads_off(&recipe::port_name(port)), "")?;
        }
        let shapers = Shapers::of(self.network);
        Ok(Kind::Bridge {
            waker: bind_waker(namespace)?,
            shapers: shapers.unwrap_or_else(|| unreachable!("loopback has no switch")),
        })
    }

    fn make_relay(
        &self,
        namespace: &Namespace,
        hosts: &[&str],
        program: &RelayProgram,
        plan: &RelayPlan,
    ) -> Result<Kind, TestbedError> {
        let inside = Some(namespace);
        let behind: Vec<(usize, &str)> = self.ports.iter().copied().zip(hosts.to_vec()).collect();
        let links = recipe::relay_links(plan.layout.mtu_bytes(), &behind);
        Tool::Ip.run(inside, &["-batch", "-"], &links)?;
        for port in &self.ports {
            Tool::Ethtool.run(inside, &recipe::offloads_off(&recipe::port_name(*port)), "")?;
        }
        let process = RelayProcess::start(program, namespace, plan)?;
        Ok(Kind::Relay(Some(process)))
    }

    /// Makes the interfaces of the host at a port.
    pub(crate) fn make_host(&self, namespace: &Namespace, port: usize) -> Result<(), TestbedError> {
        let inside = Some(namespace);
        let own = self.layout.as_ref().and_then(|layout| {
            let link = layout.link_of(port - 1)?;
            let mut own = self.network.of_link(&link.spec);
            own.mtu_bytes = layout.mtu_bytes();
            Some(own)
        });
        let network = own.as_ref().unwrap_or(self.network);
        if own.is_some() {
            Tool::Ethtool.run(inside, &recipe::checksums_on(recipe::INTERFACE), "")?;
        } else {
            Tool::Ethtool.run(inside, &recipe::offloads_off(recipe::INTERFACE), "")?;
        }
        let links = recipe::front_link(network) + &recipe::host_links(port, self.count);
        Tool::Ip.run(inside, &["-batch", "-"], &links)?;
        let queues = recipe::shaper(network, recipe::INTERFACE) + &recipe::front_copies();
        Tool::Tc.run(inside, &["-batch", "-"], &queues)?;
        Ok(())
    }
}

impl Switch {
    /// Returns the port with this number, counted from 1.
    pub(crate) fn port(&self, number: usize) -> Result<Port, TestbedError> {
        let means = match &self.kind {
            Kind::Bridge { waker, shapers } => {
                let opening = TestbedError::system("Opening a socket in the switch");
                Means::Shaper {
                    shapers: shapers.clone(),
                    waker: waker.try_clone().map_err(opening)?,
                }
            }
            Kind::Relay(_) => Means::Relay(Control::open(&self.namespace)?),
        };
        Ok(Port::new(self.namespace.clone(), number, means))
    }

    /// Lets the switch live on without its owner.
    pub(crate) fn keep(&mut self) {
        self.namespaces.names.clear();
        if let Kind::Relay(process) = &mut self.kind
            && let Some(process) = process.take()
        {
            process.keep();
        }
    }

    /// The process of its relay.
    pub(crate) fn relay_process(&self) -> Option<u32> {
        match &self.kind {
            Kind::Relay(process) => process.as_ref().map(RelayProcess::id),
            Kind::Bridge { .. } => None,
        }
    }

    /// What its relay has done.
    pub(crate) fn relay_state(&self) -> Result<Option<RelayState>, TestbedError> {
        if let Kind::Bridge { .. } = self.kind {
            return Ok(None);
        }
        match Control::open(&self.namespace)?.ask(&Order::State)? {
            Answer::State(state) => Ok(Some(state)),
            _ => Ok(None),
        }
    }

    /// Frames that full queues of the network have dropped, without those of the hosts' own interfaces.
    pub(crate) fn queue_drops(&self) -> Result<u64, TestbedError> {
        if let Some(state) = self.relay_state()? {
            return Ok(state.ledger.lines.queue_full);
        }
        let words = ["-s", "-j", "qdisc", "show"];
        let answer = Tool::Tc.run(Some(&self.namespace), &words, "")?;
        shaper_drops(&answer).ok_or_else(|| TestbedError::ToolFailed {
            command: format!("tc {}", words.join(" ")),
            speech: format!("no count in its answer: {answer}"),
        })
    }

    /// Waits until frames pass from the switch to the host and back. The kernel starts a new interface's queue some
    /// time after it reports that the interface is up; frames sent before are dropped silently.
    pub(crate) fn wait_for_link(&self, host: &Host) -> Result<(), TestbedError> {
        let refused =
            || TestbedError::system(format!("Waiting for the link of host `{}`", host.name));
        let bind = || UdpSocket::bind((host.address, 0));
        let there = host
            .namespace()
            .map_or_else(|| Ok(bind()), |namespace| namespace.run_inside(bind));
        let there = there.and_then(|bound| bound).map_err(refused())?;
        let passed = match &self.kind {
            Kind::Bridge { waker, .. } => {
                let (here_address, there_address) = waker
                    .local_addr()
                    .and_then(|here| Ok((here, there.local_addr()?)))
                    .map_err(refused())?;
                let to = |from, to, address, sender| {
                    (0..LINK_TRIES_MAX).any(|_| passes(from, to, address, sender))
                };
                to(&there, waker, here_address, there_address)
                    && to(waker, &there, there_address, here_address)
            }
            // The relay returns the datagram.
            Kind::Relay(_) => {
                let echo = (recipe::SWITCH_ADDRESS, recipe::ECHO_PORT).into();
                (0..LINK_TRIES_MAX).any(|_| passes(&there, &there, echo, echo))
            }
        };
        if passed {
            return Ok(());
        }
        Err(refused()(std::io::ErrorKind::TimedOut.into()))
    }
}

/// The drops of the shapers in the answer of `tc`. A shaper counts what the queues under it drop.
fn shaper_drops(answer: &str) -> Option<u64> {
    let answer: serde_json::Value = serde_json::from_str(answer).ok()?;
    let queues = answer.as_array()?.iter();
    let shapers = queues.filter(|queue| queue.get("kind").is_some_and(|kind| kind == "tbf"));
    shapers
        .map(|shaper| shaper.get("drops")?.as_u64())
        .sum::<Option<u64>>()
}

/// Returns true if a datagram to `address` from one socket reaches the other, which gets it from `sender`, within
/// [`LINK_TRY`].
fn passes(from: &UdpSocket, to: &UdpSocket, address: SocketAddr, sender: SocketAddr) -> bool {
    let passed = to
        .set_read_timeout(Some(LINK_TRY))
        .and_then(|()| from.send_to(&[0], address))
        .and_then(|_| Ok(to.recv_from(&mut [0])?.1 == sender));
    // A late datagram from a host tested before does not count.
    passed.unwrap_or(false)
}

/// The time that one datagram may take on an idle link; the whole wait is [`LINK_TRIES_MAX`] times that.
const LINK_TRY: Duration = Duration::from_millis(10);
