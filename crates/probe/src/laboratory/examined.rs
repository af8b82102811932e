//! The ends of a run as the kernel describes them: class, processors and buffers, read back from outside, so that a
//! foreign program and a program that errs about itself are examined alike.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use deckwatch_meter::experiment::EndNote;
use deckwatch_os::examine::{ConnectionState, ThreadState, connections, threads};
use deckwatch_os::schedule::Class;
use deckwatch_os::signal;

use super::process::rest;
use super::program::Place;

/// What is asked of an end.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The processor and the usual priority.
    pub(crate) place: Place,
    /// The priorities that its threads may have besides: those of its lanes or of its callers.
    pub(crate) others: Vec<u8>,
    /// Threads besides those of its lanes are in the time-sharing class.
    pub(crate) has_others_besides: bool,
}

/// One end during a run.
pub(crate) struct Examination {
    end: String,
    process: u32,
    asked: Asked,
    /// Processor time of the threads before the run.
    before: BTreeMap<u32, u64>,
    /// The last state of each thread and of each connection.
    threads: BTreeMap<u32, ThreadState>,
    connections: BTreeMap<u64, ConnectionState>,
}

impl Examination {
    /// Begins before a run.
    pub(crate) fn begin(end: &str, process: u32, asked: Asked) -> Self {
        let all = threads(process).unwrap_or_default().into_iter();
        Self {
            end: end.to_owned(),
            process,
            asked,
            before: all.map(|it| (it.thread, it.cpu_ns)).collect(),
            threads: BTreeMap::new(),
            connections: BTreeMap::new(),
        }
    }

    /// Reads once.
    fn read(&mut self) {
        // What cannot be read is missing in the note, which then differs from what was asked.
        let all = threads(self.process).unwrap_or_default();
        self.threads
            .extend(all.into_iter().map(|it| (it.thread, it)));
        let all = connections(self.process).unwrap_or_default();
        self.connections
            .extend(all.into_iter().map(|it| (it.inode, it)));
    }

    /// The threads that did most of the work since the beginning.
    fn working(&self) -> Vec<&ThreadState> {
        let used = |it: &ThreadState| {
            let before = self.before.get(&it.thread).copied().unwrap_or(0);
            it.cpu_ns.saturating_sub(before)
        };
        let all: u64 = self.threads.values().map(used).sum();
        // Of many threads that share the work, none may have that part of it.
        let most = self.threads.values().map(used).max().unwrap_or(0);
        let of = if most < all / WORKING_SHARE {
            most
        } else {
            all
        };
        let least = of / WORKING_SHARE;
        let works = |it: &&ThreadState| used(it) > 0 && used(it) >= least;
        self.threads.values().filter(works).collect()
    }

    /// Whether it has a connection, and a thread that has worked since the beginning.
    fn has_worked(&self) -> bool {
        !self.connections.is_empty() && !self.working().is_empty()
    }

    /// What was read.
    pub(crate) fn note(&self) -> EndNote {
        let working = self.working();
        let mut classes: Vec<String> = working.iter().map(|it| it.class.to_string()).collect();
        let mut processors: Vec<u32> = (working.iter())
            .flat_map(|it| it.processors.iter().copied())
            .collect();
        classes.sort_unstable();
        classes.dedup();
        processors.sort_unstable();
        processors.dedup();
        // A size that was requested is told before the kernel's own choice for another connection.
        let all = || self.connections.values();
        let connection = all().max_by_key(|it| (it.is_send_buffer_fixed, it.send_buffer));
        let receiving = all().max_by_key(|it| (it.is_receive_buffer_fixed, it.receive_buffer));
        EndNote {
            end: self.end.clone(),
            asked: self.asked.words(),
            classes,
            processors,
            send_buffer_octets: connection.map(|it| it.send_buffer),
            is_send_buffer_fixed: connection.map(|it| it.is_send_buffer_fixed),
            receive_buffer_octets: receiving.map(|it| it.receive_buffer),
            is_receive_buffer_fixed: receiving.map(|it| it.is_receive_buffer_fixed),
            is_blocking: connection.map(|it| it.is_blocking),
            differs: self.asked.difference(&working),
        }
    }
}

/// Reads all ends again and again until half of a run's time is over. A connection that lasts for one run is there
/// then, and its buffers have grown. An end that has not worked yet, because the machine has taken its processor away,
/// is read until it has.
pub(crate) fn examine(ends: &mut [Examination], run_time: Duration) {
    let begun = Instant::now();
    while signal::ending().is_none() {
        ends.iter_mut().for_each(Examination::read);
        let is_idle = ends.iter().any(|end| !end.has_worked());
        let time = if is_idle {
            run_time + IDLE_MAX
        } else {
            run_time / 2
        };
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return;
        }
        rest(left.min(READ_INTERVAL));
    }
}

/// How much longer than its run an end is read that does not work.
const IDLE_MAX: Duration = Duration::from_secs(1);

/// The time between two readings.
const READ_INTERVAL: Duration = Duration::from_millis(10);

/// A thread with less than this part of a process's work does not decide its times.
const WORKING_SHARE: u64 = 10;

impl Asked {
    /// A place without further priorities.
    pub(crate) const fn at(place: Place) -> Self {
        let others = Vec::new();
        Self {
            place,
            others,
            has_others_besides: false,
        }
    }

    fn classes(&self) -> Vec<Class> {
        match self.place.fifo {
            None => vec![Class::Other],
            Some(usual) => {
                let all = std::iter::once(usual).chain(self.others.iter().copied());
                let besides = self.has_others_besides.then_some(Class::Other);
                all.map(Class::Fifo).chain(besides).collect()
            }
        }
    }

    fn words(&self) -> String {
        let mut classes: Vec<String> = self.classes().iter().map(ToString::to_string).collect();
        classes.dedup();
        let classes = classes.join(" or ");
        match self.place.processor {
            Some(processor) => format!("{classes} on processor {processor}"),
            None => format!("{classes} on any processor"),
        }
    }

    /// The difference of the threads that worked from what was asked, in words.
    fn difference(&self, working: &[&ThreadState]) -> Option<String> {
        if working.is_empty() {
            return Some("its threads could not be read".to_owned());
        }
        let classes = self.classes();
        let is_as_asked = |it: &ThreadState| {
            let is_there = |processor: u32| it.processors == [processor];
            classes.contains(&it.class) && self.place.processor.is_none_or(is_there)
        };
        let other = working.iter().find(|it| !is_as_asked(it))?;
        Some(format!(
            "{} on processors {:?} where {} was asked for",
            other.class,
            other.processors,
            self.words()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(number: u32, class: Class, processors: &[u32], cpu_ns: u64) -> ThreadState {
        ThreadState {
            thread: number,
            class,
            processors: processors.to_vec(),
            cpu_ns,
        }
    }

    fn examined(threads: &[ThreadState], fifo: Option<u8>) -> EndNote {
        let place = Place {
            processor: Some(1),
            fifo,
        };
        let asked = Asked {
            place,
            others: vec![60],
            has_others_besides: false,
        };
        let mut end = Examination::begin("server", u32::MAX >> 1, asked);
        end.threads = threads.iter().map(|it| (it.thread, it.clone())).collect();
        end.note()
    }

    #[test]
    fn an_end_in_another_class_or_on_other_processors_differs_from_what_was_asked() {
        let right = thread(1, Class::Fifo(50), &[1], 900);
        let differs = |other: ThreadState| examined(&[right.clone(), other], Some(50)).differs;
        assert_eq!(differs(thread(2, Class::Fifo(60), &[1], 500)), None);
        // A thread that does next to nothing decides no time.
        assert_eq!(differs(thread(2, Class::Other, &[0, 1], 50)), None);
        let words = differs(thread(2, Class::Other, &[1], 500)).expect("another class");
        assert!(
            words.starts_with("SCHED_OTHER on processors [1] where SCHED_FIFO 50"),
            "{words}"
        );
        let words = differs(thread(2, Class::Fifo(50), &[0, 1], 500)).expect("not bound");
        assert!(words.contains("[0, 1]"), "{words}");
        assert!(differs(thread(2, Class::Fifo(40), &[1], 500)).is_some());
        assert!(examined(&[right], None).differs.is_some());
    }

    #[test]
    fn threads_that_share_the_work_equally_all_count() {
        let mut threads: Vec<ThreadState> = (0..35)
            .map(|number| thread(number, Class::Fifo(50), &[1], 100))
            .collect();
        assert_eq!(examined(&threads, Some(50)).differs, None);
        threads[34].class = Class::Other;
        assert!(examined(&threads, Some(50)).differs.is_some());
    }

    #[test]
    fn an_end_of_which_nothing_is_read_differs() {
        let words = examined(&[], Some(50)).differs.expect("nothing was read");
        assert_eq!(words, "its threads could not be read");
    }
}
