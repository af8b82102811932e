//! What a calling end is told, and what it answers.

use std::io::{BufRead as _, Write as _};

use deckwatch_os::clock::{monotonic_ns, sleep_until};

use super::{greet, system};
use crate::bench::error::BenchError;
use crate::limits::{BENCH_OCTETS_MAX, BENCH_SAMPLES_MAX};

/// One run that a client is told to make.
pub(crate) struct Command {
    pub(crate) kind: String,
    pub(crate) there: usize,
    pub(crate) back: usize,
    pub(crate) count: usize,
    pub(crate) budget_ns: i64,
    pub(crate) period_ns: i64,
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
}

/// Obeys commands until there are no more.
pub(crate) fn commands(
    mut run: impl FnMut(&Command, &mut Samples) -> Result<(), String>,
) -> Result<(), BenchError> {
    greet("ready")?;
    let mut samples = Samples::default();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(system("Commands cannot be read"))?;
        let outcome = Command::parse(&line)
            .ok_or_else(|| format!("'{line}' is no command"))
            .and_then(|command| {
                samples.prepare(&command);
                run(&command, &mut samples)
            });
        answer(outcome, &samples).map_err(system("Nobody listens"))?;
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

/// Round trips of one run, in memory that has been touched before.
#[derive(Default)]
pub(crate) struct Samples {
    round_trips_ns: Vec<u32>,
    count: usize,
    count_max: usize,
    budget_ns: i64,
    period_ns: i64,
    /// Messages and nanoseconds of a run that is not told by its round trips.
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

    /// Makes round trips, first some that are not measured, until the count or the time is reached. Without a period the end of one is the
    /// start of the next; with one they start when they are due, or at once where the one before was not done by then.
    pub(crate) fn take(
        &mut self,
        mut one: impl FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        // A run by a schedule may have a load beside it that does not last for ever: what is slow rehearses less often.
        let rehearsed_ns = match self.period_ns {
            0 => i64::MAX,
            _ => monotonic_ns() + self.budget_ns / WARM_UP_SHARE,
        };
        for _ in 0..WARM_UP {
            one()?;
            if monotonic_ns() >= rehearsed_ns {
                break;
            }
        }
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

    /// Sends messages behind each other until the count or the time is reached, then waits until they have arrived.
    pub(crate) fn stream(
        &mut self,
        mut send: impl FnMut() -> Result<(), String>,
        arrived: impl FnOnce(u64) -> Result<(), String>,
    ) -> Result<(), String> {
        let begin_ns = monotonic_ns();
        let mut count = 0;
        while count < self.count_max as u64 && monotonic_ns() - begin_ns < self.budget_ns {
            for _ in 0..MESSAGES_A_LOOK {
                send()?;
            }
            count += MESSAGES_A_LOOK;
        }
        arrived(count)?;
        self.told(count, (monotonic_ns() - begin_ns).unsigned_abs());
        Ok(())
    }

    /// Keeps what was measured elsewhere.
    pub(crate) fn put(&mut self, times_ns: Vec<u32>) {
        self.count = times_ns.len();
        self.round_trips_ns = times_ns;
    }

    /// What the run came to: so many messages in so many nanoseconds.
    pub(crate) fn told(&mut self, count: u64, elapsed_ns: u64) {
        self.sum = Some((count, elapsed_ns));
    }
}

/// Round trips before those that count: connections, adoption, caches.
const WARM_UP: usize = 64;

/// The share of a scheduled run's time that they may take.
const WARM_UP_SHARE: i64 = 32;

/// Messages between two looks at the clock.
const MESSAGES_A_LOOK: u64 = 16;

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
    fn slow_calls_by_a_schedule_rehearse_for_a_small_share_of_the_time() {
        let (made, taken) = calls(1_000_000);
        assert_eq!(made - taken, 1);
        let (made, taken) = calls(0);
        assert_eq!(made - taken, WARM_UP);
    }
}
