//! The errors of testbeds.

use std::io;

use crate::layout::LayoutError;
use crate::limits;

/// Why a testbed could not be created, changed or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestbedError {
    /// No network has this name.
    #[error("There is no network called `{name}`. Name one of {known}.")]
    UnknownNetwork {
        /// The requested name.
        name: String,
        /// The names of all networks.
        known: String,
    },
    /// The host's name is not valid in the name of a namespace.
    #[error(
        "`{name}` cannot name a host: 1 to {} letters, digits, `_`, `.` or `-` are needed, with a letter or digit first.",
        limits::HOST_NAME_LEN_MAX
    )]
    HostName {
        /// The requested name.
        name: String,
    },
    /// Two hosts have the same name.
    #[error("The host `{name}` is there twice.")]
    HostTwice {
        /// The name.
        name: String,
    },
    /// No host has this name, in this testbed or in any.
    #[error("There is no host called `{name}`.")]
    NoSuchHost {
        /// The requested name.
        name: String,
    },
    /// The testbed has no hosts, or more than [`limits::HOSTS_MAX`].
    #[error("A testbed has 1 to {} hosts, not {count}.", limits::HOSTS_MAX)]
    HostCount {
        /// The requested number of hosts.
        count: usize,
    },
    /// Several testbeds have a host of that name.
    #[error("Several testbeds have a host called `{name}`: {}.", namespaces.join(", "))]
    AmbiguousHost {
        /// The requested name.
        name: String,
        /// The namespaces of these hosts.
        namespaces: Vec<String>,
    },
    /// No kept testbed has this number.
    #[error("No testbed {number} is up.")]
    NotKept {
        /// The requested number.
        number: u32,
    },
    /// [`limits::KEPT_TESTBEDS_MAX`] kept testbeds exist already.
    #[error(
        "{} kept testbeds stand already; take one down with `deckwatch testbed down`.",
        limits::KEPT_TESTBEDS_MAX
    )]
    TooManyKept,
    /// The host requests a processor that this process may not use.
    #[error(
        "Host `{host}` asks for processor {processor}, which is not among those this process may use ({allowed:?})."
    )]
    NoSuchProcessor {
        /// The host.
        host: String,
        /// The requested processor.
        processor: u32,
        /// The processors that this process may use.
        allowed: Vec<u32>,
    },
    /// On loopback there is no switch port to hold, lose or shape frames at.
    #[error("This needs emulated hosts, and there are none: {reason}")]
    OnLoopback {
        /// Why the hosts are on loopback.
        reason: String,
    },
    /// Hosts, switches and links are no network.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The relay was killed, or has failed.
    #[error(
        "The relay that carries the frames of the network has ended; no frame passed after that. Repeat the run."
    )]
    RelayEnded,
    /// A tool is not installed.
    #[error("`{tool}` is not installed; install it with `apt-get install {package}`.")]
    ToolAbsent {
        /// The command.
        tool: &'static str,
        /// The Debian package that contains it.
        package: &'static str,
    },
    /// A tool returned an error.
    #[error("`{command}` failed: {speech}")]
    ToolFailed {
        /// The command line.
        command: String,
        /// The tool's output on standard error.
        speech: String,
    },
    /// An operating system call failed.
    #[error("{action}: {source}")]
    System {
        /// The action that failed, as the start of a sentence.
        action: String,
        /// The operating system's error.
        source: io::Error,
    },
}

impl TestbedError {
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::System { action, source }
    }
}
