//! Where a server can be reached, and how people write it.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::rt::protocol_type;

/// Where a server can be reached: `Display` is `host:port`, `unix:/path` or `shm:/path`, which `FromStr` reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Endpoint {
    /// By TCP.
    Tcp {
        /// Name or address of the host; an IPv6 address without brackets.
        host: String,
        /// The port; 0 asks for any free one when listening.
        port: u16,
    },
    /// By a unix socket, from processes of the same host.
    Unix {
        /// The name of that host; empty where it is this one.
        host: String,
        /// Where the socket stands in the file system.
        path: String,
    },
    /// Through shared memory, from processes of the same host.
    SharedMemory {
        /// The name of that host; empty where it is this one.
        host: String,
        /// Where the socket stands at which a connection comes about.
        path: String,
    },
}

/// Where to listen when nothing else is said.
pub(crate) const ANY_ADDRESS: &str = "0.0.0.0";

/// Every address of IPv6, and of IPv4 besides.
pub(crate) const ANY_ADDRESS_IPV6: &str = "::";

/// How endpoints are written.
pub(crate) const ENDPOINT_FORM: &str = "host:port, :port, [address]:port, giop:tcp:host:port, iiop://host:port, unix:/path, or shm:/path";

/// A text is no endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointMalformed;

impl Endpoint {
    /// An endpoint of TCP.
    #[must_use]
    pub fn tcp(host: &str, port: u16) -> Self {
        Self::Tcp {
            host: host.to_owned(),
            port,
        }
    }

    /// The address in a `corbaloc:` URL: `corbaloc:` before it, `/` and a key behind it.
    #[must_use]
    pub fn url_address(&self) -> String {
        match self {
            Self::Tcp { .. } => format!(":{self}"),
            Self::Unix { path, .. } => format!("omniunix:{path}:"),
            Self::SharedMemory { path, .. } => format!("shm:{path}:"),
        }
    }

    /// The host whose processes alone reach it.
    pub(crate) fn host_of_local(&self) -> Option<&str> {
        match self {
            Self::Tcp { .. } => None,
            Self::Unix { host, .. } | Self::SharedMemory { host, .. } => Some(host),
        }
    }

    /// The order in which a caller tries the addresses of a profile: the cheapest first.
    pub(crate) const fn rank(&self) -> u8 {
        match self {
            Self::SharedMemory { .. } => 0,
            Self::Unix { .. } => 1,
            Self::Tcp { .. } => 2,
        }
    }

    /// What a listener that was asked for at this endpoint is reached by: the scope of a link-local address (`fe80::1%eth0`) is kept
    /// as it was written, since numbers of interfaces mean nothing to others.
    pub(crate) fn as_listened(&self, listener: Self) -> Self {
        match (self, listener) {
            (Self::Tcp { host, .. }, Self::Tcp { port, .. }) if host.contains('%') => {
                Self::tcp(host, port)
            }
            (_, listener) => listener,
        }
    }

    /// The protocol it is reached by, as real-time policies number them.
    #[must_use]
    pub const fn protocol_type(&self) -> u32 {
        match self {
            Self::Tcp { .. } => protocol_type::TCP,
            Self::Unix { .. } => protocol_type::UNIX_DOMAIN,
            Self::SharedMemory { .. } => protocol_type::SHARED_MEMORY,
        }
    }

    /// The TCP port, if it has one.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp { port, .. } => Some(*port),
            Self::Unix { .. } | Self::SharedMemory { .. } => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix { path, .. } => write!(f, "unix:{path}"),
            Self::SharedMemory { path, .. } => write!(f, "shm:{path}"),
        }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointMalformed;

    /// Reads `host:port`, `:port`, `unix:/path` and omniORB's spelling of them, and `shm:/path`; a path that is not absolute is one of the working directory.
    fn from_str(text: &str) -> Result<Self, EndpointMalformed> {
        let after = |forms: [&str; 2]| forms.iter().find_map(|form| text.strip_prefix(form));
        let host = String::new();
        let read = if let Some(path) = after(["unix:", "giop:unix:"]) {
            absolute(path).map(|path| Self::Unix { host, path })
        } else if let Some(path) = after(["shm:", "deckwatch:shm:"]) {
            absolute(path).map(|path| Self::SharedMemory { host, path })
        } else {
            tcp(text)
        };
        read.ok_or(EndpointMalformed)
    }
}

/// References carry the path to processes that work elsewhere; a null would end it for them.
fn absolute(path: &str) -> Option<String> {
    let absolute = std::path::absolute(Path::new(path)).ok()?;
    let text = absolute.into_os_string().into_string().ok();
    text.filter(|path| !path.contains('\0'))
}

fn tcp(text: &str) -> Option<Endpoint> {
    let text = ["iiop://", "giop:tcp:", "tcp://"]
        .iter()
        .find_map(|form| text.strip_prefix(form))
        .unwrap_or(text);
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
    Some(Endpoint::tcp(
        if host.is_empty() { ANY_ADDRESS } else { host },
        port,
    ))
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
