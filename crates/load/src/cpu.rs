//! Loads on processors: a share that is held, or the loops of the paper, each watched by the kernel's counters.

mod controller;
mod processor;
mod spinner;

use std::sync::mpsc;
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use deckwatch_os::clock::{monotonic_ns, sleep_until};
use deckwatch_os::schedule::{
    Class, affinity, limit_real_time, name_thread, processor_time_of, set_affinity, set_class,
    thread_number,
};
use serde::{Deserialize, Serialize};

use self::controller::{Controller, Look};
use self::processor::Reading;
use self::spinner::Share;
use crate::count::{self, CountPlan};
use crate::held::Unit;
use crate::limits::{LOOPS_MAX, REAL_TIME_SHARE_MAX, REAL_TIME_UNBLOCKED_MAX};
use crate::{Held, LoadError, LoadReport, Second, Stop};

/// A load on processors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuPlan {
    /// What runs there.
    pub work: CpuWork,
    /// The processors; empty for all that this process may use.
    pub processors: Vec<u32>,
    /// Priority of SCHED_FIFO; `None` for time sharing.
    pub fifo_priority: Option<u8>,
}

/// What runs on each processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuWork {
    /// What all that runs there is to take, as a share: the load takes what is missing.
    Share {
        /// Above 0, at most 1.
        share: f64,
    },
    /// Loops of the paper, on the processors that the kernel chooses of them.
    Loops {
        /// Their number.
        loops: u32,
        /// One of them.
        of: CountPlan,
    },
    /// Nothing: the processors are only watched.
    Nothing,
}

impl CpuPlan {
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        if self.fifo_priority.is_some_and(|it| it == 0 || it > 99) {
            return Err(LoadError::Priority);
        }
        let is_real_time = self.fifo_priority.is_some();
        match &self.work {
            &CpuWork::Share { share } => {
                if !(share > 0.0 && share <= 1.0) {
                    return Err(LoadError::Share { share });
                }
                if is_real_time && share > REAL_TIME_SHARE_MAX {
                    return Err(LoadError::RealTimeShare { share });
                }
            }
            CpuWork::Loops { .. } if is_real_time => return Err(LoadError::RealTimeLoops),
            CpuWork::Loops { loops, of } => {
                if *loops == 0 || *loops > LOOPS_MAX {
                    return Err(LoadError::Loops);
                }
                of.check()?;
            }
            CpuWork::Nothing => {}
        }
        Ok(())
    }

    const fn target(&self) -> Option<f64> {
        match self.work {
            CpuWork::Share { share } => Some(share),
            CpuWork::Loops { .. } | CpuWork::Nothing => None,
        }
    }

    const fn own_max(&self) -> f64 {
        if self.fifo_priority.is_some() {
            REAL_TIME_SHARE_MAX
        } else {
            1.0
        }
    }

    /// Puts the calling thread on these processors and into its class.
    fn enter(&self, processors: &[u32]) -> Result<(), LoadError> {
        name_thread(c"load");
        set_affinity(processors).map_err(LoadError::system("Choosing a processor"))?;
        let Some(priority) = self.fifo_priority else {
            return Ok(());
        };
        limit_real_time(REAL_TIME_UNBLOCKED_MAX)
            .map_err(LoadError::system("Setting the limit of real-time threads"))?;
        let class = Class::Fifo(priority);
        set_class(class).map_err(|error| LoadError::Class { priority, error })
    }
}

/// Carries out the load until it is stopped or `end` has come.
pub(crate) fn run(
    plan: &CpuPlan,
    stop: &Stop,
    end: Instant,
    tell: &mut dyn FnMut(&Second),
) -> Result<LoadReport, LoadError> {
    let allowed = affinity().map_err(LoadError::system("Reading the allowed processors"))?;
    let processors = match plan.processors.as_slice() {
        [] => allowed.clone(),
        chosen => chosen.to_vec(),
    };
    let usable = Reading::now().map_err(LoadError::system("Reading /proc/stat"))?;
    let is_usable = |it: &u32| allowed.contains(it) && usable.processors.contains_key(it);
    if let Some(&processor) = processors.iter().find(|it| !is_usable(it)) {
        return Err(LoadError::NoSuchProcessor { processor, allowed });
    }
    // The threads of this load end with it, and not with other loads of the process.
    let over = Stop::default();
    let share = plan.target().unwrap_or(0.0).min(plan.own_max());
    let shares: Vec<Share> = processors.iter().map(|_| Share::new(share)).collect();
    std::thread::scope(|scope| {
        let ends_threads = EndsThreads(&over);
        let threads = start(scope, plan, &processors, &shares, end, &over)?;
        let mut watch = Watch::new(plan, &processors, &shares, threads);
        let watched = watch.until(stop, end, tell);
        drop(ends_threads);
        watched?;
        Ok(LoadReport {
            held: watch.held,
            bursts: watch
                .threads
                .into_iter()
                .filter_map(Thread::join)
                .reduce(|sum, next| count::Bursts {
                    count: sum.count + next.count,
                    ns_min: sum.ns_min.min(next.ns_min),
                }),
            ..LoadReport::default()
        })
    })
}

/// Ends the threads when it is dropped: a scope waits for its threads, also after an error.
struct EndsThreads<'s>(&'s Stop);

impl Drop for EndsThreads<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// One thread of a load.
struct Thread<'s> {
    number: u32,
    /// Index of its processor; `None` if it may run on all of them.
    processor: Option<usize>,
    handle: ScopedJoinHandle<'s, Option<count::Bursts>>,
}

impl Thread<'_> {
    fn join(self) -> Option<count::Bursts> {
        self.handle
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Starts the threads, and returns when each runs where it is to run.
fn start<'s>(
    scope: &'s Scope<'s, '_>,
    plan: &'s CpuPlan,
    processors: &'s [u32],
    shares: &'s [Share],
    end: Instant,
    over: &'s Stop,
) -> Result<Vec<Thread<'s>>, LoadError> {
    let places: Vec<Option<usize>> = match plan.work {
        CpuWork::Share { .. } => (0..processors.len()).map(Some).collect(),
        CpuWork::Loops { loops, .. } => (0..loops).map(|_| None).collect(),
        CpuWork::Nothing => Vec::new(),
    };
    let mut threads = Vec::new();
    for place in places {
        let (tell, told) = mpsc::channel();
        let work = move || {
            let own = place.map_or(processors, |place| &processors[place..=place]);
            let entered = plan.enter(own);
            let may_run = entered.is_ok();
            // The other side waits for it.
            let _ = tell.send(entered.map(|()| thread_number()));
            match (&plan.work, place) {
                _ if !may_run => None,
                (CpuWork::Loops { of, .. }, _) => Some(count::run(of, over, end)),
                (CpuWork::Nothing, _) => None,
                (CpuWork::Share { .. }, place) => {
                    let place = place.unwrap_or(0);
                    let blocks_after = 1.0 / plan.own_max() - 1.0;
                    spinner::spin(&shares[place], processors[place], blocks_after, over);
                    None
                }
            }
        };
        let handle = Builder::new()
            .spawn_scoped(scope, work)
            .map_err(LoadError::system("Starting a thread"))?;
        let gone = || std::io::Error::other("the thread ended");
        let number = told
            .recv()
            .map_err(|_| LoadError::system("Starting a thread")(gone()))??;
        threads.push(Thread {
            number,
            processor: place,
            handle,
        });
    }
    Ok(threads)
}

/// Looks at the processors, sets the shares, and adds up the seconds.
struct Watch<'s> {
    processors: &'s [u32],
    shares: &'s [Share],
    target: Option<f64>,
    controllers: Vec<Controller>,
    threads: Vec<Thread<'s>>,
    held: Vec<Held>,
}

/// The counters of the processors and of the load's threads at one time.
#[derive(Clone)]
struct Moment {
    reading: Reading,
    /// Processor time of the load's threads, nanoseconds, by processor. Loops that may run on all processors count on
    /// each in equal parts.
    own_ns: Vec<f64>,
}

impl<'s> Watch<'s> {
    fn new(
        plan: &CpuPlan,
        processors: &'s [u32],
        shares: &'s [Share],
        threads: Vec<Thread<'s>>,
    ) -> Self {
        let target = plan.target();
        let controller = |share| Controller::new(share, plan.own_max());
        let held = |processor: &u32| Held {
            of: format!("processor {processor}"),
            asked: target,
            ..Held::default()
        };
        Self {
            processors,
            shares,
            target,
            controllers: (target.iter())
                .flat_map(|&share| processors.iter().map(move |_| controller(share)))
                .collect(),
            threads,
            held: processors.iter().map(held).collect(),
        }
    }

    fn moment(&self) -> Result<Moment, LoadError> {
        let mut own_ns = vec![0.0; self.processors.len()];
        let reading = Reading::now().map_err(LoadError::system("Reading /proc/stat"))?;
        for thread in &self.threads {
            // A loop may have ended with the load's lifetime.
            let used = processor_time_of(thread.number).unwrap_or_default();
            let used_ns = used.as_nanos() as f64;
            match thread.processor {
                Some(place) => own_ns[place] += used_ns,
                None => {
                    let part_ns = used_ns / own_ns.len() as f64;
                    own_ns.iter_mut().for_each(|own_ns| *own_ns += part_ns);
                }
            }
        }
        Ok(Moment { reading, own_ns })
    }

    fn until(
        &mut self,
        stop: &Stop,
        end: Instant,
        tell: &mut dyn FnMut(&Second),
    ) -> Result<(), LoadError> {
        let mut last = self.moment()?;
        let mut second = last.clone();
        let begin_ns = second.reading.at_ns;
        let mut at_s = 0;
        let mut due_ns = begin_ns;
        while !stop.is_set() && Instant::now() < end {
            due_ns = (due_ns + LOOK_NS).max(monotonic_ns());
            sleep_until(due_ns);
            let now = self.moment()?;
            self.control(&last, &now);
            if now.reading.at_ns - second.reading.at_ns >= SECOND_NS {
                at_s += 1;
                self.add(at_s, &second, &now, tell);
                second = now.clone();
            }
            last = now;
        }
        Ok(())
    }

    fn control(&mut self, last: &Moment, now: &Moment) {
        for (place, controller) in self.controllers.iter_mut().enumerate() {
            let processor = self.processors[place];
            if let Some(used) = now.reading.since(&last.reading, processor) {
                self.shares[place].set(controller.after(Look {
                    wall_ns: used.wall_ns,
                    busy_ns: used.busy_ns,
                    own_ns: now.own_ns[place] - last.own_ns[place],
                }));
            }
        }
    }

    fn add(&mut self, at_s: u64, from: &Moment, to: &Moment, tell: &mut dyn FnMut(&Second)) {
        for (place, &processor) in self.processors.iter().enumerate() {
            let Some(used) = to.reading.since(&from.reading, processor) else {
                continue;
            };
            let own_ns = to.own_ns[place] - from.own_ns[place];
            let second = Second {
                at_s,
                index: place,
                of: self.held[place].of.clone(),
                asked: self.target,
                unit: Unit::Share,
                achieved: (used.busy_ns / used.wall_ns).clamp(0.0, 1.0),
                own: own_ns / used.wall_ns,
                stolen: used.stolen_ns / used.wall_ns,
            };
            if at_s > 1 {
                self.held[place].add(&second);
            }
            tell(&second);
        }
    }
}

/// Interval of the controller.
const LOOK_NS: i64 = Duration::from_millis(100).as_nanos() as i64;

/// Ten looks, less what the last one may come early by its own bracket.
const SECOND_NS: i64 = Duration::from_millis(999).as_nanos() as i64;
