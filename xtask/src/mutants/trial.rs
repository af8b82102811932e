//! Runs, for each mutant of a build, the tests that reach its place.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::at_once;
use super::build::Build;
use super::ledger::{Ledger, Outcome};
use super::outcomes::without_place;
use super::program::{Ended, Program, With};
use super::reach::{Reach, Test};
use super::together::Mutant;

/// The tests of a build.
pub(super) struct Trial<'a> {
    build: &'a Build<'a>,
    programs: Vec<Program>,
    reach: Reach,
    /// By file: how many of its mutants a test noticed, by the test's position. Such a test notices others, too.
    noticed: Mutex<BTreeMap<&'a str, BTreeMap<usize, u32>>>,
}

impl<'a> Trial<'a> {
    /// Finds out what the tests of a build reach. What survived the tests of an earlier build is to be tried again.
    pub(super) fn new(build: &'a Build<'a>, folder: &Path, ledger: &mut Ledger) -> Result<Self> {
        let programs = build.programs.iter();
        let programs: Vec<Program> = programs
            .map(|program| Program::new(program, &build.folder()))
            .collect();
        let filters = build.scope.tests_divided().1;
        let reach = Reach::record(&programs, filters.get(1..).unwrap_or_default(), folder)?;
        if reach.is_new {
            for &number in &build.placed {
                let mutant = build.mutant(number);
                let known = ledger.of(&mutant.name);
                if matches!(known, Some(Outcome::Survived | Outcome::Unnoticed)) {
                    ledger.note(&mutant.name, Outcome::SurvivedBefore)?;
                }
            }
        }
        Ok(Self {
            build,
            programs,
            reach,
            noticed: Mutex::default(),
        })
    }

    /// Tries the mutants of the build that `is_chosen` chooses and that were not noticed yet, until `end`; those whose
    /// names are in `first` before the others. An outcome is noted at once.
    pub(super) fn run(
        &self,
        is_chosen: impl Fn(&Mutant) -> bool,
        first: &BTreeSet<String>,
        ledger: &mut Ledger,
        end: Option<Instant>,
    ) -> Result<()> {
        let name = self.build.name;
        let placed = self.build.placed.iter().copied();
        let chosen: Vec<u32> = placed
            .filter(|&number| is_chosen(self.build.mutant(number)))
            .collect();
        for &number in &chosen {
            let mutant = &self.build.mutant(number).name;
            let known = ledger.of(mutant);
            if !self.reach.of(number).is_empty() {
                if known == Some(Outcome::Unreached) {
                    ledger.note(mutant, Outcome::SurvivedBefore)?;
                }
            } else if known.is_none_or(Outcome::is_survivor) {
                eprintln!("reached by no test: {mutant}");
                ledger.note(mutant, Outcome::Unreached)?;
            }
        }
        let with = |ledger: &Ledger, outcome: Option<Outcome>| {
            let mut numbers = chosen.clone();
            numbers.retain(|&number| ledger.of(&self.build.mutant(number).name) == outcome);
            numbers
        };
        let mut open = with(ledger, None);
        open.sort_by_cached_key(|&number| {
            let name = without_place(&self.build.mutant(number).name);
            !name.is_some_and(|name| first.contains(&name))
        });
        open.extend(with(ledger, Some(Outcome::SurvivedBefore)));
        eprintln!(
            "{name}: {} of {} mutants are tried; the {} tests take {:.1} s",
            open.len(),
            chosen.len(),
            self.reach.tests.len(),
            self.reach.time().as_secs_f64(),
        );
        self.try_all(&open, Stage::Quick, ledger, end)?;
        let mut long = with(ledger, Some(Outcome::Unnoticed));
        // The run may end before all of them are tried.
        long.sort_by_cached_key(|&number| self.long_time(number));
        self.try_all(&long, Stage::Long, ledger, end)?;
        // On a busy machine, a test may be slow without the mutant's doing.
        let slow = with(ledger, Some(Outcome::Slow));
        self.try_all(&slow, Stage::Again, ledger, end)
    }

    /// Returns how long the long tests of a mutant take.
    fn long_time(&self, number: u32) -> Duration {
        let tests = self.reach.of(number).into_iter();
        let times = tests.map(|test| self.reach.tests[test].time);
        times.filter(|&time| time > QUICK_MAX).sum()
    }

    /// Tries these mutants until `end`.
    fn try_all(
        &self,
        numbers: &[u32],
        stage: Stage,
        ledger: &mut Ledger,
        end: Option<Instant>,
    ) -> Result<()> {
        let began = Instant::now();
        let ledger = Mutex::new((ledger, 0_usize));
        at_once::for_each(numbers, |&number| {
            if end.is_some_and(|end| Instant::now() >= end) {
                return Ok(());
            }
            let mutant = self.build.mutant(number);
            let outcome = self.outcome(number, mutant, stage)?;
            if outcome != Outcome::Caught {
                eprintln!("{outcome:?}: {}", mutant.name);
            }
            let mut ledger = locked(&ledger);
            ledger.0.note(&mutant.name, outcome)?;
            ledger.1 += 1;
            if ledger.1.is_multiple_of(100) {
                let (done, seconds) = (ledger.1, began.elapsed().as_secs());
                let count = numbers.len();
                eprintln!("{}: {done} of {count} after {seconds} s", self.build.name);
            }
            Ok(())
        })?;
        let done = locked(&ledger).1;
        if done < numbers.len() {
            let count = numbers.len();
            eprintln!("{}: time is up after {done} of {count}", self.build.name);
        }
        Ok(())
    }

    /// Runs the tests of a stage that reach a mutant until one fails.
    fn outcome(&self, number: u32, mutant: &'a Mutant, stage: Stage) -> Result<Outcome> {
        let tests = &self.reach.tests;
        let noticed = locked(&self.noticed).get(&*mutant.file).cloned();
        let noticed = noticed.unwrap_or_default();
        let mut reaching = self.reach.of(number);
        let (long, quick): (Vec<usize>, Vec<usize>) = reaching
            .iter()
            .partition(|&&test| tests[test].time > QUICK_MAX);
        match stage {
            Stage::Quick => reaching = quick,
            Stage::Long => reaching = long.clone(),
            Stage::Again => {}
        }
        reaching.sort_by(|&one, &other| {
            let cost =
                |test: usize| cost(tests[test].time, noticed.get(&test).copied().unwrap_or(0));
            cost(one).total_cmp(&cost(other))
        });
        for run in runs(&reaching, tests) {
            let names: Vec<&str> = run.iter().map(|&test| &*tests[test].name).collect();
            let time: Duration = run.iter().map(|&test| tests[test].time).sum();
            let limit = (time * 3 + LIMIT_MIN) * if stage == Stage::Again { PATIENCE } else { 1 };
            match self.tried(tests[run[0]].program, number, &names, limit)? {
                Ended::Whole => {}
                Ended::Slow if stage == Stage::Again => return Ok(Outcome::TimedOut),
                Ended::Slow => return Ok(Outcome::Slow),
                Ended::Failed(name) => {
                    let failed = |test: &&usize| Some(&tests[**test].name) == name.as_ref();
                    if let Some(&test) = run.iter().find(failed) {
                        let mut noticed = locked(&self.noticed);
                        let counts = noticed.entry(&mutant.file).or_default();
                        *counts.entry(test).or_default() += 1;
                    }
                    return Ok(Outcome::Caught);
                }
            }
        }
        Ok(if stage == Stage::Quick && !long.is_empty() {
            Outcome::Unnoticed
        } else {
            Outcome::Survived
        })
    }

    /// Runs tests with a mutant. A failure must happen twice: on a busy machine, one need not be the mutant's doing.
    fn tried(&self, program: usize, number: u32, names: &[&str], limit: Duration) -> Result<Ended> {
        let run = |names: &[&str]| self.programs[program].run(names, With::Mutant(number), limit);
        let ended = run(names)?;
        let Ended::Failed(test) = &ended else {
            return Ok(ended);
        };
        let again = match test {
            Some(test) => run(&[test])?,
            None => run(names)?,
        };
        if again != Ended::Whole {
            return Ok(ended);
        }
        run(names) // Those behind the test that failed once did not run.
    }
}

/// The tests that are run for a mutant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Those that take at most a second: for all mutants before any long test.
    Quick,
    /// The others, for mutants that no quick test notices.
    Long,
    /// All, with more time, for mutants with which a test did not end.
    Again,
}

/// Returns what orders the tests of a mutant: the quickest first, those that noticed other mutants of its file earlier.
fn cost(time: Duration, noticed: u32) -> f64 {
    time.as_secs_f64() / f64::from(1 + NOTICED_WEIGHT * noticed)
}

/// Divides tests, in their order, into runs of one program. The first test runs alone: it is the likeliest to fail.
fn runs<'t>(order: &'t [usize], tests: &[Test]) -> Vec<&'t [usize]> {
    let mut runs = Vec::new();
    let mut rest = order;
    while let [first, others @ ..] = rest {
        let mut time = tests[*first].time;
        let more = others.iter().take_while(|&&test| {
            time += tests[test].time;
            time < RUN_MAX && tests[test].program == tests[*first].program
        });
        let count = if runs.is_empty() { 1 } else { 1 + more.count() };
        let (run, behind) = rest.split_at(count);
        runs.push(run);
        rest = behind;
    }
    runs
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A test that noticed a mutant of the file goes before tests that take a twentieth of its time.
const NOTICED_WEIGHT: u32 = 20;

/// A longer test runs for few mutants.
const QUICK_MAX: Duration = Duration::from_secs(1);

/// Tests that take less together are one run of their program.
const RUN_MAX: Duration = Duration::from_millis(300);

/// Beside three times what the tests take without a mutant.
const LIMIT_MIN: Duration = Duration::from_secs(4);

/// How much longer a test may take that was slow before.
const PATIENCE: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_test_goes_first_and_one_that_noticed_others_earlier() {
        let seconds = Duration::from_secs;
        assert!(cost(seconds(1), 0) < cost(seconds(2), 0));
        assert!(cost(seconds(20), 1) < cost(seconds(1), 0));
        assert!(cost(seconds(2), 2) < cost(seconds(2), 1));
        assert!(cost(seconds(30), 1) > cost(seconds(1), 0));
    }

    #[test]
    fn quick_tests_of_a_program_run_together() {
        let tests = [
            (0, 10),
            (0, 100),
            (0, 150),
            (0, 100),
            (1, 10),
            (1, 400),
            (1, 400),
        ];
        let tests = tests.map(|(program, millis)| Test::new(program, millis));
        let order = [0, 1, 2, 3, 4, 5, 6];
        let runs = runs(&order, &tests);
        assert_eq!(runs, [&[0][..], &[1, 2], &[3], &[4], &[5], &[6]]);
    }
}
