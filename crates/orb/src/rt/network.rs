//! The priority of packets. Routers use the differentiated services codepoint, the queues of the host use SO_PRIORITY.
//! (RTCORBA 1.2 leaves it to protocol properties; the mapping and its manager are TAO's.)

use deckwatch_os::stream::PacketPriority;

use super::Priority;

/// The priority of a connection's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NetworkPriority {
    /// The differentiated services codepoint, 0 to 63, which routers use.
    pub dscp: u8,
    /// SO_PRIORITY, which orders the host's own queues. Values above 6 need CAP_NET_ADMIN.
    pub queue: u8,
}

impl From<NetworkPriority> for PacketPriority {
    fn from(priority: NetworkPriority) -> Self {
        Self {
            dscp: priority.dscp & 0x3F,
            queue: priority.queue,
        }
    }
}

/// Maps CORBA priorities to network priorities and back: [`LinearNetwork`], or one of the application. If it returns
/// `None`, no priority is mapped and DATA_CONVERSION is raised.
pub trait NetworkPriorityMapping: Send + Sync + 'static {
    /// Returns the network priority of connections for calls of priority `corba`.
    fn to_network(&self, corba: Priority) -> Option<NetworkPriority>;

    /// Returns the lowest CORBA priority whose calls have this network priority.
    fn to_corba(&self, network: NetworkPriority) -> Option<Priority>;
}

/// Maps the range of CORBA priorities in equal parts to the 21 named codepoints, in TAO's order, and to the seven
/// queues that need no privilege.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinearNetwork;

/// Maps every CORBA priority to one network priority, and none back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedNetwork(pub NetworkPriority);

impl NetworkPriorityMapping for FixedNetwork {
    fn to_network(&self, _: Priority) -> Option<NetworkPriority> {
        Some(self.0)
    }

    fn to_corba(&self, _: NetworkPriority) -> Option<Priority> {
        None
    }
}

/// Best effort, class selectors 1 to 7, the assured forwarding classes, expedited forwarding.
const CODEPOINTS: [u8; 21] = [
    0, 8, 16, 24, 32, 40, 48, 56, 10, 12, 14, 18, 20, 22, 26, 28, 30, 34, 36, 38, 46,
];

/// SO_PRIORITY 0 to 6.
const QUEUES: i32 = 7;

impl NetworkPriorityMapping for LinearNetwork {
    fn to_network(&self, corba: Priority) -> Option<NetworkPriority> {
        let part = |count: i32| i32::from(corba.value()) * count / i32::from(i16::MAX);
        let codepoint = usize::try_from(part(CODEPOINTS.len() as i32)).ok()?;
        Some(NetworkPriority {
            dscp: CODEPOINTS[codepoint.min(CODEPOINTS.len() - 1)],
            queue: u8::try_from(part(QUEUES).min(QUEUES - 1)).ok()?,
        })
    }

    fn to_corba(&self, network: NetworkPriority) -> Option<Priority> {
        let codepoint = CODEPOINTS.iter().position(|dscp| *dscp == network.dscp)?;
        let (codepoint, count) = (codepoint as i32, CODEPOINTS.len() as i32);
        let lowest = (codepoint * i32::from(i16::MAX) + count - 1) / count;
        let corba = Priority::new(i16::try_from(lowest).ok()?)?;
        (self.to_network(corba) == Some(network)).then_some(corba)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(number: i16) -> NetworkPriority {
        let corba = Priority::new(number).expect("not negative");
        LinearNetwork.to_network(corba).expect("all have one")
    }

    #[test]
    fn codepoints_are_those_of_tao() {
        // TAO's arithmetic: the number over 32767 times 21, rounded down, and the last part takes the upper end.
        let golden = [
            (0, 0),
            (1_560, 0),
            (1_561, 8),
            (3_121, 16),
            (10_922, 48),
            (10_923, 56),
            (16_383, 14),
            (31_206, 38),
            (31_207, 46),
            (32_767, 46),
        ];
        for (number, dscp) in golden {
            assert_eq!(network(number).dscp, dscp, "{number}");
        }
    }

    #[test]
    fn queues_rise_with_the_priority_and_stay_within_what_is_permitted() {
        let queues = [0, 4_680, 4_681, 16_383, 32_766, 32_767].map(|number| network(number).queue);
        assert_eq!(queues, [0, 0, 1, 3, 6, 6]);
    }

    #[test]
    fn the_lowest_priority_of_a_codepoint_comes_back() {
        for number in [0, 1_561, 3_121, 31_207] {
            let corba = LinearNetwork.to_corba(network(number));
            assert_eq!(corba, Priority::new(number));
        }
        let none = NetworkPriority { dscp: 1, queue: 0 };
        assert_eq!(LinearNetwork.to_corba(none), None);
    }
}
