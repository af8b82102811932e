//! Which mutants' places each test reaches, and how long the test takes.
//!
//! A mutant can only make a test fail that reaches its place. Each test runs once by itself without a mutant and notes
//! the places. Threads beside the test may reach a place in one run and not in the next: a mutant that only such a
//! thread meets may be called a survivor, but never caught by mistake.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::at_once;
use super::program::{Ended, Program, With};

/// A test, and what it reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Test {
    /// The number of its program.
    pub(super) program: usize,
    pub(super) name: String,
    pub(super) time: Duration,
    /// Numbers of mutants.
    places: BTreeSet<u32>,
}

/// The tests of a crate.
pub(super) struct Reach {
    pub(super) tests: Vec<Test>,
    /// Returns true if a test ran for this. Otherwise an earlier run of the command had the same programs.
    pub(super) is_new: bool,
}

impl Reach {
    /// Runs each test by itself and keeps what it reaches in a file of `folder`. The tests of a program that was not
    /// built anew since are read from there.
    pub(super) fn record(programs: &[Program], filters: &[String], folder: &Path) -> Result<Self> {
        let path = folder.join("reached.txt");
        let known = parsed(&std::fs::read_to_string(&path).unwrap_or_default());
        let mut reach = Self {
            tests: Vec::new(),
            is_new: false,
        };
        let mut text = String::new();
        for (number, program) in programs.iter().enumerate() {
            let identity = format!("{} {}", program.identity()?, filters.join(" "));
            let mut tests = if let Some(tests) = known.get(&identity) {
                tests.clone()
            } else {
                reach.is_new = true;
                run_each(program, filters, folder)?
            };
            write(&mut text, &identity, &tests);
            for test in &mut tests {
                test.program = number;
            }
            reach.tests.extend(tests);
        }
        std::fs::write(path, text)?;
        Ok(reach)
    }

    /// Returns the positions of the tests that reach the place of a mutant.
    pub(super) fn of(&self, mutant: u32) -> Vec<usize> {
        let tests = self.tests.iter().enumerate();
        let reaching = tests.filter(|(_, test)| test.places.contains(&mutant));
        reaching.map(|(position, _)| position).collect()
    }

    /// Returns how long all tests take, one after the other.
    pub(super) fn time(&self) -> Duration {
        self.tests.iter().map(|test| test.time).sum()
    }
}

#[cfg(test)]
impl Test {
    pub(super) fn new(program: usize, millis: u64) -> Self {
        Self {
            program,
            name: String::new(),
            time: Duration::from_millis(millis),
            places: BTreeSet::new(),
        }
    }
}

fn run_each(program: &Program, filters: &[String], folder: &Path) -> Result<Vec<Test>> {
    let names = program.tests(filters)?;
    let names: Vec<(usize, &String)> = names.iter().enumerate().collect();
    let tests = Mutex::new(BTreeMap::new());
    at_once::for_each(&names, |&(number, name)| {
        let notes = folder.join(format!("reached-{number}"));
        let test = run_one(program, name, &notes)?;
        if let Ok(mut tests) = tests.lock() {
            tests.insert(number, test);
        }
        Ok(())
    })?;
    let tests = tests.into_inner().unwrap_or_default();
    Ok(tests.into_values().collect())
}

fn run_one(program: &Program, name: &str, notes: &Path) -> Result<Test> {
    for _ in 0..RUNS_MAX {
        let _ = std::fs::remove_file(notes); // Absent after a run that ended.
        let began = Instant::now();
        let ended = program.run(&[name], With::Notes(notes), TEST_MAX)?;
        let time = began.elapsed();
        let octets = std::fs::read(notes).unwrap_or_default(); // Absent if it reaches nothing.
        if ended != Ended::Whole {
            eprintln!("{name} fails without a mutant");
            continue;
        }
        let _ = std::fs::remove_file(notes); // As above.
        return Ok(Test {
            program: 0,
            name: name.to_owned(),
            time,
            places: places_in(&octets),
        });
    }
    bail!("{name} fails without a mutant, {RUNS_MAX} times in {RUNS_MAX} runs")
}

/// Returns the numbers that the program noted. A process may be killed while it writes one.
fn places_in(octets: &[u8]) -> BTreeSet<u32> {
    let (numbers, _rest) = octets.as_chunks();
    numbers.iter().copied().map(u32::from_ne_bytes).collect()
}

/// Adds the tests of a program: a line that identifies it, then a line for each test.
fn write(text: &mut String, identity: &str, tests: &[Test]) {
    let _ = writeln!(text, "program {identity}"); // A string takes all.
    for test in tests {
        let _ = write!(text, "{} {}", test.name, test.time.as_micros()); // As above.
        for place in &test.places {
            let _ = write!(text, " {place}"); // As above.
        }
        text.push('\n');
    }
}

/// Returns the tests by the identities of their programs.
fn parsed(text: &str) -> BTreeMap<String, Vec<Test>> {
    let mut programs: BTreeMap<String, Vec<Test>> = BTreeMap::new();
    let mut tests = None;
    for line in text.lines() {
        if let Some(identity) = line.strip_prefix("program ") {
            tests = Some(programs.entry(identity.to_owned()).or_default());
            continue;
        }
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default().to_owned();
        let mut numbers = words.map_while(|word| word.parse().ok());
        if let (Some(tests), Some(micros)) = (&mut tests, numbers.next()) {
            let places = numbers.map_while(|number| u32::try_from(number).ok());
            tests.push(Test {
                program: 0,
                name,
                time: Duration::from_micros(micros),
                places: places.collect(),
            });
        }
    }
    programs
}

/// On a busy machine a test may fail without a mutant.
const RUNS_MAX: u32 = 3;

const TEST_MAX: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    fn test(name: &str, places: &[u32]) -> Test {
        Test {
            name: name.to_owned(),
            places: places.iter().copied().collect(),
            ..Test::new(0, 3)
        }
    }

    #[test]
    fn what_tests_reach_is_read_again_by_program() {
        let (first, second) = (
            [test("a::b", &[1, 7]), test("c", &[])],
            [test("a::b", &[7])],
        );
        let mut text = String::new();
        write(&mut text, "lib-1 10 20 ", &first);
        write(&mut text, "tests-2 30 40 --skip=slow", &second);
        let known = parsed(&text);
        assert_eq!(known["lib-1 10 20 "], first);
        assert_eq!(known["tests-2 30 40 --skip=slow"], second);
        assert!(parsed("").is_empty());
    }

    #[test]
    fn only_tests_that_reach_a_mutant_are_of_it() {
        let reach = Reach {
            tests: vec![test("a", &[1, 7]), test("b", &[2]), test("c", &[7])],
            is_new: true,
        };
        assert_eq!(reach.of(7), [0, 2]);
        assert_eq!(reach.of(2), [1]);
        assert_eq!(reach.of(3), [0; 0]);
        assert_eq!(reach.time(), Duration::from_millis(9));
    }

    #[test]
    fn a_number_that_was_not_written_to_its_end_is_left_out() {
        let mut octets = [7_u32, 9, 7].map(u32::to_ne_bytes).concat();
        octets.extend([1, 0]);
        assert_eq!(places_in(&octets), BTreeSet::from([7, 9]));
    }
}
