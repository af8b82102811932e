//! A range of addresses: `10.1.0.0/16`, `fd00::/8`, or one address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The addresses with a common prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// What is wrong with the text of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkError {
    /// It begins with no address.
    NoAddress,
    /// The length of the prefix is no number, or larger than the address.
    NoPrefix,
    /// Bits behind the prefix are set. The network that was probably meant.
    HostBits(Network),
}

impl Network {
    /// Returns the network that an address is in, with a prefix of this length; `None` if the address is shorter.
    #[must_use]
    pub fn around(address: IpAddr, prefix: u8) -> Option<Self> {
        let max = if address.is_ipv4() { 32 } else { 128 };
        (prefix <= max).then(|| Self::first(masked(address, prefix), address.is_ipv4(), prefix))
    }

    /// The network whose first address has these bits, at the upper end.
    fn first(bits: u128, is_ipv4: bool, prefix: u8) -> Self {
        let address = if is_ipv4 {
            IpAddr::V4(((bits >> 96) as u32).into())
        } else {
            IpAddr::V6(bits.into())
        };
        Self { address, prefix }
    }

    /// Returns true if an address has the prefix.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && masked(address, self.prefix) == bits(self.address)
    }
}

/// The bits of an address, at the upper end.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn masked(address: IpAddr, prefix: u8) -> u128 {
    let hidden = 128 - u32::from(prefix);
    bits(address) & u128::MAX.checked_shl(hidden).unwrap_or(0)
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, prefix) = text
            .split_once('/')
            .map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| NetworkError::NoAddress)?;
        let max = if address.is_ipv4() { 32 } else { 128 };
        let is_digits = |text: &&str| text.bytes().all(|octet| octet.is_ascii_digit());
        let prefix = match prefix {
            None => max,
            Some(text) => Some(text)
                .filter(is_digits)
                .and_then(|text| text.parse().ok())
                .filter(|prefix| *prefix <= max)
                .ok_or(NetworkError::NoPrefix)?,
        };
        let first = masked(address, prefix);
        if first == bits(address) {
            return Ok(Self { address, prefix });
        }
        Err(NetworkError::HostBits(Self::first(
            first,
            address.is_ipv4(),
            prefix,
        )))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}
