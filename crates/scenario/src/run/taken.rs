//! Watches whether processes outside the run take the processor from threads of the run.
//!
//! The kernel counts for each thread how long it was ready and did not run. The thread may have waited for another
//! thread of the run or for one of the mission's loads, which is no disturbance. So in each [`TAKEN_INTERVAL`] at most
//! that much counts as taken as processes outside the run used of the part's processors.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use deckwatch_meter::disturbance::{TakenTime, Taker};
use deckwatch_meter::host_entry::HostEntry;
use deckwatch_meter::limits::{TAKEN_DEADLINE_DIVISOR, TAKEN_INTERVAL, TAKEN_SHARE_MIN};
use deckwatch_os::schedule::{Class, affinity_of};
use deckwatch_os::task::{self, ProcessTimes};

/// A process of the run whose threads are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WatchedPart {
    pub(super) process: u32,
    /// Whether its first thread handles messages too, and not only reports the progress: it is the program of an external
    /// carrier.
    pub(super) is_program: bool,
    /// Its name in messages.
    pub(super) label: String,
    /// Its host, with the scheduling of its threads.
    pub(super) host: HostEntry,
    /// The stream that it belongs to.
    pub(super) stream: Option<usize>,
    /// The destination whose messages it handles.
    pub(super) destination: Option<u16>,
    /// The strictest deadline that its threads can break.
    pub(super) deadline: Duration,
}

/// Time taken from one thread, with the stream that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) stream: Option<usize>,
    pub(super) time: TakenTime,
}

/// Reads the accounts of threads and processes once in each interval.
pub(super) struct TakenWatch {
    /// The parts, with the processors that they may use.
    parts: Vec<(WatchedPart, Vec<u32>)>,
    /// Processes of the run, this one included.
    own: BTreeSet<u32>,
    /// The names of the threads seen.
    names: BTreeMap<(usize, u32), String>,
    ledger: Ledger,
    began: Instant,
    next: Instant,
}

impl TakenWatch {
    /// Begins to watch. `own` are the processes of the run.
    pub(super) fn begin(parts: Vec<WatchedPart>, own: impl IntoIterator<Item = u32>) -> Self {
        let with_processors = |part: WatchedPart| {
            let processors = affinity_of(part.process).unwrap_or_default();
            (part, processors)
        };
        let now = Instant::now();
        let mut watch = Self {
            parts: parts.into_iter().map(with_processors).collect(),
            own: own.into_iter().chain([std::process::id()]).collect(),
            names: BTreeMap::new(),
            ledger: Ledger::default(),
            began: now,
            next: now,
        };
        watch.read_if_due();
        watch
    }

    /// Reads the accounts if the interval is over.
    pub(super) fn read_if_due(&mut self) {
        let now = Instant::now();
        if now >= self.next {
            self.next = now + TAKEN_INTERVAL;
            self.read();
        }
    }

    fn read(&mut self) {
        let waits = self.waits();
        let outside = self.ledger.used_outside(task::processes(), &self.own);
        let used: Vec<Used> = outside.into_iter().map(Used::located).collect();
        for (part, thread, waited) in waits {
            let (watched, processors) = &self.parts[part];
            // A thread may have ended when its name is needed.
            let name = self.names.entry((part, thread));
            name.or_insert_with(|| {
                let name = task::thread_name(watched.process, thread);
                name.unwrap_or_else(|| thread.to_string())
            });
            let least = watched.deadline / TAKEN_DEADLINE_DIVISOR;
            self.ledger
                .note((part, thread), waited, &used, processors, least);
        }
    }

    /// Returns the part, thread and total wait of each watched thread.
    fn waits(&self) -> Vec<(usize, u32, Duration)> {
        let of_part = |(index, (part, _)): (usize, &(WatchedPart, Vec<u32>))| {
            // The first thread of a part only reports its progress.
            let threads = task::threads(part.process).into_iter();
            let handles = |thread| part.is_program || thread != part.process;
            let handling = threads.filter(move |times| handles(times.thread));
            handling
                .map(|times| (index, times.thread, times.waited))
                .collect::<Vec<_>>()
        };
        self.parts.iter().enumerate().flat_map(of_part).collect()
    }

    /// Reads the accounts a last time. Returns the time taken from each thread that lost a share that counts.
    pub(super) fn end(mut self) -> Vec<Taken> {
        self.read();
        let least = self.began.elapsed().mul_f64(TAKEN_SHARE_MIN);
        let taken = |((part, thread), total): (&(usize, u32), &Total)| {
            let name = self.names.get(&(*part, *thread));
            let (part, _) = &self.parts[*part];
            let by = total.by.iter().max_by_key(|(_, (_, time))| *time);
            (total.time >= least && !total.time.is_zero()).then(|| Taken {
                stream: part.stream,
                time: TakenTime {
                    part: part.label.clone(),
                    host: part.host.clone(),
                    thread: name.cloned().unwrap_or_default(),
                    destination: part.destination,
                    delays_messages: part.stream.is_some(),
                    time: total.time,
                    most: total.most,
                    by: by.map(|(_, (taker, _))| taker.clone()),
                },
            })
        };
        self.ledger.totals.iter().filter_map(taken).collect()
    }
}

/// Processor time of a process outside the run in one interval.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outside {
    times: ProcessTimes,
    used: Duration,
    /// The time is that of children that have ended: on which processors is not known.
    by_children: bool,
}

/// The same, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Used {
    taker: Taker,
    real_time: bool,
    time: Duration,
    /// The processors that its threads last ran on; empty if they are not known.
    processors: Vec<u32>,
}

impl Used {
    fn located(outside: Outside) -> Self {
        let Outside {
            times,
            used,
            by_children,
        } = outside;
        let last = if by_children {
            Vec::new()
        } else {
            task::last_runs(times.process)
        };
        let is_real_time = |class: &Class| *class != Class::Other;
        let class = last.iter().map(|run| run.class).find(is_real_time);
        Self {
            taker: Taker {
                name: if by_children {
                    format!("a child of {}", times.name)
                } else {
                    times.name
                },
                id: times.process,
                class: class.unwrap_or_default().to_string(),
            },
            real_time: class.is_some(),
            time: used,
            processors: last.iter().map(|run| run.processor).collect(),
        }
    }

    fn ran_on(&self, processors: &[u32]) -> bool {
        self.processors.is_empty()
            || processors.is_empty()
            || self.processors.iter().any(|one| processors.contains(one))
    }
}

/// The last accounts, and the sums since the beginning.
#[derive(Debug, Default)]
struct Ledger {
    processes: Option<BTreeMap<u32, ProcessTimes>>,
    waited: BTreeMap<(usize, u32), Duration>,
    totals: BTreeMap<(usize, u32), Total>,
}

/// Sums for one thread.
#[derive(Debug, Default)]
struct Total {
    time: Duration,
    most: Duration,
    /// The takers, by process.
    by: BTreeMap<u32, (Taker, Duration)>,
}

impl Ledger {
    /// Returns what processes outside the run used since the last call; nothing at the first one.
    fn used_outside(&mut self, now: Vec<ProcessTimes>, own: &BTreeSet<u32>) -> Vec<Outside> {
        let now: BTreeMap<u32, ProcessTimes> = now
            .into_iter()
            .filter(|times| !times.is_kernel && !own.contains(&times.process))
            .map(|times| (times.process, times))
            .collect();
        let Some(before) = self.processes.replace(now.clone()) else {
            return Vec::new();
        };
        // The whole time of a child that has ended is added to its parent's; a part of it was counted before.
        let mut counted: BTreeMap<u32, Duration> = BTreeMap::new();
        for gone in before
            .values()
            .filter(|one| !now.contains_key(&one.process))
        {
            *counted.entry(gone.parent).or_default() += gone.used + gone.used_by_children;
        }
        let mut used = Vec::new();
        for (process, times) in now {
            let earlier = before.get(&process).cloned().unwrap_or_default();
            let by_children = times
                .used_by_children
                .saturating_sub(earlier.used_by_children)
                .saturating_sub(counted.get(&process).copied().unwrap_or_default());
            let by_itself = times.used.saturating_sub(earlier.used);
            for (time, by_children) in [(by_itself, false), (by_children, true)] {
                if !time.is_zero() {
                    used.push(Outside {
                        times: times.clone(),
                        used: time,
                        by_children,
                    });
                }
            }
        }
        used
    }

    /// Notes how long a thread has waited in all. What it waited since the last call, and was used by others meanwhile
    /// on its processors, was taken from it, if it is at least `least`.
    fn note(
        &mut self,
        thread: (usize, u32),
        waited: Duration,
        used: &[Used],
        processors: &[u32],
        least: Duration,
    ) {
        let Some(before) = self.waited.insert(thread, waited) else {
            return;
        };
        let here = || used.iter().filter(|used| used.ran_on(processors));
        let others: Duration = here().map(|used| used.time).sum();
        let taken = waited.saturating_sub(before).min(others);
        if taken.is_zero() || taken < least {
            return;
        }
        let total = self.totals.entry(thread).or_default();
        total.time += taken;
        total.most = total.most.max(taken);
        // A real-time process takes what it uses; time-sharing ones can have taken the rest, the busiest first.
        let mut takers: Vec<&Used> = here().collect();
        takers.sort_by_key(|used| std::cmp::Reverse((used.real_time, used.time)));
        let mut rest = taken;
        for one in takers {
            let share = one.time.min(rest);
            rest -= share;
            let by = total.by.entry(one.taker.id);
            by.or_insert_with(|| (one.taker.clone(), Duration::ZERO)).1 += share;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const THREAD: (usize, u32) = (0, 77);

    fn process(id: u32, used_ms: u32, by_children_ms: u32) -> ProcessTimes {
        ProcessTimes {
            process: id,
            parent: 1,
            name: format!("p{id}"),
            used: MS * used_ms,
            used_by_children: MS * by_children_ms,
            ..ProcessTimes::default()
        }
    }

    fn used(id: u32, time: Duration, processors: &[u32]) -> Used {
        Used {
            taker: Taker {
                name: format!("p{id}"),
                id,
                class: "SCHED_OTHER".to_owned(),
            },
            real_time: false,
            time,
            processors: processors.to_owned(),
        }
    }

    /// What a thread lost that waited for `waited` while others used this much.
    fn lost(waited: Duration, others: &[Used], processors: &[u32]) -> Duration {
        let mut ledger = Ledger::default();
        ledger.note(THREAD, MS * 1000, &[], processors, MS);
        ledger.note(THREAD, MS * 1000 + waited, others, processors, MS);
        let total = ledger.totals.get(&THREAD);
        total.map_or(Duration::ZERO, |total| total.time)
    }

    #[test]
    fn waiting_for_the_run_itself_or_a_declared_load_is_not_taken() {
        assert_eq!(lost(MS * 400, &[], &[1]), Duration::ZERO);
        assert_eq!(lost(MS * 400, &[used(5, MS * 30, &[1])], &[1]), MS * 30);
        assert_eq!(lost(MS * 20, &[used(5, MS * 150, &[1])], &[1]), MS * 20);
    }

    #[test]
    fn only_what_ran_on_the_parts_processors_counts() {
        let elsewhere = [used(5, MS * 150, &[0])];
        assert_eq!(lost(MS * 400, &elsewhere, &[1]), Duration::ZERO);
        assert_eq!(lost(MS * 400, &elsewhere, &[0, 1]), MS * 150);
        assert_eq!(lost(MS * 400, &elsewhere, &[]), MS * 150, "unbound");
        let anywhere = [used(5, MS * 150, &[])];
        assert_eq!(lost(MS * 400, &anywhere, &[1]), MS * 150);
    }

    #[test]
    fn intervals_add_up_from_the_least_wait_on_and_the_busiest_process_is_named() {
        let mut ledger = Ledger::default();
        let mut waited = Duration::ZERO;
        let mut interval = |more: Duration, others: &[Used]| {
            waited += more;
            ledger.note(THREAD, waited, others, &[1], MS * 5);
        };
        interval(MS * 900, &[used(5, MS * 900, &[1])]); // before the beginning
        interval(MS * 4, &[used(5, MS * 100, &[1])]); // shorter than the least
        interval(MS * 150, &[used(5, MS * 160, &[1])]);
        interval(MS * 50, &[used(6, MS * 70, &[1]), used(5, MS * 10, &[1])]);
        let total = &ledger.totals[&THREAD];
        assert_eq!((total.time, total.most), (MS * 200, MS * 150));
        let by = |id: u32| total.by[&id].1;
        assert_eq!((by(5), by(6)), (MS * 150, MS * 50));
    }

    #[test]
    fn a_real_time_process_is_named_before_busier_ones_in_the_time_sharing_class() {
        let mut ledger = Ledger::default();
        let robber = Used {
            real_time: true,
            ..used(6, MS * 150, &[1])
        };
        ledger.note(THREAD, MS, &[], &[1], MS);
        ledger.note(
            THREAD,
            MS * 201,
            &[used(5, MS * 800, &[1]), robber],
            &[1],
            MS,
        );
        let by = &ledger.totals[&THREAD].by;
        assert_eq!((by[&6].1, by[&5].1), (MS * 150, MS * 50));
    }

    #[test]
    fn the_runs_own_processes_and_kernel_threads_are_not_outside() {
        let mut ledger = Ledger::default();
        let own = BTreeSet::from([8]);
        let kernel = |used_ms| ProcessTimes {
            is_kernel: true,
            ..process(9, used_ms, 0)
        };
        let before = vec![process(7, 100, 0), process(8, 100, 0), kernel(100)];
        assert!(ledger.used_outside(before, &own).is_empty());
        // Process 10 is new: all its time is of this interval.
        let after = vec![
            process(7, 130, 0),
            process(8, 900, 0),
            kernel(900),
            process(10, 20, 0),
        ];
        let found = ledger.used_outside(after, &own);
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.times.process, one.used))
            .collect();
        assert_eq!(found, [(7, MS * 30), (10, MS * 20)]);
    }

    #[test]
    fn a_process_that_ended_within_the_interval_is_found_at_its_parent() {
        let own = BTreeSet::new();
        let mut ledger = Ledger::default();
        let child = |used_ms| ProcessTimes {
            parent: 7,
            ..process(11, used_ms, 0)
        };
        ledger.used_outside(vec![process(7, 100, 0)], &own);
        // A child came and went with 150 ms.
        let found = ledger.used_outside(vec![process(7, 100, 150)], &own);
        assert_eq!(found.len(), 1);
        assert!(found[0].by_children);
        assert_eq!(found[0].used, MS * 150);
        // Another was seen with 60 ms before it ended with 200 ms: 140 ms are of the last interval.
        ledger.used_outside(vec![process(7, 100, 150), child(60)], &own);
        let found = ledger.used_outside(vec![process(7, 100, 350)], &own);
        let times: Vec<_> = found.iter().map(|one| one.used).collect();
        assert_eq!(times, [MS * 140]);
    }
}
