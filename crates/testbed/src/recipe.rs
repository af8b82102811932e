//! The scripts that create a testbed, for `ip`, `bridge`, `tc` and `nft`. Each script runs in one process, for the
//! switch or for a host.
//!
//! The switch is a bridge. A pair of virtual interfaces connects each host to it: `p<n>` at the switch and `eth0` at
//! the host. A port shapes the frames to its host. Above the shaper are three strict priorities, by DSCP. A filter of
//! the bridge converts the DSCP to the kernel's packet priority, because crossing a namespace clears the sender's
//! priority. The frames from a host are shaped in the same way, so that a burst to many hosts leaves at the rate of one
//! interface. In front of that shaper each frame is copied to the interface's front, for a tap. Every address is known
//! before the first packet: no ARP, no flooding, no learning, no automatic IPv6.

use std::fmt::Write;
use std::net::Ipv4Addr;

use crate::limits::HOST_QUEUE_FRAMES;
use crate::network::NetworkSpec;
use crate::port::Shapers;
use crate::relay::frame::{DSCP_FIRST, DSCP_LAST};

/// Address of host `port` (1 ..= 250), in the range set aside for testing networks (RFC 2544).
pub(crate) const fn host_address(port: usize) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, 0, low_octet(port))
}

/// Returns the port whose host has this address.
pub(crate) const fn port_of_address(address: Ipv4Addr) -> usize {
    address.octets()[3] as usize
}

/// Returns an address behind host `port`'s port that no host has. Frames to it pass the port, and the host drops them.
pub(crate) const fn decoy_address(port: usize) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, 128, low_octet(port))
}

/// Interface of host `port` at the switch.
pub(crate) fn port_name(port: usize) -> String {
    format!("p{port}")
}

/// For `ip -batch` outside: creates the namespaces.
pub(crate) fn namespaces(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("netns add {name}\n"))
        .collect()
}

/// For `ip -force -batch` outside: removes the namespaces, and with them all interfaces, shapers and filters inside.
pub(crate) fn removal<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("netns del {name}\n")).collect()
}

/// For `ip -batch` in the switch: creates the bridge, and a pair of interfaces for each host.
pub(crate) fn switch_links(network: &NetworkSpec, hosts: &[&str]) -> String {
    let (mtu, queue) = (network.mtu_bytes, network.queue_frames);
    let alias = Shapers::of(network).map_or_else(String::new, |shapers| shapers.alias());
    let mut script = format!(
        "link add {BRIDGE} address {} mtu {mtu} type bridge mcast_snooping 0\n\
         link set {BRIDGE} addrgenmode none\n",
        mac_address(SWITCH_MAC, 0)
    );
    for (port, host) in (1..).zip(hosts) {
        let (here, there) = (port_name(port), mac_address(HOST_MAC, port));
        let ours = mac_address(PORT_MAC, port);
        let _ = writeln!(
            script,
            "link add {here} mtu {mtu} txqueuelen {queue} address {ours} type veth \
             peer name {INTERFACE} mtu {mtu} txqueuelen {HOST_QUEUE_FRAMES} address {there} netns {host}"
        );
        let _ = writeln!(
            script,
            "link set {here} addrgenmode none master {BRIDGE}\nlink set {here} alias \"{alias}\"\nlink set {here} up"
        );
    }
    let _ = writeln!(
        script,
        "link set lo up\nlink set {BRIDGE} up\naddress add {SWITCH_ADDRESS}/16 dev {BRIDGE}"
    );
    for port in 1..=hosts.len() {
        let (decoy, mac) = (decoy_address(port), mac_address(DECOY_MAC, port));
        let _ = writeln!(
            script,
            "neighbour add {decoy} lladdr {mac} dev {BRIDGE} nud permanent"
        );
    }
    script
}

/// For `ip -batch` in the switch of a relay: creates a pair of interfaces for each host. `hosts` has the numbers of the
/// ports and the namespaces behind them.
pub(crate) fn relay_links(mtu: u32, hosts: &[(usize, &str)]) -> String {
    let mut script = String::new();
    for &(port, host) in hosts {
        let (here, there) = (port_name(port), mac_address(HOST_MAC, port));
        let ours = mac_address(PORT_MAC, port);
        let _ = writeln!(
            script,
            "link add {here} mtu {mtu} txqueuelen {HOST_QUEUE_FRAMES} address {ours} type veth \
             peer name {INTERFACE} mtu {mtu} txqueuelen {HOST_QUEUE_FRAMES} address {there} netns {host}\n\
             link set {here} addrgenmode none\nlink set {here} alias \"{RELAY_ALIAS}\"\nlink set {here} up"
        );
    }
    script.push_str("link set lo up\n");
    script
}

/// Whether a frame asks the switch of a relay for an echo: a UDP datagram over IPv4, without options, to the echo port.
pub(crate) fn is_echo_request(frame: &[u8]) -> bool {
    frame.len() >= UDP_END
        && frame[..6] == [0x02, 0x44, 0x57, SWITCH_MAC, 0, 0]
        && frame[12..15] == [0x08, 0x00, 0x45]
        && frame[23] == IPPROTO_UDP
        && frame[36..38] == ECHO_PORT.to_be_bytes()
}

/// Turns a datagram back to its sender. The checksums stay right: they are sums, in which the order does not matter.
pub(crate) fn turn_back(frame: &mut [u8]) {
    for (at, len) in [(0, 6), (26, 4), (34, 2)] {
        for index in at..at + len {
            frame.swap(index, index + len);
        }
    }
}

/// For `bridge -batch` in the switch: assigns every address to its port, and turns learning and flooding off.
pub(crate) fn switch_addresses(count: usize) -> String {
    let mut script = String::new();
    for port in 1..=count {
        let name = port_name(port);
        for block in [HOST_MAC, DECOY_MAC] {
            let _ = writeln!(
                script,
                "fdb add {} dev {name} master static",
                mac_address(block, port)
            );
        }
        let _ = writeln!(script, "link set dev {name} flood off learning off");
    }
    script
}

/// For `tc -batch`: adds the network's shaper to an interface, and three strict priorities under it.
pub(crate) fn shaper(network: &NetworkSpec, interface: &str) -> String {
    let Some(words) = network.shaper() else {
        return String::new();
    };
    format!(
        "qdisc add dev {interface} root handle 1: tbf {words}\n\
         qdisc add dev {interface} parent 1:1 handle 10: pfifo_fast\n"
    )
}

/// For `ip -batch` in a host: creates the front of its interface, which gets a copy of each frame before the frame enters
/// the interface's queue. It drops them. A tap on it stamps what leaves in front of the shaper.
pub(crate) fn front_link(network: &NetworkSpec) -> String {
    let mtu = network.mtu_bytes;
    format!(
        "link add {FRONT_INTERFACE} mtu {mtu} txqueuelen 0 type ifb\n\
         link set {FRONT_INTERFACE} addrgenmode none\n\
         link set {FRONT_INTERFACE} up\n"
    )
}

/// For `tc -batch` in a host: copies each frame to the front.
pub(crate) fn front_copies() -> String {
    format!(
        "qdisc add dev {INTERFACE} clsact\n\
         filter add dev {INTERFACE} egress protocol all u32 match u32 0 0 \
         action mirred egress mirror dev {FRONT_INTERFACE}\n"
    )
}

/// For `nft -f` in the switch: sets priorities by DSCP, and creates a chain for each port. The chain is empty until
/// losses are requested.
pub(crate) fn switch_filter(count: usize) -> String {
    let mut script = format!("table bridge {TABLE} {{\n");
    for port in 1..=count {
        let _ = writeln!(
            script,
            "counter {} {{ }}\nchain {} {{ }}",
            port_name(port),
            port_name(port)
        );
    }
    let jumps: Vec<String> = (1..=count)
        .map(|port| format!("\"{0}\" : jump {0}", port_name(port)))
        .collect();
    let _ = write!(
        script,
        "chain forward {{\n\
         type filter hook forward priority 0; policy accept;\n\
         ip dscp {{ {} }} meta priority set 0:6\n\
         ip dscp {{ {} }} meta priority set 0:2\n\
         oifname vmap {{ {} }}\n}}\n}}\n",
        code_points(&DSCP_FIRST),
        code_points(&DSCP_LAST),
        jumps.join(", ")
    );
    script
}

/// For `nft -f` in the switch: drops and counts the first frame to the host at `port`, and every `every_nth` frame
/// after it. `None` ends the losses.
pub(crate) fn losses(port: usize, every_nth: Option<u32>) -> String {
    let name = port_name(port);
    let mut script = format!("flush chain bridge {TABLE} {name}\n");
    if let Some(every_nth) = every_nth {
        let _ = writeln!(
            script,
            "add rule bridge {TABLE} {name} numgen inc mod {every_nth} == 0 counter name {name} drop"
        );
    }
    script
}

/// For `ip -batch` in the host at `port` of `count`: sets its address and the neighbour entries of all other hosts.
pub(crate) fn host_links(port: usize, count: usize) -> String {
    let address = host_address(port);
    let mut script = format!(
        "link set lo up\n\
         link set {INTERFACE} addrgenmode none\n\
         link set {INTERFACE} up\n\
         address add {address}/16 dev {INTERFACE}\n\
         neighbour add {SWITCH_ADDRESS} lladdr {} dev {INTERFACE} nud permanent\n",
        mac_address(SWITCH_MAC, 0)
    );
    for other in (1..=count).filter(|&other| other != port) {
        let (address, mac) = (host_address(other), mac_address(HOST_MAC, other));
        let _ = writeln!(
            script,
            "neighbour add {address} lladdr {mac} dev {INTERFACE} nud permanent"
        );
    }
    script
}

/// The alias of each port of a relay.
pub(crate) const RELAY_ALIAS: &str = "relay";
/// The echo service (RFC 862) of the switch of a relay.
pub(crate) const ECHO_PORT: u16 = 7;
const IPPROTO_UDP: u8 = 17;
/// Octets of the headers of Ethernet, IPv4 and UDP.
const UDP_END: usize = 42;

/// The arguments for `ethtool` that turn offloads off, so that each buffer is one frame as on the wire. A batch of
/// frames in one buffer would pass the shaper at once.
pub(crate) const fn offloads_off(interface: &str) -> [&str; 8] {
    ["-K", interface, "tso", "off", "gso", "off", "gro", "off"]
}

/// As [`offloads_off`], and the sender computes the checksums: a relay sends the octets that it sees.
pub(crate) const fn checksums_on(interface: &str) -> [&str; 10] {
    [
        "-K", interface, "tso", "off", "gso", "off", "gro", "off", "tx", "off",
    ]
}

/// The network interface in every host's namespace.
pub(crate) const INTERFACE: &str = "eth0";
/// Its front.
pub(crate) const FRONT_INTERFACE: &str = "eth0-front";
/// The table of the switch's filter.
pub(crate) const TABLE: &str = "deckwatch";
/// Address of the switch itself, the source of frames to decoys.
pub(crate) const SWITCH_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 255, 254);

const BRIDGE: &str = "br0";
/// Blocks of locally administered addresses (IEEE 802 section 8): hosts, ports of the switch, decoys, the switch
/// itself.
const HOST_MAC: u8 = 0;
const PORT_MAC: u8 = 1;
const DECOY_MAC: u8 = 2;
const SWITCH_MAC: u8 = 3;
fn code_points(all: &[u8]) -> String {
    let words: Vec<String> = all.iter().map(u8::to_string).collect();
    words.join(", ")
}

/// Returns the port whose host has this address, counted from 1. Returns `None` for an address that no host has.
pub(crate) fn port_of_mac(mac: [u8; 6]) -> Option<usize> {
    let [rest @ .., port] = mac;
    (rest == [0x02, 0x44, 0x57, HOST_MAC, 0x00] && port != 0).then_some(port.into())
}

fn mac_address(block: u8, port: usize) -> String {
    format!("02:44:57:{block:02x}:00:{:02x}", low_octet(port))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a port is at most HOSTS_MAX"
)]
const fn low_octet(port: usize) -> u8 {
    assert!(port <= crate::limits::HOSTS_MAX);
    port as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::preset;

    #[test]
    fn each_host_knows_every_other_and_not_itself() {
        let script = host_links(2, 3);
        assert_eq!(script.matches("neighbour add 198.18.0.").count(), 2);
        assert!(script.contains("address add 198.18.0.2/16"));
        assert!(!script.contains("neighbour add 198.18.0.2 "));
        assert!(script.contains("198.18.0.3 lladdr 02:44:57:00:00:03"));
    }

    #[test]
    fn an_echo_request_is_known_and_turned_back() {
        let mut frame: Vec<u8> = (0..60).collect();
        frame[..6].copy_from_slice(&[0x02, 0x44, 0x57, SWITCH_MAC, 0, 0]);
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        frame[23] = 17;
        frame[36..38].copy_from_slice(&[0, 7]);
        assert!(is_echo_request(&frame));
        let sent = frame.clone();
        turn_back(&mut frame);
        assert_eq!((&frame[..6], &frame[6..12]), (&sent[6..12], &sent[..6]));
        assert_eq!(
            (&frame[26..30], &frame[30..34]),
            (&sent[30..34], &sent[26..30])
        );
        assert_eq!(
            (&frame[34..36], &frame[36..38]),
            (&sent[36..38], &sent[34..36])
        );
        assert!(!is_echo_request(&frame) && !is_echo_request(&sent[..41]));
    }

    #[test]
    fn an_address_tells_its_port() {
        for port in [1, 2, crate::limits::HOSTS_MAX] {
            assert_eq!(port_of_address(host_address(port)), port);
        }
    }

    #[test]
    fn a_tap_knows_the_front_of_the_interface_by_its_name() {
        let front = FRONT_INTERFACE.strip_suffix(deckwatch_os::tap::FRONT);
        assert_eq!(front, Some(INTERFACE));
    }

    #[test]
    fn the_shapers_are_the_tried_ones() {
        assert_eq!(
            shaper(&preset("fast-ethernet").unwrap(), "p1"),
            "qdisc add dev p1 root handle 1: tbf rate 100000000bit burst 3200 limit 302800 overhead 24 mpu 84\n\
             qdisc add dev p1 parent 1:1 handle 10: pfifo_fast\n"
        );
        let oc3 = shaper(&preset("atm-oc3").unwrap(), "p1");
        assert!(
            oc3.contains("rate 149760000bit burst 30000")
                && oc3.contains("overhead 2 linklayer atm"),
            "{oc3}"
        );
        assert_eq!(shaper(&preset("loopback").unwrap(), "p1"), "");
    }

    #[test]
    fn losses_begin_afresh_and_end_with_an_empty_chain() {
        assert_eq!(
            losses(3, Some(10)),
            "flush chain bridge deckwatch p3\nadd rule bridge deckwatch p3 numgen inc mod 10 == 0 counter name p3 drop\n"
        );
        assert_eq!(losses(3, None), "flush chain bridge deckwatch p3\n");
    }
}
