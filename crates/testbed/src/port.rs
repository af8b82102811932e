//! [`Port`]: the switch port that sends to one host, and the faults that it can inject: holding frames back, or losing
//! some.

use std::net::UdpSocket;
use std::num::NonZeroU32;

use deckwatch_os::namespace::Namespace;

use crate::TestbedError;
use crate::network::NetworkSpec;
use crate::recipe;
use crate::relay::control::{Answer, Control, Order};
use crate::tool::Tool;

/// The port of an emulated network's switch through which frames reach one host. [`crate::Testbed::port`] returns it;
/// [`crate::Standing::port`] returns it in any process that may enter namespaces. A port keeps its state until a
/// command from any process changes it.
#[derive(Debug)]
pub struct Port {
    switch: Namespace,
    /// Counted from 1.
    number: usize,
    means: Means,
}

/// What carries out the orders to a port.
#[derive(Debug)]
pub(crate) enum Means {
    /// The kernel.
    Shaper {
        shapers: Shapers,
        /// Bound in the switch's namespace; frames that it sends to the port's decoy wake the shaper.
        waker: UdpSocket,
    },
    /// The relay of the switch.
    Relay(Control),
}

/// Arguments for `tc` after `tbf`: for the network's rate, and for a held port. The alias of a port stores both, so
/// that other processes can read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shapers {
    flowing: String,
    still: String,
}

impl Port {
    pub(crate) const fn new(switch: Namespace, number: usize, means: Means) -> Self {
        Self {
            switch,
            number,
            means,
        }
    }

    /// Returns the port with this number, of a switch that another process has created.
    pub(crate) fn find(switch: Namespace, number: usize) -> Result<Self, TestbedError> {
        let name = recipe::port_name(number);
        let answer = Tool::Ip.run(Some(&switch), &["-j", "link", "show", "dev", &name], "")?;
        let alias = alias(&answer);
        if alias.as_deref() == Some(recipe::RELAY_ALIAS) {
            let control = Control::open(&switch)?;
            return Ok(Self::new(switch, number, Means::Relay(control)));
        }
        let shapers = alias.and_then(|alias| Shapers::parse(&alias));
        let shapers = shapers.ok_or_else(|| TestbedError::ToolFailed {
            command: format!("ip -j link show dev {name}"),
            speech: format!("the port does not say how it is shaped: {answer}"),
        })?;
        let waker = bind_waker(&switch)?;
        Ok(Self::new(switch, number, Means::Shaper { shapers, waker }))
    }

    /// Holds back every frame to the host until [`Self::release`]. When this returns, the hold is in effect. Frames
    /// that reach the port from now on are queued there, up to the network's `queue_frames` in each priority; none is
    /// lost below that.
    ///
    /// Implementation: a relay does so itself. A port's shaper is changed to one that has credit for one frame and then earns none for
    /// minutes. A frame to an address behind the port that no host has takes that credit. Changing a shaper keeps the
    /// frames queued above it.
    ///
    /// # Errors
    /// [`TestbedError::ToolFailed`], [`TestbedError::ToolAbsent`], [`TestbedError::System`].
    pub fn hold(&self) -> Result<(), TestbedError> {
        match &self.means {
            Means::Shaper { shapers, waker } => self.change_shaper(&shapers.still, waker),
            Means::Relay(control) => control.ask(&Order::Hold { host: self.host() }).map(drop),
        }
    }

    /// Releases the frames to the host, in their order and at the network's rate.
    ///
    /// Implementation: a relay does so itself. A port's shaper is changed back. That alone does not wake the shaper; another frame that no
    /// host receives does.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub fn release(&self) -> Result<(), TestbedError> {
        match &self.means {
            Means::Shaper { shapers, waker } => self.change_shaper(&shapers.flowing, waker),
            Means::Relay(control) => control.ask(&Order::Release { host: self.host() }).map(drop),
        }
    }

    /// From now on drops the first frame to the host and every `every_nth` after it. Frames of all kinds count,
    /// acknowledgements too.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub fn lose_every(&self, every_nth: NonZeroU32) -> Result<(), TestbedError> {
        self.filter(Some(every_nth))
    }

    /// From now on drops none of the frames to the host.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub fn lose_none(&self) -> Result<(), TestbedError> {
        self.filter(None)
    }

    /// Returns how many frames to the host were dropped on request, since the testbed was created.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub fn lost_count(&self) -> Result<u64, TestbedError> {
        if let Means::Relay(control) = &self.means {
            let Answer::Count(counts) = control.ask(&Order::Count { host: self.host() })? else {
                return Ok(0);
            };
            return Ok(counts.lost_on_purpose);
        }
        let name = recipe::port_name(self.number);
        let words = ["-j", "list", "counter", "bridge", recipe::TABLE, &name];
        let answer = Tool::Nft.run(Some(&self.switch), &words, "")?;
        counted_packets(&answer).ok_or_else(|| TestbedError::ToolFailed {
            command: format!("nft {}", words.join(" ")),
            speech: format!("no count in its answer: {answer}"),
        })
    }

    fn filter(&self, every_nth: Option<NonZeroU32>) -> Result<(), TestbedError> {
        if let Means::Relay(control) = &self.means {
            let order = Order::Lose {
                host: self.host(),
                every: every_nth,
            };
            return control.ask(&order).map(drop);
        }
        let script = recipe::losses(self.number, every_nth.map(NonZeroU32::get));
        Tool::Nft
            .run(Some(&self.switch), &["-f", "-"], &script)
            .map(drop)
    }

    /// The number of the host, counted from 0.
    const fn host(&self) -> usize {
        self.number - 1
    }

    fn change_shaper(&self, shaper: &str, waker: &UdpSocket) -> Result<(), TestbedError> {
        let name = recipe::port_name(self.number);
        let words = format!("qdisc change dev {name} root handle 1: tbf {shaper}\n");
        Tool::Tc.run(Some(&self.switch), &["-batch", "-"], &words)?;
        let decoy = (recipe::decoy_address(self.number), DISCARD_PORT);
        let woken = waker.send_to(&[0], decoy);
        woken
            .map(drop)
            .map_err(TestbedError::system("Waking a port of the switch"))
    }
}

impl Shapers {
    /// Returns `None` on loopback, where nothing is shaped.
    pub(crate) fn of(network: &NetworkSpec) -> Option<Self> {
        Some(Self {
            flowing: network.shaper()?,
            still: network.standstill()?,
        })
    }

    pub(crate) fn alias(&self) -> String {
        format!("{}{SEPARATOR}{}", self.flowing, self.still)
    }

    fn parse(alias: &str) -> Option<Self> {
        let (flowing, still) = alias.split_once(SEPARATOR)?;
        Some(Self {
            flowing: flowing.to_owned(),
            still: still.to_owned(),
        })
    }
}

/// Binds the socket that sends frames to decoys.
pub(crate) fn bind_waker(switch: &Namespace) -> Result<UdpSocket, TestbedError> {
    switch
        .run_inside(|| UdpSocket::bind((recipe::SWITCH_ADDRESS, 0)))
        .and_then(|bound| bound)
        .map_err(TestbedError::system("Opening a socket in the switch"))
}

/// Separates the two shapers in an alias.
const SEPARATOR: &str = "; held: ";

/// The port of the discard service (RFC 863). No host has the decoy's address, so no process listens there.
const DISCARD_PORT: u16 = 9;

fn alias(answer: &str) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_str(answer).ok()?;
    Some(answer.get(0)?.get("ifalias")?.as_str()?.to_owned())
}

fn counted_packets(answer: &str) -> Option<u64> {
    let answer: serde_json::Value = serde_json::from_str(answer).ok()?;
    let objects = answer.get("nftables")?.as_array()?;
    objects
        .iter()
        .find_map(|object| object.get("counter")?.get("packets")?.as_u64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::PRESETS;

    #[test]
    fn the_count_is_found_in_the_filters_answer() {
        let answer = r#"{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"counter": {"family": "bridge", "packets": 12, "bytes": 34}}]}"#;
        assert_eq!(counted_packets(answer), Some(12));
        assert_eq!(counted_packets("{}"), None);
    }

    #[test]
    fn a_port_says_in_its_alias_how_it_is_shaped() {
        for entry in &PRESETS {
            let Some(shapers) = Shapers::of(&entry.spec()) else {
                assert_eq!(entry.name, "loopback");
                continue;
            };
            // IFALIASZ of the kernel, including the terminating zero.
            assert!(shapers.alias().len() < 256, "{}", shapers.alias());
            assert_eq!(Shapers::parse(&shapers.alias()), Some(shapers));
        }
        let answer = r#"[{"ifindex":2,"ifname":"p1","ifalias":"rate 1bit; held: rate 2bit"}]"#;
        let still = Shapers::parse(&alias(answer).unwrap()).unwrap().still;
        assert_eq!(still, "rate 2bit");
        assert_eq!(alias(r#"[{"ifname":"p1"}]"#), None);
    }
}
