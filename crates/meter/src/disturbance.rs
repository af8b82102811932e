//! The disturbances of a run that its mission does not declare.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::caution::Caution;
use crate::host_entry::HostEntry;
use crate::limits::{PRESSURE_SHARE_WARNED, STOLEN_SHARE_WARNED};
use crate::result::Warning;
use crate::words;

/// Differences of counters over a run, and bounds; zero if nothing was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disturbance {
    /// How long the run took.
    pub duration: Duration,
    /// Processors of the machine.
    pub processors: u32,
    /// Processor time that the hypervisor gave to other virtual machines, summed over all processors.
    pub stolen: Duration,
    /// Time for which the control group's quota stopped the run's threads.
    pub throttled: Duration,
    /// Time in which at least one runnable thread waited for a processor; `None` if the kernel does not report it.
    pub processor_pressure: Option<Duration>,
    /// Datagrams dropped by a full receive buffer in the network namespaces that were read; `None` if those of the run
    /// were not read.
    pub udp_receive_overflows: Option<u64>,
    /// Datagrams refused by a full send buffer or queue in these namespaces.
    pub udp_send_errors: Option<u64>,
    /// Packets that a capture dropped.
    pub capture_dropped: u64,
    /// Upper bound of the error of a latency that the clocks of its two ends cause; zero if both ends read one clock.
    pub clock_error: Duration,
    /// The same, if the shortest times of both directions between the hosts are equal; absent if that was not estimated.
    pub clock_assumed: Option<Duration>,
    /// Processor time that processes outside the run took from threads of the run, an entry for each thread.
    pub taken: Vec<TakenTime>,
}

/// Processor time that processes outside the run took from a thread of the run: the thread was ready and did not run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenTime {
    /// The process of the run, for example `consumer of NAV over udp at SONAR`.
    pub part: String,
    /// Its host, with the scheduling of the thread.
    pub host: HostEntry,
    /// The thread's name.
    pub thread: String,
    /// The destination whose messages the thread handles; `None` for those of all destinations.
    pub destination: Option<u16>,
    /// Messages pass the thread. They do not pass a tap or a naming service.
    pub delays_messages: bool,
    /// Total over the run.
    pub time: Duration,
    /// The most in one [interval](crate::limits::TAKEN_INTERVAL).
    pub most: Duration,
    /// The process that took the most, if the kernel showed one.
    pub by: Option<Taker>,
}

/// A process outside the run that took processor time from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taker {
    /// Its name.
    pub name: String,
    /// Its process id.
    pub id: u32,
    /// Its scheduling class in words, for example `SCHED_FIFO 50`.
    pub class: String,
}

impl Taker {
    /// Returns its priority in a real-time class; `None` in another class.
    #[must_use]
    pub fn priority(&self) -> Option<u8> {
        let (class, priority) = self.class.split_once(' ')?;
        let is_real_time = ["SCHED_FIFO", "SCHED_RR"].contains(&class);
        priority.parse().ok().filter(|_| is_real_time)
    }
}

impl fmt::Display for Taker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {}, {})", self.name, self.id, self.class)
    }
}

impl TakenTime {
    /// Returns the time, the thread and the taker as a part of a sentence.
    pub(crate) fn as_cause(&self) -> String {
        let by = self.by.as_ref();
        let by = by.map_or(String::new(), |by| format!(", probably by {by}"));
        format!(
            "{} from thread {} of the {} by processes outside the run{by}",
            words::duration(self.time),
            self.thread,
            self.part
        )
    }

    /// Returns what to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        self.host.against(self.by.as_ref())
    }
}

impl Disturbance {
    /// Returns the processor time withheld from the run by causes that no mission declares.
    #[must_use]
    pub fn withheld(&self) -> Duration {
        let taken = self.taken.iter().map(|taken| taken.time);
        taken.fold(
            self.stolen.saturating_add(self.throttled),
            Duration::saturating_add,
        )
    }

    /// Returns the thread that lost the most time to processes outside the run; one that messages pass, if there is one.
    #[must_use]
    pub fn most_taken(&self) -> Option<&TakenTime> {
        let key = |taken: &&TakenTime| (taken.delays_messages, taken.time);
        self.taken.iter().max_by_key(key)
    }

    /// Returns the thread of each host that lost the most, of those that messages pass, the worst first.
    #[must_use]
    pub fn most_taken_by_host(&self) -> Vec<&TakenTime> {
        let mut worst: BTreeMap<&str, &TakenTime> = BTreeMap::new();
        for taken in self.taken.iter().filter(|taken| taken.delays_messages) {
            let known = worst.entry(&taken.host.name).or_insert(taken);
            if taken.time > known.time {
                *known = taken;
            }
        }
        let mut worst: Vec<&TakenTime> = worst.into_values().collect();
        worst.sort_by_key(|taken| std::cmp::Reverse(taken.time));
        worst
    }

    /// Returns the disturbance of the messages to one destination: without what was taken from threads that handle
    /// messages to others.
    #[must_use]
    pub fn at(&self, destination: u16) -> Self {
        let mut here = self.clone();
        here.taken.retain(|taken| {
            taken
                .destination
                .is_none_or(|concerned| concerned == destination)
        });
        here
    }

    /// Whether the hypervisor took so much that the run warns of it.
    pub(crate) fn stolen_is_warned_of(&self) -> bool {
        self.stolen > self.capacity().mul_f64(STOLEN_SHARE_WARNED)
    }

    /// Returns the processor time that the machine had available.
    fn capacity(&self) -> Duration {
        self.duration.saturating_mul(self.processors)
    }

    /// Adds what another process of the run measured. Counters of its own network namespace and capture are added; of
    /// readings of the whole machine the larger one is kept.
    pub fn absorb(&mut self, other: &Self) {
        self.duration = self.duration.max(other.duration);
        self.processors = self.processors.max(other.processors);
        self.stolen = self.stolen.max(other.stolen);
        self.throttled = self.throttled.max(other.throttled);
        self.processor_pressure = self.processor_pressure.max(other.processor_pressure);
        self.udp_receive_overflows = sum(self.udp_receive_overflows, other.udp_receive_overflows);
        self.udp_send_errors = sum(self.udp_send_errors, other.udp_send_errors);
        self.capture_dropped = self.capture_dropped.saturating_add(other.capture_dropped);
        self.clock_error = self.clock_error.max(other.clock_error);
        self.clock_assumed = self.clock_assumed.max(other.clock_assumed);
        self.taken.extend_from_slice(&other.taken);
    }

    /// Returns what a reader must know about the whole run before trusting its numbers.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let pressure = self.processor_pressure.unwrap_or_default();
        let overflows = self.udp_receive_overflows.unwrap_or(0);
        let send_errors = self.udp_send_errors.unwrap_or(0);
        let pressure_warned = self.duration.mul_f64(PRESSURE_SHARE_WARNED);
        let all = [
            (
                self.stolen_is_warned_of(),
                Caution::StolenProcessor(self.stolen),
            ),
            (
                !self.throttled.is_zero(),
                Caution::Throttled(self.throttled),
            ),
            (
                pressure > pressure_warned,
                Caution::ProcessorPressure {
                    waited: pressure,
                    of: self.duration,
                },
            ),
            (overflows > 0, Caution::ReceiveOverflowHere(overflows)),
            (send_errors > 0, Caution::SendErrorsHere(send_errors)),
            (
                self.capture_dropped > 0,
                Caution::CaptureDropped(self.capture_dropped),
            ),
            (
                !self.clock_error.is_zero(),
                Caution::ClockError(self.clock_error),
            ),
        ];
        let taken = self.most_taken().map(|worst| Caution::ProcessorTaken {
            worst: worst.clone(),
            others: self.taken.len() - 1,
        });
        let all = all.into_iter();
        all.filter_map(|(holds, caution)| holds.then_some(caution))
            .chain(taken)
            .map(Warning::from)
            .collect()
    }

    /// Returns the readings by name, for the result document.
    #[must_use]
    pub fn to_map(&self) -> BTreeMap<String, f64> {
        let mut map = BTreeMap::from([
            ("stolen_us".to_owned(), self.stolen.as_micros() as f64),
            ("throttled_us".to_owned(), self.throttled.as_micros() as f64),
            ("capture_dropped".to_owned(), self.capture_dropped as f64),
            (
                "clock_error_ns".to_owned(),
                self.clock_error.as_nanos() as f64,
            ),
        ]);
        if let Some(taken) = self.most_taken() {
            map.insert("taken_us".to_owned(), taken.time.as_micros() as f64);
        }
        if let Some(pressure) = self.processor_pressure {
            map.insert("psi_cpu_some_us".to_owned(), pressure.as_micros() as f64);
        }
        if let Some(overflows) = self.udp_receive_overflows {
            map.insert("udp_rcvbuf_errors".to_owned(), overflows as f64);
        }
        if let Some(errors) = self.udp_send_errors {
            map.insert("udp_sndbuf_errors".to_owned(), errors as f64);
        }
        map
    }
}

/// Returns the sum of the values that were read; `None` if neither was.
fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).reduce(u64::saturating_add)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn kinds(disturbance: &Disturbance) -> Vec<String> {
        disturbance
            .warnings()
            .into_iter()
            .map(|warning| warning.kind)
            .collect()
    }

    #[test]
    fn an_undisturbed_run_warns_of_nothing() {
        let quiet = Disturbance {
            duration: Duration::from_secs(20),
            processors: 2,
            processor_pressure: Some(Duration::from_secs(1)),
            ..Disturbance::default()
        };
        assert!(kinds(&quiet).is_empty());
        assert!(kinds(&Disturbance::default()).is_empty());
    }

    #[test]
    fn each_disturbance_is_warned_of_from_its_threshold() {
        let run = Disturbance {
            duration: Duration::from_secs(20),
            processors: 2,
            ..Disturbance::default()
        };
        let ms = Duration::from_millis;
        assert!(
            kinds(&Disturbance {
                stolen: ms(400),
                ..run.clone()
            })
            .is_empty()
        );
        assert_eq!(
            kinds(&Disturbance {
                stolen: ms(401),
                ..run.clone()
            }),
            ["stolen-cpu"]
        );
        assert!(
            kinds(&Disturbance {
                processor_pressure: Some(ms(4_000)),
                ..run.clone()
            })
            .is_empty()
        );
        assert_eq!(
            kinds(&Disturbance {
                processor_pressure: Some(ms(4_001)),
                ..run.clone()
            }),
            ["cpu-pressure"]
        );
        let all = Disturbance {
            throttled: ms(1),
            udp_receive_overflows: Some(1),
            udp_send_errors: Some(1),
            capture_dropped: 1,
            clock_error: ms(1),
            ..run
        };
        assert_eq!(
            kinds(&all),
            [
                "throttled",
                "receive-overflow",
                "send-errors",
                "capture-dropped",
                "clock-error"
            ]
        );
        assert_eq!(all.to_map()["capture_dropped"], 1.0);
    }

    /// Time that a process outside the run took from the thread `receive` of a consumer.
    pub(crate) fn taken(destination: Option<u16>, ms: u64) -> TakenTime {
        TakenTime {
            part: "consumer of NAV over udp at SONAR".to_owned(),
            host: HostEntry::named("SONAR"),
            thread: "receive".to_owned(),
            destination,
            delays_messages: true,
            time: Duration::from_millis(ms),
            most: Duration::from_millis(150),
            by: Some(Taker {
                name: "burner".to_owned(),
                id: 4711,
                class: "SCHED_FIFO 50".to_owned(),
            }),
        }
    }

    #[test]
    fn of_each_host_the_thread_that_lost_most_is_named_and_the_worst_host_first() {
        let at = |host: &str, thread: &str, ms| TakenTime {
            host: HostEntry::named(host),
            thread: thread.to_owned(),
            ..taken(None, ms)
        };
        let tap = TakenTime {
            delays_messages: false,
            ..at("NAV", "tap", 900)
        };
        let run = Disturbance {
            taken: vec![
                at("SONAR", "receive", 150),
                at("NAV", "send", 100),
                at("NAV", "first", 300),
                at("NAV", "second", 300),
                at("NAV", "third", 200),
                tap,
            ],
            ..Disturbance::default()
        };
        let worst = run.most_taken_by_host();
        let threads: Vec<_> = worst.iter().map(|taken| &*taken.thread).collect();
        assert_eq!(threads, ["first", "receive"]);
    }

    #[test]
    fn time_taken_at_a_destination_is_withheld_from_its_messages_alone() {
        let ms = Duration::from_millis;
        let both = Disturbance {
            stolen: ms(1),
            taken: vec![taken(None, 10), taken(Some(0), 500), taken(Some(1), 70)],
            ..Disturbance::default()
        };
        assert_eq!(both.at(0).withheld(), ms(511));
        assert_eq!(both.at(1).withheld(), ms(81));
        assert_eq!(both.at(2).withheld(), ms(11));
        assert_eq!(both.to_map()["taken_us"], 500_000.0);
        let mut with_tap = both.clone();
        with_tap.taken.push(TakenTime {
            delays_messages: false,
            ..taken(None, 900)
        });
        assert_eq!(with_tap.most_taken(), both.most_taken());
        let texts: Vec<String> = both.warnings().into_iter().map(|one| one.text).collect();
        assert_eq!(
            texts[1..],
            [
                "Processor time was taken: 500 ms from thread receive of the consumer of NAV over udp at SONAR by processes outside the run, probably by burner (process 4711, SCHED_FIFO 50); at most 150 ms of it within 1 s. 2 other threads of the run lost time too."
            ]
        );
    }

    #[test]
    fn counters_of_namespaces_add_up_and_readings_of_the_machine_do_not() {
        let ms = Duration::from_millis;
        let one = Disturbance {
            stolen: ms(30),
            udp_receive_overflows: Some(2),
            capture_dropped: 1,
            ..Disturbance::default()
        };
        let mut both = one.clone();
        both.absorb(&Disturbance {
            stolen: ms(40),
            processor_pressure: Some(ms(5)),
            udp_receive_overflows: Some(3),
            ..Disturbance::default()
        });
        let expected = Disturbance {
            stolen: ms(40),
            processor_pressure: Some(ms(5)),
            udp_receive_overflows: Some(5),
            ..one
        };
        assert_eq!(both, expected);
    }
}
