//! `--dscp`: how a server marks its packets.

use std::str::FromStr;

use deckwatch_orb::{
    FixedNetwork, LinearNetwork, NetworkPriority, NetworkPriorityMapping as _, OrbBuilder, Policy,
    Priority, Protocols, SystemException,
};

/// `--dscp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marking {
    /// All packets have this codepoint.
    Codepoint(u8),
    /// Packets have the codepoint of the CORBA priority of their lane or consumer.
    ByPriority,
}

impl FromStr for Marking {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        if word == "by-priority" {
            return Ok(Self::ByPriority);
        }
        codepoint(word)
            .map(Self::Codepoint)
            .ok_or_else(|| format!("`{word}` is neither a number from 0 to 63 nor by-priority"))
    }
}

/// Parses a differentiated services codepoint.
pub(crate) fn codepoint(word: &str) -> Option<u8> {
    word.parse().ok().filter(|dscp| *dscp < 64)
}

impl Marking {
    /// Marks the packets of all TCP connections of an ORB.
    pub(crate) fn mark(self, builder: OrbBuilder) -> Result<OrbBuilder, SystemException> {
        let protocols = Protocols::with_network_priority()?;
        let builder = match self {
            Self::Codepoint(dscp) => {
                let fixed = FixedNetwork(NetworkPriority { dscp, queue: 0 });
                builder.network_priority_mapping(fixed)
            }
            Self::ByPriority => builder.network_priority_mapping(LinearNetwork),
        };
        let builder = builder.policy(Policy::ClientProtocol(protocols));
        Ok(builder.server_protocols(protocols))
    }
}

impl Marking {
    /// Returns the priority of the datagrams of a multicast group. Its subscription has no RT_Info, so that its CORBA
    /// priority is 0.
    pub(crate) fn of_multicast(self) -> Option<NetworkPriority> {
        match self {
            Self::Codepoint(dscp) => Some(NetworkPriority { dscp, queue: 0 }),
            Self::ByPriority => LinearNetwork.to_network(Priority::MIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marking_is_a_codepoint_or_a_mapping() {
        assert_eq!("46".parse(), Ok(Marking::Codepoint(46)));
        assert_eq!("by-priority".parse(), Ok(Marking::ByPriority));
        for wrong in ["64", "-1", "ef", ""] {
            assert!(
                wrong
                    .parse::<Marking>()
                    .is_err_and(|error| error.contains("0 to 63"))
            );
        }
    }
}
