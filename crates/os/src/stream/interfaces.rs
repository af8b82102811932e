//! The addresses of the interfaces, with the networks that they are in.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the addresses of all interfaces of this network namespace, each with the length of its network's prefix.
///
/// # Errors
/// The kernel's error.
pub fn interface_addresses() -> io::Result<Vec<(IpAddr, u8)>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: on success `first` is a list that is ours until it is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut entry = first;
    while !entry.is_null() {
        // SAFETY: `entry` is a live element of the list; each of its addresses is null or a sockaddr of the length that
        // its family has.
        unsafe {
            let address = address_in((*entry).ifa_addr);
            if let Some(address) = address {
                found.push((
                    address,
                    prefix_of(address, address_in((*entry).ifa_netmask)),
                ));
            }
            entry = (*entry).ifa_next;
        }
    }
    // SAFETY: the list came from getifaddrs and nothing points into it any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// Returns the address in a sockaddr of a family that has one.
///
/// # Safety
/// `at` is null, or a sockaddr of the length that its family has.
unsafe fn address_in(at: *const libc::sockaddr) -> Option<IpAddr> {
    if at.is_null() {
        return None;
    }
    // SAFETY: not null, and the family gives the type.
    unsafe {
        match i32::from((*at).sa_family) {
            libc::AF_INET => {
                let octets = at.cast::<libc::sockaddr_in>().read_unaligned().sin_addr;
                Some(Ipv4Addr::from_bits(u32::from_be(octets.s_addr)).into())
            }
            libc::AF_INET6 => {
                let octets = at.cast::<libc::sockaddr_in6>().read_unaligned().sin6_addr;
                Some(Ipv6Addr::from(octets.s6_addr).into())
            }
            _ => None,
        }
    }
}

/// The number of leading ones of a mask. An address without a mask is a network of its own.
fn prefix_of(address: IpAddr, mask: Option<IpAddr>) -> u8 {
    let ones = match (address, mask) {
        (IpAddr::V4(_), Some(IpAddr::V4(mask))) => mask.to_bits().leading_ones(),
        (IpAddr::V6(_), Some(IpAddr::V6(mask))) => mask.to_bits().leading_ones(),
        (IpAddr::V4(_), _) => u32::BITS,
        (IpAddr::V6(_), _) => u128::BITS,
    };
    ones as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_among_the_addresses_with_its_network() {
        let all = interface_addresses().expect("readable");
        assert!(all.contains(&(Ipv4Addr::LOCALHOST.into(), 8)), "{all:?}");
    }

    #[test]
    fn mask_counts_as_the_length_of_its_prefix() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let prefix = |own: &str, mask: Option<&str>| prefix_of(address(own), mask.map(address));
        assert_eq!(prefix("10.1.2.3", Some("255.255.252.0")), 22);
        assert_eq!(prefix("fd00::1", Some("ffff:ffff:ffff:ffff::")), 64);
        assert_eq!(prefix("10.1.2.3", None), 32);
        assert_eq!(prefix("fd00::1", None), 128);
    }
}
