//! Memory: whether pages of a real-time thread stay resident.

use deckwatch_os::namespace::Capability;

use super::{Finding, Root};

pub(super) fn findings(root: &Root) -> Vec<Finding> {
    [Some(locking(root)), Some(swap(root)), huge_pages(root)]
        .into_iter()
        .flatten()
        .collect()
}

fn locking(root: &Root) -> Finding {
    const ENOUGH_BYTES: u64 = 64 << 20;
    let limit = root.limit("Max locked memory").unwrap_or(0);
    let unlimited = limit == u64::MAX || root.holds(Capability::IpcLock);
    let value = if unlimited {
        "unlimited".to_owned()
    } else {
        format!("{} KiB (RLIMIT_MEMLOCK)", limit >> 10)
    };
    Finding::new(
        "locked memory",
        "A page that is not locked can be evicted, and its next use waits for a disk.",
        value,
    )
    .note_if(
        !unlimited && limit < ENOUGH_BYTES,
        "echo \"$USER - memlock unlimited\" | sudo tee -a /etc/security/limits.d/deckwatch.conf, and log in again",
    )
}

fn swap(root: &Root) -> Finding {
    // The first line is the heading.
    let areas = root
        .read("proc/swaps")
        .map_or(0, |swaps| swaps.lines().skip(1).count());
    let value = match areas {
        0 => "none".to_owned(),
        areas => format!("{areas} in use"),
    };
    Finding::new(
        "swap",
        "A page that is not locked may be on a disk when a message comes.",
        value,
    )
    .note_if(
        areas > 0,
        "sudo swapoff -a, or lock memory in the mission file",
    )
}

fn huge_pages(root: &Root) -> Option<Finding> {
    let choice = root.choice("sys/kernel/mm/transparent_hugepage/enabled")?;
    let always = choice == "always";
    let finding = Finding::new(
        "transparent huge pages",
        "The kernel stops a process while it collects small pages into a huge one.",
        choice,
    );
    Some(finding.note_if(
        always,
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    ))
}
