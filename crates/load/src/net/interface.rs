//! The kernel's counters of an interface, and which interface leads to an address. Both are of the network namespace of
//! the calling thread.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// What an interface has sent since it exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) octets: u64,
    pub(super) packets: u64,
    /// Packets that found its queue full, or could not be sent.
    pub(super) dropped: u64,
}

/// Reads the counters of an interface.
pub(super) fn read(interface: &str) -> io::Result<Counters> {
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    counters(&text, interface).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Returns the interface that leads to an address. `None` for an IPv6 address but loopback, whose routes are not read.
pub(super) fn leading_to(address: IpAddr) -> io::Result<Option<String>> {
    match address {
        address if address.is_loopback() => Ok(Some("lo".to_owned())),
        IpAddr::V4(address) => {
            let text = fs::read_to_string("/proc/thread-self/net/route")?;
            Ok(route(&text, address))
        }
        IpAddr::V6(_) => Ok(None),
    }
}

fn counters(text: &str, interface: &str) -> Option<Counters> {
    let line = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        (name.trim() == interface).then_some(())?;
        let words = rest.split_ascii_whitespace();
        let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        Some(Counters {
            octets: *numbers.get(SENT)?,
            packets: *numbers.get(SENT + 1)?,
            dropped: numbers.get(SENT + 2)? + numbers.get(SENT + 3)?,
        })
    };
    text.lines().find_map(line)
}

/// The route with the longest mask that covers the address.
fn route(text: &str, address: Ipv4Addr) -> Option<String> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        // The kernel prints the octets of addresses as a number of its own byte order.
        let number = |place: usize| {
            let word = words.get(place)?;
            let number = u32::from_str_radix(word, 16).ok()?;
            Some(u32::from_be_bytes(number.to_ne_bytes()))
        };
        let (target, mask) = (number(1)?, number(7)?);
        let covers = u32::from(address) & mask == target;
        covers.then(|| (mask, words[0].to_owned()))
    };
    let rows = text.lines().skip(1).filter_map(row);
    rows.max_by_key(|(mask, _)| *mask).map(|(_, name)| name)
}

/// The first column of what was sent; eight columns of what was received are before it.
const SENT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICES: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 10 1    0    0    0     0          0         0 20 2    3    4    0     0       0          0
  eth0:691868717   32135    0    0    0     0          0         0  2178627   22444    0    7    0     0       0          0
";

    #[test]
    fn what_was_sent_is_read_by_name_also_without_a_space() {
        let sent = |octets, packets, dropped| Counters {
            octets,
            packets,
            dropped,
        };
        assert_eq!(counters(DEVICES, "lo"), Some(sent(20, 2, 7)));
        assert_eq!(counters(DEVICES, "eth0"), Some(sent(2_178_627, 22_444, 7)));
        assert_eq!(counters(DEVICES, "eth"), None);
        assert!(read("lo").is_ok() && read("none").is_err());
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn the_route_with_the_longest_mask_counts() {
        let routes = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth1\t0000A8C0\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
eth2\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
";
        let to = |text: &str| route(routes, text.parse().expect("an address"));
        assert_eq!(to("192.168.1.7").as_deref(), Some("eth2"));
        assert_eq!(to("192.168.9.7").as_deref(), Some("eth1"));
        assert_eq!(to("10.0.0.1").as_deref(), Some("eth0"));
        let loopback = leading_to(IpAddr::V4(Ipv4Addr::LOCALHOST)).expect("readable");
        assert_eq!(loopback.as_deref(), Some("lo"));
    }
}
