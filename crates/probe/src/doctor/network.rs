//! The network: buffers, time stamps, taps, and permission to emulate a network.

use deckwatch_os::namespace::Capability;

use super::{Finding, Root, Trials};

pub(super) fn findings(root: &Root, trials: &Trials) -> Vec<Finding> {
    [
        buffer(root, "receive buffers", "rmem_max"),
        buffer(root, "send buffers", "wmem_max"),
        Some(stamps(trials)),
        Some(tap(root, trials)),
        Some(emulation(root, trials)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn buffer(root: &Root, name: &'static str, setting: &str) -> Option<Finding> {
    const ENOUGH_BYTES: i64 = 4 << 20;
    let max_bytes = root.number(&format!("proc/sys/net/core/{setting}"))?;
    let forced = root.holds(Capability::NetAdmin);
    let value = format!(
        "at most {} KiB{}",
        max_bytes >> 10,
        if forced {
            ", more with CAP_NET_ADMIN, which is held"
        } else {
            ""
        }
    );
    let finding = Finding::new(
        name,
        "A burst that finds the buffer full is lost on the host, and looks like a loss in the network.",
        value,
    );
    let advice = format!("sudo sysctl -w net.core.{setting}={ENOUGH_BYTES}");
    Some(finding.note_if(max_bytes < ENOUGH_BYTES && !forced, advice))
}

fn stamps(trials: &Trials) -> Finding {
    let finding = |value| {
        Finding::new(
            "kernel stamps",
            "The kernel's stamps separate the network's share of a late message from the host's.",
            value,
        )
    };
    match &trials.stamps {
        Ok(()) => finding("in software".to_owned()),
        Err(error) => finding(format!("none: {error}")).note_if(
            true,
            "Layers will be reported together; use a kernel with SO_TIMESTAMPING",
        ),
    }
}

fn tap(root: &Root, trials: &Trials) -> Finding {
    let finding = |value| {
        Finding::new(
            "packet taps",
            "For CORBA and the event channel only a tap shows when a message left a host and reached another.",
            value,
        )
    };
    match &trials.tap {
        Err(_) if trials.isolates => finding(
            "permitted on emulated hosts, in the run's user namespace".to_owned(),
        ),
        Ok(()) => finding("permitted".to_owned()),
        Err(error) => finding(format!("refused: {error}")).note_if(
            true,
            root.or_if_root(
                "Layers will be reported together; run as root, or: sudo setcap cap_net_raw+ep \"$(command -v deckwatch)\"",
                "Layers will be reported together; this user is root, but CAP_NET_RAW is missing: docker run --cap-add NET_RAW",
            ),
        ),
    }
}

fn emulation(root: &Root, trials: &Trials) -> Finding {
    let finding = |value| {
        Finding::new(
            "emulated hosts",
            "Hosts in namespaces on a shaped switch behave like a ship's network; loopback has no network delay.",
            value,
        )
    };
    match &trials.emulation {
        Err(_) if trials.isolates => {
            finding("can be made without root, in the run's user namespace".to_owned())
        }
        Ok(()) => finding("can be made".to_owned()),
        Err(error) => finding(error.clone()).note_if(
            true,
            root.or_if_root(
                "sudo apt-get install iproute2 nftables ethtool, run as root, on a kernel with veth, bridge, tbf, pfifo_fast and nft's bridge family",
                "apt-get install iproute2 nftables ethtool, on a kernel with veth, bridge, tbf, pfifo_fast and nft's bridge family; in a container: docker run --privileged",
            ),
        ),
    }
}
