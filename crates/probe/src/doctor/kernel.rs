//! The kernel: preemption, timers, clock, and limits of real-time threads.

use std::time::Duration;

use deckwatch_os::namespace::Capability;

use super::{Finding, Root, Trials, WakeUps};

pub(super) fn findings(root: &Root, trials: &Trials) -> Vec<Finding> {
    [
        Some(preemption(root)),
        Some(timer_resolution(trials)),
        Some(time_sharing_wake_ups(&trials.time_sharing)),
        Some(real_time_class(root, trials)),
        trials.real_time.as_ref().ok().map(real_time_wake_ups),
        clock_source(root),
        throttling(root),
        quota(root, trials),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn preemption(root: &Root) -> Finding {
    let version = root.read("proc/sys/kernel/version").unwrap_or_default();
    let release = root
        .read("proc/sys/kernel/osrelease")
        .unwrap_or_else(|| "unknown".to_owned());
    let real_time =
        root.read("sys/kernel/realtime").as_deref() == Some("1") || version.contains("PREEMPT_RT");
    let dynamic = root
        .choice_in_parentheses("sys/kernel/debug/sched/preempt")
        .map_or_else(String::new, |now| format!(" (now {now})"));
    let model = ["PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT"]
        .into_iter()
        .find(|model| version.contains(model))
        .unwrap_or(if real_time {
            "PREEMPT_RT"
        } else {
            "no preemption"
        });
    Finding::new(
        "kernel preemption",
        "Without PREEMPT_RT a system call or soft interrupt of any process can delay a real-time thread by milliseconds.",
        format!("Linux {release}, {model}{dynamic}"),
    )
    .note_if(!real_time, "For the shortest tails install a PREEMPT_RT kernel: apt-get install linux-image-rt-amd64")
}

fn timer_resolution(trials: &Trials) -> Finding {
    const HIGH_RESOLUTION_NS: i64 = 1000;
    Finding::new(
        "timer resolution",
        "A supplier cannot keep its schedule more exactly than the resolution of the kernel's timers.",
        format!("{} ns", trials.timer_resolution_ns),
    )
    .change_if(
        trials.timer_resolution_ns > HIGH_RESOLUTION_NS,
        "Boot with `highres=on` and without `nohrtimers`, on a kernel built with CONFIG_HIGH_RES_TIMERS",
    )
}

fn time_sharing_wake_ups(wake_ups: &WakeUps) -> Finding {
    Finding::new(
        "wake-ups, time sharing",
        "The lateness of a thread in the time-sharing class; the timer slack of 50 us is part of it.",
        in_words(wake_ups),
    )
    .note_if(
        wake_ups.max_ns > WAKE_UP_MAX_NOTED_NS,
        "Ask for SCHED_FIFO in the mission file, and stop other programs",
    )
}

fn real_time_class(root: &Root, trials: &Trials) -> Finding {
    let finding = |value: String| {
        Finding::new(
            "real-time class",
            "Without SCHED_FIFO every flow's thread shares its processor with all other programs, and the machine causes the lateness.",
            value,
        )
    };
    match (&trials.real_time, root.limit("Max realtime priority")) {
        (Ok(_), Some(limit)) if !root.holds(Capability::SysNice) => {
            finding(format!("permitted up to priority {limit} (RLIMIT_RTPRIO)"))
        }
        (Ok(_), _) => finding("permitted (CAP_SYS_NICE)".to_owned()),
        (Err(error), _) => finding(format!("refused: {error}")).change_if(
            true,
            root.or_if_root(
                "Run as root, or: echo \"$USER - rtprio 95\" | sudo tee /etc/security/limits.d/deckwatch.conf, and log in again",
                "This user is root, but CAP_SYS_NICE or the control group's real-time budget is missing: docker run --cap-add SYS_NICE; cgroup v1: echo 950000 > cpu.rt_runtime_us of the group",
            ),
        ),
    }
}

fn real_time_wake_ups(wake_ups: &WakeUps) -> Finding {
    Finding::new(
        "wake-ups, real time",
        "The lateness of a SCHED_FIFO thread: a deadline below the maximum will be missed with any middleware.",
        in_words(wake_ups),
    )
    .note_if(
        wake_ups.max_ns > WAKE_UP_MAX_NOTED_NS,
        "Look for long soft interrupts, firmware (SMI) or a busy hypervisor; repeat on an idle machine",
    )
    .change_if(
        wake_ups.median_ns > WAKE_UP_MEDIAN_REFUSED_NS,
        "Look for stolen processor time and deep idle states below",
    )
}

fn clock_source(root: &Root) -> Option<Finding> {
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let current = root.read(&format!("{FOLDER}/current_clocksource"))?;
    let available = root
        .read(&format!("{FOLDER}/available_clocksource"))
        .unwrap_or_default();
    let slow = matches!(
        current.as_str(),
        "hpet" | "acpi_pm" | "pit" | "jiffies" | "refined-jiffies"
    );
    let advice = if available.split_ascii_whitespace().any(|name| name == "tsc") {
        format!("echo tsc | sudo tee /{FOLDER}/current_clocksource")
    } else {
        "The kernel trusts no processor counter: see `dmesg | grep -i tsc`".to_owned()
    };
    let finding = Finding::new(
        "clock source",
        "Each message needs six clock readings: a slow source costs microseconds for each, and a coarse one rounds them.",
        current,
    );
    Some(finding.change_if(slow, advice))
}

fn throttling(root: &Root) -> Option<Finding> {
    let runtime_us = root.number("proc/sys/kernel/sched_rt_runtime_us")?;
    let period_us = root
        .number("proc/sys/kernel/sched_rt_period_us")
        .unwrap_or(1_000_000);
    let value = if runtime_us < 0 {
        "off".to_owned()
    } else {
        format!("real-time threads may use {runtime_us} us of each {period_us} us")
    };
    let advice = "sudo sysctl -w kernel.sched_rt_runtime_us=-1";
    let finding = Finding::new(
        "real-time throttling",
        "At the limit every real-time thread of a processor stops until the end of the period.",
        value,
    )
    .note_if(runtime_us >= 0, advice)
    // A mission's own threads can reach a limit below one half.
    .change_if((0..period_us / 2).contains(&runtime_us), advice);
    Some(finding)
}

/// The quotas of this process's control group and its ancestors: `cpu.max` of version 2, `cpu.cfs_quota_us` of version 1.
fn quota(root: &Root, trials: &Trials) -> Option<Finding> {
    let groups = root.read("proc/self/cgroup")?;
    let limited = groups.lines().find_map(|line| limit_of(root, line));
    let stopped = trials.disturbance.throttled > Duration::ZERO;
    let value = limited.clone().unwrap_or_else(|| "none".to_owned());
    let advice = "Take the quota off the container or service (docker run without --cpus; systemd: CPUQuota=)";
    let finding = Finding::new(
        "processor quota",
        "A control group's quota stops all its threads, real-time ones too, for the rest of each period.",
        value,
    );
    Some(finding.change_if(limited.is_some() || stopped, advice))
}

/// Returns the first quota of the group in a line of `/proc/self/cgroup`, or of its ancestors.
fn limit_of(root: &Root, line: &str) -> Option<String> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, group) = (fields.next()?, fields.next()?);
    if controllers.is_empty() {
        return root.control_groups("", group).find_map(|group| {
            let quota = root.read(&format!("{group}/cpu.max"))?;
            (!quota.starts_with("max")).then(|| format!("{quota} us in {group}"))
        });
    }
    if controllers.split(',').all(|controller| controller != "cpu") {
        return None;
    }
    // `cpu` is a link to the folder with the names of all its controllers, where there are several.
    root.control_groups("cpu", group).find_map(|group| {
        let quota_us = root.number(&format!("{group}/cpu.cfs_quota_us"))?;
        let period_us = root.number(&format!("{group}/cpu.cfs_period_us"))?;
        (quota_us >= 0).then(|| format!("{quota_us} {period_us} us in {group}"))
    })
}

/// Above this lateness the tail is noted.
const WAKE_UP_MAX_NOTED_NS: i64 = 1_000_000;
/// Above this lateness the machine delays every second message of a schedule of 1 ms.
const WAKE_UP_MEDIAN_REFUSED_NS: i64 = 500_000;

fn in_words(wake_ups: &WakeUps) -> String {
    format!(
        "median {} us, latest {} us after due, of {}",
        wake_ups.median_ns / 1000,
        wake_ups.max_ns / 1000,
        wake_ups.count
    )
}
