//! Facts of the machine that affect latency, by name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::limits::FACT_FILE_OCTETS_MAX;

/// Returns the facts that this machine's kernel reports; others are left out.
#[must_use]
pub fn machine() -> BTreeMap<String, String> {
    machine_at(Path::new("/"))
}

/// Facts that are each the first line of a file.
const LINES: [(&str, &str); 21] = [
    ("architecture", "proc/sys/kernel/arch"),
    ("kernel", "proc/sys/kernel/osrelease"),
    ("kernel_version", "proc/sys/kernel/version"),
    ("host_name", "proc/sys/kernel/hostname"),
    ("kernel_command_line", "proc/cmdline"),
    ("load_average", "proc/loadavg"),
    (
        "clocksource",
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
    ),
    (
        "governor",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    ),
    (
        "idle_driver",
        "sys/devices/system/cpu/cpuidle/current_driver",
    ),
    ("smt_active", "sys/devices/system/cpu/smt/active"),
    ("isolated_cpus", "sys/devices/system/cpu/isolated"),
    ("nohz_full_cpus", "sys/devices/system/cpu/nohz_full"),
    ("realtime_kernel", "sys/kernel/realtime"),
    ("rt_runtime_us", "proc/sys/kernel/sched_rt_runtime_us"),
    ("rt_period_us", "proc/sys/kernel/sched_rt_period_us"),
    (
        "transparent_hugepage",
        "sys/kernel/mm/transparent_hugepage/enabled",
    ),
    ("rmem_max_bytes", "proc/sys/net/core/rmem_max"),
    ("wmem_max_bytes", "proc/sys/net/core/wmem_max"),
    ("hardware_vendor", "sys/class/dmi/id/sys_vendor"),
    ("hardware_product", "sys/class/dmi/id/product_name"),
    ("hypervisor", "sys/hypervisor/type"),
];

/// Reads the facts below another root directory, for tests.
fn machine_at(root: &Path) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    for (name, path) in LINES {
        if let Some(line) = read(&root.join(path))
            .as_deref()
            .and_then(|text| text.lines().next())
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            facts.insert(name.to_owned(), line.to_owned());
        }
    }
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.insert(name.to_owned(), value);
        }
    };
    let processors = read(&root.join("proc/cpuinfo")).unwrap_or_default();
    put(
        "cpu_model",
        field(&processors, "model name").or_else(|| field(&processors, "Model")),
    );
    put(
        "cpus",
        Some(
            processors
                .lines()
                .filter(|line| line.starts_with("processor"))
                .count()
                .to_string(),
        )
        .filter(|count| count != "0"),
    );
    let flags = field(&processors, "flags").unwrap_or_default();
    put(
        "virtualised",
        (!flags.is_empty()).then(|| yes(flags.split(' ').any(|flag| flag == "hypervisor"))),
    );
    let memory = read(&root.join("proc/meminfo")).unwrap_or_default();
    for (name, key) in [
        ("memory_total_bytes", "MemTotal"),
        ("memory_available_bytes", "MemAvailable"),
        ("swap_total_bytes", "SwapTotal"),
    ] {
        put(
            name,
            field(&memory, key).and_then(|value| kibibytes(&value)),
        );
    }
    let container = ["run/.containerenv", ".dockerenv"]
        .iter()
        .any(|path| root.join(path).exists());
    put("container", Some(yes(container)));
    facts
}

fn yes(holds: bool) -> String {
    if holds { "yes" } else { "no" }.to_owned()
}

/// Returns the value after a key and a colon, as in /proc/cpuinfo.
fn field(text: &str, key: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim().to_owned())
}

fn kibibytes(value: &str) -> Option<String> {
    let number: u64 = value.strip_suffix("kB")?.trim().parse().ok()?;
    Some(number.saturating_mul(1_024).to_string())
}

/// Returns a file's text up to [`FACT_FILE_OCTETS_MAX`], or `None` if the file cannot be read.
pub(super) fn read(path: &Path) -> Option<String> {
    let mut octets = Vec::new();
    File::open(path)
        .ok()?
        .take(FACT_FILE_OCTETS_MAX)
        .read_to_end(&mut octets)
        .ok()?;
    Some(String::from_utf8_lossy(&octets).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provenance::Tree;

    #[test]
    fn facts_are_read_from_the_kernels_files() {
        let tree = Tree::new("facts");
        tree.put("proc/sys/kernel/osrelease", "6.18.44\n");
        tree.put("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\nmodel name\t: AMD EPYC\n");
        tree.put(
            "proc/meminfo",
            "MemTotal:        4096 kB\nMemAvailable:    1024 kB\n",
        );
        tree.put("proc/sys/kernel/sched_rt_runtime_us", "950000\n");
        tree.put("sys/devices/system/cpu/isolated", "\n");
        let facts = machine_at(tree.root());
        let expected = [
            ("container", "no"),
            ("cpu_model", "AMD EPYC"),
            ("cpus", "2"),
            ("kernel", "6.18.44"),
            ("memory_available_bytes", "1048576"),
            ("memory_total_bytes", "4194304"),
            ("rt_runtime_us", "950000"),
            ("virtualised", "yes"),
        ];
        assert_eq!(
            facts
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn a_kernel_that_tells_nothing_gives_no_facts() {
        let tree = Tree::new("no-facts");
        assert_eq!(
            machine_at(tree.root()),
            BTreeMap::from([("container".to_owned(), "no".to_owned())])
        );
    }
}
