//! A host: a namespace with an address, and the processors that its processes may use.

use std::net::Ipv4Addr;
use std::process::Command;

use deckwatch_os::namespace::{Namespace, Placement};

use crate::TestbedError;
use crate::bed::Testbed;
use crate::limits::HOST_NAME_LEN_MAX;
use crate::recipe;

/// The description of a host to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSpec {
    /// The name, which is also the last part of the namespace's name.
    pub name: String,
    /// The processors its processes may use; empty for all.
    pub processors: Vec<u32>,
}

impl HostSpec {
    /// A host that may use all processors.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            processors: Vec::new(),
        }
    }

    /// Restricts the host's processes to these processors.
    #[must_use]
    pub fn on(mut self, processors: impl Into<Vec<u32>>) -> Self {
        self.processors = processors.into();
        self
    }

    pub(crate) fn check(&self, allowed: &[u32]) -> Result<(), TestbedError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        let named = self.name.len() <= HOST_NAME_LEN_MAX
            && self.name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && self.name.chars().all(plain);
        if !named {
            let name = self.name.clone();
            return Err(TestbedError::HostName { name });
        }
        match self
            .processors
            .iter()
            .find(|processor| !allowed.contains(processor))
        {
            None => Ok(()),
            Some(&processor) => Err(TestbedError::NoSuchProcessor {
                host: self.name.clone(),
                processor,
                allowed: allowed.to_vec(),
            }),
        }
    }
}

/// A host of a testbed.
#[derive(Clone, Debug)]
pub struct Host {
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
    pub(crate) processors: Vec<u32>,
    pub(crate) place: Place,
}

/// Where a host's processes run.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In a namespace, on a port of the switch (counted from 1).
    Port {
        name: String,
        namespace: Namespace,
        port: usize,
    },
    /// In the namespace of this process, with an own loopback address.
    Loopback,
}

impl Host {
    /// The name from its [`HostSpec`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The host's address: from 198.18.0.0/16 (RFC 2544) for a host in a namespace, from 127.0.0.0/8 on loopback.
    #[must_use]
    pub const fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The processors its processes may use; empty for all.
    #[must_use]
    pub fn processors(&self) -> &[u32] {
        &self.processors
    }

    /// The host's namespace; `None` on loopback.
    #[must_use]
    pub const fn namespace(&self) -> Option<&Namespace> {
        match &self.place {
            Place::Port { namespace, .. } => Some(namespace),
            Place::Loopback => None,
        }
    }

    /// The name of the host's namespace, as `ip netns` lists it; `None` on loopback.
    #[must_use]
    pub fn namespace_name(&self) -> Option<&str> {
        match &self.place {
            Place::Port { name, .. } => Some(name),
            Place::Loopback => None,
        }
    }

    /// Returns the words in front of a command that a user gives on this machine, so that it runs in the host's
    /// namespace; empty on loopback. `process` is one of the host's processes: the namespaces of a process that has a
    /// user namespace of its own have no name outside of it.
    #[must_use]
    pub fn entering_words(&self, process: u32) -> String {
        match self.namespace_name() {
            None => String::new(),
            Some(_) if Testbed::is_isolated() => {
                format!("nsenter --target {process} --user --net --preserve-credentials ")
            }
            Some(name) => format!("ip netns exec {name} "),
        }
    }

    /// The interfaces on which the host's messages can be captured.
    #[must_use]
    pub const fn interfaces(&self) -> &'static [&'static str] {
        match self.place {
            Place::Port { .. } => &[recipe::INTERFACE, recipe::FRONT_INTERFACE, "lo"],
            Place::Loopback => &["lo"],
        }
    }

    /// Returns the placement of the host's processes: in its namespace, on its processors, and in a new process group.
    /// Such a process is killed when the thread that started it ends.
    #[must_use]
    pub fn placement(&self) -> Placement {
        Placement {
            namespace: self.namespace().cloned(),
            processors: self.processors.clone(),
            dies_with_parent: true,
            own_group: true,
            ..Placement::default()
        }
    }

    /// Configures `command` so that its children run on this host, see [`Self::placement`].
    ///
    /// # Errors
    /// [`TestbedError::System`] for a processor number that no processor set can hold.
    pub fn place(&self, command: &mut Command) -> Result<(), TestbedError> {
        let placing = TestbedError::system(format!("Placing a process on host `{}`", self.name));
        self.placement().apply(command).map_err(placing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_name_a_namespace_are_refused() {
        for name in ["", "..", "-a", "a/b", "a b", "ä", &"x".repeat(33)] {
            assert!(HostSpec::new(name).check(&[0]).is_err(), "{name}");
        }
        for name in ["RTS", "own-ship.2", "3"] {
            HostSpec::new(name).check(&[0]).unwrap();
        }
    }

    #[test]
    fn a_processor_that_may_not_be_used_is_refused_by_name() {
        let error = HostSpec::new("RTS").on([0, 7]).check(&[0, 1]).unwrap_err();
        assert!(error.to_string().contains("processor 7"), "{error}");
    }
}
