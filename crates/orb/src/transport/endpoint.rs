//! Addresses of servers, and their text form.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;

use crate::rt::protocol_type;

/// The address of a server. `Display` writes `host:port`, `tls:host:port`, `unix:/path` or `shm:/path`; `FromStr` reads
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Endpoint {
    /// TCP.
    Tcp {
        /// Name or address of the host; an IPv6 address without brackets.
        host: String,
        /// The port; a listener at port 0 gets any free one.
        port: u16,
    },
    /// TLS over TCP.
    Tls {
        /// Name or address of the host; an IPv6 address without brackets. The server's certificate has to name it.
        host: String,
        /// The port; a listener at port 0 gets any free one.
        port: u16,
    },
    /// A unix socket, for processes of the same host.
    Unix {
        /// The name of that host; empty for this one.
        host: String,
        /// The path of the socket.
        path: String,
    },
    /// Shared memory, for processes of the same host.
    SharedMemory {
        /// The name of that host; empty for this one.
        host: String,
        /// The path of the socket through which connections are set up.
        path: String,
    },
}

/// The default address to listen at.
pub(crate) const ANY_ADDRESS: &str = "0.0.0.0";

/// Every address of IPv6 and IPv4.
pub(crate) const ANY_ADDRESS_IPV6: &str = "::";

/// The text forms of endpoints.
pub(crate) const ENDPOINT_FORM: &str = concat!(
    "host:port, :port, [address]:port, giop:tcp:host:port, iiop://host:port, ",
    "tls:host:port, unix:/path, or shm:/path",
);

/// The text is no endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointMalformed;

impl Endpoint {
    /// A TCP endpoint.
    #[must_use]
    pub fn tcp(host: &str, port: u16) -> Self {
        Self::Tcp {
            host: host.to_owned(),
            port,
        }
    }

    /// An endpoint of TLS over TCP.
    #[must_use]
    pub fn tls(host: &str, port: u16) -> Self {
        Self::Tls {
            host: host.to_owned(),
            port,
        }
    }

    /// The address part of a `corbaloc:` URL: between `corbaloc:` and `/` with the key.
    #[must_use]
    pub fn url_address(&self) -> String {
        match self {
            Self::Tcp { .. } => format!(":{self}"),
            Self::Tls { host, port } => format!("ssliop:1.2@{}", Self::tcp(host, *port)),
            Self::Unix { path, .. } => format!("omniunix:{path}:"),
            Self::SharedMemory { path, .. } => format!("shm:{path}:"),
        }
    }

    /// Whether to begin to connect takes no time: an address needs no resolver, and no process has to accept. A
    /// handshake of TLS waits for its peer.
    pub(crate) fn connects_at_once(&self) -> bool {
        match self {
            Self::Tcp { .. } => !self.needs_resolver(),
            Self::Tls { .. } | Self::Unix { .. } | Self::SharedMemory { .. } => false,
        }
    }

    /// The host of a local endpoint, which only processes of that host can use.
    pub(crate) fn host_of_local(&self) -> Option<&str> {
        match self {
            Self::Tcp { .. } | Self::Tls { .. } => None,
            Self::Unix { host, .. } | Self::SharedMemory { host, .. } => Some(host),
        }
    }

    /// The rank by which a caller tries the addresses of a profile: the cheapest first, and TLS before plain TCP.
    pub(crate) const fn rank(&self) -> u8 {
        match self {
            Self::SharedMemory { .. } => 0,
            Self::Unix { .. } => 1,
            Self::Tls { .. } => 2,
            Self::Tcp { .. } => 3,
        }
    }

    /// Whether it has the name of a host in place of an address.
    pub(crate) fn needs_resolver(&self) -> bool {
        match self {
            Self::Tcp { host, .. } | Self::Tls { host, .. } => {
                let address = host
                    .split_once('%')
                    .map_or(host.as_str(), |(address, _)| address);
                address.parse::<IpAddr>().is_err()
            }
            Self::Unix { .. } | Self::SharedMemory { .. } => false,
        }
    }

    /// The address of a listener that was configured with this endpoint. The scope of a link-local address
    /// (`fe80::1%eth0`) stays as configured, because interface numbers mean nothing to other hosts.
    pub(crate) fn as_listened(&self, listener: Self) -> Self {
        match (self, listener) {
            (Self::Tcp { host, .. }, Self::Tcp { port, .. }) if host.contains('%') => {
                Self::tcp(host, port)
            }
            (Self::Tls { host, .. }, Self::Tls { port, .. }) if host.contains('%') => {
                Self::tls(host, port)
            }
            (_, listener) => listener,
        }
    }

    /// Its protocol, by the numbers of the real-time policies.
    #[must_use]
    pub const fn protocol_type(&self) -> u32 {
        match self {
            Self::Tcp { .. } | Self::Tls { .. } => protocol_type::TCP,
            Self::Unix { .. } => protocol_type::UNIX_DOMAIN,
            Self::SharedMemory { .. } => protocol_type::SHARED_MEMORY,
        }
    }

    /// The TCP port, if it has one.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp { port, .. } | Self::Tls { port, .. } => Some(*port),
            Self::Unix { .. } | Self::SharedMemory { .. } => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Tls { host, port } => write!(f, "tls:{}", Self::tcp(host, *port)),
            Self::Unix { path, .. } => write!(f, "unix:{path}"),
            Self::SharedMemory { path, .. } => write!(f, "shm:{path}"),
        }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointMalformed;

    /// Reads `host:port`, `:port`, `unix:/path` with omniORB's spellings of them, `tls:host:port` with TAO's and
    /// omniORB's, and `shm:/path`. A relative path is relative to the working directory.
    fn from_str(text: &str) -> Result<Self, EndpointMalformed> {
        let after = |forms: [&str; 2]| forms.iter().find_map(|form| text.strip_prefix(form));
        let host = String::new();
        let read = if let Some(path) = after(["unix:", "giop:unix:"]) {
            absolute(path).map(|path| Self::Unix { host, path })
        } else if let Some(path) = after(["shm:", "deckwatch:shm:"]) {
            absolute(path).map(|path| Self::SharedMemory { host, path })
        } else if let Some(place) = TLS_FORMS.iter().find_map(|form| text.strip_prefix(form)) {
            host_and_port(place).map(|(host, port)| Self::tls(host, port))
        } else {
            tcp(text)
        };
        read.ok_or(EndpointMalformed)
    }
}

/// Paths are made absolute, because references carry them to processes with other working directories. A path with a
/// null is refused: it would end there.
fn absolute(path: &str) -> Option<String> {
    let absolute = std::path::absolute(Path::new(path)).ok()?;
    let text = absolute.into_os_string().into_string().ok();
    text.filter(|path| !path.contains('\0'))
}

/// What stands before the address of TLS over TCP.
const TLS_FORMS: [&str; 4] = ["tls:", "giop:ssl:", "ssliop://", "ssliop:"];

fn tcp(text: &str) -> Option<Endpoint> {
    let text = ["iiop://", "giop:tcp:", "tcp://"]
        .iter()
        .find_map(|form| text.strip_prefix(form))
        .unwrap_or(text);
    host_and_port(text).map(|(host, port)| Endpoint::tcp(host, port))
}

/// The host, by default every address, and the port, by default any.
fn host_and_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let bracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    if bracketed.is_none() && host.contains([':', '/']) {
        return None;
    }
    let host = bracketed.unwrap_or(host);
    let port = if port.is_empty() {
        0
    } else {
        port.parse().ok()?
    };
    Some((if host.is_empty() { ANY_ADDRESS } else { host }, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_in_each_of_their_forms() {
        for (text, host, port) in [
            ("ship:2809", "ship", 2809),
            (":2809", ANY_ADDRESS, 2809),
            ("iiop://10.0.0.1:", "10.0.0.1", 0),
            ("giop:tcp::2809", ANY_ADDRESS, 2809),
            ("giop:tcp:ship:2809", "ship", 2809),
            ("[::1]:2809", "::1", 2809),
            ("[fe80::1%eth0]:2809", "fe80::1%eth0", 2809),
        ] {
            assert_eq!(text.parse(), Ok(Endpoint::tcp(host, port)), "{text}");
        }
        for (text, host, port) in [
            ("tls:ship:2810", "ship", 2810),
            ("ssliop:ship:2810", "ship", 2810),
            ("ssliop://[::1]:2810", "::1", 2810),
            ("giop:ssl::2810", ANY_ADDRESS, 2810),
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint, Endpoint::tls(host, port), "{text}");
            assert_eq!(endpoint.to_string().parse(), Ok(endpoint), "{text}");
        }
        for text in ["unix:/run/nav.sock", "giop:unix:/run/nav.sock"] {
            let endpoint: Endpoint = text.parse().unwrap();
            let expected = Endpoint::Unix {
                host: String::new(),
                path: "/run/nav.sock".to_owned(),
            };
            assert_eq!(endpoint, expected);
            assert_eq!(endpoint.to_string(), "unix:/run/nav.sock");
        }
        for text in ["shm:/run/nav", "deckwatch:shm:/run/nav"] {
            let endpoint: Endpoint = text.parse().unwrap();
            let expected = Endpoint::SharedMemory {
                host: String::new(),
                path: "/run/nav".to_owned(),
            };
            assert_eq!(endpoint, expected);
            assert_eq!(endpoint.to_string(), "shm:/run/nav");
        }
        let wrong = [
            "",
            "shm:",
            "ship",
            "::1:2809",
            "ship:two",
            "ship:70000",
            "unix:",
            "unix:/a\0b",
            "uiop:///tmp/x:1",
            "tls:ship",
            "tls:::1:2809",
        ];
        for wrong in wrong {
            assert_eq!(wrong.parse::<Endpoint>(), Err(EndpointMalformed), "{wrong}");
        }
    }

    #[test]
    fn a_path_is_made_absolute_for_those_who_work_elsewhere() {
        let endpoint: Endpoint = "unix:nav.sock".parse().unwrap();
        let here = std::env::current_dir().unwrap().join("nav.sock");
        assert_eq!(endpoint.to_string(), format!("unix:{}", here.display()));
    }
}
