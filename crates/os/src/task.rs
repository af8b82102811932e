//! What the scheduler has done with the threads of any process: how long they ran, and how long they were ready and
//! waited for a processor. The sources are `/proc/PID/task/TID/schedstat` and `/proc/PID/stat`.

use std::fs;
use std::time::Duration;

use crate::schedule::Class;

/// The account of one thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Its number.
    pub thread: u32,
    /// Processor time used.
    pub ran: Duration,
    /// Time for which it was ready and another thread had its processor.
    pub waited: Duration,
}

/// The account of one process since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessTimes {
    /// Its number.
    pub process: u32,
    /// The number of its parent.
    pub parent: u32,
    /// Its name, at most 15 octets.
    pub name: String,
    /// It is a thread of the kernel.
    pub is_kernel: bool,
    /// Processor time of its threads, those that have ended included; a multiple of the kernel's tick of 10 ms.
    pub used: Duration,
    /// Processor time of its children that have ended.
    pub used_by_children: Duration,
}

/// Where a thread last ran, and its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRun {
    /// The processor.
    pub processor: u32,
    /// The scheduling class.
    pub class: Class,
}

/// Returns the accounts of all threads of a process. Returns none if the process has ended, or if the kernel keeps no
/// accounts (CONFIG_SCHED_INFO).
#[must_use]
pub fn threads(process: u32) -> Vec<ThreadTimes> {
    let times = |thread| {
        let path = format!("/proc/{process}/task/{thread}/schedstat");
        parse_schedstat(thread, &fs::read_to_string(path).ok()?)
    };
    numbers(&format!("/proc/{process}/task"))
        .filter_map(times)
        .collect()
}

/// Returns the name of a thread.
#[must_use]
pub fn thread_name(process: u32, thread: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{process}/task/{thread}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Returns the accounts of all processes that this process may see.
#[must_use]
pub fn processes() -> Vec<ProcessTimes> {
    let times = |process| {
        parse_stat(
            process,
            &fs::read_to_string(format!("/proc/{process}/stat")).ok()?,
        )
    };
    numbers("/proc").filter_map(times).collect()
}

/// Returns where the threads of a process last ran.
#[must_use]
pub fn last_runs(process: u32) -> Vec<LastRun> {
    let last = |thread| {
        let path = format!("/proc/{process}/task/{thread}/stat");
        parse_last_run(&fs::read_to_string(path).ok()?)
    };
    numbers(&format!("/proc/{process}/task"))
        .filter_map(last)
        .collect()
}

/// Returns the entries of a folder whose names are numbers.
fn numbers(folder: &str) -> impl Iterator<Item = u32> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parse_schedstat(thread: u32, text: &str) -> Option<ThreadTimes> {
    let mut words = text.split_ascii_whitespace();
    let mut time = || Some(Duration::from_nanos(words.next()?.parse().ok()?));
    Some(ThreadTimes {
        thread,
        ran: time()?,
        waited: time()?,
    })
}

/// Returns the fields of a stat file behind the name, of which the first is field 3 of proc(5). The name may itself
/// contain parentheses.
fn fields(text: &str) -> Option<(&str, Vec<&str>)> {
    let (head, rest) = text.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    Some((name, rest.split_ascii_whitespace().collect()))
}

fn parse_stat(process: u32, text: &str) -> Option<ProcessTimes> {
    let (name, fields) = fields(text)?;
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let ticks = |first: usize| {
        let ticks = number(first)?.checked_add(number(first + 1)?)?;
        Some(TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX)))
    };
    Some(ProcessTimes {
        process,
        parent: u32::try_from(number(4)?).ok()?,
        name: name.to_owned(),
        is_kernel: number(9)? & KERNEL_THREAD != 0,
        used: ticks(14)?,
        used_by_children: ticks(16)?,
    })
}

fn parse_last_run(text: &str) -> Option<LastRun> {
    let (_, fields) = fields(text)?;
    let number = |field: usize| fields.get(field - 3)?.parse::<u32>().ok();
    let priority = u8::try_from(number(40)?).ok()?;
    Some(LastRun {
        processor: number(39)?,
        class: match i32::try_from(number(41)?).ok()? {
            libc::SCHED_FIFO => Class::Fifo(priority),
            libc::SCHED_RR => Class::RoundRobin(priority),
            _ => Class::Other,
        },
    })
}

/// The unit of times in stat files: a tick of USER_HZ, which is 100 on every architecture that Linux supports today.
const TICK: Duration = Duration::from_millis(10);
/// PF_KTHREAD of the kernel's flags of a thread.
const KERNEL_THREAD: u64 = 0x0020_0000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn fields_are_found_behind_a_name_with_parentheses() {
        let text = "4711 (a (b) c) S 12 1 1 0 -1 4194304 1 2 3 4 250 50 7 3 -51 0 2 0 900 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 17 1 50 1 0 0\n";
        let expected = ProcessTimes {
            process: 4711,
            parent: 12,
            name: "a (b) c".to_owned(),
            is_kernel: false,
            used: Duration::from_secs(3),
            used_by_children: Duration::from_millis(100),
        };
        assert_eq!(parse_stat(4711, text), Some(expected));
        let last = LastRun {
            processor: 1,
            class: Class::Fifo(50),
        };
        assert_eq!(parse_last_run(text), Some(last));
        assert_eq!(parse_stat(1, "1 (init) S 0"), None);
        let kernel = text.replace("4194304", "2129984");
        assert!(parse_stat(2, &kernel).is_some_and(|times| times.is_kernel));
    }

    #[test]
    fn this_thread_is_found_with_the_time_that_it_used() {
        let process = std::process::id();
        let (begin_ns, thread) = (clock::thread_cpu_ns(), crate::schedule::thread_number());
        while clock::thread_cpu_ns() - begin_ns < 20_000_000 {
            std::hint::black_box(thread);
        }
        let times = threads(process).into_iter();
        let mine: Vec<_> = times.filter(|times| times.thread == thread).collect();
        if mine.is_empty() {
            deckwatch_testkit::skip("schedstat", "the kernel keeps no accounts of threads");
            return;
        }
        assert!(mine[0].ran >= Duration::from_millis(19), "{mine:?}");
        assert!(thread_name(process, thread).is_some_and(|name| !name.is_empty()));
        let all = processes();
        let this: Vec<_> = all
            .iter()
            .filter(|times| times.process == process)
            .collect();
        assert_eq!(this.len(), 1);
        assert!(this[0].used >= Duration::from_millis(10), "{this:?}");
        assert!(!this[0].is_kernel);
        assert!(!last_runs(process).is_empty());
    }
}
