//! `deckwatch channel --group`: a member of a group of processes that serve one real-time channel.

use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, bail};
use deckwatch_access::{Network, Rule, Who};
use deckwatch_event::rt::{RtChannelOptions, RtEventChannel};
use deckwatch_event::{ChannelStore, GroupOptions, MEMBER_OPERATIONS, RtGroupMember, Standing};
use deckwatch_orb::{ObjectRef, Orb};

use super::real_time;
use crate::output::errln;

/// A member, and the standing that it has printed last.
pub(super) struct Member {
    member: RtGroupMember,
    addresses: Vec<String>,
    told: Mutex<Option<Standing>>,
}

/// Starts a member. Its place is that of `listen` in the list.
pub(super) fn start(
    orb: &Orb,
    options: RtChannelOptions,
    (addresses, listen): (&[String], &str),
    store: Option<ChannelStore>,
) -> anyhow::Result<Member> {
    let place = addresses.iter().position(|address| address == listen);
    let Some(place) = place else {
        bail!(
            "--listen {listen} is no member of --group {}: write one of its addresses",
            addresses.join(",")
        );
    };
    let members: anyhow::Result<Vec<_>> = addresses.iter().map(|text| address(text)).collect();
    let group = GroupOptions {
        members: members?,
        place,
    };
    let store = match store {
        Some(store) => store,
        None => ChannelStore::in_memory()?,
    };
    let member = RtGroupMember::start(orb, options, group, store);
    Ok(Member {
        member: member.context("cannot start: a group has 2 to 8 members")?,
        addresses: addresses.to_vec(),
        told: Mutex::default(),
    })
}

/// The rule for a channel without a table: the members of its group may call each other. `None` without a group.
pub(super) fn members(addresses: &[String]) -> Option<Rule> {
    let mut who = Vec::new();
    for text in addresses {
        // A malformed address is refused when the member starts.
        let host = address(text).map_or_else(|_| text.clone(), |(host, _)| host);
        match (host.as_str(), 0).to_socket_addrs() {
            Ok(found) => who.extend(found.filter_map(|at| one(at.ip().to_canonical()))),
            Err(_) => errln!(
                "group: {host} has no address now; its member is refused until this one starts again, or until \
                 --access FILE permits it"
            ),
        }
    }
    (!who.is_empty()).then(|| Rule {
        who,
        operations: MEMBER_OPERATIONS.map(str::to_owned).to_vec(),
        ..Rule::default()
    })
}

/// One address.
fn one(address: IpAddr) -> Option<Who> {
    let prefix = if address.is_ipv4() { 32 } else { 128 };
    Network::around(address, prefix).map(Who::Network)
}

fn address(text: &str) -> anyhow::Result<(String, u16)> {
    let parts = text.rsplit_once(':');
    let parsed = parts.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    match parsed {
        Some((host, port)) if port > 0 && !host.is_empty() => {
            Ok((host.trim_matches(['[', ']']).to_owned(), port))
        }
        _ => bail!("`{text}` is no address of a member: write HOST:PORT"),
    }
}

impl Member {
    pub(super) fn reference(&self) -> &ObjectRef {
        self.member.reference().object()
    }

    /// The channel, if this member is the primary.
    pub(super) fn channel(&self) -> Option<Arc<RtEventChannel>> {
        self.member.channel()
    }

    /// Reports a change of the member's standing, too.
    pub(super) fn has_ended(&self) -> bool {
        let standing = self.member.standing();
        let before = self.told.lock().expect("whole").replace(standing);
        if before != Some(standing) {
            self.tell(standing);
        }
        match standing {
            Standing::Superseded | Standing::Failed => true,
            _ => self.member.channel().is_some_and(|channel| {
                real_time::print_unadmitted(&channel);
                channel.has_ended()
            }),
        }
    }

    fn tell(&self, standing: Standing) {
        match standing {
            Standing::Starting => errln!("group: looking for the primary"),
            Standing::Backup(leader) => errln!("group: backup of {}", self.addresses[leader]),
            Standing::TakingOver => errln!("group: taking over"),
            Standing::Primary(backups) => {
                let counts = self.member.counts();
                errln!(
                    "group: primary with {backups} backups; {} events offered again, backups left out {}",
                    counts.redelivered,
                    counts.backups_lost
                );
            }
            Standing::Leaving => {
                errln!("group: another member is the primary; this one delivers what it has taken")
            }
            _ => errln!("group: this member serves no more"),
        }
    }

    pub(super) fn print_counts(&self) {
        let counts = self.member.counts();
        errln!(
            "group: backups left out {}, pushes not kept to the end {}, events offered again {}",
            counts.backups_lost,
            counts.forgotten,
            counts.redelivered
        );
        if let Some(channel) = self.member.channel() {
            real_time::print_counts(&channel);
        }
    }

    /// # Errors
    /// If the member had to end.
    pub(super) fn check_end(&self) -> anyhow::Result<()> {
        match self.member.standing() {
            Standing::Superseded => bail!(
                "another member has become the primary; start this one again, and it joins as a backup"
            ),
            Standing::Failed => bail!("cannot take over: the clients could not be connected"),
            _ => Ok(()),
        }
    }
}
