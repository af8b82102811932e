//! `deckwatch channel --store`: the file, and the port that is kept in it.

use std::path::Path;

use anyhow::Context as _;
use deckwatch_event::ChannelStore;
use deckwatch_orb::Orb;

use crate::output::{errln, tell_rights};

/// Opens the store. If `listen` leaves the port open, sets it to that of the channel's earlier lives.
pub(super) fn open(file: &Path, listen: &mut String) -> anyhow::Result<ChannelStore> {
    let unusable = || format!("cannot use the store {}", file.display());
    let store = ChannelStore::open(file).with_context(unusable)?;
    tell_rights(file, store.rights_taken());
    for proxy in store.damaged_proxies() {
        errln!(
            "warning: the record of proxy {proxy:#x} in {} is damaged: its client is left out, and has to connect again",
            file.display()
        );
    }
    let port = store.port().with_context(unusable)?;
    if let (Some(port), Some(host)) = (port, listen.strip_suffix(":0")) {
        *listen = format!("{host}:{port}");
    }
    Ok(store)
}

/// Keeps the port at which the ORB listens.
pub(super) fn keep_port(store: &ChannelStore, orb: &Orb) -> anyhow::Result<()> {
    let port = orb.endpoints().iter().find_map(|endpoint| endpoint.port());
    match port {
        Some(port) => Ok(store.keep_port(port)?),
        None => Ok(()),
    }
}
