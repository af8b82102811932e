//! The commands of a client, and its answers.

use std::io::{BufRead as _, Write as _};

use deckwatch_meter::limits::SAMPLES_BEYOND_MIN;
use deckwatch_os::clock::{monotonic_ns, sleep_until};

use super::{greet, system};
use crate::laboratory::error::LaboratoryError;
use crate::limits::{BENCH_OCTETS_MAX, BENCH_SAMPLES_MAX, END_PATIENCE};

/// One run of a client.
pub(super) struct Command {
    pub(super) kind: String,
    pub(super) there: usize,
    pub(super) back: usize,
    pub(super) count: usize,
    pub(super) budget_ns: i64,
    pub(super) period_ns: i64,
}

impl Command {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let kind = words.next()?.to_owned();
        let mut number = || words.next()?.parse::<usize>().ok();
        Some(Self {
            kind,
            there: number()?.min(BENCH_OCTETS_MAX),
            back: number()?.min(BENCH_OCTETS_MAX),
            count: number()?.clamp(1, BENCH_SAMPLES_MAX),
            budget_ns: i64::try_from(number()?).ok()?,
            period_ns: number().map_or(Some(0), |it| i64::try_from(it).ok())?,
        })
    }

    /// The answer to a command that this end does not know.
    pub(super) fn unknown(&self) -> String {
        format!("'{}' is unknown to this end", self.kind)
    }
}

/// Runs commands from the standard input until it ends.
pub(super) fn commands(
    mut run: impl FnMut(&Command, &mut Samples) -> Result<(), String>,
) -> Result<(), LaboratoryError> {
    greet("ready")?;
    let mut samples = Samples::default();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(system("Standard input cannot be read"))?;
        let outcome = Command::parse(&line)
            .ok_or_else(|| format!("'{line}' is no command"))
            .and_then(|command| {
                samples.prepare(&command);
                run(&command, &mut samples)
            });
        answer(outcome, &samples).map_err(system("Standard output cannot be written"))?;
    }
    Ok(())
}

fn answer(outcome: Result<(), String>, samples: &Samples) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match (outcome, samples.sum) {
        (Ok(()), None) => {
            let samples = samples.taken();
            writeln!(out, "ok {}", samples.len())?;
            let octets: Vec<u8> = samples.iter().flat_map(|ns| ns.to_ne_bytes()).collect();
            out.write_all(&octets)?;
        }
        (Ok(()), Some((count, elapsed_ns))) => writeln!(out, "sum {count} {elapsed_ns}")?,
        (Err(words), _) => writeln!(out, "error {}", words.replace('\n', " "))?,
    }
    out.flush()
}

/// Round trips of one run. Their memory is touched before the first run, and kept: a run begins at once when it is asked
/// for.
#[derive(Default)]
pub(super) struct Samples {
    round_trips_ns: Vec<u32>,
    count: usize,
    count_max: usize,
    budget_ns: i64,
    period_ns: i64,
    /// Messages and nanoseconds of a run that has no round trips.
    sum: Option<(u64, u64)>,
}

impl Samples {
    fn prepare(&mut self, command: &Command) {
        self.count = 0;
        self.sum = None;
        self.count_max = command.count;
        self.budget_ns = command.budget_ns;
        self.period_ns = command.period_ns;
        self.make_room(command.count);
    }

    /// What is written into memory for the first time is slow: the kernel finds a page.
    fn make_room(&mut self, count: usize) {
        if self.round_trips_ns.len() < count {
            self.round_trips_ns.resize(count, u32::MAX);
        }
    }

    fn taken(&self) -> &[u32] {
        &self.round_trips_ns[..self.count]
    }

    /// Makes round trips until the count or the time is reached. The warm-up before them is not measured. Without a
    /// period each round trip starts at the end of the one before. With a period it starts when it is due. One that is
    /// sent late because those before it took too long is timed from when it was due: else one stall, however long,
    /// would be one sample.
    pub(super) fn take(
        &mut self,
        mut one: impl FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        self.warm_up(&mut one)?;
        let begin_ns = monotonic_ns();
        let mut now_ns = begin_ns;
        while let Some(from_ns) = self.next(begin_ns, now_ns) {
            one()?;
            now_ns = monotonic_ns();
            self.add(now_ns - from_ns);
        }
        Ok(())
    }

    /// Returns the time from which the next round trip is timed, at `now_ns` in a run that began at `begin_ns`; `None`
    /// at the end. With a period, waits until it is due. All that are due within the time of a run belong to it, unless
    /// the run takes several times as long: the system is then slower than the schedule.
    ///
    /// A machine that takes the processor away for most of a run leaves too few round trips for a median. So a run
    /// has [`COUNT_MIN`] in any case, unless that takes [`LATE_MAX_NS`] longer.
    fn next(&self, begin_ns: i64, now_ns: i64) -> Option<i64> {
        let elapsed_ns = now_ns - begin_ns;
        let is_late = match self.period_ns {
            0 => elapsed_ns >= self.budget_ns,
            _ => elapsed_ns >= self.budget_ns.saturating_mul(OVERTIME),
        };
        let is_short = self.count < COUNT_MIN && elapsed_ns < self.budget_ns + LATE_MAX_NS;
        if self.count >= self.count_max || is_late && !is_short {
            return None;
        }
        if self.period_ns == 0 {
            return Some(now_ns);
        }
        let due_ns = self.period_ns.saturating_mul(self.count as i64 + 1);
        if due_ns > self.budget_ns && !is_short {
            return None;
        }
        let due_ns = begin_ns.saturating_add(due_ns);
        if now_ns >= due_ns {
            return Some(due_ns);
        }
        sleep_until(due_ns);
        Some(monotonic_ns())
    }

    fn add(&mut self, took_ns: i64) {
        self.round_trips_ns[self.count] = u32::try_from(took_ns).unwrap_or(u32::MAX);
        self.count += 1;
    }

    /// The load beside a scheduled run has an end too: slow calls get a shorter warm-up.
    fn warm_up<T>(&self, mut one: impl FnMut() -> Result<T, String>) -> Result<(), String> {
        let warm_ns = match self.period_ns {
            0 => i64::MAX,
            _ => monotonic_ns() + self.budget_ns / WARM_UP_SHARE,
        };
        for _ in 0..WARM_UP {
            one()?;
            if monotonic_ns() >= warm_ns {
                break;
            }
        }
        Ok(())
    }

    /// As [`Self::take`]. `one` returns when it ended: CLOCK_MONOTONIC, nanoseconds.
    pub(super) fn take_ended(
        &mut self,
        mut one: impl FnMut() -> Result<i64, String>,
    ) -> Result<(), String> {
        self.warm_up(&mut one)?;
        let begin_ns = monotonic_ns();
        while let Some(from_ns) = self.next(begin_ns, monotonic_ns()) {
            let ended_ns = one()?;
            self.add(ended_ns - from_ns);
        }
        Ok(())
    }

    /// Sends messages without pause until the count or the time is reached, then calls `await_arrival` with their
    /// number.
    pub(super) fn stream(
        &mut self,
        mut send: impl FnMut() -> Result<(), String>,
        await_arrival: impl FnOnce(u64) -> Result<(), String>,
    ) -> Result<(), String> {
        let begin_ns = monotonic_ns();
        let mut count = 0;
        while count < self.count_max as u64 && monotonic_ns() - begin_ns < self.budget_ns {
            for _ in 0..MESSAGES_PER_CLOCK_READ {
                send()?;
            }
            count += MESSAGES_PER_CLOCK_READ;
        }
        await_arrival(count)?;
        self.set_sum(count, (monotonic_ns() - begin_ns).unsigned_abs());
        Ok(())
    }

    /// Makes calls by an absolute schedule until the count or the time is reached. The result has the round trips
    /// first, then the times from due to done. A late call does not move the later ones, and none is left out. The
    /// schedule begins before the warm-up: if it began when that is done, the server would choose times for its clients
    /// at which their calls do not meet.
    pub(super) fn take_paced(
        &mut self,
        mut one: impl FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        let mut begin_ns = monotonic_ns();
        one()?;
        let warmed_ns = monotonic_ns();
        while begin_ns + self.period_ns < warmed_ns {
            begin_ns += self.period_ns;
        }
        let short = |ns: i64| u32::try_from(ns).unwrap_or(u32::MAX);
        let (mut round_trips, mut from_due) = (Vec::new(), Vec::new());
        let mut due_ns = begin_ns;
        while round_trips.len() < self.count_max {
            due_ns += self.period_ns;
            if due_ns - begin_ns > self.budget_ns {
                break;
            }
            sleep_until(due_ns);
            let sent_ns = monotonic_ns();
            one()?;
            let done_ns = monotonic_ns();
            round_trips.push(short(done_ns - sent_ns));
            from_due.push(short(done_ns - due_ns));
        }
        round_trips.append(&mut from_due);
        self.count = round_trips.len();
        self.make_room(self.count);
        self.round_trips_ns[..self.count].copy_from_slice(&round_trips);
        Ok(())
    }

    /// Without a period as [`Self::take`], with one as [`Self::take_paced`].
    pub(super) fn take_or_pace(
        &mut self,
        one: impl FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        if self.period_ns == 0 {
            self.take(one)
        } else {
            self.take_paced(one)
        }
    }

    /// Sets the result of a run without round trips: `count` messages in `elapsed_ns`.
    pub(super) fn set_sum(&mut self, count: u64, elapsed_ns: u64) {
        self.sum = Some((count, elapsed_ns));
    }
}

/// Round trips before the measured ones: they open connections and fill caches.
pub(crate) const WARM_UP: usize = 64;

/// The fewest round trips of a run: a median needs them.
const COUNT_MIN: usize = 2 * SAMPLES_BEYOND_MIN as usize;

/// How much longer than its time a run lasts for want of round trips, nanoseconds. The bench waits longer for this end.
const LATE_MAX_NS: i64 = 10_000_000_000;
const _: () = assert!((LATE_MAX_NS as u128) < END_PATIENCE.as_nanos());

/// A scheduled run that takes so many times its time is ended: its calls are slower than the schedule.
const OVERTIME: i64 = 2;

/// The share of a scheduled run's time that the warm-up may take.
const WARM_UP_SHARE: i64 = 32;

/// Messages sent between two readings of the clock.
const MESSAGES_PER_CLOCK_READ: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes calls that take 4 ms in a run of `budget_ms`. Returns how many were made, and how many were taken.
    fn calls(period_ms: u64, budget_ms: u64) -> (usize, usize) {
        let line = format!("octets 1 1 100 {budget_ms}000000 {period_ms}000000");
        let mut samples = Samples::default();
        samples.prepare(&Command::parse(&line).expect("a command"));
        let mut calls = 0;
        let slow = || {
            calls += 1;
            sleep_until(monotonic_ns() + 4_000_000);
            Ok(())
        };
        samples.take(slow).expect("no call fails");
        (calls, samples.taken().len())
    }

    #[test]
    fn slow_calls_by_a_schedule_warm_up_for_a_small_share_of_the_time() {
        let (made, taken) = calls(1, 64);
        assert_eq!(made - taken, 1);
        let (made, taken) = calls(0, 64);
        assert_eq!(made - taken, WARM_UP);
    }

    #[test]
    fn a_run_has_enough_round_trips_for_a_median_however_short_its_time_is() {
        for period_ms in [0, 1, 50] {
            let (_, taken) = calls(period_ms, 1);
            assert_eq!(taken, COUNT_MIN, "{period_ms}");
        }
    }

    #[test]
    fn a_run_by_a_schedule_keeps_the_memory_of_the_run_before() {
        let mut samples = Samples::default();
        samples.prepare(&Command::parse("octets 1 1 1000 0").expect("a command"));
        let memory = samples.round_trips_ns.as_ptr();
        samples.prepare(&Command::parse("compute 1 1 500 3000000 1000000").expect("a command"));
        samples.take_paced(|| Ok(())).expect("no call fails");
        assert_eq!(samples.taken().len(), 6);
        assert_eq!(samples.round_trips_ns.as_ptr(), memory);
        assert_eq!(samples.round_trips_ns.len(), 1000);
    }

    #[test]
    fn a_schedule_begins_before_its_warm_up() {
        const PERIOD_NS: i64 = 50_000_000;
        let mut samples = Samples::default();
        let command = Command::parse("compute 1 1 4 1000000000 50000000").expect("a command");
        samples.prepare(&command);
        let mut sent_ns = Vec::new();
        let first_slow = || {
            sent_ns.push(monotonic_ns());
            if sent_ns.len() == 1 {
                sleep_until(sent_ns[0] + PERIOD_NS * 3 / 2);
            }
            Ok(())
        };
        samples.take_paced(first_slow).expect("no call fails");
        assert_eq!(sent_ns.len(), 5);
        // On a busy machine, a call may be late.
        let least_ns = sent_ns[1..]
            .iter()
            .map(|at_ns| (at_ns - sent_ns[0]) % PERIOD_NS);
        let least_ns = least_ns.min().unwrap();
        assert!(
            least_ns < PERIOD_NS / 3,
            "{least_ns} ns behind the schedule"
        );
    }

    #[test]
    fn a_stall_takes_no_call_from_a_schedule() {
        let mut samples = Samples::default();
        samples.prepare(&Command::parse("octets 1 1 100 200000000 5000000").expect("a command"));
        let mut made = 0;
        let once_slow = || {
            made += 1;
            // The stall is after the warm-up, and longer than the rest of the run.
            if made == WARM_UP + 10 {
                sleep_until(monotonic_ns() + 200_000_000);
            }
            Ok(())
        };
        samples.take(once_slow).expect("no call fails");
        assert_eq!(samples.taken().len(), 40);
    }

    #[test]
    fn a_stall_shows_in_every_call_that_it_has_delayed() {
        // The warm-up has a second for its 64 calls; the run ends by its count.
        let command = Command::parse("octets 1 1 40 32000000000 5000000").expect("a command");
        for is_ended in [false, true] {
            let mut samples = Samples::default();
            samples.prepare(&command);
            let mut made = 0;
            let mut once_slow = || {
                made += 1;
                if made == WARM_UP + 10 {
                    sleep_until(monotonic_ns() + 100_000_000);
                }
                Ok(monotonic_ns())
            };
            let taken = if is_ended {
                samples.take_ended(once_slow)
            } else {
                samples.take(|| once_slow().map(drop))
            };
            taken.expect("no call fails");
            // The ten calls that were due in the first half of the stall were late by half of it at least.
            let late = samples.taken().iter().filter(|ns| **ns >= 50_000_000);
            assert!(late.count() >= 10, "{:?}", samples.taken());
        }
    }
}
