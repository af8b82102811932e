//! Testbeds on this machine: which there are, who owns them, and how to remove them.

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
    /// Whose it is.
    pub owner: Owner,
    /// Its hosts, by name, in alphabetical order.
    pub hosts: Vec<String>,
    /// All its namespaces, the switch's among them.
    pub namespaces: Vec<String>,
}

impl Standing {
    /// Takes it down: ends the processes inside and removes the namespaces.
    ///
    /// # Errors
    /// [`TestbedError::ToolFailed`] when a namespace could not be removed, [`TestbedError::ToolAbsent`].
    pub fn take_down(&self) -> Result<(), TestbedError> {
        remove_namespaces(&self.namespaces)
    }

    /// All that its reader may want to know.
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

    /// The address of one of its hosts, asked of the host itself; None where there is no such host, or its namespace
    /// may not be entered.
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

    /// The port of its switch through which frames reach one of its hosts, where faults are asked for.
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

    /// The name of the namespace of one of its hosts.
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

/// All testbeds on this machine, this process's own included, in order of their owners.
#[must_use]
pub fn standing() -> Vec<Standing> {
    // No folder: no namespace was ever named here.
    let Ok(folder) = fs::read_dir(NAMED_NAMESPACES) else {
        return Vec::new();
    };
    let names: BTreeSet<String> = folder
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    group(&names)
}

/// Takes down what was left by processes that have ended, and returns it; what has a living owner, or is kept, stays.
///
/// # Errors
/// As [`Standing::take_down`]. What could be taken down was.
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

/// Takes down what [`crate::Testbed::create_kept`] made, one by its number or all, and returns it.
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

/// The namespace of a host of any testbed that stands; of the one called `testbed` where several have such a host.
///
/// # Errors
/// [`TestbedError::NoSuchHost`], [`TestbedError::AmbiguousHost`]; [`TestbedError::System`] when the namespace may not
/// be opened.
pub fn find_host(host: &str, testbed: Option<&str>) -> Result<Namespace, TestbedError> {
    open(&find(host, testbed)?.owner.host_name(host))
}

/// The port of a host of any testbed that stands, in the same way.
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

/// Ends every process in these namespaces and removes them; names that are already gone are passed over.
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
    // Another cleaner may have been quicker; that is no failure.
    if left { removed.map(drop) } else { Ok(()) }
}

/// A socket that is connected and never sends has to name some port.
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
            // It may have ended by itself meanwhile.
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
