//! `corbaloc:` URLs.

use super::{DEFAULT_PORT, unescape, write_escaped};
use crate::Ior;
use crate::ior::security::{SslTransport, association};
use crate::ior::{
    IiopProfile, ReferenceError, alternate_address, scheme, shared_memory_address, unix_address,
};
use crate::limits::{ADDRESSES_MAX, REFERENCE_TEXT_MAX};
use deckwatch_cdr::{EncodeError, Version};
use std::fmt;
use std::str::FromStr;

/// An address of the object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// IIOP at a host and port.
    Iiop {
        /// GIOP version to use.
        version: Version,
        /// Host name or address; an IPv6 address without brackets.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// A unix socket of this host, in omniORB's form: `omniunix:`, the path, `:`.
    Unix {
        /// GIOP version to use: at least 1.1, since the path is in a component of the profile.
        version: Version,
        /// The path of the socket; without `:` and `,`.
        path: String,
    },
    /// Shared memory with a server of this host, in this ORB's own form: `shm:`, the path of the socket at which
    /// connections are made, `:`.
    SharedMemory {
        /// GIOP version to use, as for [`Address::Unix`].
        version: Version,
        /// The path of the socket; without `:` and `,`.
        path: String,
    },
    /// IIOP over TLS: `ssliop:`, host and port, as TAO and JacORB write it.
    Ssliop {
        /// GIOP version to use, as for [`Address::Unix`]: the port is in a component.
        version: Version,
        /// Host name or address; an IPv6 address without brackets.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// `resolve_initial_references` with the key.
    InitialReference,
}

/// A `corbaloc:` URL: addresses to try in order, and a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Corbaloc {
    /// At least one; an initial reference stands alone.
    pub addresses: Vec<Address>,
    /// The object's key, or the name of the initial reference; may be empty.
    pub key: Vec<u8>,
}

impl Corbaloc {
    /// Returns the reference of the URL: a profile for each address, to be tried in order; `None` for an initial
    /// reference. `here` is the name of this host, for unix sockets.
    ///
    /// # Errors
    /// [`EncodeError::StringHoldsNull`] in a host.
    pub fn to_ior(&self, here: &str) -> Result<Option<Ior>, EncodeError> {
        let mut profiles = Vec::with_capacity(self.addresses.len());
        for address in &self.addresses {
            let (version, profile) = match address {
                Address::Iiop {
                    version,
                    host,
                    port,
                } => (version, IiopProfile::new(host, *port, &self.key)),
                Address::Unix { version, path } => {
                    let mut profile = IiopProfile::new(here, 0, &self.key);
                    profile.components.push(unix_address(here, path)?);
                    (version, profile)
                }
                Address::SharedMemory { version, path } => {
                    let mut profile = IiopProfile::new(here, 0, &self.key);
                    profile.components.push(shared_memory_address(here, path)?);
                    (version, profile)
                }
                Address::Ssliop {
                    version,
                    host,
                    port,
                } => {
                    let mut profile = IiopProfile::new(host, 0, &self.key);
                    let ssl = SslTransport {
                        supports: association::TLS | association::ESTABLISH_TRUST_IN_CLIENT,
                        requires: association::INTEGRITY | association::CONFIDENTIALITY,
                        port: *port,
                    };
                    profile.components.push(ssl.to_component()?);
                    (version, profile)
                }
                Address::InitialReference => return Ok(None),
            };
            let minor = version.minor();
            profiles.push(IiopProfile { minor, ..profile }.to_tagged()?);
        }
        Ok(Some(Ior {
            type_id: String::new(),
            profiles,
        }))
    }

    /// Reads addresses and key, which begin at `offset` of the whole text and end with `text`.
    pub(super) fn parse_at(text: &str, offset: usize) -> Result<Self, ReferenceError> {
        if text.len() > REFERENCE_TEXT_MAX {
            return Err(ReferenceError::expected(
                offset + REFERENCE_TEXT_MAX,
                "the end of the reference",
            ));
        }
        let mut addresses = Vec::new();
        let mut at = 0;
        // Behind the last address stands the key, or nothing.
        let key_at = loop {
            if addresses.len() >= ADDRESSES_MAX {
                return Err(ReferenceError::expected(offset + at, "fewer addresses"));
            }
            let rest = &text[at..];
            let size = address_size(rest);
            addresses.push(address(&rest[..size], offset + at)?);
            at += size;
            match text[at..].chars().next() {
                Some(',') => at += 1,
                Some('/') => break at + 1,
                None => break at,
                Some(_) => return Err(ReferenceError::expected(offset + at, ", or / and a key")),
            }
        };
        if addresses.len() > 1 && addresses.contains(&Address::InitialReference) {
            return Err(ReferenceError::expected(offset, "rir: as the only address"));
        }
        Ok(Self {
            addresses,
            key: unescape(&text[key_at..], offset + key_at)?,
        })
    }
}

/// Octets of the next address: up to the next comma or the key; the `:` behind a path belongs to it.
fn address_size(text: &str) -> usize {
    let Some(path) = scheme(text, UNIX).or_else(|| scheme(text, SHARED_MEMORY)) else {
        return text.find([',', '/']).unwrap_or(text.len());
    };
    match text[path..].find([':', ',']) {
        Some(end) if text[path + end..].starts_with(':') => path + end + 1,
        Some(end) => path + end,
        None => text.len(),
    }
}

const UNIX: &str = "omniunix:";

const SHARED_MEMORY: &str = "shm:";

const SSLIOP: &str = "ssliop:";

/// `1.2@/path:`; the version is 1.2 where none is given.
fn socket(text: &str, at: usize) -> Result<(Version, String), ReferenceError> {
    let text = text.strip_suffix(':').unwrap_or(text);
    let (version, path) = match text.split_once('@') {
        Some((number, path)) if !number.contains('/') => (version(number, at)?, path),
        _ => (Version::V1_2, text),
    };
    if version == Version::V1_0 {
        return Err(ReferenceError::expected(
            at,
            "version 1.1 or 1.2 of a socket",
        ));
    }
    if path.is_empty() || path.contains(char::is_control) {
        return Err(ReferenceError::expected(at, "the path of a socket"));
    }
    Ok((version, path.to_owned()))
}

/// `iiop:1.2@host:port`, `:1.2@host:port`, `omniunix:/path:`, `shm:/path:` or `rir:`.
fn address(text: &str, at: usize) -> Result<Address, ReferenceError> {
    if text.eq_ignore_ascii_case("rir:") {
        return Ok(Address::InitialReference);
    }
    if let Some(path) = scheme(text, UNIX) {
        let (version, path) = socket(&text[path..], at + path)?;
        return Ok(Address::Unix { version, path });
    }
    if let Some(path) = scheme(text, SHARED_MEMORY) {
        let (version, path) = socket(&text[path..], at + path)?;
        return Ok(Address::SharedMemory { version, path });
    }
    if let Some(host) = scheme(text, SSLIOP) {
        let (version, host, port) = versioned_host(text, host, at, Version::V1_2)?;
        if version == Version::V1_0 {
            let expected = "version 1.1 or 1.2 of an address over TLS";
            return Err(ReferenceError::expected(at, expected));
        }
        return Ok(Address::Ssliop {
            version,
            host,
            port,
        });
    }
    let protocol = scheme(text, "iiop:").or_else(|| scheme(text, ":"));
    let protocol = protocol.ok_or(ReferenceError::expected(
        at,
        "iiop:, :, ssliop:, omniunix:, shm: or rir:",
    ))?;
    let (version, host, port) = versioned_host(text, protocol, at, Version::V1_0)?;
    Ok(Address::Iiop {
        version,
        host,
        port,
    })
}

/// `1.2@host:port`, which begins at `from` of `text`.
fn versioned_host(
    text: &str,
    from: usize,
    at: usize,
    usual: Version,
) -> Result<(Version, String, u16), ReferenceError> {
    let (version, host_at) = match text[from..].find('@') {
        Some(sign) => (
            version(&text[from..from + sign], at + from)?,
            from + sign + 1,
        ),
        None => (usual, from),
    };
    let (host, port) = host_and_port(&text[host_at..], at + host_at)?;
    Ok((version, host, port))
}

fn version(text: &str, at: usize) -> Result<Version, ReferenceError> {
    match text {
        "1.0" => Ok(Version::V1_0),
        "1.1" => Ok(Version::V1_1),
        // Later minor versions are used as 1.2, which they contain.
        "1.2" | "1.3" | "1.4" => Ok(Version::V1_2),
        _ => Err(ReferenceError::expected(
            at,
            "an IIOP version from 1.0 to 1.4",
        )),
    }
}

fn host_and_port(text: &str, at: usize) -> Result<(String, u16), ReferenceError> {
    let (host, rest, rest_at) = match text.strip_prefix('[') {
        Some(inner) => {
            let end = inner.find(']').ok_or(ReferenceError::expected(
                at + text.len(),
                "] after an IPv6 address",
            ))?;
            // A link-local address has a scope: the interface that it is reached through.
            let address = inner[..end]
                .split_once('%')
                .map_or(&inner[..end], |(alone, _)| alone);
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(ReferenceError::expected(at + 1, "an IPv6 address"));
            }
            (&inner[..end], &inner[end + 1..], at + end + 2)
        }
        None => {
            let end = text.find(':').unwrap_or(text.len());
            (&text[..end], &text[end..], at + end)
        }
    };
    // A second `@` is not part of a host: the URL would be read otherwise when written without its default version.
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control() || c == '@') {
        return Err(ReferenceError::expected(at, "a host"));
    }
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => DEFAULT_PORT,
        None => return Err(ReferenceError::expected(rest_at, ": and a port")),
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits
            .parse()
            .map_err(|_| ReferenceError::expected(rest_at + 1, "a port from 0 to 65535"))?,
        Some(_) => {
            return Err(ReferenceError::expected(
                rest_at + 1,
                "a port from 0 to 65535",
            ));
        }
    };
    Ok((host.to_owned(), port))
}

impl FromStr for Corbaloc {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let at = scheme(text, "corbaloc:").ok_or(ReferenceError::expected(0, "corbaloc:"))?;
        Self::parse_at(&text[at..], at)
    }
}

impl fmt::Display for Corbaloc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("corbaloc:")?;
        self.write_location(f)
    }
}

impl Corbaloc {
    /// Addresses and key, without a scheme.
    pub(super) fn write_location(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, address) in self.addresses.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match address {
                Address::InitialReference => f.write_str("rir:")?,
                Address::Unix { version, path } | Address::SharedMemory { version, path } => {
                    f.write_str(match address {
                        Address::Unix { .. } => UNIX,
                        _ => SHARED_MEMORY,
                    })?;
                    // A sign in the path would be taken for that of a version.
                    if *version != Version::V1_2 || path.contains('@') {
                        write!(f, "{version}@")?;
                    }
                    write!(f, "{path}:")?;
                }
                Address::Iiop {
                    version,
                    host,
                    port,
                }
                | Address::Ssliop {
                    version,
                    host,
                    port,
                } => {
                    // Others take another version for the usual one of TLS: it is always told.
                    let is_tls = matches!(address, Address::Ssliop { .. });
                    f.write_str(if is_tls { SSLIOP } else { ":" })?;
                    if is_tls || *version != Version::V1_0 {
                        write!(f, "{version}@")?;
                    }
                    if host.contains(':') {
                        write!(f, "[{host}]:{port}")?
                    } else {
                        write!(f, "{host}:{port}")?
                    }
                }
            }
        }
        if self.key.is_empty() {
            return Ok(());
        }
        f.write_str("/")?;
        write_escaped(&self.key, f)
    }
}

impl TryFrom<&IiopProfile> for Corbaloc {
    type Error = EncodeError;

    /// Returns the URL of a profile with its alternate addresses, those over TLS, unix sockets and shared memory; other
    /// components are lost.
    fn try_from(profile: &IiopProfile) -> Result<Self, EncodeError> {
        let version = Version::from_minor(profile.minor.min(2)).unwrap_or(Version::V1_2);
        let can_be_said = |path: &String| !path.contains([':', ',']) && !path.is_empty();
        let shared = profile.shared_memory_addresses().map(|(_, path)| path);
        let shared = shared.filter(can_be_said);
        let shared = shared.map(|path| Address::SharedMemory { version, path });
        let sockets = profile.unix_addresses().map(|(_, path)| path);
        let sockets = sockets.filter(can_be_said);
        let sockets = sockets.map(|path| Address::Unix { version, path });
        let tls = profile.tls_addresses().into_iter();
        let tls = tls.filter(|(host, _)| alternate_address(host, 0).is_ok());
        let tls = tls.map(|(host, port)| Address::Ssliop {
            version,
            host,
            port,
        });
        let sockets = sockets.chain(shared).chain(tls);
        let sockets: Vec<_> = sockets.filter(|_| version != Version::V1_0).collect();
        // The port of a profile that has only other addresses is not valid.
        let tcp = profile.addresses();
        let tcp = tcp.filter(|(_, port)| *port != 0 || sockets.is_empty());
        let tcp = tcp.map(|(host, port)| {
            // A host name that is too long for an address component is too long for the URL.
            alternate_address(&host, port).map(|_| Address::Iiop {
                version,
                host,
                port,
            })
        });
        Ok(Self {
            addresses: tcp
                .chain(sockets.iter().cloned().map(Ok))
                .collect::<Result<_, _>>()?,
            key: profile.object_key.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
