//! Every bound of this crate, with its reason.

use std::time::Duration;

/// Maximum size of a mission file in octets. The largest fleet of `HOSTS_MAX` hosts, written out for several variants,
/// has under 200 KiB.
pub const MISSION_SIZE_MAX: u64 = 4 << 20;

/// Maximum number of faults reported for one file: a user does not read more at once.
pub const FAULTS_MAX: usize = 32;

/// Shortest period. Below it, the kernel's timers decide the schedule, and not the mission.
pub const PERIOD_MIN: Duration = Duration::from_micros(10);

/// Longest deadline. A drain lasts ten deadlines. A longer deadline than this is probably a mistake in the unit.
pub const DEADLINE_MAX: Duration = Duration::from_secs(3600);

/// Longest burst of late messages that a flow may ask for: to prove even a budget of 1 in 20 for it takes 60 million
/// messages. The mission's schema has the same number.
pub const CLUSTERS_MAX: u64 = 1_000_000;

/// Default warm-up of a flow: long enough for connections, caches and the first round of page faults.
pub const WARM_UP_DEFAULT: Duration = Duration::from_secs(1);

/// Maximum time until a process is ready. On one processor under the mission's own load, a start takes seconds.
pub const READY_PATIENCE: Duration = Duration::from_secs(20);

/// Addition to [`READY_PATIENCE`] for each process that starts at the same time.
pub const READY_PATIENCE_EACH: Duration = Duration::from_millis(500);

/// Time from `go` to the schedule's start: long enough for every part to read it.
pub const START_LEAD: Duration = Duration::from_millis(300);

/// Addition to [`START_LEAD`] for each part.
pub const START_LEAD_EACH: Duration = Duration::from_millis(2);

/// Longest time for which the coordinator waits for a line before it checks for other work.
pub const TURN_PATIENCE: Duration = Duration::from_millis(50);

/// Time between two reports of progress to the observer.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// Time after its schedule and a drain in which a supplier may still be blocked in its calls, before it is stopped.
pub const SUPPLIER_GRACE: Duration = Duration::from_secs(5);

/// Maximum time until processes end after `stop`: a tap writes its capture, the others flush a page.
pub const STOP_PATIENCE: Duration = Duration::from_secs(15);

/// Maximum time until a process ends after it has closed its output.
pub const EXIT_PATIENCE: Duration = Duration::from_secs(2);

/// Maximum number of octets that are kept of a process's standard error.
pub const LAST_WORDS_SIZE_MAX: usize = 4096;

/// Maximum number of result folders of one mission that begin within one second.
pub const SAME_SECOND_MAX: u32 = 100;

/// Maximum size of one host's capture in octets: an hour of a thousand messages of 1 KiB per second.
pub const CAPTURE_SIZE_MAX: u64 = 4 << 30;

/// Time after the planned end of its run at which a load ends by itself, if it is not stopped.
pub const LOAD_GRACE: Duration = Duration::from_secs(120);

/// Interval of the histogram logs.
pub const HISTOGRAM_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of the checks of a far part whether its coordinator is gone.
pub const FAR_LOOK: Duration = Duration::from_millis(250);

/// Interval of the questions to a far part. Each relates the clocks, and shows that the pipe carries octets.
pub const PING_INTERVAL: Duration = Duration::from_millis(500);

/// Questions that a far part gets at once after its start: the narrowest of them bounds its clock.
pub const FIRST_PINGS: u32 = 16;

/// Interval of these questions.
pub const FIRST_PING_INTERVAL: Duration = Duration::from_millis(5);

/// Time without an octet on the pipe after which either end takes the other as gone. A host that is loaded by the
/// mission answers in less; a network that loses a route comes back in less.
pub const FAR_SILENCE_MAX: Duration = Duration::from_secs(10);

/// Maximum time in which far parts write their files back after `stop`, as long as octets come: the largest capture at
/// 7 megabytes a second.
pub const RETURN_PATIENCE: Duration = Duration::from_secs(600);

/// Maximum time until a far program has said its version: connecting and logging in takes seconds.
pub const HELLO_PATIENCE: Duration = Duration::from_secs(20);

/// Lines before the first word of a far program, for example of a login script, that are skipped.
pub const LINES_BEFORE_HELLO_MAX: usize = 100;

/// Octets of a line from a far part. Its longest, `ready`, has a reference and some warnings.
pub const FAR_LINE_SIZE_MAX: usize = 256 << 10;

/// Lines from a far part beyond [`FAR_LINES_PER_S_MAX`]: more than a part writes at its start.
pub const FAR_LINES_MAX: u64 = 1000;

/// Lines a second from a far part: it reports progress four times and answers at most two questions.
pub const FAR_LINES_PER_S_MAX: u64 = 20;

/// Lines of a far part that are not understood before it is given up.
pub const FAR_GARBLED_MAX: u32 = 16;

/// Lines from parts that wait for the coordinator. The pipe holds the rest back.
pub const LINES_WAITING_MAX: usize = 1024;

/// Octets of the IDL files that are carried to a far host. With the plan they are less than a line.
pub const CARRIED_SIZE_MAX: usize = 1 << 20;

/// Octets of a tap's note that are accepted from a far host.
pub const NOTE_SIZE_MAX: u64 = 1 << 20;

/// Octets that a file from a far host may have beyond its computed size: a page, and the last packet of a capture.
pub const RETURNED_SLACK_BYTES: u64 = 1 << 20;

/// Warnings of one far part that are kept: more than a part has kinds of.
pub const FAR_WARNINGS_MAX: usize = 32;

/// Processors of a far machine: the most that a set of processors of the kernel holds by default.
pub const FAR_PROCESSORS_MAX: u32 = 8192;

/// Processors or links of one far load whose figures are kept.
pub const FAR_HELD_MAX: usize = 4096;

/// Octets of this program that are copied to a far host: a debug build with its symbols has a fifth of that.
pub const INSTALL_SIZE_MAX: u64 = 1 << 30;

/// Octets a second that a copy to a far host must reach at least: half a megabit less than a satellite link.
pub const INSTALL_RATE_MIN_BYTES_PER_S: u64 = 100_000;

/// Time that a run waits for the first relation of its hosts' clocks over the network: several windows of exchanges.
/// Without it the pipe relates them.
pub const NETWORK_CLOCK_PATIENCE: Duration = Duration::from_secs(2);

/// Transmission times of a full packet below which a deadline is judged too kindly by shapers of the kernel, which pass a
/// frame at once while they have credit.
pub const RELAY_DEADLINE_TRANSMISSIONS: f64 = 10.0;

/// Frames a second that a relay carries on each machine that runs a mission: a third of what one with two processors
/// does.
pub const RELAY_FRAMES_PER_S_MAX: f64 = 20_000.0;

/// Frames of a mission that are simulated: some minutes, and half a gigabyte of latencies if each is a message.
pub const SIMULATED_FRAMES_MAX: u64 = 50_000_000;
