//! The commands of a client, and its answers.

use std::io::{BufRead as _, Write as _};

use deckwatch_os::clock::{monotonic_ns, sleep_until};

use super::{greet, system};
use crate::laboratory::error::LaboratoryError;
use crate::limits::{BENCH_OCTETS_MAX, BENCH_SAMPLES_MAX};

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

/// Round trips of one run. Their memory is touched before the run.
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
        self.round_trips_ns.clear();
        self.round_trips_ns.resize(command.count, u32::MAX);
    }

    fn taken(&self) -> &[u32] {
        &self.round_trips_ns[..self.count]
    }

    /// Makes round trips until the count or the time is reached. The warm-up before them is not measured. Without a
    /// period each round trip starts at the end of the one before. With a period it starts when it is due, or at the
    /// end of the one before if that is later.
    pub(super) fn take(
        &mut self,
        mut one: impl FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        self.warm_up(&mut one)?;
        let begin_ns = monotonic_ns();
        let mut before_ns = begin_ns;
        let mut due_ns = begin_ns;
        while self.count < self.count_max && before_ns - begin_ns < self.budget_ns {
            if self.period_ns != 0 {
                due_ns += self.period_ns;
                sleep_until(due_ns);
                before_ns = monotonic_ns();
            }
            one()?;
            let after_ns = monotonic_ns();
            self.round_trips_ns[self.count] =
                u32::try_from(after_ns - before_ns).unwrap_or(u32::MAX);
            self.count += 1;
            before_ns = after_ns;
        }
        Ok(())
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

    /// As [`Self::take`]. `one` returns its time itself, nanoseconds.
    pub(super) fn take_timed(
        &mut self,
        mut one: impl FnMut() -> Result<i64, String>,
    ) -> Result<(), String> {
        self.warm_up(&mut one)?;
        let begin_ns = monotonic_ns();
        let mut due_ns = begin_ns;
        while self.count < self.count_max && monotonic_ns() - begin_ns < self.budget_ns {
            if self.period_ns != 0 {
                due_ns += self.period_ns;
                sleep_until(due_ns);
            }
            self.round_trips_ns[self.count] = u32::try_from(one()?).unwrap_or(u32::MAX);
            self.count += 1;
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
    /// first, then the times from due to done. A late call does not move the later ones, and none is left out.
    pub(super) fn take_paced(
        &mut self,
        mut one: impl FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        one()?;
        let short = |ns: i64| u32::try_from(ns).unwrap_or(u32::MAX);
        let (mut round_trips, mut from_due) = (Vec::new(), Vec::new());
        let begin_ns = monotonic_ns();
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
        self.round_trips_ns = round_trips;
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

/// The share of a scheduled run's time that the warm-up may take.
const WARM_UP_SHARE: i64 = 32;

/// Messages sent between two readings of the clock.
const MESSAGES_PER_CLOCK_READ: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(period_ns: u64) -> (usize, usize) {
        let line = format!("octets 1 1 100 64000000 {period_ns}");
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
        let (made, taken) = calls(1_000_000);
        assert_eq!(made - taken, 1);
        let (made, taken) = calls(0);
        assert_eq!(made - taken, WARM_UP);
    }
}
