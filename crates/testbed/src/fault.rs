//! Faults of the network on request: a port that holds its frames back, and one that loses some.

use std::num::NonZeroU32;

use crate::TestbedError;
use crate::bed::{Stand, Switch, Testbed};
use crate::host::{Host, Place};
use crate::recipe;
use crate::tool::Tool;

impl Testbed {
    /// Holds back every frame to that host until [`Self::release`]. When this returns the hold is in effect: frames that reach the port from now on
    /// wait there, up to the network's `queue_frames` in each priority, and none is lost before.
    ///
    /// How: the port's shaper is changed to one that has credit for one frame and then earns none for minutes; a frame to an address behind
    /// the port that no host has takes that credit. Changing a shaper keeps what waits above it.
    ///
    /// # Errors
    /// [`TestbedError::NoSuchHost`], [`TestbedError::OnLoopback`], [`TestbedError::ToolFailed`].
    pub fn hold(&self, host: &str) -> Result<(), TestbedError> {
        let (switch, port) = self.port_of(host)?;
        self.change_shaper(switch, port, self.network.standstill())
    }

    /// Lets the frames to that host flow again, in their order and at the network's rate.
    ///
    /// How: the port's shaper is changed back, which alone would not wake it; another frame that no host receives does.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub fn release(&self, host: &str) -> Result<(), TestbedError> {
        let (switch, port) = self.port_of(host)?;
        self.change_shaper(switch, port, self.network.shaper())
    }

    /// From now on loses, of the frames to that host, the first and every `every_nth` after it. Frames of all kinds count, acknowledgements too.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub fn lose_every(&self, host: &str, every_nth: NonZeroU32) -> Result<(), TestbedError> {
        let (switch, port) = self.port_of(host)?;
        let script = recipe::losses(port, Some(every_nth.get()));
        Tool::Nft
            .run(Some(&switch.namespace), &["-f", "-"], &script)
            .map(drop)
    }

    /// From now on loses none of the frames to that host.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub fn lose_none(&self, host: &str) -> Result<(), TestbedError> {
        let (switch, port) = self.port_of(host)?;
        let script = recipe::losses(port, None);
        Tool::Nft
            .run(Some(&switch.namespace), &["-f", "-"], &script)
            .map(drop)
    }

    /// How many frames to that host were lost on purpose, since the testbed was made.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub fn lost_count(&self, host: &str) -> Result<u64, TestbedError> {
        let (switch, port) = self.port_of(host)?;
        let name = recipe::port_name(port);
        let words = ["-j", "list", "counter", "bridge", recipe::TABLE, &name];
        let answer = Tool::Nft.run(Some(&switch.namespace), &words, "")?;
        counted_packets(&answer).ok_or_else(|| TestbedError::ToolFailed {
            command: format!("nft {}", words.join(" ")),
            speech: format!("no count in its answer: {answer}"),
        })
    }

    fn port_of(&self, host: &str) -> Result<(&Switch, usize), TestbedError> {
        let host: &Host = self.host(host)?;
        match (&self.stand, &host.place) {
            (Stand::Namespaces(switch), Place::Port { port, .. }) => Ok((switch, *port)),
            (Stand::Loopback { reason }, _) => Err(TestbedError::OnLoopback {
                reason: reason.clone(),
            }),
            (Stand::Namespaces(_), Place::Loopback) => {
                unreachable!("hosts stand where their testbed does")
            }
        }
    }

    fn change_shaper(
        &self,
        switch: &Switch,
        port: usize,
        shaper: Option<String>,
    ) -> Result<(), TestbedError> {
        let Some(shaper) = shaper else {
            return Ok(());
        };
        let words = format!(
            "qdisc change dev {} root handle 1: tbf {shaper}\n",
            recipe::port_name(port)
        );
        Tool::Tc.run(Some(&switch.namespace), &["-batch", "-"], &words)?;
        let decoy = (recipe::decoy_address(port), DISCARD_PORT);
        let woken = switch.waker.send_to(&[0], decoy);
        woken
            .map(drop)
            .map_err(TestbedError::system("Waking a port of the switch"))
    }
}

/// The port of the discard service (RFC 863); the decoy is no host, so nothing listens.
const DISCARD_PORT: u16 = 9;

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
    use crate::{HostSpec, NetworkSpec};

    #[test]
    fn the_count_is_found_in_the_filters_answer() {
        let answer = r#"{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"counter": {"family": "bridge", "packets": 12, "bytes": 34}}]}"#;
        assert_eq!(counted_packets(answer), Some(12));
        assert_eq!(counted_packets("{}"), None);
    }

    #[test]
    fn faults_on_loopback_are_refused_with_the_reason() {
        let testbed = Testbed::create(&NetworkSpec::loopback(), &[HostSpec::new("A")]).unwrap();
        let error = testbed.hold("A").unwrap_err();
        assert!(error.to_string().contains("was asked for"), "{error}");
        assert!(matches!(
            testbed.hold("B"),
            Err(TestbedError::NoSuchHost { .. })
        ));
    }
}
