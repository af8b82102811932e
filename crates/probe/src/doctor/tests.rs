//! The doctor before machines made of files.

use std::fs;
use std::time::Duration;

use deckwatch_meter::disturbance::Disturbance;
use tempfile::TempDir;

use super::*;

/// A machine on which nothing need be changed or noted; each test spoils one thing.
struct Machine {
    folder: TempDir,
    trials: Trials,
}

const HEALTHY: [(&str, &str); 18] = [
    (
        "proc/sys/kernel/version",
        "#1 SMP PREEMPT_RT Debian 6.12.1\n",
    ),
    ("proc/sys/kernel/osrelease", "6.12.1-rt-amd64\n"),
    ("proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
    ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
    ("proc/sys/net/core/rmem_max", "8388608\n"),
    ("proc/sys/net/core/wmem_max", "8388608\n"),
    (
        "proc/cpuinfo",
        "processor\t: 0\nflags\t\t: fpu tsc\nprocessor\t: 1\nflags\t\t: fpu tsc\n",
    ),
    ("proc/swaps", "Filename Type Size Used Priority\n"),
    ("proc/self/status", "CapEff:\t0000000000000000\n"),
    (
        "proc/self/limits",
        "Max locked memory         unlimited            unlimited            bytes\nMax realtime priority     95                   95\n",
    ),
    ("proc/self/cgroup", "0::/a/b\n"),
    ("proc/irq/default_smp_affinity", "3\n"),
    ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
    (
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc\n",
    ),
    (
        "sys/devices/system/clocksource/clocksource0/available_clocksource",
        "tsc hpet\n",
    ),
    (
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "performance\n",
    ),
    ("sys/devices/system/cpu/smt/active", "0\n"),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    ),
];

impl Machine {
    fn healthy() -> Self {
        let wake_ups = WakeUps {
            count: 500,
            median_ns: 5_000,
            max_ns: 40_000,
        };
        let disturbance = Disturbance {
            duration: Duration::from_secs(1),
            processors: 2,
            processor_pressure: Some(Duration::ZERO),
            ..Disturbance::default()
        };
        let machine = Self {
            folder: TempDir::new().unwrap(),
            trials: Trials {
                timer_resolution_ns: 1,
                time_sharing: wake_ups,
                real_time: Ok(wake_ups),
                disturbance,
                stamps: Ok(()),
                tap: Ok(()),
                emulation: Ok(()),
                isolates: false,
            },
        };
        HEALTHY
            .iter()
            .fold(machine, |machine, (path, text)| machine.with(path, text))
    }

    fn with(self, path: &str, text: &str) -> Self {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn tried(mut self, spoil: impl FnOnce(&mut Trials)) -> Self {
        spoil(&mut self.trials);
        self
    }

    fn diagnosis(&self) -> Diagnosis {
        Diagnosis::of(&Root::at(self.folder.path()), &self.trials)
    }

    fn value_of(&self, name: &str) -> String {
        let findings = self.diagnosis().findings.into_iter();
        let mut named = findings.filter(|finding| finding.name == name);
        named.next().expect("a finding of that name").value
    }

    /// Exactly one finding is not Ok, and it is this one.
    #[track_caller]
    fn shows(&self, name: &str, judgement: Judgement) {
        let diagnosis = self.diagnosis();
        let unwell: Vec<&Finding> = diagnosis
            .findings
            .iter()
            .filter(|finding| finding.judgement != Judgement::Ok)
            .collect();
        assert_eq!(unwell.len(), 1, "{unwell:?}");
        assert_eq!(
            (unwell[0].name.as_ref(), unwell[0].judgement),
            (name, judgement),
            "{:?}",
            unwell[0]
        );
        assert!(unwell[0].advice.is_some());
        assert_eq!(diagnosis.fit, judgement != Judgement::Change);
    }
}

#[test]
fn a_healthy_machine_is_fit_and_needs_no_advice() {
    let diagnosis = Machine::healthy().diagnosis();
    assert!(diagnosis.fit);
    for finding in &diagnosis.findings {
        assert_eq!(
            (finding.judgement, &finding.advice),
            (Judgement::Ok, &None),
            "{finding:?}"
        );
    }
    assert!(
        diagnosis.findings.len() >= 18,
        "{}",
        diagnosis.findings.len()
    );
}

#[test]
fn a_machine_that_tells_nothing_is_examined_without_guessing() {
    let machine = Machine::healthy();
    let nothing = TempDir::new().unwrap();
    let diagnosis = Diagnosis::of(&Root::at(nothing.path()), &machine.trials);
    let names: Vec<&str> = diagnosis
        .findings
        .iter()
        .map(|finding| finding.name.as_ref())
        .collect();
    assert!(
        !names.contains(&"clock source") && !names.contains(&"frequency governor"),
        "{names:?}"
    );
}

#[test]
fn a_kernel_that_is_not_real_time_is_a_note() {
    let version = "#1 SMP PREEMPT_DYNAMIC Debian\n";
    let machine = Machine::healthy().with("proc/sys/kernel/version", version);
    machine.shows("kernel preemption", Judgement::Note);
    let machine = machine.with("sys/kernel/debug/sched/preempt", "none (voluntary) full\n");
    assert!(
        machine.diagnosis().findings[0]
            .value
            .ends_with("PREEMPT_DYNAMIC (now voluntary)")
    );
}

#[test]
fn timers_that_step_by_the_tick_must_change() {
    let machine = Machine::healthy().tried(|trials| trials.timer_resolution_ns = 4_000_000);
    machine.shows("timer resolution", Judgement::Change);
}

#[test]
fn a_refused_real_time_class_must_change() {
    let machine =
        Machine::healthy().tried(|trials| trials.real_time = Err("not permitted".to_owned()));
    machine.shows("real-time class", Judgement::Change);
}

#[test]
fn a_late_real_time_thread_is_a_note_and_one_that_is_always_late_must_change() {
    let late = |median_ns, max_ns| {
        Machine::healthy().tried(|trials| {
            trials.real_time = Ok(WakeUps {
                count: 500,
                median_ns,
                max_ns,
            })
        })
    };
    late(5_000, 2_000_000).shows("wake-ups, real time", Judgement::Note);
    late(900_000, 2_000_000).shows("wake-ups, real time", Judgement::Change);
}

#[test]
fn a_slow_clock_source_must_change_and_the_command_names_the_better_one() {
    let machine = Machine::healthy().with(
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "hpet\n",
    );
    machine.shows("clock source", Judgement::Change);
    let diagnosis = machine.diagnosis();
    let finding = diagnosis
        .findings
        .iter()
        .find(|finding| finding.name == "clock source")
        .unwrap();
    assert!(
        finding
            .advice
            .as_ref()
            .unwrap()
            .starts_with("echo tsc | sudo tee /sys/devices")
    );
}

#[test]
fn the_usual_throttling_is_a_note_and_a_small_share_must_change() {
    let allowed = |us| Machine::healthy().with("proc/sys/kernel/sched_rt_runtime_us", us);
    allowed("950000\n").shows("real-time throttling", Judgement::Note);
    allowed("100000\n").shows("real-time throttling", Judgement::Change);
    allowed("0\n").shows("real-time throttling", Judgement::Change);
}

#[test]
fn a_quota_of_a_control_group_above_must_change() {
    let machine = Machine::healthy().with("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    machine.shows("processor quota", Judgement::Change);
    let machine =
        Machine::healthy().tried(|trials| trials.disturbance.throttled = Duration::from_millis(3));
    machine.shows("processor quota", Judgement::Change);
}

#[test]
fn a_quota_of_the_first_version_of_control_groups_must_change() {
    let of_group = |folder: &str, quota: &str| {
        Machine::healthy()
            .with(
                "proc/self/cgroup",
                "9:name=systemd:/\n2:cpu,cpuacct:/docker/x\n0::/\n",
            )
            .with(
                &format!("sys/fs/cgroup/cpu{folder}/cpu.cfs_quota_us"),
                quota,
            )
            .with(
                &format!("sys/fs/cgroup/cpu{folder}/cpu.cfs_period_us"),
                "100000\n",
            )
    };
    for folder in ["/docker/x", "/docker", ""] {
        of_group(folder, "50000\n").shows("processor quota", Judgement::Change);
        assert!(of_group(folder, "-1\n").diagnosis().fit);
    }
    let value = of_group("/docker", "50000\n").value_of("processor quota");
    assert_eq!(value, "50000 100000 us in sys/fs/cgroup/cpu/docker");
    // The processor time of a group is counted by a controller that limits nothing.
    let counted = of_group("", "50000\n").with("proc/self/cgroup", "2:cpuacct:/\n0::/\n");
    assert!(counted.diagnosis().fit);
}

#[test]
fn the_root_group_of_a_container_may_have_the_quota() {
    Machine::healthy()
        .with("proc/self/cgroup", "0::/\n")
        .with("sys/fs/cgroup/cpu.max", "50000 100000\n")
        .shows("processor quota", Judgement::Change);
}

#[test]
fn root_is_not_advised_to_become_root() {
    let refused = || Err("not permitted".to_owned());
    let advice = |status: &str| -> Vec<String> {
        let machine = Machine::healthy()
            .with("proc/self/status", status)
            .tried(|trials| {
                trials.real_time = Err("not permitted".to_owned());
                trials.tap = refused();
                trials.emulation = refused();
            });
        let findings = machine.diagnosis().findings.into_iter();
        findings.filter_map(|finding| finding.advice).collect()
    };
    let user = advice("Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n");
    assert_eq!(user.len(), 3);
    assert!(
        user.iter()
            .all(|text| text.to_lowercase().contains("run as root")),
        "{user:?}"
    );
    // The effective user counts.
    let root = advice("Uid:\t1000\t0\t0\t0\nCapEff:\t0000000000000000\n");
    assert_eq!(root.len(), 3);
    for text in &root {
        assert!(
            !text.to_lowercase().contains("as root") && !text.contains("sudo"),
            "{text}"
        );
    }
}

#[test]
fn a_governor_that_follows_the_load_must_change() {
    let machine = Machine::healthy().with(
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "schedutil\n",
    );
    machine.shows("frequency governor", Judgement::Change);
}

#[test]
fn only_enabled_deep_idle_states_are_noted() {
    let state = |machine: Machine, number: u8, name: &str, exit_us: &str, disabled: &str| {
        let folder = format!("sys/devices/system/cpu/cpu0/cpuidle/state{number}");
        machine
            .with(&format!("{folder}/name"), name)
            .with(&format!("{folder}/latency"), exit_us)
            .with(&format!("{folder}/disable"), disabled)
    };
    let machine = Machine::healthy().with(
        "sys/devices/system/cpu/cpuidle/current_driver",
        "intel_idle\n",
    );
    let machine = state(machine, 0, "POLL", "0", "0");
    let deep_disabled = state(machine, 1, "C6", "133", "1");
    assert!(
        deep_disabled
            .diagnosis()
            .findings
            .iter()
            .all(|finding| finding.judgement == Judgement::Ok)
    );
    state(deep_disabled, 1, "C6", "133", "0").shows("idle states", Judgement::Note);
}

#[test]
fn simultaneous_threads_are_a_note() {
    Machine::healthy()
        .with("sys/devices/system/cpu/smt/active", "1\n")
        .shows("simultaneous threads", Judgement::Note);
}

#[test]
fn many_processors_of_which_none_is_isolated_are_a_note() {
    let four = "processor\t: 0\nprocessor\t: 1\nprocessor\t: 2\nprocessor\t: 3\n";
    let machine = Machine::healthy().with("proc/cpuinfo", four);
    machine.shows("isolated processors", Judgement::Note);
    let isolated = machine.with("sys/devices/system/cpu/isolated", "2-3\n");
    assert!(
        isolated
            .diagnosis()
            .findings
            .iter()
            .all(|finding| finding.judgement == Judgement::Ok)
    );
    // Isolated, but interrupts go there too.
    isolated
        .with("proc/irq/default_smp_affinity", "00000000,0000000f\n")
        .shows("interrupts", Judgement::Note);
}

#[test]
fn a_virtual_machine_is_a_note() {
    let flags = "processor\t: 0\nflags\t\t: fpu hypervisor\nprocessor\t: 1\n";
    Machine::healthy()
        .with("proc/cpuinfo", flags)
        .shows("virtualisation", Judgement::Note);
}

#[test]
fn stolen_time_is_a_note_until_it_decides_the_verdict() {
    let stolen = |ms| {
        Machine::healthy().tried(|trials| trials.disturbance.stolen = Duration::from_millis(ms))
    };
    stolen(10).shows("stolen time", Judgement::Note);
    stolen(100).shows("stolen time", Judgement::Change);
}

#[test]
fn competition_is_a_note_until_it_is_there_half_of_the_time() {
    let waited = |ms| {
        Machine::healthy()
            .tried(|trials| trials.disturbance.processor_pressure = Some(Duration::from_millis(ms)))
    };
    waited(200).shows("competition for processors", Judgement::Note);
    waited(700).shows("competition for processors", Judgement::Change);
}

#[test]
fn little_memory_to_lock_swap_and_eager_huge_pages_are_notes() {
    let limits = "Max locked memory         8388608              8388608              bytes\nMax realtime priority     95                   95\n";
    let little = Machine::healthy().with("proc/self/limits", limits);
    little.shows("locked memory", Judgement::Note);
    // CAP_IPC_LOCK lifts the limit.
    let lifted = little.with("proc/self/status", "CapEff:\t0000000000004000\n");
    assert!(
        lifted
            .diagnosis()
            .findings
            .iter()
            .all(|finding| finding.judgement == Judgement::Ok)
    );
    let swaps = "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n";
    Machine::healthy()
        .with("proc/swaps", swaps)
        .shows("swap", Judgement::Note);
    let eager = "[always] madvise never\n";
    Machine::healthy()
        .with("sys/kernel/mm/transparent_hugepage/enabled", eager)
        .shows("transparent huge pages", Judgement::Note);
}

#[test]
fn small_buffers_are_a_note_unless_the_limit_can_be_passed() {
    let small = Machine::healthy().with("proc/sys/net/core/rmem_max", "212992\n");
    small.shows("receive buffers", Judgement::Note);
    let forced = small.with("proc/self/status", "CapEff:\t0000000000001000\n");
    assert!(
        forced
            .diagnosis()
            .findings
            .iter()
            .all(|finding| finding.judgement == Judgement::Ok)
    );
}

#[test]
fn what_takes_layers_from_the_blame_is_a_note() {
    let refused = || Err("not permitted".to_owned());
    Machine::healthy()
        .tried(|trials| trials.stamps = refused())
        .shows("kernel stamps", Judgement::Note);
    Machine::healthy()
        .tried(|trials| trials.tap = refused())
        .shows("packet taps", Judgement::Note);
    Machine::healthy()
        .tried(|trials| trials.emulation = refused())
        .shows("emulated hosts", Judgement::Note);
}

#[test]
fn what_a_run_does_in_a_user_namespace_is_no_fault() {
    let refused = || Err("not permitted".to_owned());
    let diagnosis = Machine::healthy()
        .tried(|trials| {
            (trials.tap, trials.emulation) = (refused(), refused());
            trials.isolates = true;
        })
        .diagnosis();
    for name in ["packet taps", "emulated hosts"] {
        let mut findings = diagnosis.findings.iter();
        let finding = findings.find(|finding| finding.name == name).unwrap();
        assert_eq!(finding.judgement, Judgement::Ok, "{finding:?}");
        assert!(finding.value.contains("user namespace"), "{finding:?}");
    }
}

#[test]
fn this_machine_can_be_examined() {
    let diagnosis = Diagnosis::of_this_machine();
    let wake_ups = diagnosis
        .findings
        .iter()
        .find(|finding| finding.name == "wake-ups, time sharing")
        .unwrap();
    assert!(wake_ups.value.ends_with("of 500"), "{wake_ups:?}");
    for finding in &diagnosis.findings {
        assert_eq!(
            finding.advice.is_some(),
            finding.judgement != Judgement::Ok,
            "{finding:?}"
        );
    }
}
