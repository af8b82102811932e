//! Testbeds on this machine: lists them with their owners, and removes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use deckwatch_os::namespace::{NAMED_NAMESPACES, Namespace, NamespaceIdentity, kill_process};

use serde::Serialize;

use crate::TestbedError;
use crate::owner::Owner;
use crate::port::Port;
use crate::recipe;
use crate::tool::Tool;

/// A testbed found by the names of its namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The owner of the testbed.
    pub owner: Owner,
    /// The names of its hosts, in alphabetical order.
    pub hosts: Vec<String>,
    /// All its namespaces, including the switch's.
    pub namespaces: Vec<String>,
}

impl Standing {
    /// Removes the testbed: kills the processes inside and removes the namespaces.
    ///
    /// # Errors
    /// [`TestbedError::ToolFailed`] when a namespace could not be removed, [`TestbedError::ToolAbsent`].
    pub fn take_down(&self) -> Result<(), TestbedError> {
        remove_namespaces(&self.namespaces)
    }

    /// Returns a description of the testbed for printing.
    #[must_use]
    pub fn describe(&self) -> StandingDescription {
        let host = |name: &String| HostDescription {
            name: name.clone(),
            address: self.address_of(name),
            namespace: self.owner.host_name(name),
        };
        StandingDescription {
            name: self.owner.to_string(),
            number: self.owner.number,
            kept: self.owner.is_kept(),
            owner_pid: self.owner.pid,
            owner_has_ended: self.owner.has_ended(),
            hosts: self.hosts.iter().map(host).collect(),
        }
    }

    /// Returns the address of one of its hosts, read inside the host's namespace. Returns `None` if there is no such
    /// host, or if this process may not enter the namespace.
    #[must_use]
    pub fn address_of(&self, host: &str) -> Option<Ipv4Addr> {
        let namespace = Namespace::named(&self.namespace_of(host)?).ok()?;
        let address = || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            socket.connect((recipe::SWITCH_ADDRESS, ANY_PORT))?;
            socket.local_addr()
        };
        match namespace.run_inside(address).ok()?.ok()?.ip() {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        }
    }

    /// Returns the switch port through which frames reach one of its hosts; faults are injected there.
    ///
    /// # Errors
    /// [`TestbedError::NoSuchHost`]; [`TestbedError::System`] when its namespaces may not be entered; as
    /// [`Port::hold`].
    pub fn port(&self, host: &str) -> Result<Port, TestbedError> {
        let address = self
            .address_of(host)
            .ok_or_else(|| TestbedError::NoSuchHost {
                name: host.to_owned(),
            })?;
        let switch = open(&self.owner.switch_name())?;
        Port::find(switch, recipe::port_of_address(address))
    }

    /// Returns the name of the namespace of one of its hosts.
    #[must_use]
    pub fn namespace_of(&self, host: &str) -> Option<String> {
        let known = self.hosts.iter().any(|known| known == host);
        known.then(|| self.owner.host_name(host))
    }
}

/// A testbed in words and numbers, for printing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StandingDescription {
    /// The head of its namespaces' names.
    pub name: String,
    /// Which of its owner's testbeds.
    pub number: u32,
    /// Whether it is kept until it is taken down: no process owns it.
    pub kept: bool,
    /// The owner's process id; 0 for a kept one.
    pub owner_pid: u32,
    /// Whether the owner has ended, so that [`clean`] would take it down.
    pub owner_has_ended: bool,
    /// Its hosts.
    pub hosts: Vec<HostDescription>,
}

/// One host of a [`StandingDescription`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostDescription {
    /// Its name.
    pub name: String,
    /// Its address; None without the privilege to ask.
    pub address: Option<Ipv4Addr>,
    /// The name of its namespace, as `ip netns` lists it.
    pub namespace: String,
}

/// Returns all testbeds on this machine, this process's own included, ordered by owner.
#[must_use]
pub fn standing() -> Vec<Standing> {
    // Without this folder no namespace has a name on this machine.
    let Ok(folder) = fs::read_dir(NAMED_NAMESPACES) else {
        return Vec::new();
    };
    let names: BTreeSet<String> = folder
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    group(&names)
}

/// Removes the testbeds of processes that have ended, and returns them. Testbeds that have a living owner, or are kept,
/// stay.
///
/// # Errors
/// As [`Standing::take_down`]. After an error, the namespaces that could be removed are removed.
pub fn clean() -> Result<Vec<Standing>, TestbedError> {
    let left: Vec<Standing> = standing()
        .into_iter()
        .filter(|found| found.owner.has_ended())
        .collect();
    let names: Vec<String> = left
        .iter()
        .flat_map(|found| found.namespaces.clone())
        .collect();
    remove_namespaces(&names)?;
    Ok(left)
}

/// Removes kept testbeds ([`crate::Testbed::create_kept`]), one by its number or all, and returns them.
///
/// # Errors
/// [`TestbedError::NotKept`]; as [`Standing::take_down`].
pub fn take_down_kept(number: Option<u32>) -> Result<Vec<Standing>, TestbedError> {
    let mut kept = standing();
    kept.retain(|found| {
        found.owner.is_kept() && number.is_none_or(|number| found.owner.number == number)
    });
    match number {
        Some(number) if kept.is_empty() => return Err(TestbedError::NotKept { number }),
        _ => {}
    }
    for found in &kept {
        found.take_down()?;
    }
    Ok(kept)
}

/// Returns the namespace of a host of any testbed. If several testbeds have such a host, `testbed` selects one by name.
///
/// # Errors
/// [`TestbedError::NoSuchHost`], [`TestbedError::AmbiguousHost`]; [`TestbedError::System`] when the namespace may not
/// be opened.
pub fn find_host(host: &str, testbed: Option<&str>) -> Result<Namespace, TestbedError> {
    open(&find(host, testbed)?.owner.host_name(host))
}

/// Returns the switch port of a host of any testbed, selected as by [`find_host`].
///
/// # Errors
/// As [`find_host`] and [`Standing::port`].
pub fn find_port(host: &str, testbed: Option<&str>) -> Result<Port, TestbedError> {
    find(host, testbed)?.port(host)
}

fn find(host: &str, testbed: Option<&str>) -> Result<Standing, TestbedError> {
    let mut found = standing();
    found.retain(|found| {
        testbed.is_none_or(|name| found.owner.to_string() == name)
            && found.namespace_of(host).is_some()
    });
    let name = host.to_owned();
    match found.len() {
        0 => Err(TestbedError::NoSuchHost { name }),
        1 => Ok(found.remove(0)),
        _ => Err(TestbedError::AmbiguousHost {
            name,
            namespaces: found
                .iter()
                .map(|found| found.owner.host_name(host))
                .collect(),
        }),
    }
}

pub(crate) fn open(name: &str) -> Result<Namespace, TestbedError> {
    Namespace::named(name).map_err(TestbedError::system(format!(
        "Opening the namespace `{name}`"
    )))
}

/// Kills every process in these namespaces and removes them. Names that no longer exist are ignored.
pub(crate) fn remove_namespaces(names: &[String]) -> Result<(), TestbedError> {
    if names.is_empty() {
        return Ok(());
    }
    end_processes_inside(names);
    let removed = Tool::Ip.run(
        None,
        &["-force", "-batch", "-"],
        &recipe::removal(names.iter().map(String::as_str)),
    );
    let left = names
        .iter()
        .any(|name| fs::exists(format!("{NAMED_NAMESPACES}/{name}")).unwrap_or(true));
    // Another process may have removed them first; that is no error.
    if left { removed.map(drop) } else { Ok(()) }
}

/// Any port will do: the socket is connected but never sends.
const ANY_PORT: u16 = 9;

fn end_processes_inside(names: &[String]) {
    let inside: BTreeSet<NamespaceIdentity> = names
        .iter()
        .filter_map(|name| Namespace::named(name).ok())
        .map(|namespace| namespace.identity())
        .collect();
    let Ok(processes) = fs::read_dir("/proc") else {
        return;
    };
    let own = std::process::id();
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    for pid in pids.filter(|&pid| pid != own) {
        if NamespaceIdentity::of_process(pid).is_ok_and(|identity| inside.contains(&identity)) {
            // The process may have ended meanwhile.
            let _ = kill_process(pid);
        }
    }
}

fn group(names: &BTreeSet<String>) -> Vec<Standing> {
    let mut found: BTreeMap<Owner, Standing> = BTreeMap::new();
    for name in names {
        let Some((owner, host)) = Owner::parse(name) else {
            continue;
        };
        let standing = found.entry(owner).or_insert_with(|| Standing {
            owner,
            hosts: Vec::new(),
            namespaces: Vec::new(),
        });
        standing.namespaces.push(name.clone());
        standing.hosts.extend(host.map(str::to_owned));
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_grouped_by_owner_and_those_of_others_left_out() {
        let names = [
            "blue",
            "dw1-a-0",
            "dw1-a-0-RTS",
            "dw1-a-0-SONAR",
            "dw1-a-1-RTS",
            "dw0-0-2-RTS",
        ];
        let found = group(&names.map(str::to_owned).into());
        assert_eq!(found.len(), 3);
        assert!(found[0].owner.is_kept());
        assert_eq!(found[1].hosts, ["RTS", "SONAR"]);
        assert_eq!(found[1].namespaces.len(), 3);
        assert_eq!(
            found[1].namespace_of("SONAR").as_deref(),
            Some("dw1-a-0-SONAR")
        );
        assert_eq!(found[2].namespace_of("SONAR"), None);
    }
}
