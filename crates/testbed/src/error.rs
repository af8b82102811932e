//! What can go wrong with a testbed.

use std::io;

use crate::limits;

/// Why a testbed could not be made, changed or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestbedError {
    /// No network of that name.
    #[error("There is no network called `{name}`. Name one of {known}.")]
    UnknownNetwork {
        /// The name asked for.
        name: String,
        /// The names of all networks.
        known: String,
    },
    /// A host's name that cannot name a namespace.
    #[error(
        "`{name}` cannot name a host: 1 to {} letters, digits, `_`, `.` or `-` are needed, with a letter or digit first.",
        limits::HOST_NAME_LEN_MAX
    )]
    HostName {
        /// The name asked for.
        name: String,
    },
    /// Two hosts of one name.
    #[error("The host `{name}` is there twice.")]
    HostTwice {
        /// The name.
        name: String,
    },
    /// No host of that name in this testbed, or in any.
    #[error("There is no host called `{name}`.")]
    NoSuchHost {
        /// The name asked for.
        name: String,
    },
    /// None, or more than [`limits::HOSTS_MAX`].
    #[error("A testbed has 1 to {} hosts, not {count}.", limits::HOSTS_MAX)]
    HostCount {
        /// Hosts asked for.
        count: usize,
    },
    /// Several testbeds have a host of that name.
    #[error("Several testbeds have a host called `{name}`: {}.", namespaces.join(", "))]
    AmbiguousHost {
        /// The name asked for.
        name: String,
        /// The namespaces of those there are.
        namespaces: Vec<String>,
    },
    /// No kept testbed of that number.
    #[error("No testbed {number} is up.")]
    NotKept {
        /// The number asked for.
        number: u32,
    },
    /// [`limits::KEPT_TESTBEDS_MAX`] stand already.
    #[error(
        "{} kept testbeds stand already; take one down with `deckwatch testbed down`.",
        limits::KEPT_TESTBEDS_MAX
    )]
    TooManyKept,
    /// A processor that this process may not use.
    #[error(
        "Host `{host}` asks for processor {processor}, which is not among those this process may use ({allowed:?})."
    )]
    NoSuchProcessor {
        /// The host.
        host: String,
        /// The processor asked for.
        processor: u32,
        /// Those there are.
        allowed: Vec<u32>,
    },
    /// On loopback there is no port to hold, lose or shape.
    #[error("This needs emulated hosts, and there are none: {reason}")]
    OnLoopback {
        /// Why loopback.
        reason: String,
    },
    /// A tool is not installed.
    #[error("`{tool}` is not installed; install it with `apt-get install {package}`.")]
    ToolAbsent {
        /// The command.
        tool: &'static str,
        /// The Debian package it comes in.
        package: &'static str,
    },
    /// A tool refused.
    #[error("`{command}` failed: {speech}")]
    ToolFailed {
        /// The command line.
        command: String,
        /// What it wrote to its standard error.
        speech: String,
    },
    /// The operating system refused.
    #[error("{action}: {source}")]
    System {
        /// What was being done, as the start of a sentence.
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
