//! What this process may have: memory and descriptors, by its control groups, its resource limits, and the machine.

use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

/// Octets of memory that this process may have: the least of the limits of its control groups (`memory.max`, in cgroup
/// v1 `memory.limit_in_bytes`) and of all groups above them, and the memory of the machine. Returns `None` if none of
/// them is known. Other processes of the groups share their limits.
#[must_use]
pub fn memory() -> Option<u64> {
    memory_at(Path::new("/"))
}

/// Octets of addresses that this process may still take: what is left of RLIMIT_AS (`ulimit -v`). Returns `None` if
/// there is no limit.
#[must_use]
pub fn address_space() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    Some(limit.saturating_sub(address_space_used().unwrap_or(0)))
}

/// Octets of addresses that this process has taken.
#[must_use]
pub fn address_space_used() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().next()?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

/// Descriptors that this process may have open: the soft RLIMIT_NOFILE. Returns `None` if there is no limit.
#[must_use]
pub fn open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// The limits that files under `root` state.
fn memory_at(root: &Path) -> Option<u64> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let of_groups = groups.lines().filter_map(|line| group_limit(root, line));
    of_groups.chain(machine(root)).min()
}

/// The least limit of a group in `/proc/self/cgroup` and of the groups above it.
fn group_limit(root: &Path, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let (hierarchy, file) = if controllers.is_empty() {
        ("sys/fs/cgroup", "memory.max")
    } else if controllers.split(',').any(|name| name == "memory") {
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
    } else {
        return None;
    };
    let limit_of = |group: &Path| {
        let folder: PathBuf = root.join(hierarchy).join(group);
        let text = std::fs::read_to_string(folder.join(file)).ok()?;
        // `max`: no limit. In a container the path may be that of the host; its root is then the container's group.
        text.trim().parse().ok()
    };
    let path = Path::new(path.trim_start_matches('/'));
    path.ancestors().filter_map(limit_of).min()
}

/// The memory of the machine.
fn machine(root: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit on a machine that has these files.
    fn limit(name: &str, files: &[(&str, &str)]) -> Option<u64> {
        let root = std::env::temp_dir().join(format!("allowance-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
            std::fs::write(path, text).expect("it is written");
        }
        let limit = memory_at(&root);
        std::fs::remove_dir_all(root).expect("it is removed");
        limit
    }

    const MEMORY: (&str, &str) = ("proc/meminfo", "MemTotal:  1048576 kB\nMemFree: 1 kB\n");

    #[test]
    fn least_limit_of_a_group_and_of_those_above_it_counts() {
        let group = ("proc/self/cgroup", "0::/a/b\n");
        let [inner, outer, root] = [
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "268435456\n"),
            ("sys/fs/cgroup/memory.max", "536870912\n"),
        ];
        let found = limit("v2", &[MEMORY, group, inner, outer, root]);
        assert_eq!(found, Some(256 << 20));
        assert_eq!(limit("above", &[MEMORY, group, root]), Some(512 << 20));
    }

    #[test]
    fn first_version_of_control_groups_counts_too() {
        let group = ("proc/self/cgroup", "3:cpu,cpuacct:/x\n2:memory:/docker/9\n");
        let limits = [
            (
                "sys/fs/cgroup/memory/docker/9/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            (
                "sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                "134217728\n",
            ),
            ("sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "1\n"),
        ];
        let found = limit("v1", &[MEMORY, group, limits[0], limits[1], limits[2]]);
        assert_eq!(found, Some(128 << 20));
    }

    #[test]
    fn machine_counts_where_no_group_has_a_limit() {
        assert_eq!(limit("machine", &[MEMORY]), Some(1 << 30));
        assert!(memory().is_some_and(|octets| octets > 1 << 20));
        assert!(open_files().is_none_or(|count| count > 8));
    }
}
